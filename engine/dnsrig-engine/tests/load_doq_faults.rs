//! `load` over DoQ against servers that fail in each way that RFC 9000 and RFC 9250 have: nothing hangs, each query
//! ends once, and the summary names what happened.

use std::{
    net::{SocketAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use dnsrig_core::clock;
use dnsrig_net::{
    quic::{
        Flow,
        server::{Config, Server, Settings, StreamKey},
    },
    tls::{DOQ, identity},
};
use rustls::ServerConfig;
use serde_json::Value;

use crate::streams::{count, load};

const INTERNAL_ERROR: u32 = 1;
const EXCESSIVE_LOAD: u32 = 4;

fn tls_config() -> Arc<ServerConfig> {
    let identity = identity::make_identity([127, 0, 0, 1].into()).unwrap();
    identity::server_config(identity, DOQ, None).unwrap()
}

fn config(tls: Arc<ServerConfig>) -> Config {
    let (flow, streams_max, connections_max) = (Flow::default(), 100, 100);
    Config::new(&Settings { tls, flow, streams_max, idle_ns: 10_000_000_000, connections_max, retry: false })
}

/// A query that a server got.
struct Query<'m> {
    /// Counted from 0.
    number: usize,
    key: StreamKey,
    answer: &'m [u8],
    now_ns: i64,
}

/// A server that does with each query what `act` does; ends when it is dropped.
struct Faulty {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl Faulty {
    fn start(config: &Config, mut act: impl FnMut(&mut Server, Query<'_>) + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let (address, stop) = (socket.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let (stopping, mut server) = (stop.clone(), Server::new(config, clock::monotonic_ns()));
        thread::spawn(move || {
            let (mut buffer, mut number) = ([0; 2_048], 0);
            while !stopping.load(Ordering::Relaxed) {
                let received = socket.recv_from(&mut buffer).ok();
                let (now_ns, mut asked) = (clock::monotonic_ns(), Vec::new());
                let send = |datagram: &[u8], (peer, _): (SocketAddr, _)| drop(socket.send_to(datagram, peer));
                if let Some((length, peer)) = received {
                    server.receive((peer, None), &buffer[..length], now_ns, send);
                }
                server.on_time(now_ns);
                let mut keep = |key: StreamKey, message: &mut Vec<u8>| {
                    message[2] |= 0x80;
                    asked.push((key, message.clone()));
                    false
                };
                server.work(now_ns, &mut keep, send);
                for (key, answer) in &asked {
                    act(&mut server, Query { number, key: *key, answer, now_ns });
                    number += 1;
                }
                server.work(now_ns, &mut |_: StreamKey, _: &mut Vec<u8>| false, send);
            }
        });
        Faulty { address, stop }
    }

    fn load(&self, options: &[&str]) -> Value {
        let summary = load(self.address, "doq", &[&["--rate", "100"], options].concat());
        let lost: u64 = summary["lost"].as_object().unwrap().values().map(|lost| lost.as_u64().unwrap()).sum();
        let ended = count(&summary, "answered") + count(&summary, "timeouts") + lost;
        assert_eq!((count(&summary, "sent"), ended), (50, 50), "{summary}");
        summary
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn lost(summary: &Value, kind: &str) -> u64 {
    summary["lost"][kind].as_u64().unwrap()
}

/// The count of a kind among the counts of QUIC.
fn quic(summary: &Value, table: &str, name: &str) -> u64 {
    summary["connections"]["quic"][table][name].as_u64().unwrap_or_else(|| panic!("no {name}: {summary}"))
}

#[test]
fn over_doq_a_reset_stream_and_half_an_answer_lose_their_query_alone() {
    let server = Faulty::start(&config(tls_config()), |server, Query { number, key, answer, .. }| match number % 10 {
        3 => server.reset(key, INTERNAL_ERROR),
        // The length, and not all of the message.
        6 => server.end(key, &[&[0, 99], answer].concat()),
        _ => drop(server.answer(key, answer)),
    });
    let summary = server.load(&["--clients", "1", "--timeout", "5s"]);
    assert_eq!([lost(&summary, "reset"), lost(&summary, "closed")], [5, 5], "{summary}");
    assert_eq!(quic(&summary, "streams_reset", "DOQ_INTERNAL_ERROR"), 5);
    assert_eq!((&summary["connections"]["quic"]["streams_short"], count(&summary, "answered")), (&5.into(), 40));
    assert_eq!(summary["connections"]["attempted"], 1, "the connection goes on");
}

#[test]
fn over_doq_a_connection_that_the_server_ends_loses_its_queries_and_another_follows() {
    let server =
        Faulty::start(&config(tls_config()), |server, Query { number, key, answer, now_ns }| match number % 10 {
            9 => server.close(key, EXCESSIVE_LOAD, now_ns),
            _ => drop(server.answer(key, answer)),
        });
    let summary = server.load(&["--clients", "1", "--timeout", "5s"]);
    let ended = quic(&summary, "ends", "DOQ_EXCESSIVE_LOAD");
    assert!(ended >= 2 && lost(&summary, "closed") >= ended && count(&summary, "answered") > 20, "{summary}");
    assert_eq!(summary["connections"]["failed"], ended, "{summary}");
}

#[test]
fn over_doq_a_server_that_has_forgotten_its_connections_resets_them() {
    let config = config(tls_config());
    let again = config.clone();
    let server = Faulty::start(&config, move |server, Query { number, key, answer, now_ns }| match number {
        20 => *server = Server::new(&again, now_ns),
        _ => drop(server.answer(key, answer)),
    });
    let summary = server.load(&["--clients", "1", "--timeout", "5s"]);
    assert!(quic(&summary, "ends", "stateless reset") == 1 && lost(&summary, "reset") > 0, "{summary}");
    assert!(count(&summary, "answered") > 20, "{summary}");
}

#[test]
fn over_doq_a_server_without_the_protocol_is_named() {
    let mut tls = ServerConfig::clone(&tls_config());
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let server = Faulty::start(&config(tls.into()), |_, _| ());
    let summary = server.load(&["--clients", "2"]);
    assert_eq!((lost(&summary, "tls"), count(&summary, "answered")), (50, 0), "{summary}");
    assert!(quic(&summary, "ends", "CRYPTO_ERROR") > 0 && summary["connections"]["established"] == 0, "{summary}");
    assert_eq!(summary["tls_sentence"], "the server did not agree on the protocol inside TLS (ALPN)");
}

#[test]
fn over_doq_a_certificate_is_checked_if_that_is_asked_for() {
    let server = Faulty::start(&config(tls_config()), |server, Query { key, answer, .. }| {
        server.answer(key, answer);
    });
    let pin = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let summary = server.load(&["--clients", "2", "--verify", "pin", "--pin", pin]);
    assert_eq!((lost(&summary, "tls"), count(&summary, "answered")), (50, 0), "{summary}");
    assert!(quic(&summary, "ends", "CRYPTO_ERROR (by this side)") > 0, "{summary}");
    assert_eq!(summary["tls_sentence"], "the server's certificate does not match the pin");
}

#[test]
fn over_doq_a_server_of_another_version_is_named() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (address, stop) = (socket.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
    let server = Faulty { address, stop: stop.clone() };
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 2_048];
        while !stop.load(Ordering::Relaxed) {
            let Ok((_, peer)) = socket.recv_from(&mut buffer) else { continue };
            // RFC 9000 §17.2.1: the ids of the connection change places, and versions follow.
            let (to, rest) = buffer[6..].split_at(usize::from(buffer[5]));
            let from = &rest[1..][..usize::from(rest[0])];
            let lengths = [from, to].map(|id| [id.len() as u8]);
            let packet = [&[0xc0, 0, 0, 0, 0], &lengths[0][..], from, &lengths[1], to, &[0x0a, 0x1a, 0x2a, 0x3a]];
            let _ = socket.send_to(&packet.concat(), peer);
        }
    });
    let summary = server.load(&["--clients", "2"]);
    assert_eq!((lost(&summary, "refused"), count(&summary, "answered")), (50, 0), "{summary}");
    assert!(quic(&summary, "ends", "no common version") > 0, "{summary}");
}
