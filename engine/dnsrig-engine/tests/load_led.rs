//! Generators that share a schedule and are led: they begin at one moment, and send together what one alone would.

use std::{collections::BTreeMap, io::Write, net::SocketAddr, path::Path};

use dnsrig_core::clock;
use dnsrig_engine::query_stream::{Record, StreamWriter, Transport};
use serde_json::{Value, json};

use crate::{
    process::{Process, Server},
    rows::{batches, values},
};

const MS: i64 = 1_000_000;

/// Generators are told to start so much later, as long as a busy machine may take to write it.
const AHEAD_NS: i64 = 500 * MS;

/// A row of queries.arrow: number, due after the start, query, and client.
type Row = (u64, i64, u64, u32);

fn queries(folder: &Path, start_ns: i64) -> Vec<Row> {
    let mut rows = Vec::new();
    for batch in batches(&folder.join("queries.arrow")) {
        let [numbers, queries] = ["number", "query"].map(|name| batch.values::<u64>(name).unwrap());
        let [due_ns, sent_ns, latencies_ns] =
            ["due_ns", "sent_ns", "latency_ns"].map(|name| batch.values::<i64>(name).unwrap());
        let clients: Vec<u32> = batch.values("client").unwrap();
        let outcomes: Vec<String> = batch.values("outcome").unwrap();
        for row in 0..batch.rows() {
            let outcome = &outcomes[row];
            assert!(outcome == "answered" && sent_ns[row] >= due_ns[row] && latencies_ns[row] > 0, "{outcome}");
            rows.push((numbers[row], due_ns[row] - start_ns, queries[row], clients[row]));
        }
    }
    rows
}

fn write(process: &mut Process, line: &Value) {
    writeln!(process.input(), "{line}").unwrap();
}

/// Runs generators that share a schedule, from one start on; their rows together, and their summaries.
///
/// `command` has what they all are told, with a folder of each for OUT.
fn generators(of: u32, folder: &Path, command: &str) -> (Vec<Row>, Vec<Value>) {
    let out = |number: u32| folder.join(format!("{number}-of-{of}"));
    let start = |number| {
        std::fs::create_dir(out(number)).unwrap();
        let command = command.replace("OUT", out(number).to_str().unwrap());
        Process::start(&format!("{command} --segment {number}/{of} --led --until-eof --timeout 20s"))
    };
    let mut all: Vec<_> = (1..=of).map(start).collect();
    for (number, process) in (1..).zip(&mut all) {
        assert_eq!(process.event("ready")["segment"], json!({"number": number, "of": of}));
    }
    let start_ns = clock::monotonic_ns() + AHEAD_NS;
    all.iter_mut().for_each(|process| write(process, &json!({"start_ns": start_ns})));
    let (mut rows, mut summaries) = (Vec::new(), Vec::new());
    for (number, process) in (1..).zip(all) {
        let (summary, good) = process.end();
        assert!(good && summary["start_ns"] == start_ns && summary["rows_dropped"] == 0, "{summary}");
        let kept = std::fs::read_to_string(out(number).join("summary.json")).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&kept).unwrap(), summary);
        rows.extend(queries(&out(number), start_ns));
        summaries.push(summary);
    }
    rows.sort_unstable();
    (rows, summaries)
}

fn echo() -> (Server, SocketAddr) {
    let server = Server::start("echo 127.0.0.1:0");
    let address = server.address("udp");
    (server, address)
}

fn total(summaries: &[Value], name: &str) -> u64 {
    summaries.iter().map(|summary| summary[name].as_u64().unwrap_or_else(|| panic!("{name} in {summary}"))).sum()
}

