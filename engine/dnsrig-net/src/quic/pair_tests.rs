use dnsrig_core::random::Random;
use rustls::pki_types::ServerName;

use super::{
    Flow, client, code,
    counts::REQUEST_CANCELLED,
    event::Handshake,
    pair::*,
    server::{Config, Server},
};
use crate::{
    connection::CloseReason,
    tls::{self, DOQ, Fault, Pin, Trust, identity},
};

const EXCESSIVE_LOAD: u32 = 4;

fn answer(id: u16) -> (u16, Vec<u8>) {
    let mut message = query(id);
    message[2] |= 0x80;
    (id, message)
}

/// A pair with an open connection in slot 0.
fn connected() -> Pair {
    let mut pair = Pair::new(&serving(tls_config()));
    pair.begin(0);
    pair.pass(SECOND);
    assert_eq!(pair.handshakes.len(), 1);
    pair
}

fn words(pair: &Pair) -> String {
    pair.client.counts(0).words().join("; ")
}

#[test]
fn a_query_has_the_id_0_on_the_wire_and_its_own_in_the_answer() {
    let mut pair = Pair::new(&serving(tls_config()));
    pair.begin(0);
    pair.ask(0, 7);
    pair.pass(29 * MS);
    assert!(pair.asked.is_empty(), "the handshake takes a round trip, and a query without early data waits for it");
    pair.ask(0, 9);
    pair.pass(SECOND);
    assert!(pair.asked.iter().all(|(_, message)| message[..2] == [0, 0]));
    assert_eq!(pair.answers, [answer(7), answer(9)]);
    assert_eq!(pair.handshakes, [Handshake::default()], "a full handshake");
    assert_eq!((pair.server.counts.accepted, pair.server.counts.handshakes), (1, 1));
    pair.close(0);
    pair.pass(SECOND);
    assert_eq!((pair.server.open_connections(), pair.client.due_ns()), (0, None), "it was closed, and is forgotten");
}

#[test]
fn a_session_is_resumed_and_queries_go_with_the_first_flight_if_the_server_permits_it() {
    let tls = identity::with_early_data(&tls_config(), u32::MAX);
    let mut pair = Pair::with(&Config::new(&serving(tls)), true);
    for id in [1, 2] {
        pair.begin(0);
        pair.ask(0, id);
        pair.pass(29 * MS);
        assert_eq!(pair.asked.len(), usize::from(id == 2), "the second query takes half a round trip");
        pair.pass(SECOND);
        pair.close(0);
        pair.pass(SECOND);
        pair.asked.truncate(usize::from(id == 2));
        pair.asked.clear();
    }
    let resumed = Handshake { resumed: true, early_accepted: 1, early_rejected: 0 };
    assert_eq!(pair.handshakes, [Handshake::default(), resumed]);
    assert_eq!(pair.answers, [answer(1), answer(2)]);
}

#[test]
fn a_session_is_resumed_without_early_data_if_the_server_has_none() {
    let mut pair = Pair::with(&Config::new(&serving(tls_config())), true);
    for id in [1, 2] {
        pair.begin(0);
        pair.ask(0, id);
        pair.pass(SECOND);
        pair.close(0);
        pair.pass(SECOND);
    }
    assert_eq!(pair.handshakes, [Handshake::default(), Handshake { resumed: true, ..Handshake::default() }]);
    assert_eq!(pair.answers, [answer(1), answer(2)]);
}

#[test]
fn what_the_server_does_not_take_early_is_sent_again() {
    let tls = || identity::with_early_data(&tls_config(), u32::MAX);
    let mut pair = Pair::with(&Config::new(&serving(tls())), true);
    pair.begin(0);
    pair.pass(SECOND);
    pair.close(0);
    // Another server, which knows no session of the first one.
    pair.server = Server::new(&Config::new(&serving(tls())), 0);
    pair.begin(0);
    for id in 1..=3 {
        pair.ask(0, id);
    }
    pair.pass(SECOND);
    assert_eq!(pair.handshakes[1], Handshake { resumed: false, early_accepted: 0, early_rejected: 3 });
    assert_eq!(pair.answers, [answer(1), answer(2), answer(3)]);
    assert_eq!(pair.asked.len(), 3, "each was read once");
}

