//! `watch` from outside: on this machine, and on a network namespace if root tests were asked for.

use std::{
    collections::BTreeSet,
    fs::File,
    path::Path,
    process::{Command, Stdio},
};

use arrow_array::{DictionaryArray, StringArray, cast::AsArray, types::Int32Type};
use arrow_ipc::reader::StreamReader;
use serde_json::Value;

const ENGINE: &str = env!("CARGO_BIN_EXE_dnsrig-engine");

/// All series of a file, as host/source/metric, and its number of rows.
fn series(path: &Path) -> (BTreeSet<String>, u64) {
    let (mut names, mut rows) = (BTreeSet::new(), 0);
    for batch in StreamReader::try_new(File::open(path).unwrap(), None).unwrap() {
        let batch = batch.unwrap();
        rows += batch.num_rows() as u64;
        let column = |index: usize| batch.column(index).as_dictionary::<Int32Type>();
        let word = |column: &DictionaryArray<Int32Type>, row| {
            let words: &StringArray = column.values().as_string();
            words.value(column.key(row).unwrap()).to_owned()
        };
        names.extend((0..batch.num_rows()).map(|row| [0, 1, 2].map(|part| word(column(part), row)).join("/")));
    }
    (names, rows)
}

/// Watches for a second, and gives the summary.
fn watch(arguments: &[&str], out: &Path) -> Value {
    let output =
        Command::new(ENGINE).args(["watch", "--duration-s", "1", "--out"]).arg(out).args(arguments).output().unwrap();
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
    let summary = watch(&["--interval-ms", "20"], &out);
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

#[test]
fn a_namespace_shows_its_own_links_and_sockets() {
    if std::env::var_os("DNSRIG_ROOT_TESTS").is_none_or(|value| value != "1") {
        eprintln!("skipped: it needs root; set DNSRIG_ROOT_TESTS=1");
        return;
    }
    let name = format!("dnsrig-watch-{}", std::process::id());
    let ip = |arguments: &[&str]| assert!(Command::new("ip").args(arguments).status().unwrap().success());
    ip(&["netns", "add", &name]);
    ip(&["-n", &name, "link", "add", "here", "type", "veth", "peer", "name", "there"]);
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("samples.arrow");
    let summary = watch(&["--host", &format!("h,netns=/run/netns/{name}")], &out);
    ip(&["netns", "delete", &name]);
    let (series, _) = series(&out);
    let links: BTreeSet<_> = series.iter().filter_map(|name| name.strip_prefix("h/link:")).collect();
    assert_eq!(links.len(), 12, "two links of six metrics: {links:?}");
    for name in ["h/sockets/tcp_time_wait", "h/tcp/retrans_segs", "h/tcp/time_wait_overflow", "h/udp/rcvbuf_errors"] {
        assert!(series.contains(name), "{name} in {series:?}");
    }
    assert_eq!(
        summary["missing"].as_array().unwrap().iter().filter(|it| it.as_str().unwrap().starts_with("h/")).count(),
        0
    );
}
