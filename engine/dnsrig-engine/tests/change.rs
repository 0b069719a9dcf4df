//! `change` and `propagation` from outside, against small servers of our own on loopback.

use std::{
    collections::HashMap,
    fs,
    net::{SocketAddr, UdpSocket},
    path::Path,
    process::{Command, Output, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use domain::{
    base::{
        Message, MessageBuilder, Name, ParsedName, Record, Ttl,
        iana::{Opcode, Rcode},
    },
    rdata::Soa,
};
use serde_json::Value;

use crate::rows::batch;

const ENGINE: &str = env!("CARGO_BIN_EXE_dnsrig-engine");

/// When which serial of which zone is served: shared by a primary and its secondaries.
type History = Arc<Mutex<HashMap<String, Vec<(Instant, u32)>>>>;

/// Serves in a thread: SOA queries with what the history says `lag` ago, updates with this RCODE (0: they are made).
fn serve(history: &History, lag: Duration, rcode: Rcode) -> SocketAddr {
    let (socket, history) = (UdpSocket::bind("127.0.0.1:0").unwrap(), history.clone());
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let message = Message::from_octets(&buffer[..length]).unwrap();
            let answer = if message.header().opcode() == Opcode::UPDATE {
                update(&message, &history, rcode)
            } else {
                soa(&message, &history, lag)
            };
            socket.send_to(&answer, from).unwrap();
        }
    });
    address
}

fn update(message: &Message<&[u8]>, history: &History, rcode: Rcode) -> Vec<u8> {
    let zone = message.sole_question().unwrap().qname().to_string();
    if rcode == Rcode::NOERROR {
        let soas = message.authority().unwrap().limit_to_in::<Soa<ParsedName<_>>>();
        let serial = soas.map(|record| record.unwrap().data().serial().into_int()).next();
        history.lock().unwrap().entry(zone).or_default().extend(serial.map(|serial| (Instant::now(), serial)));
    }
    MessageBuilder::new_vec().start_answer(message, rcode).unwrap().finish()
}

fn soa(message: &Message<&[u8]>, history: &History, lag: Duration) -> Vec<u8> {
    let name = message.sole_question().unwrap().qname().to_string();
    let known = history.lock().unwrap();
    let shown = known.get(&name).into_iter().flatten().filter(|(when, _)| when.elapsed() >= lag);
    let serial = shown.map(|(_, serial)| *serial).next_back().unwrap_or(7);
    let mut answer = MessageBuilder::new_vec().start_answer(message, Rcode::NOERROR).unwrap();
    answer.header_mut().set_aa(true);
    let root = Name::<Vec<u8>>::root_vec;
    let [refresh, retry, expire, minimum] = [1, 2, 3, 4].map(Ttl::from_secs);
    let data = Soa::new(root(), root(), serial.into(), refresh, retry, expire, minimum);
    let owner: Name<Vec<u8>> = name.parse().unwrap();
    answer.push(Record::new(owner, domain::base::iana::Class::IN, minimum, data)).unwrap();
    answer.finish()
}

