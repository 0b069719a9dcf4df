//! `load` over TCP and DoT against servers that behave, and servers that do not: all is counted by kind, nothing hangs.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, Shutdown, TcpListener},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use crate::streams::{self, Ends, Server, answer, answer_all, count, frame, load, next_query, reset};
use serde_json::Value;

/// Each query that was sent has ended in one way.
fn assert_all_ended(summary: &Value) {
    let lost = lost_in_all(summary);
    assert_eq!(count(summary, "answered") + count(summary, "timeouts") + lost, count(summary, "sent"), "{summary}");
}

fn lost(summary: &Value, kind: &str) -> u64 {
    summary["lost"][kind].as_u64().unwrap()
}

fn lost_in_all(summary: &Value) -> u64 {
    ["closed", "reset", "refused", "tls", "http"].iter().map(|kind| lost(summary, kind)).sum()
}

fn connections(summary: &Value, kind: &str) -> u64 {
    summary["connections"][kind].as_u64().unwrap()
}

#[test]
fn a_good_server_answers_everything_on_connections_that_stay() {
    let server = Server::start(|mut stream| answer_all(&mut stream));
    for model in [&["--rate", "400"][..], &["--outstanding", "20"], &["--outstanding", "8", "--threads", "2"]] {
        let summary = load(server.address, "tcp", &[model, &["--clients", "4"]].concat());
        assert!(count(&summary, "answered") > 50, "{summary}");
        assert_eq!((lost_in_all(&summary), connections(&summary, "failed")), (0, 0));
        assert_eq!((connections(&summary, "attempted"), connections(&summary, "established")), (4, 4));
        assert_eq!(summary["rcodes"]["NOERROR"], summary["answered"]);
        assert_all_ended(&summary);
    }
}

#[test]
fn with_one_query_each_there_are_as_many_connections_as_queries() {
    let server = Server::start(|mut stream| answer_all(&mut stream));
    for model in [&["--rate", "200"][..], &["--outstanding", "4"]] {
        let summary = load(server.address, "tcp", &[model, &["--queries-per-connection", "1"]].concat());
        assert!(count(&summary, "answered") > 20, "{summary}");
        assert_eq!(connections(&summary, "attempted"), count(&summary, "sent"));
        assert!(summary["handshake_ns"]["p50"].as_u64().unwrap() > 0);
        assert_all_ended(&summary);
    }
}

#[test]
fn a_connection_takes_no_more_queries_than_it_may() {
    let most = Arc::new(AtomicU64::new(0));
    let seen = most.clone();
    let server = Server::start(move |mut stream| {
        let mut queries = 0;
        while let Some(query) = next_query(&mut stream) {
            queries += 1;
            seen.fetch_max(queries, Ordering::Relaxed);
            if stream.write_all(&frame(&answer(&query))).is_err() {
                return;
            }
        }
    });
    let options = ["--outstanding", "30", "--clients", "3", "--queries-per-connection", "7"];
    let summary = load(server.address, "tcp", &options);
    assert!(count(&summary, "answered") > 100, "{summary}");
    assert_eq!(most.load(Ordering::Relaxed), 7);
    assert_all_ended(&summary);
}

#[test]
fn answers_in_pieces_in_heaps_and_of_great_length_are_all_understood() {
    let server = Server::start(|mut stream| {
        let mut number = 0;
        while let Some(query) = next_query(&mut stream) {
            number += 1;
            let mut message = answer(&query);
            message.resize(if number % 3 == 0 { 60_000 } else { message.len() }, 0);
            let bytes = frame(&message);
            let written = match number % 3 {
                1 => bytes.iter().try_for_each(|byte| stream.write_all(&[*byte])),
                2 => stream.write_all(&[&bytes[..], &frame(&[0; 20])].concat()),
                _ => stream.write_all(&bytes),
            };
            if written.is_err() {
                return;
            }
        }
    });
    let summary = load(server.address, "tcp", &["--rate", "300", "--clients", "2"]);
    assert!(count(&summary, "answered") > 75, "{summary}");
    // The added message is no response; it never has the id of another, or is no answer to it.
    let unmatched = count(&summary, "malformed") + count(&summary, "unexpected");
    assert!(unmatched > 10 && count(&summary, "mismatched") + count(&summary, "duplicates") == 0, "{summary}");
    assert_all_ended(&summary);
}

