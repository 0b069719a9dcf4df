//! `clock` from outside: on loopback, and with root between two time namespaces; for that set `DNSRIG_ROOT_TESTS=1`.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::process::CommandExt,
    process::Command,
};

use dnsrig_core::rows::Batch;
use nix::{
    sched::{CloneFlags, unshare},
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

use crate::{
    process::{ENGINE, PATIENCE, Process, nobody},
    rows::batches,
};

fn serve() -> (Process, SocketAddr) {
    let mut process = Process::start("clock serve 127.0.0.1:0 --until-eof");
    let address = address(&process.event("listening"));
    (process, address)
}

fn address(listening: &Value) -> SocketAddr {
    let ip = listening["address"].as_str().unwrap().parse().unwrap();
    (std::net::IpAddr::V4(ip), listening["port"].as_u64().unwrap() as u16).into()
}

fn number(event: &Value, name: &str) -> i64 {
    event[name].as_i64().unwrap_or_else(|| panic!("{name} in {event}"))
}

/// The true offsets: of CLOCK_MONOTONIC as given, of CLOCK_REALTIME none.
fn assert_apart(compared: &Value, monotonic_ns: i64) {
    assert!((number(compared, "offset_ns") - monotonic_ns).abs() <= number(compared, "error_ns"), "{compared}");
    assert!(number(compared, "realtime_offset_ns").abs() <= number(compared, "realtime_error_ns"), "{compared}");
    assert!(number(compared, "error_ns") * 2 >= number(compared, "rtt_ns"), "{compared}");
}

#[test]
fn peers_on_one_machine_are_not_apart_and_rows_and_summary_say_how_often_they_were_asked() {
    let [(mut one, at_one), (two, at_two)] = [serve(), serve()];
    let out = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    let mut compare = Process::start(&format!(
        "clock compare one={at_one} two={at_two} --interval 0.1s --exchanges 5 --out {} --until-eof",
        out.display()
    ));
    for _ in 0..6 {
        assert_apart(&compare.event("compared"), 0);
    }
    compare.end_input();
    let (summary, good) = compare.end();
    assert!(good, "{summary}");
    let peers = summary["peers"].as_array().unwrap();
    let names: Vec<_> = peers.iter().map(|peer| peer["peer"].as_str().unwrap()).collect();
    assert_eq!(names, ["one", "two"]);
    let bursts = number(&peers[0], "bursts");
    for peer in peers {
        assert!(bursts >= 4, "three and a last one: {summary}");
        assert_eq!((number(peer, "bursts"), number(peer, "exchanges"), number(peer, "lost")), (bursts, bursts * 5, 0));
        assert!(number(&peer["line"], "offset_ns").abs() <= number(&peer["line"], "error_ns"), "{peer}");
        assert!(number(peer, "realtime_offset_ns").abs() <= number(peer, "realtime_error_ns"), "{peer}");
    }
    assert_eq!((number(&summary, "rows"), number(&summary, "rows_dropped")), (bursts * 10, 0));
    let batches = batches(&out);
    assert_eq!(batches.iter().map(Batch::rows).sum::<usize>() as i64, bursts * 10);
    let last = batches.last().unwrap();
    let value = |name: &str| last.values::<i64>(name).unwrap()[0];
    assert!(value("offset_ns").abs() <= value("rtt_ns") + 1_000 && value("time_ns") > 0);
    let burst = last.values::<u32>("burst").unwrap()[0];
    assert_eq!(i64::from(burst) + 1, bursts);
    one.end_input();
    let (served, good) = one.end();
    assert!(good);
    assert_eq!((number(&served, "exchanges"), number(&served, "connections")), (bursts * 5, 1));
    drop(two);
}

#[test]
fn a_peer_that_is_away_is_told_ends_nothing_and_is_found_when_it_is_back() {
    let away = nobody();
    let mut compare =
        Process::start(&format!("clock compare away={away} --interval 0.1s --exchanges 2 --limit 1s --until-eof"));
    let lost = compare.event("lost");
    assert_eq!(lost["peer"], "away");
    assert!(lost["why"].as_str().unwrap().contains("refused"), "{lost}");
    let mut server = Process::start(&format!("clock serve {away} --until-eof"));
    assert_eq!(address(&server.event("listening")), away);
    assert_apart(&compare.event("compared"), 0);
    server.end_input();
    assert!(server.end().1);
    compare.event("lost");
    let signalled = Pid::from_raw(compare.id() as i32);
    kill(signalled, Signal::SIGTERM).unwrap();
    let (summary, good) = compare.end();
    assert!(good && number(&summary["peers"][0], "lost") >= 2, "{summary}");
}

#[test]
fn a_peer_that_is_silent_or_says_something_else_is_lost() {
    for answer in [&[][..], &[b'x'; 56]] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut compare = Process::start(&format!("clock compare it={address} --limit 0.2s --until-eof"));
        let mut connection = listener.accept().unwrap().0;
        connection.write_all(answer).unwrap();
        let lost = compare.event("lost");
        assert_eq!(lost["why"].as_str().unwrap().contains("something else"), !answer.is_empty(), "{lost}");
        compare.end_input();
        drop((connection, listener));
        let (summary, good) = compare.end();
        assert!(good && summary["peers"][0]["line"].is_null(), "{summary}");
    }
}

