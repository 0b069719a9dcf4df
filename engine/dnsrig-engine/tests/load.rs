//! `load` over UDP against servers that behave, and servers that do not: every kind of answer is counted, nothing
//! hangs.

use std::{
    collections::HashSet,
    net::{IpAddr, SocketAddr, UdpSocket},
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use dnsrig_core::rows::Value as RowValue;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

use crate::rows::{batches, values};

/// A server that calls `react` for each query, until it is dropped.
struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(react: impl Fn(&UdpSocket, SocketAddr, &[u8]) + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let (address, stop) = (socket.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let stopping = stop.clone();
        let thread = thread::spawn(move || {
            let mut buffer = [0; 4096];
            while !stopping.load(Ordering::Relaxed) {
                if let Ok((length, peer)) = socket.recv_from(&mut buffer) {
                    react(&socket, peer, &buffer[..length]);
                }
            }
        });
        Server { address, stop, thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn answer(query: &[u8]) -> Vec<u8> {
    let mut answer = query.to_vec();
    answer[2] |= 0x80;
    answer
}

/// Options of every run that does not choose otherwise.
const DEFAULTS: [(&str, &str); 3] = [("--timeout", "0.2s"), ("--duration", "0.5s"), ("--interval", "0.1s")];

/// Runs `load`; the summary, and standard error.
fn load(server: SocketAddr, arguments: &[&str]) -> (Value, String) {
    load_while(server, arguments, |_| ())
}

/// Runs `load`, and meanwhile `disturb` with its process.
fn load_while(server: SocketAddr, arguments: &[&str], disturb: impl FnOnce(Pid)) -> (Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let queries = folder.path().join("queries.txt");
    std::fs::write(&queries, "www.example.com A\nmail.example.com AAAA\n").unwrap();
    let process = Command::new(env!("CARGO_BIN_EXE_dnsrig-engine"))
        .args(["load", &server.to_string(), "--queries"])
        .arg(&queries)
        .args(
            DEFAULTS
                .iter()
                .filter(|(option, _)| !arguments.contains(option))
                .flat_map(|(option, value)| [option, value]),
        )
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    disturb(Pid::from_raw(process.id() as i32));
    let output = process.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{errors}");
    (serde_json::from_str(lines.lines().last().unwrap()).unwrap(), errors)
}

fn count(summary: &Value, name: &str) -> u64 {
    summary[name].as_u64().unwrap_or_else(|| panic!("{name} in {summary}"))
}

#[test]
fn a_good_server_answers_everything() {
    let server = Server::start(|socket, peer, query| {
        socket.send_to(&answer(query), peer).unwrap();
    });
    for model in [&["--rate", "500"][..], &["--rate", "500", "--poisson"], &["--outstanding", "5", "--threads", "2"]] {
        let (summary, _) = load(server.address, model);
        assert!(count(&summary, "sent") > 100, "{summary}");
        assert_eq!(count(&summary, "due"), count(&summary, "sent"));
        // What a busy machine did not manage in 200 ms has timed out, nothing else.
        assert_eq!(count(&summary, "answered") + count(&summary, "timeouts"), count(&summary, "sent"));
        assert!(count(&summary, "answered") > 50);
        assert_eq!(summary["rcodes"]["NOERROR"], summary["answered"]);
    }
}

#[test]
fn an_even_rate_makes_exactly_so_many_queries() {
    let server = Server::start(|socket, peer, query| {
        socket.send_to(&answer(query), peer).unwrap();
    });
    assert_eq!(count(&load(server.address, &["--rate", "700"]).0, "sent"), 350);
}

#[test]
fn a_server_that_never_answers_costs_timeouts_only() {
    let server = Server::start(|_, _, _| ());
    let (summary, _) = load(server.address, &["--rate", "200"]);
    assert_eq!((count(&summary, "sent"), count(&summary, "timeouts"), count(&summary, "answered")), (100, 100, 0));
    let (summary, _) = load(server.address, &["--outstanding", "3"]);
    assert!(count(&summary, "sent") >= 6 && count(&summary, "timeouts") == count(&summary, "sent"));
    assert!(summary["sent_latency_ns"]["min"].as_u64().unwrap() >= 199_000_000, "each is recorded at the limit");
}

#[test]
fn a_port_without_a_server_is_told() {
    let address = crate::process::nobody();
    let (summary, _) = load(address, &["--rate", "100"]);
    assert_eq!(count(&summary, "timeouts"), 50);
    assert!(count(&summary, "unreachable") > 0);
}

#[test]
fn wrong_answers_are_counted_by_kind_and_end_no_query() {
    for (kind, spoil) in [
        ("unexpected", (|message: &mut Vec<u8>| message[0] ^= 0x55) as fn(&mut Vec<u8>)),
        ("mismatched", |message| message[13] ^= 1),
        ("malformed", |message| message.truncate(7)),
        ("malformed", |message| message[2] &= 0x7f),
        ("incomplete", |message| message[6] = 0xff),
    ] {
        let server = Server::start(move |socket, peer, query| {
            let mut message = answer(query);
            spoil(&mut message);
            socket.send_to(&message, peer).unwrap();
        });
        let (summary, _) = load(server.address, &["--rate", "200"]);
        assert_eq!((count(&summary, "answered"), count(&summary, "timeouts")), (0, 100), "{kind}");
        assert!(count(&summary, kind) > 50, "{kind}: {summary}");
    }
}

/// The server answers both names with the same address, and one of them is asked for another type.
#[test]
fn answers_that_are_not_as_expected_are_counted_by_kind_and_named() {
    let server = Server::start(|socket, peer, query| {
        let mut message = answer(query);
        message[7] = 1;
        let question_end = 12 + message[12..].iter().position(|byte| *byte == 0).unwrap() + 5;
        message.truncate(question_end);
        (message[10], message[11]) = (0, 0);
        message.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]);
        socket.send_to(&message, peer).unwrap();
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("expected.txt");
    let path = path.to_str().unwrap();
    let expect = |lines: &str, more: &[&str]| {
        std::fs::write(path, lines).unwrap();
        load(server.address, &[&["--rate", "200", "--expect", path], more].concat())
    };
    let right = "www.example.com A 192.0.2.1\nmail.example.com AAAA NODATA\n";
    for (summary, _) in [expect(right, &[]), load(server.address, &["--rate", "200", "--expect", "noerror-nonempty"])] {
        assert!(count(&summary, "answered") > 50, "{summary}");
        assert!(summary["wrong"].as_object().unwrap().values().all(|count| *count == 0), "{summary}");
    }
    let out = folder.path().to_str().unwrap();
    let (summary, _) = expect("www.example.com A 192.0.2.2\nmail.example.com AAAA 2001:db8::1\n", &["--out", out]);
    assert_eq!(count(&summary, "answered"), 0, "{summary}");
    let [rrset, empty] = ["rrset", "empty"].map(|kind| count(&summary["wrong"], kind));
    assert!(rrset > 20 && empty > 20 && rrset + empty + count(&summary, "timeouts") == 100, "{summary}");
    assert_eq!(summary["wrong_examples"][0]["query"], "www.example.com. A");
    let intervals = batches(&folder.path().join("intervals.arrow"));
    assert_eq!(values::<u64>(&intervals, "wrong").into_iter().sum::<u64>(), rrset + empty);
}

/// A server that answers with an address that ends in `last`, in time or not; over UDP only.
fn of_address(last: u8, lags: bool) -> Server {
    let asked = AtomicU64::new(0);
    Server::start(move |socket, peer, query| {
        let mut message = answer(query);
        let question_end = 12 + message[12..].iter().position(|byte| *byte == 0).unwrap() + 5;
        message.truncate(question_end);
        (message[7], message[10], message[11]) = (1, 0, 0);
        let is_first = asked.fetch_add(1, Ordering::Relaxed) < 2;
        let last = if message[13] == b'w' { last } else { 1 };
        message.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, last]);
        if !(lags && is_first) {
            socket.send_to(&message, peer).unwrap();
        }
    })
}

#[test]
fn two_servers_are_compared_and_only_a_lasting_difference_counts() {
    let folder = tempfile::tempdir().unwrap();
    let queries = folder.path().join("queries.txt");
    std::fs::write(&queries, "www.example.com A\nmail.example.com A\n").unwrap();
    let compare = |one: &Server, other: &Server| {
        let output = Command::new(env!("CARGO_BIN_EXE_dnsrig-engine"))
            .args(["compare-answers", &one.address.to_string(), &other.address.to_string(), "--timeout", "0.3s"])
            .arg("--queries")
            .arg(&queries)
            .output()
            .unwrap();
        let lines = String::from_utf8(output.stdout).unwrap();
        let summary: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
        (output.status.code(), summary)
    };
    // The first answer to each query does not come: it is asked again.
    let (code, summary) = compare(&of_address(1, false), &of_address(1, true));
    assert_eq!((code, count(&summary, "same"), count(&summary, "asked_again")), (Some(0), 2, 2), "{summary}");
    assert_eq!(summary["rcodes"]["NOERROR"], 2, "{summary}");
    let (code, summary) = compare(&of_address(1, false), &of_address(2, false));
    assert_eq!((code, count(&summary, "same"), count(&summary, "different")), (Some(1), 1, 1), "{summary}");
    assert_eq!(
        (&summary["differences"]["rrset"], &summary["examples"][0]["query"]),
        (&1.into(), &"www.example.com. A".into())
    );
    assert_eq!(summary["examples"][0]["answers"][1], "NOERROR; www.example.com. 60 A 192.0.2.2");
    let nobody = Server::start(|_, _, _| ());
    let (code, summary) = compare(&nobody, &nobody);
    assert_eq!((code, count(&summary, "unanswered")), (Some(3), 2), "{summary}");
    let (code, summary) = compare(&of_address(1, false), &nobody);
    assert_eq!((code, count(&summary["differences"], "missing")), (Some(1), 2), "{summary}");
}

#[test]
fn duplicates_and_truncated_answers_are_counted() {
    let server = Server::start(|socket, peer, query| {
        let mut message = answer(query);
        message[2] |= 2;
        socket.send_to(&message, peer).unwrap();
        socket.send_to(&message, peer).unwrap();
    });
    let (summary, _) = load(server.address, &["--rate", "200"]);
    assert!(count(&summary, "answered") > 50);
    assert_eq!(count(&summary, "truncated"), count(&summary, "answered"));
    assert!(count(&summary, "duplicates") > 50);
}

#[test]
fn late_answers_are_counted_as_late_beside_their_timeouts() {
    let server = Server::start(|socket, peer, query| {
        let (socket, message) = (socket.try_clone().unwrap(), answer(query));
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(260));
            socket.send_to(&message, peer).unwrap();
        });
    });
    let (summary, _) = load(server.address, &["--rate", "50"]);
    assert_eq!(count(&summary, "timeouts"), 25);
    assert!(count(&summary, "late") > 0, "{summary}");
}