#[test]
fn an_orderly_close_between_queries_loses_nothing_and_the_next_query_connects_anew() {
    let server = Server::start(|mut stream| {
        if let Some(query) = next_query(&mut stream) {
            let _ = stream.write_all(&frame(&answer(&query)));
        }
    });
    let summary = load(server.address, "tcp", &["--rate", "40", "--clients", "1"]);
    assert!(count(&summary, "answered") >= 10, "{summary}");
    assert!(connections(&summary, "established") >= 10);
    // On a busy machine a query may meet the close; that one has failed, and no other.
    assert!(connections(&summary, "failed") <= lost_in_all(&summary));
    assert!(lost_in_all(&summary) < count(&summary, "answered"));
    assert_all_ended(&summary);
}

#[test]
fn queries_on_a_connection_that_the_server_closes_are_lost_by_kind() {
    let closing = Server::start(|mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.shutdown(Shutdown::Write);
        while stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {}
    });
    let resetting = Server::start(|mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        reset(stream);
    });
    for (server, kind) in [(&closing, "closed"), (&resetting, "reset")] {
        for transport in ["tcp", "dot"] {
            let summary = load(server.address, transport, &["--rate", "100"]);
            assert_eq!((count(&summary, "sent"), count(&summary, "answered")), (50, 0), "{kind}");
            assert!(lost(&summary, kind) >= 40, "{transport} {kind}: {summary}");
            assert!(connections(&summary, "failed") >= 25);
            assert_all_ended(&summary);
        }
    }
}

#[test]
fn a_port_without_a_server_refuses_each_query() {
    let address = crate::process::nobody();
    for transport in ["tcp", "dot"] {
        let summary = load(address, transport, &["--rate", "100"]);
        assert_eq!((count(&summary, "sent"), lost(&summary, "refused")), (50, 50), "{summary}");
        assert_eq!(connections(&summary, "failed"), connections(&summary, "attempted"));
        assert_eq!(connections(&summary, "established"), 0);
    }
}

#[test]
fn a_server_that_never_answers_costs_timeouts_only() {
    let server = Server::start(|mut stream| while next_query(&mut stream).is_some() {});
    for each in ["0", "1", "3"] {
        let summary = load(server.address, "tcp", &["--rate", "100", "--queries-per-connection", each]);
        assert_eq!(count(&summary, "timeouts"), count(&summary, "sent"), "{summary}");
        assert!(count(&summary, "sent") >= 25 && lost_in_all(&summary) == 0);
        assert!(summary["sent_latency_ns"]["min"].as_u64().unwrap() >= 199_000_000, "each is recorded at the limit");
    }
}

#[test]
fn with_all_connections_in_use_queries_wait_and_the_lag_says_so() {
    let server = Server::start(|mut stream| while next_query(&mut stream).is_some() {});
    let options = ["--rate", "100", "--clients", "2", "--queries-per-connection", "1"];
    let summary = load(server.address, "tcp", &options);
    // Two at a time, each for 200 ms, until 200 ms after the end: 700 ms in all, so eight at most.
    assert!((2..=8).contains(&count(&summary, "sent")), "{summary}");
    assert_eq!(count(&summary, "due"), 50);
    assert!(summary["lag_ns"]["max"].as_u64().unwrap() > 150_000_000);
}