#[test]
fn two_generators_send_together_what_one_does_alone() {
    let (_server, address) = echo();
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("queries.txt");
    std::fs::write(&list, (0..7).map(|n| format!("n{n}.example.com A\n")).collect::<String>()).unwrap();
    for (model, threads) in [("--rate 400", 1), ("--rate 400 --poisson --seed 5", 2)] {
        let folder = tempfile::tempdir_in(folder.path()).unwrap();
        let command = format!(
            "load {address} --queries {} {model} --threads {threads} --clients 9 --duration 0.5s --rows 1000 --out OUT",
            list.display()
        );
        let (one, alone) = generators(1, folder.path(), &command);
        let (two, both) = generators(2, folder.path(), &command);
        let without_client = |rows: &[Row]| -> Vec<_> {
            rows.iter().map(|(number, due_ns, query, _)| (*number, *due_ns, *query)).collect()
        };
        assert!(one.len() > 100 && one.iter().zip(0..).all(|(row, number)| row.0 == number && row.2 == number % 7));
        assert_eq!(without_client(&one), without_client(&two), "{model}");
        assert_eq!(["sent", "answered", "clients"].map(|name| total(&both, name)), {
            ["sent", "answered", "clients"].map(|name| total(&alone, name))
        });
        assert!(alone[0].get("segment").is_none() && both[1]["segment"] == json!({"number": 2, "of": 2}));
        // Each has clients of its own, whose numbers are those among all.
        let mut clients = BTreeMap::<u32, u64>::new();
        two.iter().for_each(|row| *clients.entry(row.3).or_default() += 1);
        assert_eq!(clients.keys().copied().collect::<Vec<_>>(), (0..9).collect::<Vec<_>>());
        let of_second = batches(&folder.path().join("2-of-2/clients.arrow"));
        assert_eq!(values::<u32>(&of_second, "client").into_iter().min(), Some(5));
    }
}

/// A stream in which each of 11 clients asks at its own times.
fn stream(path: &Path) {
    let mut stream = StreamWriter::create(path).unwrap();
    for number in 0..200_u32 {
        let message = &[0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'a' + (number % 20) as u8, 0, 0, 1, 0, 1];
        let (due_ns, client) = (i64::from(number) * 2 * MS, number % 11);
        stream.push(Record { due_ns, client, transport: Transport::Udp, flags: 0, message }).unwrap();
    }
    stream.finish(0, None::<[std::net::Ipv6Addr; 0]>).unwrap();
}

#[test]
fn generators_replay_a_stream_together_each_with_its_clients() {
    let (_server, address) = echo();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.stream");
    stream(&path);
    let command = format!(
        "replay play {} --server {address} --clients-from 127.1.0.0/29 --class share=50% --threads 2 --rows 1000 \
         --out OUT",
        path.display()
    );
    let of_one = command.replace("/29", "/24");
    let (one, alone) = generators(1, folder.path(), &of_one);
    // Of 11 clients each has 6 at most, for whom there is room in its prefix.
    let (two, both) = generators(2, folder.path(), &command);
    assert_eq!((one.len(), &one), (200, &two));
    assert_eq!(total(&both, "clients"), total(&alone, "clients"));
    let tags = |number: u32, of: u32| {
        let log = folder.path().join(format!("{number}-of-{of}/latency.hlog"));
        let log = std::fs::read_to_string(log).unwrap();
        let tags = log.lines().filter_map(|line| line.strip_prefix("Tag=")?.split(',').next().map(str::to_owned));
        tags.filter(|tag| tag.starts_with("class-")).collect::<Vec<_>>()
    };
    assert_eq!([tags(1, 1), tags(2, 2)], [vec![], vec!["class-0".to_owned(), "class-1".to_owned()]]);
    let clients = batches(&folder.path().join("2-of-2/clients.arrow"));
    assert!(values::<u32>(&clients, "client").into_iter().all(|client| client % 2 == 1));
}

