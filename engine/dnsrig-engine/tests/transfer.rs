//! `transfer` from outside, over loopback, against `serve zones` and its faults: everything has its name and its
//! number.

use std::{fs, net::UdpSocket, process::Command, thread, time::Duration};

use crate::{
    process::{self, ENGINE, Process, Server, primary},
    rows::{batches, values},
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

const KEY: &str = "hmac-sha256:transfer:c2VjcmV0IG9mIHNvbWUgb2N0ZXRz";

/// `serve zones`.
struct Primary(Server);

impl Primary {
    fn start(arguments: &str) -> Self {
        Primary(Server::start(&format!("zones 127.0.0.1:0 --xot-port 0 {arguments}")))
    }

    fn address(&self, transport: &str) -> String {
        self.0.address(transport).to_string()
    }

    fn transfer(&self, arguments: &str) -> (Value, bool) {
        Process::start(&format!("transfer {} {arguments}", self.address("tcp"))).end()
    }
}

fn count(summary: &Value, name: &str) -> u64 {
    summary[name].as_u64().unwrap_or_else(|| panic!("{name} in {summary}"))
}

/// The outcomes of zones, e.g. `done 20, servfail 10`.
fn outcomes(summary: &Value) -> String {
    let told = summary["outcomes"].as_object().unwrap().iter().map(|(name, count)| format!("{name} {count}"));
    told.collect::<Vec<_>>().join(", ")
}

#[test]
fn more_zones_than_ids_come_on_one_connection() {
    let primary = Primary::start("--count 200000 --records 3");
    let (summary, good) = primary.transfer("--count 200000 --window 2000 --expect-records 3");
    assert!(good, "{summary}");
    assert_eq!((count(&summary, "done"), count(&summary, "records")), (200_000, 600_000));
    assert_eq!((count(&summary, "unmatched"), count(&summary, "retries")), (0, 0));
    assert_eq!(summary["connections"]["attempted"], 1);
}

#[test]
fn each_policy_makes_the_connections_that_it_says() {
    let primary = Primary::start("--count 60 --records 5");
    for (policy, connections) in [("one", 60), ("reused", 3), ("pipelined", 3)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display();
        let (summary, good) = primary
            .transfer(&format!("--count 60 --policy {policy} --connections 3 --window 7 --close rst --out {path}"));
        assert!(good && count(&summary, "done") == 60, "{summary}");
        let made = batches(&folder.path().join("connections.arrow"));
        let endings = values::<String>(&made, "ended");
        assert!(endings.len() <= connections && endings.iter().all(|ended| ended == "ours"), "{policy}: {endings:?}");
        assert_eq!(count(&summary["connections"], "established"), endings.len() as u64);
        let transfers = batches(&folder.path().join("transfers.arrow"));
        assert_eq!(values::<String>(&transfers, "outcome"), vec!["done"; 60]);
        assert_eq!(values::<String>(&transfers, "answered"), vec!["axfr"; 60]);
    }
}

#[test]
fn each_fault_has_its_name_and_takes_no_other_zone_with_it() {
    // Every third of thirty zones is faulty.
    for (fault, more, outcome) in [
        ("soa-different", "", "soa-different 10"),
        ("soa-missing", "", "soa-missing 10"),
        ("out-of-zone", "", "out-of-zone 10"),
        ("compression-loop", "", "compression-loop 10"),
        ("truncated", "", "bad-message 10"),
        ("length-zero", "", "no-header 10"),
        ("endless", "--records-max 2000", "limit-exceeded 10"),
        ("cut-after=2", "--retries 0", "cut 10"),
    ] {
        let primary =
            Primary::start(&format!("--count 30 --records 8 --records-per-message 2 --fault {fault} --fault-every 3"));
        let (summary, good) = primary.transfer(&format!("--count 30 --retry-after 1ms {more}"));
        let told = outcomes(&summary);
        assert!(!good && told.contains(outcome) && told.contains("done 20"), "{fault}: {told}");
    }
}

#[test]
fn a_primary_that_never_ends_is_given_up() {
    // All send a first SOA, and then for ever: messages without a record, records, a byte of a message now and then.
    let empty = primary::start(|mut to| {
        let (first, rest) = (to.answer(1, &primary::soa(1)), to.header_only().repeat(10));
        to.send(&first);
        // Without a pause the buffer of a busy receiver overflows, and TCP sends nothing for 200 ms.
        while to.send(&rest) {
            thread::sleep(Duration::from_millis(1));
        }
    });
    let endless = primary::start(|mut to| {
        let (first, rest) = (to.answer(1, &primary::soa(1)), to.answer(1, &primary::record(1, 1, &[192, 0, 2, 1])));
        to.send(&first);
        while to.send(&rest) {
            thread::sleep(Duration::from_millis(20));
        }
    });
    let slow = primary::start(|mut to| {
        for byte in primary::framed(&[0; 60_000]) {
            thread::sleep(Duration::from_millis(20));
            to.send(&[byte]);
        }
    });
    for (address, outcome) in [(empty, "no-progress 1"), (endless, "too-long 1"), (slow, "no-progress 1")] {
        let limits = "--timeout 300ms --time-max 1s --retries 0 --duration 10s";
        let (summary, good) = Process::start(&format!("transfer {address} --zone example {limits}")).end();
        assert!(!good && outcomes(&summary) == outcome, "{outcome}: {summary}");
    }
}

#[test]
fn what_begins_and_stops_is_told_from_what_never_came() {
    let address = primary::start(|mut to| {
        let soa = to.answer(1, &primary::soa(8));
        to.send(&soa);
        while to.next_query() {}
    });
    // The first answer has to come in time, on a busy machine, too.
    let limits = "--timeout 500ms --retries 0";
    let (summary, _) = Process::start(&format!("transfer {address} --zone example --ixfr 7 {limits}")).end();
    assert_eq!(outcomes(&summary), "stalled 1");
    let limits = "--timeout 50ms --retries 0";
    let silent = primary::start(|mut to| while to.next_query() {});
    let (summary, _) = Process::start(&format!("transfer {silent} --zone example --ixfr 7 {limits}")).end();
    assert_eq!(outcomes(&summary), "timed-out 1");
}

#[test]
fn an_answer_with_another_id_is_nobodys() {
    let primary = Primary::start("--count 9 --fault wrong-id --fault-every 3");
    let (summary, _) = primary.transfer("--count 9 --timeout 1s --retries 1 --retry-after 1ms");
    assert_eq!(outcomes(&summary), "done 6, timed-out 3");
    assert!(count(&summary, "unmatched") >= 6);
}

#[test]
fn limits_and_closed_connections_are_met_with_patience() {
    let primary = Primary::start("--count 40 --fault servfail-after=7");
    let (summary, good) = primary.transfer("--count 40 --retries 9 --retry-after 1ms --policy one");
    assert!(good && summary["connections"]["attempted"] == 40, "{summary}");
    let (summary, good) = primary.transfer("--count 40 --retries 1 --retry-after 1ms");
    assert!(!good && outcomes(&summary) == "done 7, servfail 33", "{}", outcomes(&summary));
    assert_eq!(count(&summary["attempt_outcomes"], "servfail"), 66);
    let primary = Primary::start("--count 40 --fault close-after=7");
    let (summary, good) = primary.transfer("--count 40 --retries 0");
    assert!(good && count(&summary["connections"], "attempted") >= 6, "{summary}");
}

#[test]
fn signatures_are_made_and_checked() {
    let primary =
        Primary::start(&format!("--count 30 --records 9 --records-per-message 1 --tsig {KEY} --tsig-every 4"));
    let (summary, good) = primary.transfer(&format!("--count 30 --tsig {KEY}"));
    assert!(good, "{summary}");
    let (summary, good) = primary.transfer(&format!("--count 30 --retries 0 --tsig {}", KEY.replace("c2Vj", "AAAA")));
    assert!(!good && count(&summary, "done") == 0, "{}", outcomes(&summary));
    for fault in ["tsig-missing", "tsig-wrong"] {
        let primary = Primary::start(&format!("--count 30 --tsig {KEY} --fault {fault} --fault-every 3"));
        let (summary, _) = primary.transfer(&format!("--count 30 --tsig {KEY}"));
        assert_eq!(outcomes(&summary), format!("done 20, {fault} 10"));
    }
}

#[test]
fn over_tls_sessions_are_resumed_and_certificates_checked() {
    let primary = Primary::start("--count 20 --transport tcp,xot");
    let xot = |arguments: &str| {
        Process::start(&format!("transfer {} --transport xot --count 20 {arguments}", primary.address("xot"))).end()
    };
    let (summary, good) = xot("--policy one");
    let connections = &summary["connections"];
    assert!(good && count(connections, "resumed") >= 15, "{connections}");
    assert_eq!(count(connections, "full_handshakes") + count(connections, "resumed"), 20);
    let (summary, good) = xot("--policy one --no-resumption");
    assert!(good && summary["connections"]["full_handshakes"] == 20, "{summary}");
    assert!(xot("").1);
    let pin = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let (summary, good) = xot(&format!("--retries 0 --verify pin --pin {pin}"));
    assert!(!good && summary["tls_fault"] == "tls-pin", "{summary}");
    assert_eq!(outcomes(&summary), "tls-failed 20");
}

/// Zones over QUIC from `primary`, on one connection unless the arguments change that.
fn xoq(primary: &Primary, arguments: &str) -> (Value, bool) {
    Process::start(&format!("transfer {} --transport xoq {arguments}", primary.address("xoq"))).end()
}

#[test]
fn over_quic_each_policy_makes_its_connections() {
    let primary = Primary::start("--count 60 --records 50 --large 1:20000 --transport xoq --xoq-port 0");
    for (policy, connections) in [("one", 60), ("reused", 3), ("pipelined", 3)] {
        let (summary, good) = xoq(&primary, &format!("--count 60 --policy {policy} --connections 3 --window 7"));
        assert!(good && count(&summary, "done") == 60, "{policy}: {summary}");
        assert_eq!(count(&summary, "records"), 20_000 + 59 * 50);
        let made = count(&summary["connections"], "established");
        assert!(if policy == "one" { made == connections } else { made <= connections }, "{policy}: {summary}");
        assert_eq!((&summary["quic"]["congestion"], count(&summary, "retries")), (&"cubic".into(), 0));
    }
    for congestion in ["newreno", "bbr"] {
        let (summary, good) = xoq(&primary, &format!("--count 60 --quic-congestion {congestion}"));
        assert!(good && summary["quic"]["congestion"] == congestion, "{summary}");
    }
}

#[test]
fn over_quic_changes_and_signatures_are_as_over_tcp() {
    let primary =
        Primary::start(&format!("--count 20 --changes-before 5 --tsig {KEY} --transport udp,xoq --xoq-port 0"));
    for soa in ["none", "same"] {
        let (summary, good) = xoq(&primary, &format!("--count 20 --ixfr 3 --soa {soa} --tsig {KEY}"));
        assert!(good && count(&summary, "ixfr") == 20, "{soa}: {summary}");
    }
    let (summary, _) = xoq(&primary, "--count 20 --retries 0");
    assert_eq!(outcomes(&summary), "refused 20");
}

#[test]
fn over_quic_a_stream_limit_delays_and_a_reset_has_its_name() {
    let faulty = "--fault cut-after=1 --fault-every 3 --records-per-message 2";
    let primary = Primary::start(&format!("--count 30 --transport xoq --xoq-port 0 --streams-max 1 {faulty}"));
    let (summary, good) = xoq(&primary, "--count 30 --retries 0");
    assert_eq!((good, outcomes(&summary).as_str()), (false, "done 20, reset 10"));
    let quic = &summary["quic"];
    assert_eq!(count(&quic["streams_reset"], "DOQ_INTERNAL_ERROR"), 10, "{quic}");
    assert_eq!(summary["connections"]["established"], 1, "{summary}");
}

#[test]
fn over_quic_a_primary_that_is_not_there_is_named() {
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (summary, good) =
        Process::start(&format!("transfer {closed} --transport xoq --count 3 --retries 0 --timeout 2s")).end();
    assert_eq!((good, outcomes(&summary).as_str()), (false, "no-connection 3"));
}

#[test]
fn a_catalog_names_the_zones() {
    let primary = Primary::start("--count 25 --records 3 --suffix test.example");
    let (summary, good) = primary.transfer("--catalog catalog.test.example --expect-records 3");
    assert!(good && count(&summary, "zones") == 25, "{summary}");
    let wrong = Command::new(ENGINE)
        .args(["transfer", &primary.address("tcp"), "--catalog", "z000001.test.example"])
        .output()
        .unwrap();
    assert!(!wrong.status.success() && String::from_utf8(wrong.stderr).unwrap().contains("catalog zone"));
}

#[test]
fn changes_are_asked_for_from_the_serial_that_is_had() {
    let primary = Primary::start("--count 20 --changes-before 5");
    for soa in ["none", "same", "udp"] {
        let (summary, good) = primary.transfer(&format!("--count 20 --ixfr 3 --soa {soa}"));
        assert!(good && count(&summary, "ixfr") == 20, "{soa}: {summary}");
        let (summary, good) = primary.transfer(&format!("--count 20 --ixfr 6 --soa {soa}"));
        assert!(good && count(&summary, "up_to_date") == 20, "{soa}: {summary}");
    }
    let primary = Primary::start("--count 20 --changes-before 5 --fault serial-backwards --fault-every 2");
    let (summary, _) = primary.transfer("--count 20 --ixfr 3");
    assert_eq!(outcomes(&summary), "done 10, serial-backwards 10");
}

#[test]
fn an_answer_behind_many_others_is_taken_at_once() {
    const FOREIGN: u64 = 200;
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let secondary =
        Process::start(&format!("transfer {address} --zone example --ixfr 7 --soa udp --retries 0 --timeout 5s"));
    let mut query = [0; 512];
    let (length, peer) = server.recv_from(&mut query).unwrap();
    // All have come when it looks: more than it reads in a row, few enough for a receive buffer of the default size.
    let process = Pid::from_raw(secondary.id() as i32);
    kill(process, Signal::SIGSTOP).unwrap();
    let foreign = [!query[0], query[1], 0x84, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for _ in 0..FOREIGN {
        server.send_to(&foreign, peer).unwrap();
    }
    let mut answer = query[..length].to_vec();
    (answer[2], answer[7]) = (0x84, 1);
    answer.extend_from_slice(b"\xc0\x0c\0\x06\0\x01\0\0\0\0\0\x16\0\0\0\0\0\x07");
    answer.extend_from_slice(&[0; 16]);
    server.send_to(&answer, peer).unwrap();
    kill(process, Signal::SIGCONT).unwrap();
    let (summary, good) = secondary.end();
    assert!(good && outcomes(&summary) == "up-to-date 1", "{summary}");
    assert_eq!((count(&summary, "retries"), count(&summary, "unmatched")), (0, FOREIGN));
}

#[test]
fn threads_have_a_cpu_each() {
    let primary = Primary::start("--count 3");
    let mut secondary = Process::start(&format!(
        "transfer {} --count 3 --secondaries 2 --threads 2 --repeat --duration 60s --until-eof",
        primary.address("tcp")
    ));
    secondary.event("progress");
    let status = |task: fs::DirEntry| fs::read_to_string(task.path().join("status")).unwrap();
    let tasks = fs::read_dir(format!("/proc/{}/task", secondary.id())).unwrap();
    let field = |status: &str, name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_once(':').unwrap().1.trim().to_owned()
    };
    let mut cpus: Vec<_> = tasks
        .map(|task| status(task.unwrap()))
        .filter(|status| field(status, "Name").starts_with("transfer-"))
        .map(|status| field(&status, "Cpus_allowed_list"))
        .collect();
    assert_eq!(cpus.len(), 2);
    if thread::available_parallelism().unwrap().get() >= 2 {
        cpus.retain(|cpu| cpu.parse::<usize>().is_ok());
        cpus.dedup();
        assert_eq!(cpus.len(), 2, "two CPUs, one each");
    }
    secondary.end_input();
    assert_eq!(secondary.end().0["interrupted"], true);
}

#[test]
fn many_secondaries_have_addresses_of_their_own() {
    let primary = Primary::start("--count 10");
    let folder = tempfile::tempdir().unwrap();
    let (summary, good) = primary.transfer(&format!(
        "--count 10 --secondaries 200 --source 127.1.0.1-127.1.0.200 --threads 2 --out {}",
        folder.path().display()
    ));
    assert!(good && count(&summary, "done") == 2_000, "{summary}");
    let each = summary["per_secondary"].as_array().unwrap();
    assert!(each.iter().all(|one| one["done"] == 10 && one["last_ns"].as_i64().is_some()));
    assert_eq!(each[199]["source"], "127.1.0.200");
    let sources: Vec<String> = values(&batches(&folder.path().join("connections.arrow")), "source");
    let sources: std::collections::HashSet<_> = sources.iter().map(|source| source.split(':').next()).collect();
    assert_eq!(sources.len(), 200);
}

#[test]
fn a_notify_begins_a_transfer() {
    // Both have to know it before either listens.
    let port = process::nobody().port();
    let primary =
        Primary::start(&format!("--count 5 --changes-per-s 20 --notify 127.1.0.1:{port} --notify 127.1.0.2:{port}"));
    let mut secondary = Process::start(&format!(
        "transfer {} --count 5 --secondaries 2 --source 127.1.0.1-127.1.0.2 --on-notify --notify-port {port} --ixfr 1 \
         --until-eof",
        primary.address("tcp")
    ));
    secondary.event("ready");
    while count(&secondary.event("progress"), "done") < 10 {}
    secondary.end_input();
    let (summary, _) = secondary.end();
    assert!(count(&summary, "notifies") >= 10 && count(&summary, "ixfr") > 0, "{summary}");
    assert_eq!(count(&summary, "failed"), 0);
    for one in summary["per_secondary"].as_array().unwrap() {
        assert!(one["notify_ns"].as_i64() < one["last_ns"].as_i64(), "{one}");
    }
}

#[test]
fn what_comes_is_written_and_counted() {
    let primary =
        Primary::start("--count 10 --records 12 --records-per-message 3 --fault soa-different --fault-every 5");
    let folder = tempfile::tempdir().unwrap();
    let (summary, _) = primary.transfer(&format!("--count 10 --write {}", folder.path().display()));
    assert_eq!(outcomes(&summary), "done 8, soa-different 2");
    let files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 8, "{files:?}");
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let records = text.lines().filter(|line| !line.is_empty() && !line.starts_with([';', '$'])).count();
        assert_eq!(records, 12, "{text}");
    }
    let (summary, _) = primary.transfer("--zone z000001.example --expect-records 11");
    assert_eq!(outcomes(&summary), "wrong-count 1");
    let (summary, _) = primary.transfer("--zone z000001.example --zonemd");
    assert_eq!(outcomes(&summary), "zonemd-missing 1");
}

