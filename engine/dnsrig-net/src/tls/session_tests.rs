use std::{
    io::{Read, Write},
    sync::Arc,
};

use dnsrig_testing::inputs;
use proptest::prelude::*;
use rustls::ServerConfig;

use super::*;
use crate::tls::{DOT, Settings, identity, pair::Pair};

fn client(sessions_max: usize) -> Client {
    Client::new([192, 0, 2, 1].into(), Settings { sessions_max, ..Settings::default() }).unwrap()
}

fn server_config() -> Arc<ServerConfig> {
    let identity = identity::make_identity([192, 0, 2, 1].into()).unwrap();
    identity::server_config(identity, DOT, None).unwrap()
}

#[test]
fn bytes_pass_both_ways_in_pieces_of_any_size() {
    let (client, server) = (client(0), server_config());
    for piece in [1, 7, 100, 100_000] {
        let mut pair = Pair::new(&client, &server);
        pair.settle(piece).unwrap();
        assert!(pair.last.open && !pair.server.is_handshaking(), "in pieces of {piece}");
        assert_eq!(pair.server.alpn_protocol(), Some(&b"dot"[..]));
        let mut wire = Vec::new();
        pair.session.seal(&mut pair.unread, [&b"one"[..], b"three"].into_iter(), &mut wire).unwrap();
        pair.give(&wire).unwrap();
        assert_eq!(pair.plain_at_server(), b"onethree");
        pair.server.writer().write_all(&[7; 40_000]).unwrap();
        pair.settle(piece).unwrap();
        assert_eq!(pair.received, [7; 40_000]);
        pair.server.send_close_notify();
        pair.settle(piece).unwrap();
        assert!(pair.last.closed);
    }
}

#[test]
fn each_query_has_a_record_of_its_own() {
    let mut pair = Pair::new(&client(0), &server_config());
    pair.settle(1_000_000).unwrap();
    let mut wire = Vec::new();
    pair.session.seal(&mut [], [&[1; 50][..], &[2; 60], &[3; 70]].into_iter(), &mut wire).unwrap();
    let mut records = 0;
    let mut rest = &wire[..];
    while let Some((header, behind)) = rest.split_first_chunk::<5>() {
        assert_eq!(header[0], 23, "application data (RFC 8446 §5.1)");
        rest = &behind[usize::from(u16::from_be_bytes([header[3], header[4]]))..];
        records += 1;
    }
    assert_eq!((records, rest), (3, &[][..]));
}

#[test]
fn a_close_notify_is_understood() {
    let mut pair = Pair::new(&client(0), &server_config());
    pair.settle(1_000_000).unwrap();
    let mut wire = Vec::new();
    pair.session.close(&mut [], &mut wire).unwrap();
    pair.give(&wire).unwrap();
    assert_eq!(pair.server.reader().read(&mut [0; 9]).unwrap(), 0, "an end, not a cut");
}

#[test]
fn sessions_are_resumed_if_they_may_be() {
    let server = server_config();
    for (sessions_max, resumed) in [(10, true), (1, true), (0, false)] {
        let client = client(sessions_max);
        for turn in 0..3 {
            let mut pair = Pair::new(&client, &server);
            pair.settle(1_000_000).unwrap();
            assert_eq!(pair.session.is_resumed(), resumed && turn > 0, "with room for {sessions_max}, turn {turn}");
        }
    }
}

/// A client with a session to be resumed, whose ticket permits this number of bytes of early data.
fn early(bytes_max: u32) -> (Client, Arc<ServerConfig>) {
    let server = identity::with_early_data(&server_config(), bytes_max);
    let settings = Settings { sessions_max: 10, early_data: true, ..Settings::default() };
    let client = Client::new([192, 0, 2, 1].into(), settings).unwrap();
    Pair::new(&client, &server).settle(1_000_000).unwrap();
    (client, server)
}

/// Begins a handshake with what may go with it of two frames; how much that is, and what comes first at the server.
fn begin(pair: &mut Pair) -> (usize, Vec<u8>) {
    let mut wire = Vec::new();
    let sent = pair.session.begin([&b"one"[..], b"three"].into_iter(), &mut wire).unwrap();
    pair.give(&wire).unwrap();
    let mut came = vec![0; 100];
    let count = pair.server.early_data().map_or(0, |mut early| early.read(&mut came).unwrap());
    came.truncate(count);
    (sent, came)
}

