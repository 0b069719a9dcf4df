//! Events: what the engine says to the rig, one JSON object a line on standard output; and what it says to people, on
//! standard error.
//!
//! Whoever reads may be slow, or not read at all: a [`Writer`] for each of both has a thread of its own, so that no
//! measurement waits for a reader, and no memory grows for one. Events that have no room are counted in the summary.
//! Only what measures nothing may [wait](emit_patiently).

use std::{
    fs::File,
    io::{self, IsTerminal},
    os::fd::AsFd,
    sync::OnceLock,
    time::Duration,
};

use serde::Serialize;

use super::{
    clock::{self, Anchor},
    failure::Failure,
    writer::Writer,
};

/// Anchors are repeated this often, so that a step of the wall clock shows within a long measurement.
const ANCHOR_INTERVAL_NS: i64 = 10_000_000_000;

/// A reader that has taken nothing for so long does not get the summary.
const SUMMARY_PATIENCE: Duration = Duration::from_secs(2);

/// The longest wait at the end until all else is written.
const END_PATIENCE: Duration = Duration::from_millis(500);

/// Standard output, and standard error for people; started when there is something to say.
static OUTPUT: OnceLock<io::Result<Writer>> = OnceLock::new();
static TEXT: OnceLock<io::Result<Writer>> = OnceLock::new();

/// Every line: the event's name, when, and what it says.
#[derive(Serialize)]
struct Line<'a, T> {
    event: &'a str,
    monotonic_ns: i64,
    #[serde(flatten)]
    body: &'a T,
}

/// What every summary says, too.
#[derive(Serialize)]
struct Last<'a, T> {
    #[serde(flatten)]
    body: &'a T,
    /// Events before it that had no room.
    events_dropped: u64,
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

/// Says the event `name`, dated `monotonic_ns`, if there is room.
pub fn emit<T: Serialize>(name: &str, monotonic_ns: i64, body: &T) -> Result<(), Failure> {
    output().and_then(|output| output.write(line(name, monotonic_ns, body)?)).map_err(unwritten)
}

/// Says an event, and waits until it is read, however long that takes: for what measures nothing, and ends with its
/// events.
pub fn emit_patiently<T: Serialize>(name: &str, monotonic_ns: i64, body: &T) -> Result<(), Failure> {
    emit(name, monotonic_ns, body)?;
    output().and_then(|output| output.flush(Duration::MAX)).map_err(unwritten)?;
    Ok(())
}

/// Says the event `summary`, the last one, and waits until it is read, or for two seconds.
pub fn summary<T: Serialize>(monotonic_ns: i64, body: &T) -> Result<(), Failure> {
    say_last(summary_line(monotonic_ns, body)?)
}

/// The event `summary`, for [`say_last`].
pub fn summary_line<T: Serialize>(monotonic_ns: i64, body: &T) -> Result<Vec<u8>, Failure> {
    let events_dropped = output().map_err(unwritten)?.dropped();
    line("summary", monotonic_ns, &Last { body, events_dropped }).map_err(unwritten)
}

/// Says the last event.
pub fn say_last(line: Vec<u8>) -> Result<(), Failure> {
    let write = |output: &Writer| output.write_last(line).and_then(|()| output.flush(SUMMARY_PATIENCE));
    let is_read = output().and_then(write).map_err(unwritten)?;
    let lost =
        || format!("the summary is lost: nothing was read from standard output for {} s", SUMMARY_PATIENCE.as_secs());
    if is_read {
        Ok(())
    } else {
        Err(Failure::new(lost(), "read all events as they come, even those that you do not use"))
    }
}

/// Standard output could not be written.
fn unwritten(error: io::Error) -> Failure {
    Failure::new(
        format!("cannot write an event to standard output: {error}"),
        "the program that reads the events has closed the pipe: keep it open until the summary has appeared",
    )
}

/// Whether anyone reads events: a program reads a pipe; on a terminal they are asked for (`json`).
pub fn are_wanted(json: bool) -> bool {
    json || !io::stdout().is_terminal()
}

/// Says something to people. Where it cannot be written, nobody reads it.
pub fn say(text: String) {
    if let Ok(writer) = writer(&TEXT, "text", io::stderr()) {
        let _ = writer.write(text.into_bytes());
    }
}

/// Waits for a moment until all output is written.
pub fn finish() {
    for writer in [&OUTPUT, &TEXT].into_iter().filter_map(|writer| writer.get()?.as_ref().ok()) {
        let _ = writer.flush(END_PATIENCE);
    }
}

fn output() -> io::Result<&'static Writer> {
    writer(&OUTPUT, "events", io::stdout())
}

fn writer(place: &'static OnceLock<io::Result<Writer>>, name: &str, stream: impl AsFd) -> io::Result<&'static Writer> {
    // The descriptor itself: what blocks in a writing holds no lock of the standard library's.
    let start = || Writer::start(name, File::from(stream.as_fd().try_clone_to_owned()?));
    let started = place.get_or_init(start);
    started.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))
}

fn line<T: Serialize>(event: &str, monotonic_ns: i64, body: &T) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&Line { event, monotonic_ns, body })?;
    line.push(b'\n');
    Ok(line)
}

/// When a subcommand speaks while it works: anchors in their time, and progress as often as it likes.
pub struct ProgressTimer {
    anchors: Anchors,
    interval_ns: i64,
    progress_due_ns: i64,
}

impl ProgressTimer {
    /// Progress is due every `interval_ns` from `start_ns` on.
    pub fn new(start_ns: i64, interval_ns: i64, anchors: Anchors) -> Self {
        ProgressTimer { anchors, interval_ns, progress_due_ns: start_ns + interval_ns }
    }

    /// When an event may be due, in monotonic nanoseconds.
    pub fn due_ns(&self) -> i64 {
        self.anchors.due_ns().min(self.progress_due_ns)
    }

    /// Emits an anchor if one is due. Returns whether progress is due; if so, the caller must emit it.
    pub fn is_progress_due(&mut self, now_ns: i64) -> Result<bool, Failure> {
        self.anchors.emit_if_due(now_ns)?;
        let due = now_ns >= self.progress_due_ns;
        if due {
            self.progress_due_ns = now_ns + self.interval_ns;
        }
        Ok(due)
    }
}

/// Says `started` at once and `anchor` every ten seconds.
pub struct Anchors {
    due_ns: i64,
}

impl Anchors {
    /// Says the `started` event of a long-running subcommand.
    pub fn start() -> Result<Self, Failure> {
        let Anchor { monotonic_ns, realtime_ns, anchor_error_ns } = clock::anchor();
        let body = Started { realtime_ns, anchor_error_ns, version: env!("CARGO_PKG_VERSION") };
        emit("started", monotonic_ns, &body)?;
        Ok(Anchors { due_ns: monotonic_ns + ANCHOR_INTERVAL_NS })
    }

    /// When the next anchor is due, in monotonic nanoseconds.
    pub fn due_ns(&self) -> i64 {
        self.due_ns
    }

    /// Says an `anchor` event if one is due.
    pub fn emit_if_due(&mut self, now_ns: i64) -> Result<(), Failure> {
        if now_ns < self.due_ns {
            return Ok(());
        }
        self.due_ns = now_ns + ANCHOR_INTERVAL_NS;
        let Anchor { monotonic_ns, realtime_ns, anchor_error_ns } = clock::anchor();
        emit("anchor", monotonic_ns, &Anchored { realtime_ns, anchor_error_ns })
    }
}