#[test]
fn time_that_is_over_leaves_zones_neither_done_nor_failed() {
    let primary = Primary::start("--count 1000 --fault slow=10ms");
    let (summary, good) = primary.transfer("--count 1000 --duration 0.5s");
    assert!(!good && count(&summary, "done") > 0, "{summary}");
    assert_eq!(count(&summary, "done") + count(&summary, "unfinished"), 1_000);
    let (summary, good) = primary.transfer("--count 5 --duration 0.5s --repeat");
    assert!(good && count(&summary, "done") > 5, "{summary}");
}

#[test]
fn nobody_there_is_said_and_bad_input_too() {
    let port = process::nobody().port();
    let (summary, good) =
        Process::start(&format!("transfer 127.0.0.1:{port} --count 3 --retries 1 --retry-after 1ms")).end();
    assert!(!good && outcomes(&summary) == "no-connection 3", "{summary}");
    assert_eq!(count(&summary["connections"], "refused"), 2);
    for arguments in [
        "transfer 127.0.0.1",
        "transfer 192.0.2.1 --zone example",
        "transfer 127.0.0.1 --zone a..b",
        "transfer 127.0.0.1 --zone example --source ::1",
        "transfer 127.0.0.1 --zone example --source 127.0.0.1-127.0.0.3 --secondaries 2",
        "transfer 127.0.0.1 --zone example --no-resumption",
        "transfer 127.0.0.1 --zone example --verify pin --pin AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        "transfer 127.0.0.1 --zone example --suffix example",
        "transfer 127.0.0.1 --zone example --info-interval 1s",
        "transfer 127.0.0.1 --zone example --tsig md9:a:b",
        "transfer 127.0.0.1 --zone example --congestion nosuch",
        "transfer 127.0.0.1 --zone example --on-notify --repeat --duration 1s",
        "transfer 127.0.0.1 --zone example --ixfr 1 --write /tmp",
        "transfer 127.0.0.1 --count 100000 --window 0 --secondaries 40000",
    ] {
        let output = Command::new(ENGINE).args(arguments.split_whitespace()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
