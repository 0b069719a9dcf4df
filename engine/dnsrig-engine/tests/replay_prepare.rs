//! `replay prepare` as a process: what it leaves when it is ended.

use std::{
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::process::{ENGINE, PATIENCE};

#[test]
fn a_preparation_that_is_ended_leaves_no_file() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("clients.stream");
        let mut command = Command::new(ENGINE);
        command.args(["replay", "prepare", "-", "--out"]).arg(&out).stdin(Stdio::piped());
        let mut prepare = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // It waits for packets from a pipe that gives none; to wait for a process closes its pipe.
        let pipe = prepare.stdin.take();
        let deadline = Instant::now() + PATIENCE;
        while !folder.path().join("clients.stream.part").exists() {
            assert!(Instant::now() < deadline, "it did not begin");
            thread::sleep(Duration::from_millis(5));
        }
        kill(Pid::from_raw(prepare.id().cast_signed()), signal).unwrap();
        assert_eq!(prepare.wait().unwrap().code(), Some(130), "{signal}");
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
        drop(pipe);
    }
}
