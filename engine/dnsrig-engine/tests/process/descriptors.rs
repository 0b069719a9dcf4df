//! A process that has no descriptor left, and what it uses of the CPU meanwhile.

use std::{collections::HashSet, fs, process::Command, time::Duration};

/// Limits the open files of a process to `limit`; its hard limit stays.
pub fn limit_files(id: u32, limit: u64) {
    let status = Command::new("prlimit").args([format!("--pid={id}"), format!("--nofile={limit}:")]).status();
    assert!(status.unwrap().success(), "prlimit of util-linux limits {id}");
}

/// The lowest descriptor that a process has not open: with this limit it can open no further one.
pub fn lowest_free(id: u32) -> u64 {
    let open = fs::read_dir(format!("/proc/{id}/fd")).unwrap();
    let open: HashSet<u64> = open.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect();
    (0..).find(|number| !open.contains(number)).unwrap()
}

/// CPU time that a process has used.
pub fn cpu_time(id: u32) -> Duration {
    // The 14th and 15th field, behind the name in brackets; in hundredths (proc_pid_stat(5)).
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    Duration::from_millis(10 * [11, 12].map(|at| fields[at].parse::<u64>().unwrap()).iter().sum::<u64>())
}
