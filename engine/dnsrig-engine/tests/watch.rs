//! `watch` from outside: on this machine, and on a network namespace if root tests were asked for.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Command, Stdio},
    thread,
};

use dnsrig_core::rows::Batch;
use nix::sched::{CloneFlags, setns};
use serde_json::Value;

use crate::rows::batches;

const ENGINE: &str = env!("CARGO_BIN_EXE_dnsrig-engine");

/// All series of a file, as host/source/metric, and its number of rows.
fn series(path: &Path) -> (BTreeSet<String>, u64) {
    let (mut names, mut rows) = (BTreeSet::new(), 0);
    for batch in batches(path) {
        rows += batch.rows() as u64;
        let parts = [0, 1, 2].map(|index| batch.columns()[index].values::<String>().unwrap());
        names.extend((0..batch.rows()).map(|row| parts.each_ref().map(|part| part[row].as_str()).join("/")));
    }
    (names, rows)
}

/// Watches for a second, and gives the summary.
fn watch(arguments: &[&str], out: &Path) -> Value {
    let output =
        Command::new(ENGINE).args(["watch", "--duration", "1s", "--out"]).arg(out).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines: Vec<Value> =
        output.stdout.split(|o| *o == b'\n').filter_map(|l| serde_json::from_slice(l).ok()).collect();
    assert_eq!(lines[0]["event"], "started");
    lines.last().unwrap().clone()
}

#[test]
fn the_machine_is_always_watched() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("samples.arrow");
    let summary = watch(&["--interval", "20ms"], &out);
    assert_eq!(summary["event"], "summary");
    let (series, rows) = series(&out);
    assert!(series.contains("machine/cpu0/user_us"), "{series:?}");
    assert!(!series.contains("machine/cpu/user_us"), "the sum of all CPUs is not a CPU");
    assert_eq!((&summary["rows"], &summary["rows_dropped"]), (&rows.into(), &0.into()));
    let samples = summary["samples"].as_u64().unwrap();
    assert_eq!(rows, samples * summary["series"].as_u64().unwrap());
    // A second has fifty ticks of 20 ms, and one at its end; on a busy machine fewer are reached.
    let ticks = samples + summary["missed_ticks"].as_u64().unwrap();
    assert!((1..=51).contains(&ticks), "{ticks}");
}

#[test]
fn it_ends_with_its_standard_input() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("samples.arrow");
    let output =
        Command::new(ENGINE).args(["watch", "--until-eof", "--out"]).arg(&out).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"event\":\"summary\""));
    assert!(series(&out).1 > 0, "what was sampled is kept");
}

/// A network namespace with loopback, deleted when it is dropped; None where root tests were not asked for.
struct Namespace(String);

impl Namespace {
    fn new(name: &str) -> Option<Self> {
        if std::env::var_os("DNSRIG_ROOT_TESTS").is_none_or(|value| value != "1") {
            eprintln!("skipped: it needs root; set DNSRIG_ROOT_TESTS=1");
            return None;
        }
        let name = format!("dnsrig-watch-{name}-{}", std::process::id());
        ip(&["netns", "add", &name]);
        ip(&["-n", &name, "link", "set", "lo", "up"]);
        Some(Namespace(name))
    }

    fn path(&self) -> String {
        format!("/run/netns/{}", self.0)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        ip(&["netns", "delete", &self.0]);
    }
}

fn ip(arguments: &[&str]) {
    assert!(Command::new("ip").args(arguments).status().unwrap().success());
}

#[test]
fn a_namespace_shows_its_own_links_and_sockets() {
    let Some(namespace) = Namespace::new("links") else { return };
    ip(&["-n", &namespace.0, "link", "add", "here", "type", "veth", "peer", "name", "there"]);
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("samples.arrow");
    let summary = watch(&["--host", &format!("h,netns={}", namespace.path())], &out);
    let (series, _) = series(&out);
    let links: BTreeSet<_> = series.iter().filter_map(|name| name.strip_prefix("h/link:")).collect();
    assert_eq!(links.len(), 12, "two links of six metrics: {links:?}");
    for name in ["h/sockets/tcp_time_wait", "h/tcp/retrans_segs", "h/tcp/time_wait_overflow", "h/udp/rcvbuf_errors"] {
        assert!(series.contains(name), "{name} in {series:?}");
    }
    assert_eq!(missing(&summary), 0);
    assert!(summary.get("sockets").is_none() && !directory.path().join("sockets.arrow").exists(), "not asked for");
}

/// How much of host `h` this machine lacks.
fn missing(summary: &Value) -> usize {
    summary["missing"].as_array().unwrap().iter().filter(|it| it.as_str().unwrap().starts_with("h/")).count()
}

#[test]
fn a_connection_within_a_namespace_is_listed_by_both_its_ends() {
    let Some(namespace) = Namespace::new("sockets") else { return };
    let inside = File::open(namespace.path()).unwrap();
    let connect = move || {
        setns(inside, CloneFlags::CLONE_NEWNET).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    };
    let (mut client, mut server) = thread::spawn(connect).join().unwrap();
    server.write_all(&[7; 50_000]).unwrap();
    client.read_exact(&mut [0; 40_000]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let [samples, out] = ["samples.arrow", "sockets.arrow"].map(|name| directory.path().join(name));
    let host = format!("h,netns={},sockets", namespace.path());
    let listing = ["--sockets-interval=100ms", "--sockets-out", out.to_str().unwrap()];
    let summary = watch(&[&["--host", &host][..], &listing].concat(), &samples);
    assert_eq!(missing(&summary), 0, "{summary}");
    let batches = batches(&out);
    let rows: usize = batches.iter().map(Batch::rows).sum();
    let told = &summary["sockets"];
    assert_eq!((&told["rows"], &told["rows_dropped"], &told["beyond"]), (&rows.into(), &0.into(), &0.into()));
    assert_eq!(rows as u64, 2 * told["listings"].as_u64().unwrap(), "two ends, and no other sockets are there");
    let last = batches.last().unwrap();
    let texts = |name: &str| last.values::<String>(name).unwrap();
    let row = |stream: &TcpStream| {
        let local = stream.local_addr().unwrap().to_string();
        texts("local").iter().rposition(|one| *one == local).unwrap()
    };
    let (at_client, at_server) = (row(&client), row(&server));
    assert_eq!(last.values::<u64>("acked_bytes").unwrap()[at_server], 50_000);
    assert_eq!(last.values::<u64>("received_bytes").unwrap()[at_client], 50_000);
    assert_eq!(last.values::<u32>("receive_queue_bytes").unwrap()[at_client], 10_000);
    assert_eq!(texts("remote")[at_client], server.local_addr().unwrap().to_string());
    let word = |name: &str| texts(name)[at_server].clone();
    assert_eq!(["host", "state"].map(word), ["h", "established"]);
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    assert!(known.split_whitespace().any(|name| name == word("congestion")), "{} of {known}", word("congestion"));
}