#[test]
fn a_flood_of_foreign_messages_neither_hangs_nor_hides_the_answers() {
    let server = Server::start(|socket, peer, query| {
        for noise in 0..200_u8 {
            socket.send_to(&vec![noise; usize::from(noise)], peer).unwrap();
        }
        socket.send_to(&answer(query), peer).unwrap();
    });
    let (summary, _) = load(server.address, &["--rate", "50", "--clients", "1"]);
    assert!(count(&summary, "answered") > 10, "{summary}");
    assert!(count(&summary, "malformed") + count(&summary, "unexpected") > 1_000);
}

#[test]
fn clients_are_as_many_as_the_hard_limit_on_open_files_allows() {
    let server = Server::start(|socket, peer, query| {
        socket.send_to(&answer(query), peer).unwrap();
    });
    let queries = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&queries, "www.example.com A\n").unwrap();
    let arguments = "--duration 0.3s --rate 1000 --clients 300".split(' ');
    let output = Command::new("sh")
        .args(["-c", "ulimit -Sn 64; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_dnsrig-engine")])
        .args(["load", &server.address.to_string(), "--queries"])
        .arg(queries.path())
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8(output.stderr).unwrap());
    let lines = String::from_utf8(output.stdout).unwrap();
    assert_eq!(count(&serde_json::from_str(lines.lines().last().unwrap()).unwrap(), "clients"), 300);
}