#[test]
fn early_data_comes_before_the_handshake_is_done_and_is_answered_then() {
    let (client, server) = early(1_000);
    for piece in [1, 100_000] {
        let mut pair = Pair::new(&client, &server);
        assert_eq!(begin(&mut pair), (8, b"onethree".to_vec()));
        assert!(pair.server.is_handshaking());
        pair.server.writer().write_all(b"answer").unwrap();
        pair.settle(piece).unwrap();
        assert!(pair.last.open && pair.session.is_resumed() && pair.session.is_early_data_accepted());
        assert_eq!(pair.received, b"answer");
        let mut wire = Vec::new();
        pair.session.seal(&mut pair.unread, [&b"more"[..]].into_iter(), &mut wire).unwrap();
        pair.give(&wire).unwrap();
        assert_eq!(pair.plain_at_server(), b"more");
    }
}

#[test]
fn rejected_early_data_is_known_as_such_and_the_connection_goes_on() {
    let (client, server) = early(1_000);
    // A server that does not want it, and one that does not know the ticket.
    for (server, resumed) in [(&server, true), (&early(1_000).1, false)] {
        let mut pair = Pair::new(&client, server);
        pair.server.reject_early_data();
        assert_eq!(begin(&mut pair), (8, Vec::new()));
        pair.settle(1_000_000).unwrap();
        assert!(pair.last.open && !pair.session.is_early_data_accepted());
        assert_eq!(pair.session.is_resumed(), resumed);
        let mut wire = Vec::new();
        pair.session.seal(&mut pair.unread, [&b"again"[..]].into_iter(), &mut wire).unwrap();
        pair.give(&wire).unwrap();
        assert_eq!(pair.plain_at_server(), b"again");
    }
}

#[test]
fn a_server_that_refuses_all_early_data_resumes_sessions_and_permits_it_again() {
    let server = identity::refusing_early_data(&server_config(), 1_000);
    let settings = Settings { sessions_max: 10, early_data: true, ..Settings::default() };
    let client = Client::new([192, 0, 2, 1].into(), settings).unwrap();
    Pair::new(&client, &server).settle(1_000_000).unwrap();
    for _ in 0..2 {
        let mut pair = Pair::new(&client, &server);
        assert!(pair.session.permits_early_data());
        assert_eq!(begin(&mut pair), (8, Vec::new()));
        pair.settle(1_000_000).unwrap();
        assert!(pair.last.open && pair.session.is_resumed() && !pair.session.is_early_data_accepted());
    }
}

#[test]
fn no_more_early_data_is_sent_than_the_ticket_permits() {
    for (bytes_max, sent) in [(8, &b"onethree"[..]), (7, b"one"), (2, b"")] {
        let (client, server) = early(bytes_max);
        let mut pair = Pair::new(&client, &server);
        assert_eq!(begin(&mut pair), (sent.len(), sent.to_vec()), "{bytes_max}");
        pair.settle(1_000_000).unwrap();
        assert!(pair.last.open && pair.session.is_early_data_accepted());
    }
}

#[test]
fn without_a_ticket_that_permits_it_and_without_the_wish_nothing_is_sent_early() {
    let (client, server) = early(0);
    assert_eq!(begin(&mut Pair::new(&client, &server)), (0, Vec::new()), "a ticket without it");
    assert_eq!(begin(&mut Pair::new(&client.another(), &early(1_000).1)), (0, Vec::new()), "no ticket");
    let (_, server) = early(1_000);
    let unwilling = self::client(10);
    Pair::new(&unwilling, &server).settle(1_000_000).unwrap();
    let mut pair = Pair::new(&unwilling, &server);
    assert_eq!(begin(&mut pair), (0, Vec::new()));
    pair.settle(1_000_000).unwrap();
    assert!(pair.session.is_resumed() && !pair.session.is_early_data_accepted());
}

