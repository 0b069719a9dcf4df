//! `merge` from outside: what two loads wrote, put together.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use dnsrig_core::rows::Batch;
use serde_json::{Value, json};

use crate::{
    process::{ENGINE, Process, Server},
    rows::batches,
};

/// Two loads side by side against `serve echo`: their summaries.
fn load(folder: &Path) -> [Value; 2] {
    let server = Server::start("echo 127.0.0.1:0");
    let queries = folder.join("queries.txt");
    fs::write(&queries, "www.example.com A\n").unwrap();
    let loads = [1, 2].map(|number| {
        let out = folder.join(number.to_string());
        fs::create_dir(&out).unwrap();
        let process = Process::start(&format!(
            "load {} --queries {} --rate {} --duration 0.5s --interval 0.1s --timeout 5s --clients 3 --out {}",
            server.address("udp"),
            queries.display(),
            200 * number,
            out.display(),
        ));
        (process, out)
    });
    loads.map(|(process, out)| {
        let (summary, good) = process.end();
        assert!(good, "{summary}");
        fs::write(out.join("summary.json"), summary.to_string()).unwrap();
        summary
    })
}

fn merge(folder: &Path) -> Output {
    let out = folder.join("merged");
    fs::create_dir_all(&out).unwrap();
    let dirs = ["1", "2"].map(|dir| folder.join(dir));
    Command::new(ENGINE).arg("merge").args(dirs).arg("--out").arg(out).output().unwrap()
}

fn column(batches: &[Batch], name: &str) -> Vec<i64> {
    let of = |batch: &Batch| {
        let column = batch.column(name).unwrap();
        let from_u32 = || Some(column.values::<u32>()?.into_iter().map(i64::from).collect());
        let from_u64 = || Some(column.values::<u64>()?.into_iter().map(u64::cast_signed).collect());
        column.values().or_else(from_u32).or_else(from_u64).unwrap()
    };
    batches.iter().flat_map(of).collect()
}

#[test]
fn what_two_loads_wrote_is_put_together_as_if_one_had() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [one, other] = load(folder);
    let output = merge(folder);
    assert!(output.status.success(), "{output:?}");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let sum =
        |pointer: &str| [&one, &other].map(|summary| summary.pointer(pointer).unwrap().as_u64().unwrap()).iter().sum();
    for pointer in ["/due", "/sent", "/answered", "/rcodes/NOERROR", "/bytes_sent", "/cpu_ns", "/threads", "/clients"] {
        assert_eq!(summary.pointer(pointer).unwrap().as_u64(), Some(sum(pointer)), "{pointer}");
    }
    assert_eq!(summary["sent"], 300);
    assert_eq!(summary["asked_qps"], 600.0);
    let most = |name: &str| [&one, &other].map(|summary| summary["latency_ns"][name].as_u64().unwrap());
    assert_eq!(summary["latency_ns"]["max"].as_u64(), most("max").into_iter().max());
    assert_eq!(summary["latency_ns"]["min"].as_u64(), most("min").into_iter().min());
    assert_eq!(summary["generators"][1]["lag_p99_ns"], other["lag_ns"]["p99"]);
    let kept: Value = serde_json::from_slice(&fs::read(folder.join("merged/summary.json")).unwrap()).unwrap();
    assert_eq!(kept["sent"], summary["sent"]);

    let start_ns = one["start_ns"].as_i64().unwrap();
    let intervals = batches(&folder.join("merged/intervals.arrow"));
    let starts: Vec<_> = (0..5).map(|number| start_ns + number * 100_000_000).collect();
    assert_eq!((column(&intervals, "start_ns"), column(&intervals, "sent")), (starts, vec![60; 5]));
    let answers = batches(&folder.join("merged/answers.arrow"));
    let parts = ["1", "2"].map(|dir| column(&batches(&folder.join(dir).join("answers.arrow")), "answered"));
    let parts: i64 = parts.iter().flatten().sum();
    assert!(parts > 0 && column(&answers, "answered").iter().sum::<i64>() == parts);
    let clients = batches(&folder.join("merged/clients.arrow"));
    let firsts = column(&clients, "start_ns").into_iter().filter(|at| *at == start_ns).count();
    assert_eq!(firsts, 3, "both have the clients 0, 1 and 2");
    let log = fs::read_to_string(folder.join("merged/latency.hlog")).unwrap();
    assert_eq!(log.lines().filter(|line| line.starts_with("Tag=due,")).count(), 5);
}

#[test]
fn files_that_are_missing_damaged_or_of_another_load_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let summary = json!({
        "transport": "udp", "model": "rate", "timeout_ns": 1, "interval_s": 0.1, "interrupted": false,
        "start_ns": 1, "end_ns": 1_000_000_001,
    });
    for number in ["1", "2"] {
        fs::create_dir(folder.join(number)).unwrap();
        fs::write(folder.join(number).join("summary.json"), summary.to_string()).unwrap();
        fs::write(folder.join(number).join("latency.hlog"), "Tag=due,0.000,0.100,0.000,HISTFAAA\n").unwrap();
    }
    let refused = |expected: &str| {
        let output = merge(folder);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(expected) && errors.contains("\nhint: "), "{errors}");
    };
    refused("1/latency.hlog: a histogram is damaged");
    fs::write(folder.join("2/latency.hlog"), "what\n").unwrap();
    refused("2/latency.hlog: it is damaged");
    fs::remove_file(folder.join("1/latency.hlog")).unwrap();
    refused("1/latency.hlog: No such file");
    fs::write(folder.join("2/summary.json"), summary.to_string().replace("udp", "tcp")).unwrap();
    refused("do not belong together: transport is \"udp\" there and \"tcp\" here");
    fs::write(folder.join("2/summary.json"), "{").unwrap();
    refused("2/summary.json: ");
}
