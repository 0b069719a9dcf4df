//! `load` over DoQ against `serve echo`: handshakes of each kind, the server's limits, and a path that loses packets.

use std::{
    net::{SocketAddr, UdpSocket},
    sync::mpsc,
    thread,
};

use serde_json::Value;

use crate::{
    process::{Server, nobody},
    streams::{count, load},
};

fn echo(arguments: &str) -> Server {
    Server::start(&format!("echo 127.0.0.1:0 --transport doq --doq-port 0 --threads 1 {arguments}"))
}

fn connections(summary: &Value, kind: &str) -> u64 {
    summary["connections"][kind].as_u64().unwrap()
}

fn quic(summary: &Value, kind: &str) -> u64 {
    summary["connections"]["quic"][kind].as_u64().unwrap()
}

/// Each query that was sent has ended in one way.
fn assert_all_ended(summary: &Value) {
    let lost: u64 = summary["lost"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!(count(summary, "answered") + count(summary, "timeouts") + lost, count(summary, "sent"), "{summary}");
}

#[test]
fn over_doq_all_is_answered_on_connections_that_stay() {
    let server = echo("");
    for model in [&["--rate", "400"][..], &["--outstanding", "20", "--threads", "2"]] {
        let summary = load(server.address("doq"), "doq", &[model, &["--clients", "4", "--timeout", "5s"]].concat());
        assert!(count(&summary, "answered") > 50, "{summary}");
        assert_eq!(count(&summary, "answered"), count(&summary, "sent"), "{summary}");
        assert_eq!((connections(&summary, "attempted"), connections(&summary, "established")), (4, 4));
        assert_eq!((connections(&summary, "failed"), quic(&summary, "streams_short")), (0, 0));
        assert_eq!(
            (summary["congestion"].as_str(), &summary["rcodes"]["NOERROR"]),
            (Some("cubic"), &summary["answered"])
        );
    }
    let summary = server.end();
    assert_eq!(
        (summary["connections"]["accepted"].as_u64(), summary["dropped"]["malformed"].as_u64()),
        (Some(8), Some(0))
    );
}

#[test]
fn over_doq_handshakes_are_full_resumed_or_with_early_data_as_asked() {
    let [server, early, refusing] = ["", "--early-data", "--early-data=refuse"].map(echo);
    let one_each = ["--rate", "50", "--queries-per-connection", "1", "--clients", "2", "--timeout", "5s"];
    for (server, option, [resumes, is_early, is_refused]) in [
        (&server, "--no-resumption", [false, false, false]),
        (&server, "--early-data", [true, false, false]),
        (&early, "--early-data", [true, true, false]),
        (&refusing, "--early-data", [true, false, true]),
    ] {
        let summary = load(server.address("doq"), "doq", &[&one_each[..], &[option]].concat());
        assert_eq!(count(&summary, "answered"), 25, "{summary}");
        assert_eq!((connections(&summary, "attempted"), connections(&summary, "handshakes")), (25, 25));
        assert_eq!(connections(&summary, "resumed") > 10, resumes, "{summary}");
        assert_eq!(connections(&summary, "early_accepted") > 10, is_early, "{summary}");
        assert_eq!(connections(&summary, "early_rejected") > 10, is_refused, "{summary}");
        assert!((1_200..3_600).contains(&quic(&summary, "full_handshake_bytes_min")), "{summary}");
        assert!(summary["handshake_ns"]["p50"].as_u64().unwrap() > 0);
    }
}

#[test]
fn over_doq_the_limits_of_a_server_cost_time_and_no_answer() {
    let server = echo("--retry --streams-max 1 --delay 5ms");
    let options = ["--rate", "400", "--clients", "2", "--congestion", "newreno", "--timeout", "5s"];
    let summary = load(server.address("doq"), "doq", &options);
    assert_eq!((count(&summary, "answered"), count(&summary, "sent")), (200, 200), "{summary}");
    assert_eq!((quic(&summary, "retries"), summary["congestion"].as_str()), (2, Some("newreno")), "{summary}");
    assert!(count(&summary, "waited_for_stream") > 0, "{summary}");
}

#[test]
fn over_doq_queries_without_an_answer_are_cancelled_and_where_nobody_listens_nothing_hangs() {
    let server = echo("--loss 20%");
    let summary = load(server.address("doq"), "doq", &["--rate", "400", "--clients", "2"]);
    let timeouts = count(&summary, "timeouts");
    assert!((10..100).contains(&timeouts) && quic(&summary, "streams_cancelled") > 0, "{summary}");
    assert_all_ended(&summary);
    let summary = load(nobody(), "doq", &["--rate", "50"]);
    assert_eq!((count(&summary, "timeouts"), connections(&summary, "established")), (25, 0), "{summary}");
    assert!(count(&summary, "unreachable") > 0, "{summary}");
}

/// Carries datagrams between one client and a server, and loses `lost` of ten, spread evenly. Returns the address
/// for the client.
fn lossy_path(server: SocketAddr, lost: usize) -> SocketAddr {
    let [to_client, to_server] = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
    to_server.connect(server).unwrap();
    let address = to_client.local_addr().unwrap();
    let [back, forth] = [to_client.try_clone().unwrap(), to_server.try_clone().unwrap()];
    let (found, wanted) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 2048];
        for number in 1.. {
            let Ok((length, peer)) = to_client.recv_from(&mut buffer) else { return };
            let _ = found.send(peer);
            if number * 3 % 10 >= lost {
                let _ = forth.send(&buffer[..length]);
            }
        }
    });
    thread::spawn(move || {
        let mut buffer = [0; 2048];
        let Ok(peer) = wanted.recv() else { return };
        for number in 1.. {
            let Ok(length) = to_server.recv(&mut buffer) else { return };
            if number * 3 % 10 >= lost {
                let _ = back.send_to(&buffer[..length], peer);
            }
        }
    });
    address
}

#[test]
fn over_doq_packets_that_the_path_loses_are_counted_and_sent_again() {
    let server = echo("");
    let path = lossy_path(server.address("doq"), 1);
    let summary = load(path, "doq", &["--rate", "400", "--clients", "1", "--timeout", "10s"]);
    assert_eq!((count(&summary, "answered"), count(&summary, "duplicates")), (200, 0), "{summary}");
    assert!(quic(&summary, "packets_lost") > 5 && quic(&summary, "packets_sent") > 200, "{summary}");
    let path = lossy_path(server.address("doq"), 3);
    let summary = load(path, "doq", &["--rate", "400", "--clients", "1", "--timeout", "2s"]);
    assert_all_ended(&summary);
    assert!(count(&summary, "answered") > 100 && quic(&summary, "packets_lost") > 20, "{summary}");
}