#[test]
fn a_ramp_is_led_by_one_and_followed_by_all() {
    let (_server, address) = echo();
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("queries.txt");
    std::fs::write(&list, "www.example.com A\n").unwrap();
    let start = |number| {
        Process::start(&format!(
            "load {address} --queries {} --ramp --ramp-start 200 --ramp-max 400 --ramp-repeats 1 --ramp-loss 50 \
             --ramp-latency 5000ms --duration 0.3s --timeout 10s --led --until-eof --segment {number}/2",
            list.display()
        ))
    };
    let (mut leader, mut follower) = (start(1), start(2));
    leader.event("ready");
    follower.event("ready");
    let mut of_follower = 0;
    let summary = loop {
        let event = leader.next_event();
        match event["event"].as_str().unwrap() {
            "try" => {
                let start = json!({"start_ns": clock::monotonic_ns() + AHEAD_NS, "rate_qps": event["rate_qps"]});
                write(&mut leader, &start);
                write(&mut follower, &start);
                let tried = follower.event("tried");
                of_follower += tried["sent"].as_u64().unwrap();
                write(&mut leader, &tried);
            }
            "summary" => break event,
            _ => {}
        }
    };
    write(&mut follower, &json!({"end": true}));
    let (followed, good) = follower.end();
    assert!(good && followed["model"] == "ramp" && followed["capacity_qps"].is_null(), "{followed}");
    assert!(followed["sent"] == of_follower && of_follower > 0, "{followed}");
    // A busy machine may keep generators from the first rates, but not from all.
    let capacity_qps = summary["capacity_qps"].as_f64().unwrap();
    let steps = summary["steps"].as_array().unwrap();
    let rates = steps.iter().map(|step| step["rate_qps"].as_f64().unwrap());
    assert!((1.0..=400.0).contains(&capacity_qps) && rates.clone().any(|rate| rate == capacity_qps), "{summary}");
    let of_leader = summary["sent"].as_u64().unwrap();
    let due = rates.map(|rate_qps| (rate_qps * 0.3 - 1e-6).ceil() as u64).sum::<u64>();
    assert!(of_leader + of_follower == due && of_leader.abs_diff(of_follower) <= steps.len() as u64, "{summary}");
}

#[test]
fn lines_that_make_no_sense_are_told_with_what_to_do() {
    let (_server, address) = echo();
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("queries.txt");
    std::fs::write(&list, "www.example.com A\n").unwrap();
    let list = list.display();
    let past = json!({"start_ns": clock::monotonic_ns() - 7_000 * MS}).to_string();
    let ahead = json!({"start_ns": clock::monotonic_ns() + 90_000 * MS}).to_string();
    for (options, line, code, told) in [
        ("", past.as_str(), 1, "in the past"),
        ("", &ahead, 1, "more than 60 s"),
        ("", "hello", 2, "cannot understand a line"),
        ("", "{\"end\": true}", 2, "but a start must come here"),
        ("", "{\"start_ns\": 1, \"rate_qps\": 5}", 1, "in the past"),
        ("--ramp --segment 2/2", "{\"start_ns\": 1}", 1, "in the past"),
        ("--ramp", "{\"event\": \"tried\"}", 2, "missing field"),
    ] {
        let mut process = Process::start(&format!("load {address} --queries {list} --led {options}"));
        process.event("ready");
        writeln!(process.input(), "{line}").unwrap();
        let (errors, status) = process.failure();
        assert!(errors.contains(told) && errors.contains("hint: "), "{line}: {errors}");
        assert_eq!(status, Some(code), "{line}: {errors}");
    }
    // Who closes standard input wishes it to end; without --until-eof that is a mistake.
    let mut process = Process::start(&format!("load {address} --queries {list} --led --until-eof"));
    process.event("ready");
    process.end_input();
    let summary = process.event("summary");
    assert_eq!((&summary["interrupted"], &summary["sent"]), (&json!(true), &json!(0)));
    let mut process = Process::start(&format!("load {address} --queries {list} --led"));
    process.event("ready");
    process.end_input();
    assert!(process.failure().0.contains("standard input ended"));
}