#[test]
fn each_source_sends_and_clients_that_are_not_served_alike_are_counted() {
    let seen = Arc::new(Mutex::new(HashSet::new()));
    let peers = seen.clone();
    // Whoever has an address above 127.0.0.12 is answered by another server, 20 ms away.
    let server = Server::start(move |socket, peer, query| {
        peers.lock().unwrap().insert(peer.ip());
        let (socket, message) = (socket.try_clone().unwrap(), answer(query));
        let is_far = matches!(peer.ip(), IpAddr::V4(address) if address.octets()[3] > 12);
        if is_far {
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(20));
                socket.send_to(&message, peer).unwrap();
            });
        } else {
            socket.send_to(&message, peer).unwrap();
        }
    });
    let sources: Vec<_> = (1..=20).map(|number| format!("--source=127.0.0.{number}")).collect();
    let arguments: Vec<_> =
        ["--rate", "1200", "--threads", "2"].into_iter().chain(sources.iter().map(String::as_str)).collect();
    let (summary, _) = load(server.address, &arguments);
    assert_eq!((count(&summary, "clients"), seen.lock().unwrap().len()), (20, 20));
    let unequal = &summary["unequal_clients"];
    assert_eq!((&unequal["near"], &unequal["far"], &unequal["unanswered"]), (&12.into(), &8.into(), &0.into()));
    assert!(unequal["far_ns"].as_u64().unwrap() >= 20_000_000, "{summary}");
}

