//! `load --hold`: connections that are opened at a rate and kept, against servers that keep them, close them, or have
//! a limit.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::Value;

/// How a server treats its connections.
#[derive(Clone, Copy)]
struct Manners {
    /// The number of connections that it has at a time: it closes any others as soon as it accepts them.
    most: usize,
    /// How long it waits for a whole query.
    patience: Duration,
}

const PATIENT: Manners = Manners { most: usize::MAX, patience: Duration::from_secs(60) };

/// What a server saw.
#[derive(Default)]
struct Seen {
    accepted: AtomicUsize,
    /// Connections that it closed, because there were too many or it lost its patience.
    closed: AtomicUsize,
    open: AtomicUsize,
    bytes: AtomicUsize,
}

/// Starts a server that answers queries over TCP for the rest of the process.
fn server(manners: Manners) -> (SocketAddr, Arc<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, seen) = (listener.local_addr().unwrap(), Arc::new(Seen::default()));
    let watched = seen.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            seen.accepted.fetch_add(1, Ordering::SeqCst);
            if seen.open.load(Ordering::SeqCst) >= manners.most {
                seen.closed.fetch_add(1, Ordering::SeqCst);
                continue;
            }
            seen.open.fetch_add(1, Ordering::SeqCst);
            let (stream, seen) = (stream.unwrap(), seen.clone());
            thread::spawn(move || {
                serve(stream, manners.patience, &seen);
                seen.open.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    (address, watched)
}

/// Answers until the other side ends the connection, or no whole query comes in time.
fn serve(mut stream: TcpStream, patience: Duration, seen: &Seen) {
    stream.set_read_timeout(Some(patience)).unwrap();
    let mut space = [0; 4_096];
    let mut waiting = Vec::new();
    loop {
        match stream.read(&mut space) {
            Ok(0) => return,
            Ok(count) => {
                seen.bytes.fetch_add(count, Ordering::SeqCst);
                waiting.extend_from_slice(&space[..count]);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                seen.closed.fetch_add(1, Ordering::SeqCst);
                return;
            }
            Err(_) => return,
        }
        while waiting.len() >= 2 {
            let length = 2 + usize::from(u16::from_be_bytes([waiting[0], waiting[1]]));
            if waiting.len() < length {
                break;
            }
            let mut answer: Vec<u8> = waiting.drain(..length).collect();
            answer[4] |= 0x80;
            if stream.write_all(&answer).is_err() {
                return;
            }
        }
    }
}

/// Holds 40 connections, opened within 0.2 s, for as long as three queries of each take. Returns all events by name.
fn hold(server: SocketAddr, arguments: &[&str]) -> (Value, Value) {
    let folder = tempfile::tempdir().unwrap();
    let queries = folder.path().join("queries.txt");
    std::fs::write(&queries, "www.example.com A\nmail.example.com AAAA\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_dnsrig-engine"))
        .args(["load", &server.to_string(), "--transport", "tcp", "--clients", "40", "--queries"])
        .arg(&queries)
        .args([
            "--hold",
            "0.25s",
            "--open-rate",
            "200",
            "--duration",
            "0.75s",
            "--timeout",
            "0.3s",
            "--interval",
            "0.1s",
        ])
        .args(arguments)
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let events: Vec<Value> =
        output.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let of = |name: &str| events.iter().find(|event| event["event"] == name).cloned().unwrap();
    (of("opened"), of("summary"))
}

fn count(value: &Value, path: &str) -> usize {
    let found = value.pointer(path).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("{path} in {value}")) as usize
}

#[test]
fn each_client_opens_one_connection_and_asks_on_it_in_turn() {
    let (address, seen) = server(PATIENT);
    let (opened, summary) = hold(address, &["--threads", "2"]);
    assert_eq!((count(&opened, "/sent"), count(&opened, "/connections/open")), (40, 40));
    assert_eq!(opened["connections"], summary["held"]["opening"]["connections"]);
    assert!(opened["memory_per_connection_bytes"].as_f64().unwrap() > 0.0);
    assert_eq!((count(&summary, "/sent"), count(&summary, "/connections/attempted")), (120, 40));
    assert_eq!(count(&summary, "/connections/open"), 40);
    assert_eq!((seen.accepted.load(Ordering::SeqCst), seen.closed.load(Ordering::SeqCst)), (40, 0));
    // What a busy machine did not manage in 300 ms has timed out, nothing else.
    assert_eq!(count(&summary, "/answered") + count(&summary, "/timeouts"), 120);
    assert_eq!(summary.get("lifetimes"), None);
}

#[test]
fn what_a_server_closes_at_its_limit_is_counted_as_the_server_counts_it() {
    let (address, seen) = server(Manners { most: 10, ..PATIENT });
    let (opened, summary) = hold(address, &[]);
    assert_eq!((count(&opened, "/connections/attempted"), count(&opened, "/connections/open")), (40, 10), "{opened}");
    let ended = |event: &Value| {
        ["closed", "reset"].map(|kind| count(event, &format!("/connections/ended/{kind}"))).iter().sum::<usize>()
    };
    assert_eq!(ended(&opened), 30);
    // Clients without a connection try again for each of their queries.
    assert_eq!(count(&summary, "/connections/attempted"), seen.accepted.load(Ordering::SeqCst));
    assert_eq!(ended(&summary), seen.closed.load(Ordering::SeqCst));
    assert!(ended(&summary) > 30 && count(&summary, "/connections/open") == 10, "{summary}");
}

#[test]
fn a_half_open_connection_never_has_a_whole_query() {
    let (address, seen) = server(Manners { patience: Duration::from_millis(400), ..PATIENT });
    let (opened, summary) = hold(address, &["--held-as", "half-open"]);
    assert_eq!((count(&opened, "/connections/open"), count(&opened, "/sent"), count(&summary, "/sent")), (40, 0, 0));
    // A byte for each connection.
    assert_eq!(seen.bytes.load(Ordering::SeqCst), seen.accepted.load(Ordering::SeqCst));
    assert!(count(&summary, "/connections/ended/closed") >= 40, "{summary}");
    assert_eq!(count(&summary, "/lifetimes/count"), count(&summary, "/connections/ended/closed"));
    assert!(summary["lifetimes"]["min_s"].as_f64().unwrap() > 0.3, "{summary}");
}

#[test]
fn a_slow_reader_asks_and_never_reads() {
    let (address, seen) = server(PATIENT);
    let (_, summary) = hold(address, &["--held-as", "slow-reader"]);
    assert_eq!((count(&summary, "/answered"), count(&summary, "/timeouts")), (0, 120), "{summary}");
    assert_eq!((count(&summary, "/connections/open"), seen.accepted.load(Ordering::SeqCst)), (40, 40));
    assert!(seen.bytes.load(Ordering::SeqCst) > 160 * 30, "the queries arrived");
}

#[test]
fn a_port_without_a_server_refuses_all() {
    let (opened, summary) = hold(crate::process::nobody(), &[]);
    assert_eq!((count(&opened, "/connections/open"), count(&opened, "/connections/ended/refused")), (0, 40));
    assert_eq!(opened["memory_per_connection_bytes"], Value::Null);
    assert_eq!(count(&summary, "/connections/ended/refused"), 160);
}
