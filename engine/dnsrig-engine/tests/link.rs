//! `link` from outside: between two namespaces, with root; set `DNSRIG_ROOT_TESTS=1`.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, ErrorKind, Read},
    net::UdpSocket,
    os::fd::OwnedFd,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{
    process::stalled::full_pipe,
    rows::{batches, values},
};
use nix::{
    sched::{CloneFlags, setns},
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

const ENGINE: &str = env!("CARGO_BIN_EXE_dnsrig-engine");
const HOSTS: [&str; 2] = ["198.18.0.1", "198.18.0.2"];
const PORT: u16 = 5000;
/// Nothing on these links takes longer unless it is lost.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether tests that need root were asked for. What is skipped is said, so that nobody takes it for a pass.
fn may_run() -> bool {
    let asked = std::env::var_os("DNSRIG_ROOT_TESTS").is_some_and(|value| value == "1");
    if !asked {
        eprintln!("skipped: it needs root; set DNSRIG_ROOT_TESTS=1");
    }
    asked
}

fn ip(arguments: &[&str]) {
    assert!(Command::new("ip").args(arguments).status().unwrap().success(), "ip {arguments:?}");
}

/// Two namespaces, which go with it.
struct Pair([String; 2]);

impl Pair {
    fn new(test: &str) -> Self {
        let names = ["l", "r"].map(|side| format!("dnsrig-{test}-{}-{side}", std::process::id()));
        names.iter().for_each(|name| ip(&["netns", "add", name]));
        Pair(names)
    }

    fn path(&self, side: usize) -> String {
        format!("/run/netns/{}", self.0[side])
    }

    /// A socket of one side, on its address.
    fn socket(&self, side: usize) -> UdpSocket {
        let namespace = File::open(self.path(side)).unwrap();
        let open = move || {
            setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
            UdpSocket::bind((HOSTS[side], PORT)).unwrap()
        };
        let socket = thread::spawn(open).join().unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.connect((HOSTS[1 - side], PORT)).unwrap();
        socket
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

/// A running link. Interfaces have addresses and are up.
struct Link {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
}

impl Link {
    fn start(pair: &Pair, arguments: &[&str]) -> Self {
        let [left, right] = [0, 1].map(|side| format!("{},far", pair.path(side)));
        let mut child = Command::new(ENGINE)
            .args(["link", "--until-eof", "--left", &left, "--right", &right])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("\"ready\"") {
            line.clear();
            assert!(lines.read_line(&mut line).unwrap() > 0, "it ended before it was ready");
        }
        for (side, name) in pair.0.iter().enumerate() {
            ip(&["-n", name, "address", "add", HOSTS[side], "peer", HOSTS[1 - side], "dev", "far"]);
            ip(&["-n", name, "link", "set", "far", "up"]);
        }
        Link { stdin: child.stdin.take(), child, lines }
    }

    /// Ends it; its summary.
    fn end(mut self) -> Value {
        drop(self.stdin.take());
        let mut text = String::new();
        self.lines.read_to_string(&mut text).unwrap();
        assert!(self.child.wait().unwrap().success());
        let summary: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!(summary["event"], "summary");
        summary
    }
}

/// A link whose events nobody reads, and where nobody ever will.
struct Unread(Child, #[allow(dead_code, reason = "open, and not read")] OwnedFd);

impl Unread {
    fn start(pair: &Pair) -> Self {
        let (read, write) = full_pipe();
        let [left, right] = [0, 1].map(|side| format!("{},far", pair.path(side)));
        let arguments = ["link", "--left", &left, "--right", &right, "--forward", "delay=1ms"];
        let child = Command::new(ENGINE).args(arguments).stdout(write).spawn().unwrap();
        let begun = Instant::now();
        for (side, name) in pair.0.iter().enumerate() {
            let show = || Command::new("ip").args(["-n", name, "link", "show", "far"]).output().unwrap();
            while !show().status.success() && begun.elapsed() < PATIENCE {
                thread::sleep(Duration::from_millis(10));
            }
            ip(&["-n", name, "address", "add", HOSTS[side], "peer", HOSTS[1 - side], "dev", "far"]);
            ip(&["-n", name, "link", "set", "far", "up"]);
        }
        Unread(child, read)
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn packets_are_carried_though_nobody_reads_the_events() {
    if !may_run() {
        return;
    }
    let pair = Pair::new("unread");
    let mut link = Unread::start(&pair);
    let [left, right] = [0, 1].map(|side| pair.socket(side));
    // Beyond the first progress, which is said after a second.
    for number in 0..15 {
        send(&left, number, 100);
        assert!(right.recv(&mut [0; 200]).is_ok(), "packet {number} did not come");
        thread::sleep(Duration::from_millis(100));
    }
    let begun = Instant::now();
    kill(Pid::from_raw(link.0.id().cast_signed()), Signal::SIGTERM).unwrap();
    while link.0.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < 2 * PATIENCE, "it does not end");
        thread::sleep(Duration::from_millis(10));
    }
}

fn send(socket: &UdpSocket, number: u32, bytes: usize) {
    let mut packet = vec![0; bytes];
    packet[..4].copy_from_slice(&number.to_be_bytes());
    socket.send(&packet).unwrap();
}

/// The number and the length of the next packet that came; none if none comes any more.
fn receive(socket: &UdpSocket) -> Option<(u32, usize)> {
    let mut packet = [0; 2000];
    match socket.recv(&mut packet) {
        Ok(bytes) => Some((u32::from_be_bytes(packet[..4].try_into().unwrap()), bytes)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => None,
        Err(error) => panic!("{error}"),
    }
}

/// The sums of some columns of a row file, both directions together.
fn sums<const N: usize>(path: &Path, columns: [&str; N]) -> [u64; N] {
    let batches = batches(path);
    columns.map(|name| values::<u64>(&batches, name).into_iter().sum())
}

#[test]
fn packets_come_out_in_order_and_not_before_their_time() {
    if !may_run() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("link.arrow");
    let pair = Pair::new("way");
    let forward = "rate=20mbit,delay=30ms,jitter=10ms,limit=2000";
    let rows = ["--interval", "10ms", "--out", out.to_str().unwrap()];
    let link = Link::start(&pair, &[&["--forward", forward, "--reverse", "delay=20ms"][..], &rows].concat());
    let [left, right] = [0, 1].map(|side| pair.socket(side));
    for number in 0..20 {
        let sent = Instant::now();
        send(&left, number, 100);
        assert_eq!(receive(&right), Some((number, 100)));
        assert!(sent.elapsed() >= Duration::from_millis(20), "delay less jitter");
        let sent = Instant::now();
        send(&right, number, 1000);
        assert_eq!(receive(&left), Some((number, 1000)));
        assert!(sent.elapsed() >= Duration::from_millis(20));
    }
    let sent = Instant::now();
    (0..200).for_each(|number| send(&left, number, 1000));
    (0..200).for_each(|number| assert_eq!(receive(&right), Some((number, 1000))));
    // 200 packets of 1,028 bytes at 20 Mbit/s, less the first.
    assert!(sent.elapsed() >= Duration::from_micros(20_000 + 199 * 411));
    let summary = link.end();
    for (direction, packets, bytes) in [("forward", 220, 20 * 128 + 200 * 1028), ("reverse", 20, 20 * 1028)] {
        let counts = &summary[direction];
        // The kernel may have sent something of its own (IPv6).
        assert!(counts["delivered_packets"].as_u64().unwrap() >= packets, "{counts}");
        assert!(counts["delivered_bytes"].as_u64().unwrap() >= bytes, "{counts}");
        // The histogram knows values to 0.1 %.
        assert!(counts["delay_ns"]["min"].as_u64().unwrap() >= 19_900_000, "{counts}");
        assert_eq!((&counts["lost"], &counts["overflowed"], &counts["missed"]), (&0.into(), &0.into(), &0.into()));
    }
    let both = |key: &str| ["forward", "reverse"].iter().map(|way| summary[way][key].as_u64().unwrap()).sum::<u64>();
    let columns = ["packets", "bytes", "delivered_packets", "delivered_bytes", "refused"];
    assert_eq!(sums(&out, columns), columns.map(both), "the rows add up to the summary");
}

#[test]
fn what_is_dropped_is_counted_by_why() {
    if !may_run() {
        return;
    }
    let pair = Pair::new("drop");
    let link = Link::start(
        &pair,
        &["--forward", "loss=100%", "--reverse", "rate=1mbit,limit=10,mtu=1200,icmp=blocked,loss=0%"],
    );
    let [left, right] = [0, 1].map(|side| pair.socket(side));
    left.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    (0..50).for_each(|number| send(&left, number, 100));
    // At once: ten wait, one or the other has left meanwhile. The kernel's own packets (IPv6) may wait among them.
    (0..50).for_each(|number| send(&right, number, 1000));
    let came: Vec<_> = std::iter::from_fn(|| receive(&left)).map(|(number, _)| number).collect();
    assert!(came.len() >= 5 && came.is_sorted(), "{came:?}");
    send(&right, 0, 1300);
    assert_eq!(receive(&left), None);
    let summary = link.end();
    let count = |direction: &str, key: &str| summary[direction][key].as_u64().unwrap();
    assert!(count("forward", "lost") >= 50 && count("forward", "delivered_packets") == 0, "{summary}");
    assert!(count("reverse", "overflowed") >= 50 - came.len() as u64, "{summary}");
    assert_eq!((count("reverse", "too_big"), count("reverse", "lost")), (1, 0));
    for direction in ["forward", "reverse"] {
        let parts = ["delivered_packets", "lost", "overflowed", "too_big", "refused", "queue_packets"];
        let sum: u64 = parts.iter().map(|key| count(direction, key)).sum();
        assert_eq!(count(direction, "packets"), sum, "{summary}");
    }
}

#[test]
fn what_was_missed_is_known_among_many_interfaces() {
    if !may_run() {
        return;
    }
    let pair = Pair::new("many");
    // A read of /proc/net/dev gives no more than a page, and an interface has some 120 bytes of it.
    for number in 0..20 {
        let [one, other] = ["a", "b"].map(|end| format!("{end}{number}"));
        ip(&["-n", &pair.0[0], "link", "add", &one, "type", "veth", "peer", "name", &other]);
    }
    let summary = Link::start(&pair, &[]).end();
    assert_eq!(summary["forward"]["missed"], 0, "{summary}");
}

#[test]
fn the_kernel_learns_the_mtu_of_the_path() {
    if !may_run() {
        return;
    }
    let pair = Pair::new("mtu");
    let link = Link::start(&pair, &["--forward", "mtu=1200"]);
    let [left, right] = [0, 1].map(|side| pair.socket(side));
    right.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    // UDP sockets of Linux set DF, and cut packets into fragments as soon as the kernel knows of a smaller MTU.
    send(&left, 1, 1400);
    assert_eq!(receive(&right), None);
    // The message that came back is an error of the socket (ip(7)), told once.
    let told = (0..3).map(|_| left.send(&[0; 1400])).collect::<Vec<_>>();
    right.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(receive(&right).is_some_and(|(_, bytes)| bytes == 1400), "{told:?}");
    let summary = link.end();
    assert!(summary["forward"]["too_big"].as_u64().unwrap() >= 1, "{summary}");
    assert_eq!(summary["reverse"]["too_big"], 0);
}

#[test]
fn the_interfaces_go_with_it() {
    if !may_run() {
        return;
    }
    let pair = Pair::new("end");
    Link::start(&pair, &[]).end();
    let output = Command::new("ip").args(["-n", &pair.0[0], "-brief", "link"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stdout).contains("far"));
}

#[test]
fn an_interface_that_goes_away_ends_it() {
    if !may_run() {
        return;
    }
    let pair = Pair::new("gone");
    let mut link = Link::start(&pair, &[]);
    ip(&["-n", &pair.0[1], "link", "delete", "far"]);
    assert_eq!(link.child.wait().unwrap().code(), Some(1));
}

#[test]
fn wrong_input_is_one_sentence_and_a_hint() {
    let link = |left: &str, right: &str| {
        Command::new(ENGINE).args(["link", "--left", left, "--right", right]).output().unwrap()
    };
    let output = link("/nowhere,a", "/nowhere,a");
    assert_eq!(output.status.code(), Some(2));
    let output = link("/nowhere,a", "/nowhere,b");
    let text = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!((output.status.code(), lines.len()), (Some(1), 2), "{text}");
    assert!(
        lines[0].starts_with("dnsrig-engine link: cannot open the network namespace for a in /nowhere: "),
        "{text}"
    );
    assert!(lines[1].starts_with("hint: make the namespace first"), "{text}");
    assert!(fs::metadata("/nowhere").is_err());
    assert_eq!(link("/nowhere", "/nowhere,b").status.code(), Some(2));
}