/// On any number of threads, clients have the same numbers and the same cookies.
#[test]
fn clients_do_not_depend_on_threads() {
    let seen = Arc::new(Mutex::new(HashSet::new()));
    let cookies = seen.clone();
    let server = Server::start(move |socket, peer, query| {
        cookies.lock().unwrap().insert(query[query.len() - 8..].to_vec());
        socket.send_to(&answer(query), peer).unwrap();
    });
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let seen_by = |threads| {
        let options = ["--rate", "400", "--clients", "5", "--cookie", "--out", out, "--rows", "1000"];
        load(server.address, &[&options[..], &["--threads", threads]].concat());
        let clients = |name: &str| -> HashSet<u32> {
            let batches = batches(&folder.path().join(name));
            let found = batches.iter().flat_map(|batch| batch.optional_values::<u32>("client").unwrap());
            found.map(Option::unwrap).collect()
        };
        (std::mem::take(&mut *seen.lock().unwrap()), clients("clients.arrow"), clients("queries.arrow"))
    };
    let one = seen_by("1");
    assert_eq!((one.0.len(), &one.1, &one.2), (5, &(0..5).collect(), &(0..5).collect()));
    assert_eq!(seen_by("3"), one);
}

#[test]
fn an_interrupted_load_ended_when_it_was_interrupted() {
    let server = crate::process::Server::start("echo 127.0.0.1:0");
    let queries = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&queries, "www.example.com A\n").unwrap();
    let (address, path) = (server.address("udp"), queries.path().display());
    let options = "--rate 1000 --duration 60s --interval 0.1s --timeout 0.2s";
    let mut load = crate::process::Process::start(&format!("load {address} --queries {path} {options}"));
    load.event("progress");
    kill(Pid::from_raw(load.id().cast_signed()), Signal::SIGINT).unwrap();
    let (summary, good) = load.end();
    assert_eq!((good, &summary["interrupted"]), (false, &true.into()));
    let [start_ns, end_ns, sending_ns] = ["start_ns", "end_ns", "sending_ns"].map(|name| count(&summary, name));
    assert!(end_ns == start_ns + sending_ns && (100_000_000..60_000_000_000).contains(&sending_ns), "{summary}");
    assert!((summary["duration_s"].as_f64().unwrap() - sending_ns as f64 / 1e9).abs() < 1e-6, "{summary}");
}

