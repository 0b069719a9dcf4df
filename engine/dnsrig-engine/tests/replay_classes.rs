//! `replay play` with classes of clients: transports, connections, sessions and early data of each, over loopback.

use std::{
    collections::BTreeMap,
    io::Write,
    net::TcpStream,
    path::Path,
    process::{Command, Output},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use dnsrig_engine::query_stream::{Record, StreamWriter, Transport};
use dnsrig_net::tls::identity;
use rustls::{ServerConnection, StreamOwned};
use serde_json::Value;

use crate::{
    process::{ENGINE, Server},
    rows::batches,
    streams,
};

const MS: i64 = 1_000_000;

/// Writes a stream of `rounds` rounds, so far apart, in which each of 20 clients asks once, over UDP.
fn stream(path: &Path, rounds: i64, apart_ms: i64) {
    let mut stream = StreamWriter::create(path).unwrap();
    for round in 0..rounds {
        for client in 0..20 {
            let due_ns = (round * apart_ms + i64::from(client)) * MS;
            let message = &[0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'a' + client as u8, 0, 0, 1, 0, 1];
            stream.push(Record { due_ns, client, transport: Transport::Udp, flags: 0, message }).unwrap();
        }
    }
    stream.finish(0, None::<[std::net::Ipv6Addr; 0]>).unwrap();
}

fn play(path: &Path, arguments: &[&str]) -> Output {
    Command::new(ENGINE).args(["replay", "play"]).arg(path).args(arguments).output().unwrap()
}

fn summary(path: &Path, arguments: &[&str]) -> Value {
    // Longer than any machine stands still.
    let output = play(path, &[arguments, &["--timeout", "20s"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = std::str::from_utf8(&output.stdout).unwrap();
    serde_json::from_str(lines.lines().last().unwrap()).unwrap()
}

/// Against the engine's own server, with the options `serve` and `play`.
fn summaries(path: &Path, serve: &str, arguments: &[&str]) -> (Value, Value) {
    let every = "--transport udp,tcp,dot,doh,doq --dot-port 0 --doh-port 0 --doq-port 0";
    let server = Server::start(&format!("echo 127.0.0.1:0 {every} {serve}"));
    let address = server.address("udp").to_string();
    let ports = ["dot", "doh", "doq"].map(|kind| format!("--{kind}-port={}", server.address(kind).port()));
    let ports = ports.each_ref().map(String::as_str);
    let played = summary(path, &[&["--server", &address], &ports[..], arguments].concat());
    (played, server.end())
}

fn count(summary: &Value, name: &str) -> u64 {
    summary[name].as_u64().unwrap_or_else(|| panic!("{name} in {summary}"))
}

fn counts<const N: usize>(summary: &Value, names: [&str; N]) -> [u64; N] {
    names.map(|name| count(summary, name))
}

#[test]
fn each_class_has_its_transport_and_uses_connections_in_its_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.stream");
    stream(&path, 3, 50);
    let out = folder.path().to_str().unwrap();
    let (summary, _) = summaries(
        &path,
        "",
        &["--class", "share=40%,transport=tcp,reuse=no", "--class", "share=30%,transport=dot", "--out", out],
    );
    let classes = summary["classes"].as_array().unwrap();
    assert_eq!((classes.len(), count(&summary, "answered")), (3, 60), "{summary}");
    let queries: Vec<_> = classes.iter().map(|class| count(class, "answered")).collect();
    let clients: Vec<_> = classes.iter().map(|class| count(class, "clients")).collect();
    assert!(clients.iter().all(|count| *count > 0) && queries.iter().zip(&clients).all(|(q, c)| *q == 3 * c));
    let established: Vec<_> = classes.iter().map(|class| count(&class["connections"], "established")).collect();
    assert_eq!(established, [0, queries[1], clients[2]], "none, one a query, one a client");
    assert_eq!(count(&classes[2]["connections"], "handshakes"), clients[2]);
    assert_eq!(
        classes.iter().map(|class| class["transport"].as_str().unwrap()).collect::<Vec<_>>(),
        ["as-captured", "tcp", "dot"]
    );
    assert!(classes.iter().all(|class| count(&class["latency_ns"], "p50") > 0));
    let classes: Vec<u32> = batches(&folder.path().join("clients.arrow"))[0].values("class").unwrap();
    let mut sizes = BTreeMap::<u32, u64>::new();
    classes.iter().for_each(|class| *sizes.entry(*class).or_default() += 1);
    assert_eq!(sizes.into_values().collect::<Vec<_>>(), clients);
}

#[test]
fn each_class_closes_connections_after_an_idle_time_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.stream");
    stream(&path, 3, 1_000);
    let arguments = ["--transport", "tcp", "--idle-timeout", "60s", "--class", "share=50%,idle=0.2s"];
    let (summary, _) = summaries(&path, "", &arguments);
    let of = |class: usize| {
        let class = &summary["classes"][class];
        (count(class, "clients"), count(&class["connections"], "established"))
    };
    let ((kept, one_each), (closed, several)) = (of(0), of(1));
    assert!(kept > 0 && one_each == kept && closed > 0 && several > closed, "{summary}");
    assert_eq!(count(&summary, "answered"), 60);
}

/// All over DoT, a connection each query.
const DOT: &str = "share=100%,transport=dot,reuse=no";

#[test]
fn a_client_resumes_its_own_sessions_unless_it_is_not_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.stream");
    stream(&path, 3, 300);
    for transport in ["dot", "doh", "doq"] {
        let class = format!("share=100%,transport={transport},reuse=no");
        let (played, served) = summaries(&path, "", &["--class", &class]);
        let connections = &played["connections"];
        let [handshakes, resumed, returning] = counts(connections, ["handshakes", "resumed", "returning"]);
        // The first connection of each of the 20 clients is a new one, though others have tickets of this server.
        assert_eq!((count(&played, "answered"), handshakes, returning), (60, 60, 40), "{played}");
        assert!(0 < resumed && resumed <= returning, "{connections}");
        assert_eq!(count(&served["connections"], "handshakes"), 60, "{transport}");
        // Over QUIC the server does not learn which handshakes resumed a session.
        if transport != "doq" {
            assert_eq!(counts(&served["connections"], ["resumed", "early_data"]), [resumed, 0], "{transport}");
        }
    }
    let (played, _) = summaries(&path, "", &["--class", &format!("{DOT},resumption=no")]);
    assert_eq!(counts(&played["connections"], ["handshakes", "resumed"]), [60, 0]);
}

#[test]
fn quic_is_counted_by_class() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.stream");
    stream(&path, 2, 50);
    let classes = ["--class", "share=40%,transport=doq", "--class", "share=30%,transport=dot"];
    let (played, _) = summaries(&path, "", &classes);
    assert_eq!(count(&played, "answered"), 40, "{played}");
    let sent = |summary: &Value| summary["connections"]["quic"]["packets_sent"].as_u64().unwrap_or(0);
    let by_class: Vec<_> = played["classes"].as_array().unwrap().iter().map(sent).collect();
    assert!(by_class[1] > 0 && by_class == [0, sent(&played), 0], "{played}");
}