#[test]
fn what_a_server_refuses_early_is_sent_again_on_the_resumed_session() {
    let mut pair = Pair::with(&Config::new(&serving(identity::refusing_early_data(&tls_config(), u32::MAX))), true);
    for id in [1, 2] {
        pair.begin(0);
        pair.ask(0, id);
        pair.pass(SECOND);
        pair.close(0);
        pair.pass(SECOND);
    }
    assert_eq!(pair.handshakes[1], Handshake { resumed: true, early_accepted: 0, early_rejected: 1 });
    assert_eq!((pair.answers.len(), pair.asked.len()), (2, 2), "each was read and answered once");
    let bytes = pair.client.counts(0).full_handshake_bytes_min;
    assert!((1_200..3_600).contains(&bytes), "less than three times the first flight: {bytes}");
}

#[test]
fn queries_wait_for_streams_that_the_server_permits() {
    let mut pair = Pair::new(&super::server::Settings { streams_max: 1, ..serving(tls_config()) });
    pair.begin(0);
    pair.pass(SECOND);
    for id in 1..=3 {
        pair.ask(0, id);
    }
    assert!(pair.client.is_blocked(0) && pair.client.waiting(0) == 2);
    pair.pass(SECOND);
    assert!(!pair.client.is_blocked(0));
    assert_eq!(pair.answers, [answer(1), answer(2), answer(3)]);
    assert_eq!(pair.client.counts(0).waited_for_stream, 2);
    // Queries that were made before the handshake are counted when it is done.
    pair.begin(1);
    (4..=6).for_each(|id| pair.ask(1, id));
    assert_eq!(pair.client.counts(0).waited_for_stream, 2);
    pair.pass(SECOND);
    assert_eq!((pair.client.counts(0).waited_for_stream, pair.answers.len()), (4, 6));
}

#[test]
fn a_connection_whose_server_has_vanished_is_lost() {
    let mut pair = connected();
    pair.pass(20 * SECOND);
    pair.ask(0, 1);
    pair.pass(SECOND);
    assert_eq!(pair.answers.len(), 1, "an idle connection stays open");
    pair.fate = Box::new(Vec::clear);
    for id in 2..=25 {
        assert!(pair.lost.is_empty() || id > 16, "{id}");
        if pair.lost.is_empty() {
            pair.ask(0, id);
        }
        pair.pass(SECOND);
    }
    assert_eq!(pair.lost, [CloseReason::Closed]);
    assert!(words(&pair).contains("idle timeout 1"), "{}", words(&pair));
}

#[test]
fn a_connection_without_further_streams_gives_way_to_another() {
    let mut pair = Pair::new(&super::server::Settings { streams_max: 2, ..serving(tls_config()) });
    pair.begin(0);
    pair.pass(SECOND);
    pair.ask(0, 1);
    pair.pass(15 * MS);
    pair.server.permit_no_more_streams(pair.asked[0].0);
    (2..=5).for_each(|id| pair.ask(0, id));
    pair.pass(TIMEOUT / 2);
    let mut ids: Vec<_> = pair.answers.iter().map(|(id, _)| *id).collect();
    ids.sort_unstable();
    assert_eq!((ids, pair.lost.len()), (vec![1, 2, 3, 4, 5], 0));
    assert_eq!((pair.client.counts(0).connections_used_up, pair.server.counts.accepted), (1, 2));
}

#[test]
fn a_client_proves_its_address_if_it_has_to() {
    let mut pair = Pair::new(&super::server::Settings { retry: true, ..serving(tls_config()) });
    pair.begin(0);
    pair.ask(0, 1);
    pair.pass(SECOND);
    assert_eq!(pair.answers, [answer(1)]);
    assert_eq!((pair.server.counts.retries, pair.client.counts(0).retries), (1, 1));
}

