//! When to stop early: SIGTERM, SIGINT, and the end of standard input if asked.

use std::{
    io::{self, Read},
    os::fd::{AsFd, BorrowedFd},
};

use nix::{
    poll::{PollFd, PollFlags, ppoll},
    sys::{
        signal::{SigSet, Signal},
        signalfd::{SfdFlags, SignalFd},
        time::TimeSpec,
    },
};

use crate::failure::Advice;

/// The signals could not be watched for.
#[derive(Debug, thiserror::Error)]
#[error("cannot wait for signals: {0}")]
pub struct StopError(#[from] nix::Error);

impl Advice for StopError {
    fn hint(&self) -> String {
        "check that open files are not at their limit (ulimit -n)".into()
    }
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
///
/// The signals are blocked and read from a descriptor (signalfd(2)), so nothing runs inside a signal handler. Make it
/// before any thread, which then inherits the blocked signals.
pub struct Stop {
    signals: SignalFd,
    until_eof: bool,
}

impl Stop {
    /// Starts to look for SIGTERM and SIGINT and, with `until_eof`, for the end of standard input.
    pub fn new(until_eof: bool) -> Result<Self, StopError> {
        let mut set = SigSet::empty();
        set.add(Signal::SIGTERM);
        set.add(Signal::SIGINT);
        set.thread_block()?;
        let signals = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Stop { signals, until_eof })
    }

    /// Waits for `timeout_ns`, less if `ready` can be read or we are to end.
    ///
    /// It may also come back early with [`Wake::Timeout`] for no reason: look at the clock.
    pub fn wait(&self, ready: Option<BorrowedFd<'_>>, timeout_ns: i64) -> Result<Wake, StopError> {
        let stdin = io::stdin();
        let signals = self.signals.as_fd();
        // A place that is not used repeats the signals: poll(2) allows it, and the array keeps its length.
        let input = if self.until_eof { stdin.as_fd() } else { signals };
        let mut fds = [signals, input, ready.unwrap_or(signals)].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        match ppoll(&mut fds, Some(TimeSpec::from_duration(nanoseconds(timeout_ns))), None) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [signalled, has_input, is_ready] = fds.map(|fd| fd.any().unwrap_or(false));
        if signalled || (has_input && at_end_of_input()) {
            return Ok(Wake::Stop);
        }
        Ok(if is_ready { Wake::Ready } else { Wake::Timeout })
    }

    /// Whether we are to end, without waiting.
    pub fn asked(&self) -> Result<bool, StopError> {
        Ok(self.wait(None, 0)? == Wake::Stop)
    }
}

/// Reads and drops what standard input has; true when it has ended or broken.
fn at_end_of_input() -> bool {
    matches!(io::stdin().lock().read(&mut [0; 4096]), Ok(0) | Err(_))
}

fn nanoseconds(count: i64) -> std::time::Duration {
    std::time::Duration::from_nanos(count.max(0).unsigned_abs())
}
