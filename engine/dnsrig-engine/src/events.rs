//! Events: what the engine says to the rig, one JSON object a line on standard output.

use std::io::{self, Write};

use serde::Serialize;

use crate::{
    clock::{self, Anchor},
    failure::Advice,
};

/// Anchors are repeated this often, so that a step of the wall clock shows within a long measurement.
const ANCHOR_INTERVAL_NS: i64 = 10_000_000_000;

/// Standard output could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write an event to standard output: {0}")]
pub struct EventError(#[from] io::Error);

impl Advice for EventError {
    fn hint(&self) -> String {
        "whoever reads the events has gone away: keep the pipe open until the summary has come".into()
    }
}

/// Every line: the event's name, when, and what it says.
#[derive(Serialize)]
struct Line<'a, T> {
    event: &'a str,
    monotonic_ns: i64,
    #[serde(flatten)]
    body: &'a T,
}

#[derive(Serialize)]
struct Started {
    realtime_ns: i64,
    anchor_error_ns: i64,
    version: &'static str,
}

#[derive(Serialize)]
struct Anchored {
    realtime_ns: i64,
    anchor_error_ns: i64,
}

/// Prints the event `name`, dated `monotonic_ns`, and flushes it.
pub fn emit<T: Serialize>(name: &str, monotonic_ns: i64, body: &T) -> Result<(), EventError> {
    let mut line = serde_json::to_vec(&Line { event: name, monotonic_ns, body }).map_err(io::Error::from)?;
    line.push(b'\n');
    let mut output = io::stdout().lock();
    output.write_all(&line)?;
    Ok(output.flush()?)
}

/// When a subcommand speaks while it works: anchors in their time, and progress as often as it likes.
pub struct Rhythm {
    anchors: Anchors,
    interval_ns: i64,
    progress_due_ns: i64,
}

impl Rhythm {
    /// Progress is due every `interval_ns` from `start_ns` on.
    pub fn new(start_ns: i64, interval_ns: i64, anchors: Anchors) -> Self {
        Rhythm { anchors, interval_ns, progress_due_ns: start_ns + interval_ns }
    }

    /// When an event may be due, in monotonic nanoseconds.
    pub fn due_ns(&self) -> i64 {
        self.anchors.due_ns().min(self.progress_due_ns)
    }

    /// Prints an anchor if one is due; whether progress is, which counts as printed.
    pub fn is_progress_due(&mut self, now_ns: i64) -> Result<bool, EventError> {
        self.anchors.emit_if_due(now_ns)?;
        let due = now_ns >= self.progress_due_ns;
        if due {
            self.progress_due_ns = now_ns + self.interval_ns;
        }
        Ok(due)
    }
}

/// Prints `started` at once and `anchor` every ten seconds.
pub struct Anchors {
    due_ns: i64,
}

impl Anchors {
    /// Prints the `started` event of a long-running subcommand.
    pub fn start() -> Result<Self, EventError> {
        let Anchor { monotonic_ns, realtime_ns, anchor_error_ns } = clock::anchor();
        let body = Started { realtime_ns, anchor_error_ns, version: env!("CARGO_PKG_VERSION") };
        emit("started", monotonic_ns, &body)?;
        Ok(Anchors { due_ns: monotonic_ns + ANCHOR_INTERVAL_NS })
    }

    /// When the next anchor is due, in monotonic nanoseconds.
    pub fn due_ns(&self) -> i64 {
        self.due_ns
    }

    /// Prints an `anchor` event if one is due.
    pub fn emit_if_due(&mut self, now_ns: i64) -> Result<(), EventError> {
        if now_ns < self.due_ns {
            return Ok(());
        }
        self.due_ns = now_ns + ANCHOR_INTERVAL_NS;
        let Anchor { monotonic_ns, realtime_ns, anchor_error_ns } = clock::anchor();
        emit("anchor", monotonic_ns, &Anchored { realtime_ns, anchor_error_ns })
    }
}