#[test]
fn a_server_without_the_protocol_is_named() {
    let mut tls = rustls::ServerConfig::clone(&tls_config());
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let mut pair = Pair::new(&serving(tls.into()));
    pair.begin(0);
    pair.pass(SECOND);
    assert_eq!(pair.lost, [CloseReason::Tls(Fault::Alpn)]);
    assert_eq!(pair.server.counts.failed, 1);
    assert!(words(&pair).contains("CRYPTO_ERROR 1"), "{}", words(&pair));
}

#[test]
fn a_certificate_that_is_not_accepted_is_named_by_what_is_wrong_with_it() {
    let identity = identity::make_identity(server_address().ip()).unwrap();
    let authority = Trust::Ca(identity.0.clone());
    let serving = serving(identity::server_config(identity, DOQ, None).unwrap());
    for (trust, name, fault) in [
        (Trust::Pin(vec![Pin::of_key(b"another")]), None, Fault::Pin),
        (authority, Some(ServerName::try_from("other.example").unwrap()), Fault::Name),
    ] {
        let mut pair = Pair::new(&serving);
        let tls = tls::Settings { trust, name, ..tls::Settings::default() };
        pair.connecting = client::Config::new(server_address().ip(), tls, Flow::default()).unwrap();
        pair.begin(0);
        pair.ask(0, 1);
        pair.pass(SECOND);
        assert_eq!((pair.lost.as_slice(), pair.asked.len()), (&[CloseReason::Tls(fault)][..], 0));
        assert!(words(&pair).contains("CRYPTO_ERROR (by this side) 1"), "{}", words(&pair));
    }
}

#[test]
fn streams_that_end_without_an_answer_are_counted_by_kind() {
    let mut pair = connected();
    pair.echoes = false;
    (1..=5).for_each(|id| pair.ask(0, id));
    pair.pass(SECOND);
    let keys: Vec<_> = pair.asked.iter().map(|(key, _)| *key).collect();
    pair.server.reset(keys[0], EXCESSIVE_LOAD);
    pair.server.end(keys[1], b"");
    pair.server.end(keys[2], &[0, 19, 0, 0, 0x80]);
    let mut with_id = query(9);
    with_id.splice(0..0, [0, 19]);
    pair.server.end(keys[3], &with_id);
    pair.serve();
    pair.pass(SECOND);
    let mut lost = pair.streams_lost.clone();
    lost.sort_by_key(|(id, _)| *id);
    let closed = |id| (id, CloseReason::Closed);
    assert_eq!(lost, [(1, CloseReason::Reset), closed(2), closed(3), closed(4)]);
    assert_eq!((pair.wrong_ids, pair.client.counts(0).streams_short, pair.answers.len()), (1, 3, 0));
    assert!(words(&pair).contains("streams reset by the server: DOQ_EXCESSIVE_LOAD 1"), "{}", words(&pair));
    pair.server.close(keys[4], EXCESSIVE_LOAD, pair.now_ns);
    pair.serve();
    pair.pass(SECOND);
    assert_eq!(pair.lost, [CloseReason::Closed]);
    assert!(words(&pair).contains("connections ended: DOQ_EXCESSIVE_LOAD 1"), "{}", words(&pair));
}

#[test]
fn a_query_without_an_answer_is_cancelled_after_its_time() {
    let mut pair = connected();
    pair.echoes = false;
    pair.ask(0, 1);
    pair.pass(TIMEOUT - 1);
    assert_eq!(pair.client.counts(0).streams_cancelled, 0);
    pair.pass(SECOND);
    assert_eq!(pair.client.counts(0).streams_cancelled, 1);
    let key = pair.asked[0].0;
    assert!(!pair.server.answer(key, &query(0)), "the server has forgotten it");
    assert_eq!(code(REQUEST_CANCELLED).into_inner(), 3);
}

