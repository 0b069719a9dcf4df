//! Whatever happens to a thread or a reader, the engine works on or ends, and says why.

use std::{
    fs::File,
    io::Read,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use crate::process::{ENGINE, PATIENCE, Process, Server, primary, stalled::full_pipe};
use nix::{
    sys::{
        signal::{SigHandler, Signal, kill},
        stat::Mode,
    },
    unistd::{Pid, mkfifo},
};

/// The engine with `arguments`, separated by spaces.
fn engine(arguments: &str) -> Command {
    let mut command = Command::new(ENGINE);
    command.args(arguments.split_whitespace()).stderr(Stdio::piped());
    command
}

fn queries(folder: &Path) -> String {
    let path = folder.join("queries.txt");
    std::fs::write(&path, "www.example.com A\n").unwrap();
    path.display().to_string()
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
}

/// Waits for the end, which may not take long.
fn end(child: &mut Child) -> (ExitStatus, String) {
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("it does not end");
        }
        thread::sleep(Duration::from_millis(10));
    };
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    (status, errors)
}

/// The most memory that a process has used, in MB.
fn memory_max_mb(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1_000
}

#[test]
fn load_goes_on_and_ends_though_nobody_reads_its_events() {
    let server = Server::start("echo 127.0.0.1:0");
    let folder = tempfile::tempdir().unwrap();
    let (_read, write) = full_pipe();
    let (address, queries) = (server.address("udp"), queries(folder.path()));
    let mut load = engine(&format!(
        "load {address} --queries {queries} --rate 1000 --interval 0.01s --timeout 0.5s --threads 2 --clients 1000 \
         --duration 60s"
    ))
    .stdout(write)
    .spawn()
    .unwrap();
    thread::sleep(Duration::from_secs(2));
    let memory_mb = memory_max_mb(&load);
    signal(&load, Signal::SIGTERM);
    let (status, errors) = end(&mut load);
    assert_eq!(status.code(), Some(1));
    assert!(errors.contains("the summary is lost: nothing was read from standard output"), "{errors}");
    let answered = server.end()["answers"].as_u64().unwrap();
    assert!(answered > 500, "only {answered} queries were sent meanwhile");
    // Without the limit it is over 600 MB by now. On a busy machine its threads are late, and what waits for them is
    // more.
    assert!(memory_mb < 400, "{memory_mb} MB");
}

#[test]
fn a_panic_of_any_thread_ends_the_program() {
    let server = Server::start("echo 127.0.0.1:0");
    let folder = tempfile::tempdir().unwrap();
    let (address, queries) = (server.address("udp"), queries(folder.path()));
    for (thread, arguments) in [
        ("load-1", format!("load {address} --queries {queries} --threads 2 --duration 60s")),
        (
            "transfer-1",
            format!(
                "transfer {address} --count 3 --threads 2 --secondaries 2 --repeat --duration 60s --retry-after 1s"
            ),
        ),
        ("echo-1", "serve echo 127.0.0.1:0 --threads 2".into()),
        ("zones-0", "serve zones 127.0.0.1:0 --count 3 --threads 2".into()),
        ("rows", format!("watch --duration 60s --out {}/samples.arrow", folder.path().display())),
    ] {
        let mut child = engine(&arguments).env("DNSRIG_TEST_PANIC", thread).stdout(Stdio::null()).spawn().unwrap();
        let (status, errors) = end(&mut child);
        assert_eq!(status.code(), Some(101), "{thread}: {errors}");
        assert!(errors.contains(&format!("the thread {thread} panicked: as DNSRIG_TEST_PANIC says")), "{errors}");
        assert!(errors.contains("hint: this is a bug in dnsrig"), "{errors}");
    }
}

/// A primary that takes connections and never answers: the process of `transfer`, which waits for it.
fn waiting_transfer(zones: &str) -> Process {
    let (connected, is_connected) = mpsc::channel();
    let silent = primary::start(move |to| {
        let _ = connected.send(()); // only the first connection is waited for
        while to.stream.peek(&mut [0; 1]).is_ok_and(|bytes| bytes > 0) {}
    });
    let transfer = Process::start(&format!("transfer {silent} {zones} --timeout 60s"));
    is_connected.recv_timeout(PATIENCE).unwrap();
    transfer
}

/// What is started afterwards ignores no signal, even if tests run in the background of a shell or under nohup(1).
fn ignore_nothing() {
    for signal in [Signal::SIGHUP, Signal::SIGQUIT] {
        // SAFETY: no handler is installed.
        unsafe { nix::sys::signal::signal(signal, SigHandler::SigDfl) }.unwrap();
    }
}

#[test]
fn each_signal_that_asks_for_the_end_is_heard_while_a_primary_is_silent() {
    ignore_nothing();
    for wish in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
        let mut transfer = waiting_transfer("--zone example");
        kill(Pid::from_raw(transfer.id().cast_signed()), wish).unwrap();
        assert_eq!(transfer.event("summary")["interrupted"], true, "{wish}");
        assert_eq!(transfer.failure().1, Some(130), "{wish}");
    }
    let catalog = waiting_transfer("--catalog catalog.example");
    kill(Pid::from_raw(catalog.id().cast_signed()), Signal::SIGINT).unwrap();
    let (errors, status) = catalog.failure();
    assert!(
        status == Some(130) && errors.contains("interrupted during the transfer of the catalog"),
        "{status:?} {errors}"
    );
}

#[test]
fn a_hangup_that_is_ignored_is_not_waited_for() {
    ignore_nothing();
    let folder = tempfile::tempdir().unwrap();
    for (trap, waits) in [("", true), ("trap '' HUP QUIT;", false)] {
        // The same trap as nohup(1) sets.
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{trap} exec \"$@\""), "sh", ENGINE, "watch", "--until-eof", "--out"]);
        let mut watch = Process::spawn(command.arg(folder.path().join("samples.arrow")));
        watch.event("started");
        let status = std::fs::read_to_string(format!("/proc/{}/status", watch.id())).unwrap();
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        let blocked = u64::from_str_radix(blocked.trim(), 16).unwrap();
        let is_blocked = |signal: Signal| blocked & 1 << (signal as u32 - 1) != 0;
        assert!(is_blocked(Signal::SIGTERM) && is_blocked(Signal::SIGINT));
        assert_eq!([is_blocked(Signal::SIGHUP), is_blocked(Signal::SIGQUIT)], [waits; 2], "{trap}");
    }
}

#[test]
fn a_second_signal_ends_what_the_first_does_not() {
    let server = Server::start("echo 127.0.0.1:0");
    let folder = tempfile::tempdir().unwrap();
    let (zones, fifo) = (folder.path().join("zones.list"), folder.path().join("rows.arrow"));
    std::fs::write(&zones, "example\n").unwrap();
    // Whoever opens it for writing waits for a reader, who never comes.
    mkfifo(&fifo, Mode::S_IRWXU).unwrap();
    let (address, zones, fifo) = (server.address("udp"), zones.display(), fifo.display());
    let mut probe = engine(&format!("probe {address} --zone-list {zones} --limit 0.05s --out {fifo}"))
        .stdout(File::create("/dev/null").unwrap())
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_millis(300));
    // The first, and one that belongs to it.
    signal(&probe, Signal::SIGINT);
    signal(&probe, Signal::SIGTERM);
    thread::sleep(Duration::from_millis(1_300));
    assert!(probe.try_wait().unwrap().is_none(), "both are one wish");
    signal(&probe, Signal::SIGTERM);
    let (status, _) = end(&mut probe);
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(Signal::SIGTERM as i32));
}