/// The first ten lines that are left out are named, and whether there are others.
#[test]
fn bad_lines_are_named_up_to_ten() {
    let queries = tempfile::NamedTempFile::new().unwrap();
    for bad in [0, 1, 10, 11] {
        std::fs::write(&queries, format!("www.example.com A\n{}", "a..b A\n".repeat(bad))).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_dnsrig-engine"));
        command.args(["load", "127.0.0.1", "--dry-run", "--skip-bad-lines", "--queries"]).arg(queries.path());
        let output = command.output().unwrap();
        let lines = (2..2 + bad.min(10))
            .map(|line| format!("  line {line}: `a..b`: an empty label: a dot where none may stand\n"));
        let (named, more) = (lines.collect::<String>(), if bad > 10 { "  …\n" } else { "" });
        let note = if bad == 0 { String::new() } else { format!("note: {bad} bad lines were left out\n{named}{more}") };
        assert_eq!(String::from_utf8(output.stderr).unwrap(), note);
    }
}

#[test]
fn files_hold_what_the_summary_says() {
    let server = Server::start(|socket, peer, query| {
        socket.send_to(&answer(query), peer).unwrap();
    });
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let (summary, _) = load(server.address, &["--rate", "1000", "--out", out]);
    let log = std::fs::read_to_string(folder.path().join("latency.hlog")).unwrap();
    for tag in ["due", "sent", "lower", "lag"] {
        assert_eq!(log.lines().filter(|line| line.starts_with(&format!("Tag={tag},"))).count(), 5, "{tag}");
    }
    let intervals = batches(&folder.path().join("intervals.arrow"));
    assert_eq!(values::<u64>(&intervals, "sent").into_iter().sum::<u64>(), count(&summary, "sent"));
    assert!(folder.path().join("clients.arrow").exists());
}

/// A latency of `summary` at a percentile, in milliseconds.
fn latency_ms(summary: &Value, series: &str, percentile: &str) -> f64 {
    summary[series][percentile].as_f64().unwrap_or_else(|| panic!("{series} in {summary}")) / 1e6
}

#[test]
fn the_lower_end_leaves_out_what_the_instrument_queued_when_it_stood_still() {
    let server = Server::start(|socket, peer, query| {
        thread::sleep(Duration::from_micros(50));
        socket.send_to(&answer(query), peer).unwrap();
    });
    let arguments = ["--rate", "2000", "--duration", "1.5s", "--timeout", "1s"];
    let figures = || {
        let (summary, _) = load_while(server.address, &arguments, |load| {
            for _ in 0..4 {
                thread::sleep(Duration::from_millis(150));
                kill(load, Signal::SIGSTOP).unwrap();
                thread::sleep(Duration::from_millis(100));
                kill(load, Signal::SIGCONT).unwrap();
            }
        });
        let [due_ms, lower_ms] = ["latency_ns", "lower_latency_ns"].map(|series| latency_ms(&summary, series, "p90"));
        // A quarter of the queries were due in a stop; the 90th percentile is 60 ms from the end of theirs.
        assert!(due_ms > 40.0 && latency_ms(&summary, "lower_latency_ns", "min") >= 0.05, "{summary}");
        (due_ms, lower_ms)
    };
    // A busy machine may keep the server, too, from its CPU, but not three times in turn.
    let tries: Vec<_> = (0..3).map(|_| figures()).take_while(|(due_ms, lower_ms)| *lower_ms >= due_ms / 4.0).collect();
    assert!(tries.len() < 3, "due and lower, in ms: {tries:?}");
}

