//! Begins and ends changes as signals say, and writes a row for each.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    path::PathBuf,
    sync::Arc,
};

use nix::sys::{
    signal::{SigSet, Signal},
    signalfd::{SfdFlags, SignalFd},
};
use serde::Serialize;

use super::{primary::Primary, shape::Made};
use crate::{
    base::{clock, events::emit, failure::Failure},
    dataset::{
        churn::{self, Row},
        zone_name,
    },
    dns::name::whole,
    serve::system_failed,
};

/// Zones stop changing so long after they are told to: longer than a thread is kept from its CPU between two lines.
const END_AHEAD_NS: i64 = 10_000_000;

/// At most so many changes have a row: with names of the usual length they are about 500 MB.
const ROWS_MAX: u64 = 10_000_000;

/// The changes of a primary.
pub struct Changing {
    primary: Arc<Primary>,
    signals: Option<SignalFd>,
    delay_ns: i64,
    out: Option<PathBuf>,
    has_ended: bool,
}

#[derive(Serialize)]
struct Begun {
    begin_ns: i64,
    rate_per_s: f64,
}

#[derive(Serialize)]
struct Ended {
    #[serde(flatten)]
    made: Made,
    /// Rows that there are not, since there would be too many.
    rows_left_out: u64,
}

impl Changing {
    /// Those of `primary`, which with a delay begin that long after SIGUSR1 and end with SIGUSR2; without, they have
    /// begun. The file of rows is made at once, so that what is wrong with it is told before anything is measured.
    ///
    /// Make it before any thread, which then inherits the blocked signals.
    pub fn new(primary: Arc<Primary>, delay_ns: Option<i64>, out: Option<PathBuf>) -> Result<Self, Failure> {
        let signals = delay_ns.map(|_| signals()).transpose();
        let signals = signals.map_err(|error| system_failed("wait for signals", error))?;
        if let Some(path) = &out {
            churn::write_rows(path, std::iter::empty())?;
        }
        Ok(Changing { primary, signals, delay_ns: delay_ns.unwrap_or(0), out, has_ended: false })
    }

    /// Readable when a signal has come.
    pub fn signals(&self) -> Option<BorrowedFd<'_>> {
        self.signals.as_ref().map(AsFd::as_fd)
    }

    /// Does what the signals that have come say.
    pub fn obey(&mut self) -> io::Result<()> {
        while let Some(signal) = self.signals.as_ref().map(SignalFd::read_signal).transpose()?.flatten() {
            if signal.ssi_signo == Signal::SIGUSR2 as u32 {
                self.end()?;
            } else {
                self.begin()?;
            }
        }
        Ok(())
    }

    fn begin(&self) -> io::Result<()> {
        let (now_ns, rate_per_s) = (clock::monotonic_ns(), self.primary.shape.changes.per_s);
        let begin_ns = now_ns + self.delay_ns;
        if self.primary.period.begin(begin_ns) {
            emit("changes-begun", now_ns, &Begun { begin_ns, rate_per_s }).map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Ends the changes, if they have begun, and writes their rows.
    pub fn end(&mut self) -> io::Result<()> {
        let Some(begin_ns) = self.primary.period.begin_ns().filter(|_| !self.has_ended) else { return Ok(()) };
        self.has_ended = true;
        let end_ns = self.primary.period.end(clock::monotonic_ns, END_AHEAD_NS);
        let made = self.primary.shape.made(begin_ns, end_ns);
        if let Some(path) = &self.out {
            churn::write_rows(path, self.rows(made)).map_err(io::Error::other)?;
        }
        let rows_left_out = made.changes.saturating_sub(ROWS_MAX);
        emit("changes-ended", clock::monotonic_ns(), &Ended { made, rows_left_out }).map_err(io::Error::other)
    }

    fn rows(&self, made: Made) -> impl Iterator<Item = Row> {
        let shape = &self.primary.shape;
        let suffix = whole(&shape.suffix).to_string();
        (0..made.changes.min(ROWS_MAX)).map(move |number| {
            let (change, (_, version)) = (shape.change(number), shape.changed_by(number));
            let due_ns = made.begin_ns + shape.change_ns(number).unwrap_or(0);
            Row {
                zone: zone_name(change.zone.into(), &suffix),
                kind: change.kind,
                due_ns,
                sent_ns: due_ns,
                accepted_ns: Some(due_ns),
                rcode: Some(0),
                serial: Some(shape.serial(version)),
            }
        })
    }
}

fn signals() -> nix::Result<SignalFd> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGUSR1);
    set.add(Signal::SIGUSR2);
    set.thread_block()?;
    SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
}
