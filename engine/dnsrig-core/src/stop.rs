//! When to stop early: SIGTERM, SIGINT, SIGHUP, SIGQUIT, and the end of standard input if asked. And how it ended.
//!
//! A thread of its own waits for the signals, so they are heard whatever the others do. The first is a wish, which the
//! program fulfils in order. One that comes more than a second later ends the process at once: then something did not.

use std::{
    io::{self, Read},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd},
    process::ExitCode,
    ptr,
    sync::Arc,
    thread,
    time::Duration,
};

use nix::{
    poll::{PollFd, PollFlags, ppoll},
    sys::{
        eventfd::{EfdFlags, EventFd},
        signal::{SigSet, Signal},
        signalfd::{SfdFlags, SignalFd},
        time::TimeSpec,
    },
};

use serde::Serialize;

use super::{failure::Failure, threads::Thread};

/// Signals that come so soon after the first are the same wish: a terminal gives Ctrl-C to all processes, and a parent
/// may pass it on.
const ONE_WISH: Duration = Duration::from_secs(1);

/// The exit code after a wish to end, as shells have it for SIGINT.
pub const INTERRUPTED: u8 = 130;

/// How a subcommand ended that comes to an end by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It did all that it was asked for.
    Done,
    /// The time was over before.
    Timeout,
    /// Someone ended it before.
    Interrupted,
}

impl Outcome {
    /// What a sentence about the result adds if the measurement did not end by itself; `limit` is the option that
    /// ended it.
    pub fn remark(self, limit: &str) -> String {
        match self {
            Outcome::Done => String::new(),
            Outcome::Timeout => format!("; not all within {limit}"),
            Outcome::Interrupted => "; interrupted".into(),
        }
    }

    pub fn exit_code(self) -> ExitCode {
        ExitCode::from(match self {
            Outcome::Done => 0,
            Outcome::Timeout => 3,
            Outcome::Interrupted => INTERRUPTED,
        })
    }
}

/// The signals could not be watched for.
fn failed(error: nix::Error) -> Failure {
    Failure::new(
        format!("cannot wait for signals: {}", io::Error::from(error)),
        "check that open files and processes are not at their limits (ulimit -n, ulimit -u)",
    )
}

/// Why [`Stop::wait`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The descriptor that was waited for can be read.
    Ready,
    /// The time was over.
    Timeout,
    /// Someone asked us to end.
    Stop,
}

/// A wish to end, asked for by a signal or by closing our standard input.
pub struct Stop {
    /// Written once and never read.
    asked: Arc<EventFd>,
    until_eof: bool,
}

/// Who else may ask us to end.
pub struct Asker(Arc<EventFd>);

impl Asker {
    pub fn ask(&self) {
        // It cannot fail: the counter is far from its end, and the descriptor ours.
        let _ = self.0.write(1);
    }
}

impl Stop {
    /// Starts to look for the [signals](ends) and, with `until_eof`, for the end of standard input.
    pub fn new(until_eof: bool) -> Result<Self, Failure> {
        ends().thread_block().map_err(failed)?;
        let asked = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).map_err(failed)?;
        let asked = Arc::new(asked);
        let stop = Stop { asked: Arc::clone(&asked), until_eof };
        Thread::start("signals", move || wait_for_signals(&asked))?;
        Ok(stop)
    }

    /// For a thread that hears of a wish to end in another way.
    pub fn asker(&self) -> Asker {
        Asker(Arc::clone(&self.asked))
    }

    /// Waits for `timeout_ns`, less if `ready` can be read or we are to end.
    ///
    /// It may also come back early with [`Wake::Timeout`] for no reason: look at the clock.
    pub fn wait(&self, ready: Option<BorrowedFd<'_>>, timeout_ns: i64) -> Result<Wake, Failure> {
        let stdin = io::stdin();
        let asked = self.asked.as_fd();
        // A place that is not used repeats the wish: poll(2) allows it, and the array keeps its length.
        let input = if self.until_eof { stdin.as_fd() } else { asked };
        let mut fds = [asked, input, ready.unwrap_or(asked)].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        match ppoll(&mut fds, Some(TimeSpec::from_duration(nanoseconds(timeout_ns))), None) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(failed(error)),
        }
        let [is_asked, has_input, is_ready] = fds.map(|fd| fd.any().unwrap_or(false));
        if is_asked || (has_input && at_end_of_input()) {
            return Ok(Wake::Stop);
        }
        Ok(if is_ready { Wake::Ready } else { Wake::Timeout })
    }

    /// Whether we are to end, without waiting.
    pub fn asked(&self) -> Result<bool, Failure> {
        Ok(self.wait(None, 0)? == Wake::Stop)
    }
}

/// The signals that ask a program to end. SIGHUP and SIGQUIT only if the program was not started
/// to ignore them, as by nohup(1): a signal that is waited for arrives even if it is ignored.
fn ends() -> SigSet {
    let of_terminals = [Signal::SIGHUP, Signal::SIGQUIT].into_iter().filter(|signal| !is_ignored(*signal));
    [Signal::SIGTERM, Signal::SIGINT].into_iter().chain(of_terminals).collect()
}

fn is_ignored(signal: Signal) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action the call changes nothing; it fills in `action`, or fails.
    unsafe {
        libc::sigaction(signal as libc::c_int, ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Waits for the first signal and passes it on. After that the next one ends the process, whatever it does.
fn wait_for_signals(asked: &EventFd) -> nix::Result<()> {
    ends().wait()?;
    asked.write(1)?;
    thread::sleep(ONE_WISH);
    let pending = SignalFd::with_flags(&ends(), SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
    while pending.read_signal()?.is_some() {}
    ends().thread_unblock()?;
    loop {
        thread::park();
    }
}

/// Reads and drops what standard input has; true when it has ended or broken.
fn at_end_of_input() -> bool {
    matches!(io::stdin().lock().read(&mut [0; 4096]), Ok(0) | Err(_))
}

fn nanoseconds(count: i64) -> Duration {
    Duration::from_nanos(count.max(0).unsigned_abs())
}