#[test]
fn the_lower_end_keeps_the_servers_own_stall() {
    let began = Instant::now();
    let server = Server::start(move |socket, peer, query| {
        let into_ms = began.elapsed().as_millis() % 500;
        thread::sleep(Duration::from_millis(if into_ms < 250 { 250 - into_ms as u64 } else { 0 }));
        socket.send_to(&answer(query), peer).unwrap();
    });
    let (summary, _) = load(server.address, &["--rate", "1000", "--duration", "1.5s", "--timeout", "1s"]);
    let [due_ms, lower_ms] = ["latency_ns", "lower_latency_ns"].map(|series| latency_ms(&summary, series, "p90"));
    assert!(due_ms > 150.0, "half of the queries wait, 125 ms in the mean: {summary}");
    // A busy machine may keep the instrument itself from its CPU: for as long as it says.
    assert!(lower_ms >= 0.99 * due_ms - latency_ms(&summary, "lag_ns", "max") - 20.0, "{summary}");
}

/// A column of answers.arrow.
fn answers<T: RowValue>(folder: &Path, name: &str) -> Vec<T> {
    values(&batches(&folder.join("answers.arrow")), name)
}

#[test]
fn a_pause_of_the_server_is_in_the_rows_as_long_as_it_was_and_with_what_was_asked_meanwhile() {
    const PAUSE: Duration = Duration::from_millis(120);
    let queries = AtomicU64::new(0);
    let server = Server::start(move |socket, peer, query| {
        if queries.fetch_add(1, Ordering::Relaxed) == 200 {
            thread::sleep(PAUSE);
        }
        socket.send_to(&answer(query), peer).unwrap();
    });
    let folder = tempfile::tempdir().unwrap();
    let (summary, _) = load(server.address, &["--rate", "1000", "--out", folder.path().to_str().unwrap()]);
    let [times_ns, first_ns, last_ns] = ["time_ns", "first_ns", "last_ns"].map(|n| answers::<i64>(folder.path(), n));
    let [sent, answered] = ["sent", "answered"].map(|name| answers::<u32>(folder.path(), name));
    // The last interval ends when the last query is due: what a late instrument sends after it has no bin. One is due
    // each ms.
    let after_the_end = count(&summary, "sent") - u64::from(sent.iter().sum::<u32>());
    assert!(after_the_end as f64 <= 1.0 + latency_ms(&summary, "lag_ns", "max"), "{after_the_end}: {summary}");
    // So has what is answered after it: to queries due in as many last milliseconds as an answer took at most.
    let answered_in_bins = u64::from(answered.iter().sum::<u32>());
    let answered_later = count(&summary, "answered").saturating_sub(answered_in_bins);
    assert!(answered_later as f64 <= 1.0 + latency_ms(&summary, "latency_ns", "max"), "{answered_later}: {summary}");
    let of_answers: Vec<_> = (0..answered.len()).filter(|row| answered[*row] > 0).collect();
    let pause = of_answers.windows(2).max_by_key(|pair| first_ns[pair[1]] - last_ns[pair[0]]).unwrap();
    let (from_ns, until_ns) = (last_ns[pause[0]], first_ns[pause[1]]);
    assert!(until_ns - from_ns >= PAUSE.as_nanos() as i64, "{from_ns} to {until_ns}");
    let asked = (0..sent.len()).filter(|row| (from_ns..until_ns).contains(&times_ns[*row])).map(|row| sent[row]);
    assert!(asked.sum::<u32>() > 50);
}

#[test]
fn a_ramp_finds_a_rate_and_tells_each_step() {
    let server = Server::start(|socket, peer, query| {
        socket.send_to(&answer(query), peer).unwrap();
    });
    let options = [
        "--ramp",
        "--ramp-start",
        "100",
        "--ramp-max",
        "400",
        "--ramp-repeats",
        "1",
        "--ramp-latency",
        "150ms",
        "--ramp-loss",
        "50",
    ];
    let (summary, _) = load(server.address, &options);
    assert!(summary["capacity_qps"].as_f64().unwrap() >= 100.0, "{summary}");
    assert!(summary["steps"].as_array().unwrap().len() >= 3);
}

#[test]
fn a_foreign_target_is_refused_with_a_hint() {
    let output = Command::new(env!("CARGO_BIN_EXE_dnsrig-engine"))
        .args(["load", "192.0.2.1", "--queries", "/dev/null"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--i-am-authorized 192.0.2.1"));
}