#[test]
fn queries_go_as_early_data_where_the_server_permits_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.stream");
    stream(&path, 3, 500);
    let early = format!("{DOT},early-data=yes");
    for (class, is_counted) in [(early.as_str(), true), ("share=100%,transport=doq,reuse=no,early-data=yes", false)] {
        let (played, served) = summaries(&path, "--early-data", &["--class", class]);
        let names = ["resumed", "early_accepted", "early_rejected"];
        let [resumed, accepted, rejected] = counts(&played["connections"], names);
        assert_eq!((count(&played, "answered"), count(&served, "queries")), (60, 60), "{played}");
        assert!(accepted > 0 && accepted + rejected == resumed, "{played}");
        assert_eq!(count(&served["connections"], "early_data"), if is_counted { accepted } else { 0 });
    }
    // Neither a server that does not permit it nor a client that does not want it has any.
    for (serve, class) in [("", early.as_str()), ("--early-data", DOT)] {
        let (played, served) = summaries(&path, serve, &["--class", class]);
        let connections = &played["connections"];
        assert_eq!(counts(connections, ["early_accepted", "early_rejected"]), [0, 0], "{serve} {class}");
        assert!(count(&played, "answered") == 60 && count(connections, "resumed") > 0);
        assert_eq!(count(&served["connections"], "early_data"), 0);
    }
}

#[test]
fn rejected_early_data_is_sent_again_and_each_query_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.stream");
    stream(&path, 3, 500);
    let (config, received) = (identity::with_early_data(&streams::tls_config(), 16_384), Arc::new(AtomicU64::new(0)));
    let counting = received.clone();
    let server = streams::Server::start(move |stream: TcpStream| {
        let mut tls = ServerConnection::new(config.clone()).unwrap();
        tls.reject_early_data();
        let mut stream = StreamOwned::new(tls, stream);
        while let Some(query) = streams::next_query(&mut stream) {
            counting.fetch_add(1, Ordering::Relaxed);
            if stream.write_all(&streams::frame(&streams::answer(&query))).is_err() {
                return;
            }
        }
    });
    let (address, port) = (server.address.to_string(), server.address.port().to_string());
    let class = format!("{DOT},early-data=yes");
    let played = summary(&path, &["--server", &address, "--dot-port", &port, "--class", &class]);
    let [resumed, accepted, rejected] = counts(&played["connections"], ["resumed", "early_accepted", "early_rejected"]);
    assert!(resumed > 0 && (accepted, rejected) == (0, resumed), "{played}");
    assert_eq!(counts(&played, ["sent", "answered", "duplicates", "unexpected"]), [60, 60, 0, 0]);
    assert_eq!(received.load(Ordering::Relaxed), 60);
}

#[test]
fn classes_that_make_no_sense_are_told_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.stream");
    stream(&path, 1, 1);
    for (classes, told) in [
        (&["share=60%", "share=50%"][..], "are 110 % of the clients"),
        (&["share=20%,colour=red"], "share, transport, idle, reuse, resumption, early-data"),
        (&["share=20%,transport=dot,resumption=no,early-data=yes"], "leave resumption=no out"),
        (&["share=20%,transport=tcp,early-data=yes"], "transport=dot"),
    ] {
        let classes: Vec<_> = classes.iter().flat_map(|class| ["--class", class]).collect();
        let output = play(&path, &[&["--server", "127.0.0.1:53"], &classes[..]].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && errors.contains(told), "{classes:?}: {errors}");
    }
}
