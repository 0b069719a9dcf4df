//! `generate` from outside: golden files, and what the command says.
//!
//! The golden files hold version 2 of the datasets. If one differs, either the change is a mistake, or
//! `generate::dataset::VERSION` must rise, and the files be made anew with `DNSRIG_BLESS=1`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

const ENGINE: &str = env!("CARGO_BIN_EXE_dnsrig-engine");

fn generate(arguments: &[&str], out: &Path) -> Output {
    Command::new(ENGINE).arg("generate").args(arguments).arg("--out").arg(out).output().unwrap()
}

/// All files below a directory, each with its relative path, in order.
fn files(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(path) = waiting.pop() {
        for entry in fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                waiting.push(entry);
            } else {
                let content = fs::read_to_string(&entry).unwrap();
                found.push((entry.strip_prefix(directory).unwrap().to_owned(), content));
            }
        }
    }
    found.sort();
    found
}

fn check_golden(name: &str, arguments: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let output = generate(arguments, directory.path());
    assert!(output.status.success(), "{output:?}");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let made: String =
        files(directory.path()).iter().map(|(path, text)| format!("==> {} <==\n{text}", path.display())).collect();
    if std::env::var_os("DNSRIG_BLESS").is_some() {
        fs::write(&golden, &made).unwrap();
    }
    assert_eq!(made, fs::read_to_string(&golden).unwrap(), "{name} is not what it was");
}

#[test]
fn three_zones_are_what_they_were() {
    check_golden("zones-3.txt", &["zones", "--count", "3", "--records", "12", "--serial", "7"]);
}

#[test]
fn twenty_delegations_are_what_they_were() {
    check_golden("tld-20.txt", &["tld", "--delegations", "20"]);
}

#[test]
fn every_zone_in_the_list_has_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let output = generate(&["zones", "--count", "1001", "--records", "2"], directory.path());
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["event"], &summary["records_total"]), (&"summary".into(), &2002.into()));
    let list = fs::read_to_string(directory.path().join("zones.list")).unwrap();
    assert_eq!(list.lines().count(), 1001);
    for (name, path) in list.lines().map(|line| line.split_once('\t').unwrap()) {
        let text = fs::read_to_string(directory.path().join(path)).unwrap();
        assert!(text.starts_with(&format!("$ORIGIN {name}.\n")));
    }
    assert_eq!(fs::read_dir(directory.path().join("zones")).unwrap().count(), 2);
}

#[test]
fn what_is_there_is_never_touched() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("mine"), "mine").unwrap();
    for kind in [["zones", "--count"], ["tld", "--delegations"]] {
        let output = generate(&[kind[0], kind[1], "3"], directory.path());
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("\nhint: choose another --out"));
    }
    assert_eq!(files(directory.path()), [("mine".into(), "mine".to_owned())]);
}

/// The records of the large zone must come near the published transfer: 49.4 bytes and 5.45 records a delegation.
#[test]
fn the_large_zone_is_like_the_published_one() {
    let directory = tempfile::tempdir().unwrap();
    assert!(generate(&["tld", "--delegations", "20000"], directory.path()).status.success());
    let dataset = fs::read(directory.path().join("dataset.json")).unwrap();
    let dataset: serde_json::Value = serde_json::from_slice(&dataset).unwrap();
    let figure = |name: &str| dataset[name].as_f64().unwrap();
    let records_per_delegation = figure("records_total") / figure("delegations");
    let bytes_per_record = figure("axfr_bytes_estimate") / figure("records_total");
    assert!((5.35..5.55).contains(&records_per_delegation), "{records_per_delegation}");
    assert!((47.0..52.0).contains(&bytes_per_record), "{bytes_per_record}");
}

/// The next version differs in as many records as asked for, and in nothing else.
#[test]
fn changed_records_are_counted_to_the_record() {
    let zone = |changed: &str| {
        let directory = tempfile::tempdir().unwrap();
        let output = generate(&["tld", "--delegations", "300", "--changed", changed], directory.path());
        assert!(output.status.success(), "{output:?}");
        let text = fs::read_to_string(directory.path().join("zones/example.zone")).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let before = zone("0");
    for changed in [1, 7, 299, 300, 301, 900] {
        let after = zone(&changed.to_string());
        assert_eq!(after.len(), before.len());
        let differ = before.iter().zip(&after).filter(|(old, new)| old != new).count();
        assert_eq!(differ, changed);
    }
}

#[test]
fn more_changes_than_there_is_room_for_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let output = generate(&["tld", "--delegations", "10", "--changed", "31"], directory.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("at most 30"));
}