#[test]
fn another_client_of_a_server_resumes_its_own_sessions_only() {
    let (client, server) = (client(10), server_config());
    let another = client.another();
    let resumed = [&client, &client, &another, &another].map(|client| {
        let mut pair = Pair::new(client, &server);
        pair.settle(1_000_000).unwrap();
        pair.session.is_resumed()
    });
    assert_eq!(resumed, [false, true, false, true]);
}

#[test]
fn of_sessions_no_more_are_kept_than_there_is_room_for() {
    let (client, server) = (client(1), server_config());
    Pair::new(&client, &server).settle(1_000_000).unwrap();
    Pair::new(&client, &server).settle(1_000_000).unwrap();
    // Two begin before either has got a new ticket, and there is one.
    let mut pairs = [Pair::new(&client, &server), Pair::new(&client, &server)];
    pairs[0].session.drive(&mut [], &mut Vec::new(), |_| ()).unwrap();
    pairs[1].settle(1_000_000).unwrap();
    assert!(!pairs[1].session.is_resumed());
}

#[test]
fn an_alert_and_plain_text_are_errors() {
    for incoming in [&[21, 3, 3, 0, 2, 2, 40][..], b"HTTP/1.1 400 Bad Request\r\n\r\n"] {
        let mut session = Session::new(&client(0)).unwrap();
        session.drive(&mut [], &mut Vec::new(), |_| ()).unwrap();
        assert!(session.drive(&mut incoming.to_vec(), &mut Vec::new(), |_| ()).is_err());
        assert!(session.seal(&mut [], [&[1][..]].into_iter(), &mut Vec::new()).is_err());
    }
}

#[test]
fn a_query_before_the_handshake_is_done_is_an_error() {
    let mut session = Session::new(&client(0)).unwrap();
    assert!(session.seal(&mut [], [&[1][..]].into_iter(), &mut Vec::new()).is_err());
}

proptest! {
    #![proptest_config(inputs(64))]

    /// Whatever a server sends, there is an end to it and nothing is taken for an answer.
    #[test]
    fn garbage_is_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..600), record in any::<bool>()) {
        if record && bytes.len() > 5 {
            let length = (bytes.len() - 5) as u16;
            bytes[..5].copy_from_slice(&[22, 3, 3, (length >> 8) as u8, length as u8]);
        }
        let mut session = Session::new(&client(0)).unwrap();
        session.drive(&mut [], &mut Vec::new(), |_| ()).unwrap();
        let driven = session.drive(&mut bytes, &mut Vec::new(), |_| panic!("there is no key for that"));
        prop_assert!(driven.is_err() || !driven.unwrap().open);
    }

    /// One byte of the handshake or of an answer turned into another: an error, or it waits for more.
    #[test]
    fn a_spoilt_byte_never_passes_as_an_answer(at in 0_usize..3_000, flip in 1_u8..=255) {
        let mut pair = Pair::new(&client(0), &server_config());
        let mut hello = Vec::new();
        pair.session.drive(&mut [], &mut hello, |_| ()).unwrap();
        pair.give(&hello).unwrap();
        let mut incoming = Vec::new();
        while pair.server.wants_write() {
            pair.server.write_tls(&mut incoming).unwrap();
        }
        let at = at % incoming.len();
        incoming[at] ^= flip;
        let mut heard = 0;
        // Its handshake may still come about: the middlebox compatibility bytes mean nothing (RFC 8446 §D.4).
        let _ = pair.session.drive(&mut incoming, &mut Vec::new(), |_| heard += 1);
        prop_assert_eq!(heard, 0);
    }

    /// A server that spoils its own flight, by one byte, never has taken early data.
    #[test]
    fn a_spoilt_byte_never_accepts_early_data(at in 0_usize..3_000, flip in 1_u8..=255) {
        let (client, server) = early(1_000);
        let mut pair = Pair::new(&client, &server);
        begin(&mut pair);
        let mut incoming = Vec::new();
        while pair.server.wants_write() {
            pair.server.write_tls(&mut incoming).unwrap();
        }
        let at = at % incoming.len();
        incoming[at] ^= flip;
        let driven = pair.session.drive(&mut incoming, &mut Vec::new(), |_| ());
        // Bytes for middleboxes mean nothing (RFC 8446 §D.4).
        prop_assert!(pair.session.is_early_data_accepted() <= driven.is_ok_and(|progress| progress.open));
    }
}