#[test]
fn what_is_no_question_closes_its_connection_and_no_other() {
    let (mut server, address) = serve();
    let mut stranger = TcpStream::connect(address).unwrap();
    stranger.set_read_timeout(Some(PATIENCE)).unwrap();
    stranger.write_all(&[b'x'; 24]).unwrap();
    assert_eq!(stranger.read(&mut [0; 100]).unwrap(), 0);
    let mut compare = Process::start(&format!("clock compare it={address} --until-eof"));
    assert_apart(&compare.event("compared"), 0);
    compare.end_input();
    assert!(compare.end().1);
    server.end_input();
    // A burst at the start, and one at the end.
    assert_eq!(number(&server.end().0, "exchanges"), 64);
}

#[test]
fn a_connection_too_many_is_closed_and_counted() {
    let (mut server, address) = serve();
    let mut connections: Vec<_> = (0..65).map(|_| TcpStream::connect(address).unwrap()).collect();
    let last = connections.last_mut().unwrap();
    last.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(last.read(&mut [0; 100]).unwrap(), 0);
    server.end_input();
    let summary = server.end().0;
    assert_eq!((number(&summary, "connections"), number(&summary, "connections_refused")), (64, 1));
}

#[test]
fn foreign_addresses_and_names_that_repeat_are_refused() {
    for (arguments, hint) in
        [("a=192.0.2.1:5399", "--i-am-authorized 192.0.2.1"), ("a=127.0.0.1:1 a=127.0.0.1:2", "--help")]
    {
        let output = Command::new(ENGINE).args(["clock", "compare"]).args(arguments.split(' ')).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(hint), "{errors}");
    }
}

/// The command in a new time namespace, whose CLOCK_MONOTONIC is so much ahead of the machine's.
fn ahead(offset_ns: i64, arguments: &str) -> Command {
    let (seconds, nanoseconds) = (offset_ns.div_euclid(1_000_000_000), offset_ns.rem_euclid(1_000_000_000));
    let offsets = format!("monotonic {seconds} {nanoseconds}\n");
    // Whom the shell starts is in the namespace also where exec(2) does not enter it (before Linux 6.1).
    let mut command = Command::new("sh");
    command.args(["-c", "\"$@\"; exit $?", "sh", ENGINE]).args(arguments.split_whitespace());
    let enter = move || {
        unshare(CloneFlags::from_bits_retain(libc::CLONE_NEWTIME))?;
        fs::write("/proc/self/timens_offsets", &offsets)
    };
    // SAFETY: between fork and exec it makes system calls only; `offsets` was made before.
    unsafe { command.pre_exec(enter) };
    command
}

#[test]
fn a_clock_3_7_s_away_is_told_so_within_the_stated_error() {
    if std::env::var_os("DNSRIG_ROOT_TESTS").is_none_or(|value| value != "1") {
        eprintln!("skipped: it needs root; set DNSRIG_ROOT_TESTS=1");
        return;
    }
    for offset_ns in [3_700_000_000, -3_700_000_000] {
        let mut server = Process::spawn(&mut ahead(offset_ns, "clock serve 127.0.0.1:0 --until-eof"));
        let address = address(&server.event("listening"));
        let arguments = format!("clock compare it={address} --interval 0.1s --until-eof");
        let inside = Process::spawn(&mut ahead(offset_ns, &arguments));
        for (mut compare, apart_ns) in [(Process::start(&arguments), offset_ns), (inside, 0)] {
            for _ in 0..3 {
                assert_apart(&compare.event("compared"), apart_ns);
            }
            compare.end_input();
            let (summary, good) = compare.end();
            let line = &summary["peers"][0]["line"];
            assert!(good && (number(line, "offset_ns") - apart_ns).abs() <= number(line, "error_ns"), "{summary}");
        }
        server.end_input();
        assert!(server.end().1);
    }
}