#[test]
fn connections_that_are_never_accepted_time_out_and_are_begun_anew() {
    // The queue of a listener that accepts nothing is full after a few; from then on the kernel ignores SYNs
    // (listen(2)).
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(1).unwrap()).unwrap();
    let summary = load(listener.local_addr().unwrap(), "tcp", &["--rate", "100", "--clients", "8"]);
    assert_eq!((count(&summary, "sent"), count(&summary, "timeouts")), (50, 50), "{summary}");
    assert!(connections(&summary, "attempted") > 8 && connections(&summary, "established") < 8, "{summary}");
    assert!(connections(&summary, "failed") > 0);
}

#[test]
fn wrong_answers_are_counted_by_kind_and_end_no_query() {
    for (kind, spoil) in [
        ("unexpected", (|message: &mut Vec<u8>| message[0] ^= 0x55) as fn(&mut Vec<u8>)),
        ("mismatched", |message| message[13] ^= 1),
        ("malformed", |message| message.truncate(7)),
        ("malformed", |message| message.truncate(0)),
        ("malformed", |message| message[2] &= 0x7f),
    ] {
        let server = Server::start(move |mut stream| {
            while let Some(query) = next_query(&mut stream) {
                let mut message = answer(&query);
                spoil(&mut message);
                if stream.write_all(&frame(&message)).is_err() {
                    return;
                }
            }
        });
        let summary = load(server.address, "tcp", &["--rate", "200"]);
        assert_eq!((count(&summary, "answered"), count(&summary, "timeouts")), (0, 100), "{kind}");
        assert!(count(&summary, kind) > 50, "{kind}: {summary}");
    }
}

#[test]
fn endless_bytes_neither_hang_nor_hide_the_answers_of_others() {
    let first = Arc::new(Mutex::new(true));
    let server = Server::start(move |mut stream| {
        let floods = std::mem::take(&mut *first.lock().unwrap());
        if floods {
            let noise = [0xff; 1 << 16];
            while stream.write_all(&noise).is_ok() {}
        } else {
            answer_all(&mut stream);
        }
    });
    let summary = load(server.address, "tcp", &["--rate", "200", "--clients", "2"]);
    assert!(count(&summary, "unexpected") + count(&summary, "malformed") > 10, "{summary}");
    assert!(count(&summary, "answered") > 10, "{summary}");
    assert_all_ended(&summary);
}

#[test]
fn what_the_socket_has_no_room_for_goes_later_and_whole() {
    let server = Server::start(|mut stream| {
        thread::sleep(Duration::from_millis(50));
        answer_all(&mut stream);
    });
    // A small window makes the sender wait.
    nix::sys::socket::setsockopt(&server.listener, nix::sys::socket::sockopt::RcvBuf, &2_048).unwrap();
    let summary = load(server.address, "tcp", &["--outstanding", "20000", "--clients", "1", "--timeout", "1s"]);
    assert!(count(&summary, "answered") > 5_000, "{summary}");
    let unmatched = ["malformed", "unexpected", "mismatched", "duplicates"].map(|kind| count(&summary, kind));
    assert_eq!(unmatched, [0; 4], "a frame was torn: {summary}");
    assert_all_ended(&summary);
}

#[test]
fn connections_come_from_the_addresses_named() {
    let peers = Arc::new(Mutex::new(Vec::new()));
    let seen = peers.clone();
    let server = Server::start(move |mut stream| {
        seen.lock().unwrap().push(stream.peer_addr().unwrap().ip());
        answer_all(&mut stream);
    });
    let options = ["--rate", "100", "--clients", "4", "--source", "127.0.0.2", "--source", "127.0.0.3"];
    let summary = load(server.address, "tcp", &options);
    assert!(count(&summary, "answered") > 10, "{summary}");
    let mut peers = peers.lock().unwrap().clone();
    peers.sort_unstable();
    let expected = [2, 2, 3, 3].map(|last| Ipv4Addr::new(127, 0, 0, last));
    assert_eq!(peers, expected);
}