fn list(directory: &Path, count: usize) -> String {
    let path = directory.join("zones.list");
    fs::write(&path, (0..count).map(|number| format!("z{number}.example\tfile\n")).collect::<String>()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn engine(arguments: &[&str]) -> Output {
    Command::new(ENGINE).args(arguments).output().unwrap()
}

fn summary(output: &Output) -> Value {
    let lines: Vec<Value> =
        output.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    assert_eq!(lines.first().map(|line| &line["event"]), Some(&"started".into()), "{output:?}");
    lines.into_iter().last().filter(|line| line["event"] == "summary").unwrap_or_else(|| panic!("{output:?}"))
}

#[test]
fn members_leave_and_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let (members, out) = (list(directory.path(), 10), directory.path().join("changes.arrow"));
    let primary = serve(&History::default(), Duration::ZERO, Rcode::NOERROR).to_string();
    let output = engine(&[
        "change",
        &primary,
        "--catalog=catalog.example",
        "--members",
        &members,
        "--absent=3",
        "--members-changed-per-s=100",
        "--duration=0.2s",
        "--out",
        out.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let summary = summary(&output);
    let counts =
        ["sent", "accepted", "removed", "added", "timeouts", "unsent"].map(|key| summary[key].as_u64().unwrap());
    assert_eq!(counts, [20, 20, 11, 9, 0, 0]);
    let rows = batch(&out);
    let times = |name: &str| rows.values::<i64>(name).unwrap();
    let (due, sent, accepted) = (times("due_ns"), times("sent_ns"), times("accepted_ns"));
    assert_eq!(rows.rows(), 20);
    assert!((0..20).all(|row| due[row] <= sent[row] && sent[row] < accepted[row]));
}

#[test]
fn a_primary_that_refuses_and_one_that_is_silent_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let zones = list(directory.path(), 3);
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let refusing = serve(&History::default(), Duration::ZERO, Rcode::REFUSED);
    for (primary, refused, timeouts) in [(refusing, 5, 0), (silent.local_addr().unwrap(), 0, 5)] {
        let output = engine(&[
            "change",
            &primary.to_string(),
            "--zone-list",
            &zones,
            "--changes-per-s=100",
            "--duration=0.05s",
            "--timeout=0.2s",
        ]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let summary = summary(&output);
        assert_eq!((&summary["sent"], &summary["accepted"]), (&5.into(), &0.into()));
        assert_eq!(summary["rcodes"]["REFUSED"].as_u64().unwrap_or(0), refused);
        assert_eq!(summary["timeouts"], timeouts);
    }
}

#[test]
fn foreign_servers_and_bad_names_are_refused_with_a_hint() {
    let directory = tempfile::tempdir().unwrap();
    let zones = list(directory.path(), 1);
    for arguments in [
        vec!["change", "192.0.2.1", "--zone-list", &zones, "--changes-per-s=1"],
        vec!["change", "127.0.0.1:9", "--catalog=a..b", "--members", &zones, "--changes-per-s=1"],
        vec!["change", "127.0.0.1:9", "--catalog=catalog.example", "--members", &zones, "--changes-per-s=1"],
        vec!["propagation", "--primary=127.0.0.1", "--secondary=192.0.2.1", "--zone-list", &zones],
        vec!["propagation", "--primary=127.0.0.1", "--secondary=[::1]", "--zone-list", &zones],
        vec!["propagation", "--primary=127.0.0.1", "--secondary=127.0.0.2", "--zone=a..b"],
    ] {
        let output = engine(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?} {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("\nhint: "), "{output:?}");
    }
}

#[test]
fn a_change_is_seen_on_each_secondary_after_its_lag() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("propagation.arrow");
    let history = History::default();
    let primary = serve(&history, Duration::ZERO, Rcode::NOERROR);
    let lags_ms = [0, 30, 60];
    let secondaries = lags_ms.map(|ms| serve(&history, Duration::from_millis(ms), Rcode::NOERROR));
    let mut arguments = vec!["propagation".to_owned(), format!("--primary={primary}")];
    arguments.extend(secondaries.iter().map(|secondary| format!("--secondary={secondary}")));
    arguments.extend(["--zone=a.example", "--zone=b.example", "--changes=6", "--pause=1ms"].map(String::from));
    arguments.push(format!("--out={}", out.display()));
    let output = engine(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let summary = summary(&output);
    let counts = ["changes", "accepted", "seen", "unseen"].map(|key| summary[key].as_u64().unwrap());
    let nothing = ["refused", "accept_timeouts", "unexpected", "without_serial", "send_errors"];
    assert_eq!(nothing.map(|key| summary[key].as_u64().unwrap()), [0; 5], "{summary}");
    assert_eq!((counts, &summary["outcome"]), ([6, 6, 18, 0], &"done".into()));
    let rows = batch(&out);
    let times = |name: &str| rows.optional_values::<i64>(name).unwrap();
    let (changed, unseen, seen) = (times("changed_ns"), times("last_unseen_ns"), times("seen_ns"));
    for row in 0..18 {
        // The other end of the bracket is when the secondary got the poll, which may have waited for this machine.
        let lag_ns = lags_ms[row % 3] as i64 * 1_000_000;
        assert!(seen[row].unwrap() - changed[row].unwrap() >= lag_ns);
        assert!(unseen[row] < seen[row]);
    }
}

#[test]
fn a_stream_and_what_never_arrives() {
    let history = History::default();
    let primary = format!("--primary={}", serve(&history, Duration::ZERO, Rcode::NOERROR));
    let near = format!("--secondary={}", serve(&history, Duration::ZERO, Rcode::NOERROR));
    let never = format!("--secondary={}", serve(&history, Duration::from_secs(3600), Rcode::NOERROR));
    let pace = ["--zone=a.example", "--rate=100", "--duration=0.1s", "--limit=0.3s"];
    let output = engine(&[&["propagation", &primary, &near, &never][..], &pace].concat());
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let summary = summary(&output);
    assert_eq!(
        (&summary["outcome"], &summary["seen"], &summary["unseen"]),
        (&"timeout".into(), &10.into(), &10.into())
    );
    assert_eq!(
        summary["secondaries"][1]["propagation_ns"]["min"], 300_000_000,
        "what did not arrive counts at the limit"
    );
}

#[test]
fn whoever_waits_for_a_primary_can_be_told_to_end() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let primary = format!("--primary={}", silent.local_addr().unwrap());
    let mut child = Command::new(ENGINE)
        .args(["propagation", &primary, "--secondary=127.0.0.1:9", "--zone=a.example", "--until-eof"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    silent.recv_from(&mut [0; 512]).unwrap();
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_primary_that_does_not_know_the_zone_is_told() {
    let silent = crate::process::nobody();
    let primary = format!("--primary={silent}");
    let output = engine(&["propagation", &primary, "--secondary=127.0.0.1:9", "--zone=a.example"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("the SOA of a.example: nothing came"));
    let unknown = UdpSocket::bind("127.0.0.1:0").unwrap();
    let primary = format!("--primary={}", unknown.local_addr().unwrap());
    thread::spawn(move || {
        let mut query = [0; 512];
        while let Ok((length, from)) = unknown.recv_from(&mut query) {
            (query[2], query[3]) = (0x80, 5);
            unknown.send_to(&query[..length], from).unwrap();
        }
    });
    let output = engine(&["propagation", &primary, "--secondary=127.0.0.1:9", "--zone=a.example"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("the SOA of a.example: REFUSED"), "{output:?}");
}
