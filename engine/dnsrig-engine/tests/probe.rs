//! `probe` from outside, against a small server of our own on loopback.

use std::{
    fs,
    net::{SocketAddr, UdpSocket},
    path::Path,
    process::{Command, Output, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

use dnsrig_core::rows::Batch;
use serde_json::Value;

use crate::rows::{batch, batches};

const ENGINE: &str = env!("CARGO_BIN_EXE_dnsrig-engine");

/// Answers in a thread: `answer` is given the number of the query and the query. It ends with the test process.
fn serve(answer: impl Fn(u64, &[u8]) -> Vec<u8> + Send + 'static) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let queries = AtomicU64::new(0);
        let mut buffer = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let bytes = answer(queries.fetch_add(1, Ordering::Relaxed), &buffer[..length]);
            socket.send_to(&bytes, from).unwrap();
        }
    });
    address
}

/// An authoritative answer with a SOA of the name asked for.
fn soa(query: &[u8], serial: u32) -> Vec<u8> {
    let header = [&query[..2], &[0x84, 0, 0, 1, 0, 1, 0, 0, 0, 0]].concat();
    let record = [0xc0, 12, 0, 6, 0, 1, 0, 0, 0, 0, 0, 22, 0, 0];
    [&header, &query[12..], &record, &serial.to_be_bytes(), &[0; 16]].concat()
}

fn refused(query: &[u8]) -> Vec<u8> {
    [&query[..2], &[0x84, 5], &query[4..]].concat()
}

fn list(directory: &Path, count: usize) -> String {
    let path = directory.join("zones.list");
    let lines: String = (0..count).map(|number| format!("z{number}.example\tfile\n")).collect();
    fs::write(&path, lines).unwrap();
    path.to_str().unwrap().to_owned()
}

fn probe(server: SocketAddr, arguments: &[&str]) -> Output {
    Command::new(ENGINE).args(["probe", &server.to_string()]).args(arguments).output().unwrap()
}

fn events(output: &Output) -> Vec<Value> {
    output.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

fn summary(output: &Output) -> Value {
    events(output).pop().unwrap_or_else(|| panic!("no summary: {output:?}"))
}

#[test]
fn zones_that_become_ready_are_seen_with_a_true_bracket() {
    let directory = tempfile::tempdir().unwrap();
    let zones = list(directory.path(), 50);
    let out = directory.path().join("zones.arrow");
    // Refused at first, then the old serial, then the new one.
    let server = serve(|number, query| match number {
        0..60 => refused(query),
        60..120 => soa(query, 6),
        _ => soa(query, 7),
    });
    let output = probe(server, &["--zone-list", &zones, "--serial", "7", "--out", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let events = events(&output);
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!((names[0], names[1], names.last()), ("started", "first-answer", Some(&"summary")));
    assert!(names.contains(&"first-seen") && names.contains(&"progress"), "{names:?}");
    let summary = events.last().unwrap();
    assert_eq!((&summary["outcome"], &summary["seen"]), (&"done".into(), &50.into()));
    assert_eq!((&summary["answers"]["refused"], &summary["answers"]["older"]), (&60.into(), &60.into()));
    assert!(summary["resolution_ns"].is_i64());

    let rows = batch(&out);
    assert_eq!(rows.rows(), 50);
    let names: Vec<String> = rows.values("zone").unwrap();
    assert_eq!((names[0].as_str(), names[49].as_str()), ("z0.example", "z49.example"));
    let unseen: Vec<Option<i64>> = rows.optional_values("last_unseen_ns").unwrap();
    let seen: Vec<i64> = rows.values("seen_ns").unwrap();
    assert!(unseen.iter().zip(&seen).all(|(unseen_ns, seen_ns)| unseen_ns.is_none_or(|ns| ns < *seen_ns)));
    let serials: Vec<Option<u32>> = rows.optional_values("serial").unwrap();
    assert!(serials.iter().all(|serial| *serial == Some(7)));
}

#[test]
fn what_is_not_seen_in_time_is_a_result() {
    let directory = tempfile::tempdir().unwrap();
    let zones = list(directory.path(), 10);
    // One zone of ten is there; a stranger's answers must not count.
    let server = serve(|_, query| match &query[12..15] {
        b"\x02z3" => soa(query, 1),
        b"\x02z4" => [&[!query[0]], &soa(query, 1)[1..]].concat(),
        _ => refused(query),
    });
    let output = probe(server, &["--zone-list", &zones, "--limit", "1s"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let summary = summary(&output);
    assert_eq!((&summary["outcome"], &summary["seen"]), (&"timeout".into(), &1.into()));
    assert_eq!(summary["answers"]["seen"], 1);
    assert!(summary["answers"]["mismatched"].as_u64() > Some(0));
    assert!(summary["timeouts"].as_u64() > Some(0));
    assert_eq!(summary["resolution_ns"], Value::Null);
}

#[test]
fn a_server_that_is_not_there_is_unreachable_and_a_signal_ends_it() {
    let directory = tempfile::tempdir().unwrap();
    let zones = list(directory.path(), 3);
    let out = directory.path().join("zones.arrow");
    let nobody = crate::process::nobody();
    let mut child = Command::new(ENGINE)
        .args(["probe", &nobody.to_string(), "--zone-list", &zones, "--until-eof", "--out", out.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_millis(300));
    drop(child.stdin.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let summary = summary(&output);
    assert_eq!((&summary["outcome"], &summary["seen"]), (&"interrupted".into(), &0.into()));
    assert!(summary["unreachable"].as_u64() > Some(0));
    let rows: usize = batches(&out).iter().map(Batch::rows).sum();
    assert_eq!(rows, 3);
}

#[test]
fn bad_input_is_told_with_a_hint() {
    let directory = tempfile::tempdir().unwrap();
    let zones = list(directory.path(), 1);
    let output = probe("192.0.2.1:53".parse().unwrap(), &["--zone-list", &zones]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("\nhint: if you may use that address, confirm it: "));
    fs::write(&zones, "fine.example\nnot..fine\n").unwrap();
    let output = probe("127.0.0.1:9".parse().unwrap(), &["--zone-list", &zones]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("line 2"), "{output:?}");
}

#[test]
fn follow_sees_a_zone_leave_and_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let (zones, out) = (list(directory.path(), 2), directory.path().join("follow.arrow"));
    let server = serve(|number, query| match number {
        0..10 => soa(query, 7),
        10..20 => refused(query),
        _ => soa(query, 8),
    });
    let mut child = Command::new(ENGINE)
        .args(["probe", "follow", &server.to_string(), "--zone-list", &zones, "--rate=200", "--until-eof", "--out"])
        .arg(&out)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_millis(400));
    drop(child.stdin.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let summary = summary(&output);
    assert_eq!((summary["zones"].as_u64(), summary["rows"].as_u64()), (Some(2), Some(6)), "{summary}");
    assert_eq!(events(&output).iter().filter(|event| event["event"] == "changed").count(), 1, "{output:?}");
    let rows = batches(&out).remove(0);
    let served: Vec<_> = rows.optional_values::<bool>("served").unwrap().into_iter().flatten().collect();
    assert_eq!(served, [true, true, false, false, true, true]);
    let times = |name: &str| rows.optional_values::<i64>(name).unwrap();
    let (before, seen) = (times("before_ns"), times("seen_ns"));
    assert_eq!(before.iter().filter(|before_ns| before_ns.is_none()).count(), 2);
    assert!((2..6).all(|row| before[row].unwrap() < seen[row].unwrap()));
}