#[test]
fn a_server_that_has_forgotten_the_connection_resets_it() {
    let config = Config::new(&serving(tls_config()));
    let mut pair = Pair::with(&config, false);
    pair.begin(0);
    pair.pass(SECOND);
    pair.server = Server::new(&config, 0);
    pair.ask(0, 1);
    pair.pass(SECOND);
    assert_eq!(pair.lost, [CloseReason::Reset]);
    assert!(words(&pair).contains("stateless reset 1"), "{}", words(&pair));
}

#[test]
fn a_server_without_a_common_version_is_named() {
    let mut pair = Pair::new(&serving(tls_config()));
    let first = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let kept = first.clone();
    pair.fate = Box::new(move |datagram| *kept.borrow_mut() = std::mem::take(datagram));
    pair.begin(0);
    let initial = first.borrow().clone();
    // RFC 9000 §17.2.1: the ids of the connection change places, and versions follow.
    let (to, rest) = initial[6..].split_at(usize::from(initial[5]));
    let from = &rest[1..][..usize::from(rest[0])];
    let (to_length, from_length) = ([to.len() as u8], [from.len() as u8]);
    let packet = [&[0xc0, 0, 0, 0, 0], &from_length[..], from, &to_length, to, &[0x0a, 0x1a, 0x2a, 0x3a]].concat();
    pair.inject(false, packet);
    pair.pass(MS);
    assert_eq!(pair.lost, [CloseReason::Refused]);
    assert!(words(&pair).contains("no common version 1"), "{}", words(&pair));
}

#[test]
fn a_connection_that_the_server_ends_when_it_is_idle_is_lost_without_a_word() {
    let mut pair = connected();
    pair.pass(31 * SECOND);
    assert_eq!(pair.lost, [CloseReason::Closed]);
    assert!(words(&pair).contains("idle timeout 1"), "{}", words(&pair));
    assert_eq!(pair.server.counts.idle, 1);
}

#[test]
fn everything_is_answered_once_though_packets_are_lost() {
    let mut pair = connected();
    let mut random = Random::new(1, 2);
    pair.fate = Box::new(move |datagram| {
        if random.below(10) < 3 {
            datagram.clear();
        }
    });
    for id in 1..=300 {
        pair.ask(0, id);
        pair.pass(5 * MS);
    }
    pair.pass(TIMEOUT);
    let mut ids: Vec<_> = pair.answers.iter().map(|(id, _)| *id).collect();
    ids.sort_unstable();
    ids.dedup();
    let counts = pair.client.counts(0);
    assert_eq!(ids.len(), pair.answers.len(), "none came twice");
    assert_eq!(ids.len() as u64 + counts.streams_cancelled, 300, "{counts:?}");
    assert!(ids.len() > 290 && counts.packets_lost > 50 && counts.congestion_events > 0, "{}: {counts:?}", ids.len());
}

#[test]
fn a_large_answer_comes_whole() {
    let mut pair = connected();
    pair.echoes = false;
    pair.ask(0, 5);
    pair.pass(SECOND);
    let mut large = vec![7; 65_535];
    large[..2].fill(0);
    assert!(pair.server.answer(pair.asked[0].0, &large));
    pair.serve();
    pair.pass(SECOND);
    large[..2].copy_from_slice(&[0, 5]);
    assert!(pair.answers == [(5, large)]);
}

#[test]
fn an_id_that_is_used_again_gets_no_answer_to_its_earlier_query() {
    let mut pair = connected();
    pair.echoes = false;
    pair.ask(0, 7);
    pair.pass(SECOND);
    pair.ask(0, 7);
    pair.pass(SECOND);
    let keys: Vec<_> = pair.asked.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys.len(), 2, "both came");
    for key in [keys[0], keys[1]] {
        pair.server.answer(key, &answer(0).1);
        pair.serve();
        pair.pass(SECOND);
        assert_eq!(pair.answers.len(), usize::from(key == keys[1]));
    }
    assert!(pair.streams_lost.is_empty() && pair.client.counts(0).streams_cancelled == 1, "{}", words(&pair));
}
