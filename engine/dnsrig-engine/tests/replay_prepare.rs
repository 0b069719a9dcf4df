//! `replay prepare` as a process: what it leaves when it is ended.

use std::{
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use dnsrig_engine::query_stream::StreamReader;
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

/// A capture of one query, in IP packets without a link layer.
fn capture() -> Vec<u8> {
    let query = [0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1];
    let ip = [0x45, 0, 0, 45, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    let packet = [&ip[..], &[9, 9, 0, 53, 0, 25, 0, 0], &query].concat();
    let header = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101, 1, 2, 45, 45].map(u32::to_le_bytes).concat();
    [header, packet].concat()
}

/// What has no room in memory is beside the stream, wherever the command is run.
#[test]
fn a_preparation_writes_beside_its_stream_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (read, out) = (folder.path().join("capture"), folder.path().join("clients.stream"));
    std::fs::write(&read, capture()).unwrap();
    // In /proc nobody can make a file.
    for (directory, out) in [(Path::new("/proc"), out.as_path()), (folder.path(), Path::new("clients.stream"))] {
        let mut command = Command::new(ENGINE);
        command.current_dir(directory).args(["replay", "prepare", "--addresses", "--out"]).arg(out).arg(&read);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let stream = StreamReader::open(&folder.path().join("clients.stream")).unwrap();
        assert_eq!(
            (stream.header().queries, stream.address(0).unwrap()),
            (1, Some("::ffff:192.0.2.1".parse().unwrap()))
        );
    }
}