#[test]
fn connections_are_closed_as_asked() {
    for (close, orderly) in [("fin", true), ("rst", false)] {
        let ends = Arc::new(Ends::default());
        let seen = ends.clone();
        let server = Server::start(move |mut stream| {
            if let Some(query) = next_query(&mut stream) {
                stream.write_all(&frame(&answer(&query))).unwrap();
                seen.watch(&mut stream);
            }
        });
        let options = ["--rate", "100", "--queries-per-connection", "1", "--close", close];
        let summary = load(server.address, "tcp", &options);
        assert!(count(&summary, "answered") > 25, "{summary}");
        drop(server);
        let [in_order, reset] = [&ends.orderly, &ends.reset].map(|ends| ends.load(Ordering::Relaxed));
        assert_eq!((in_order > 25, reset > 25), (orderly, !orderly), "{close}: {in_order} and {reset}");
    }
}

#[test]
fn over_dot_all_is_answered_and_sessions_are_resumed_unless_asked_not_to() {
    let config = streams::tls_config();
    let server = Server::start(move |stream| streams::answer_all_over_tls(stream, config.clone()));
    let summary = load(server.address, "dot", &["--outstanding", "20", "--clients", "3"]);
    assert!(count(&summary, "answered") > 50, "{summary}");
    assert_eq!((connections(&summary, "established"), lost_in_all(&summary)), (3, 0));
    assert_all_ended(&summary);
    let one_each = ["--rate", "50", "--queries-per-connection", "1"];
    for (option, resumes) in [(&["--close", "fin"][..], true), (&["--no-resumption"], false)] {
        let summary = load(server.address, "dot", &[&one_each[..], option].concat());
        assert!(count(&summary, "answered") > 10, "{summary}");
        assert_eq!(connections(&summary, "attempted"), count(&summary, "sent"));
        assert_eq!(connections(&summary, "resumed") > 0, resumes, "{summary}");
    }
}

#[test]
fn a_handshake_is_part_of_the_first_query() {
    let config = streams::tls_config();
    let server = Server::start(move |stream| {
        thread::sleep(Duration::from_millis(30));
        streams::answer_all_over_tls(stream, config.clone());
    });
    let summary = load(server.address, "dot", &["--rate", "50", "--queries-per-connection", "1"]);
    assert!(count(&summary, "answered") > 5, "{summary}");
    for times in ["sent_latency_ns", "handshake_ns"] {
        assert!(summary[times]["min"].as_u64().unwrap() >= 29_900_000, "{times}: {summary}");
    }
}

#[test]
fn a_server_that_speaks_no_tls_or_breaks_it_off_is_told_apart() {
    let plain = Server::start(|mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        thread::sleep(Duration::from_millis(20));
    });
    let alert = Server::start(|mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(&[21, 3, 3, 0, 2, 2, 40]);
        thread::sleep(Duration::from_millis(20));
    });
    let silent = Server::start(|mut stream| while stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {});
    for server in [&plain, &alert] {
        let summary = load(server.address, "dot", &["--rate", "100"]);
        assert_eq!((count(&summary, "sent"), lost(&summary, "tls")), (50, 50), "{summary}");
        assert_eq!(connections(&summary, "failed"), connections(&summary, "attempted"));
    }
    let summary = load(silent.address, "dot", &["--rate", "100", "--clients", "4"]);
    assert_eq!(count(&summary, "timeouts"), 50, "{summary}");
    assert!(connections(&summary, "attempted") > 4 && connections(&summary, "established") == 0);
}

#[test]
fn many_connections_are_made_one_after_the_other_as_queries_fall_due() {
    let server = Server::start(|mut stream| answer_all(&mut stream));
    let summary = load(server.address, "tcp", &["--rate", "1000", "--clients", "300"]);
    assert_eq!(connections(&summary, "established"), 300, "{summary}");
    assert_all_ended(&summary);
}
