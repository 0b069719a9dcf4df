//! What a link says: events on standard output, rows in a file.

use std::path::Path;

use dnsrig_core::{
    clock,
    events::{self, Anchors, ProgressTimer, emit},
    failure::Failure,
    row_writer::RowWriter,
    rows::Columns,
};
use serde::Serialize;

use super::{
    counters::{Counts, Delay, Late},
    forwarder::{Direction, Forwarder},
    options::{Arguments, End},
    spec::Spec,
};

/// The interval of progress events.
const PROGRESS_INTERVAL_NS: i64 = 1_000_000_000;

#[derive(Serialize)]
struct Ready<'a> {
    left: &'a End,
    right: &'a End,
    mtu_bytes: u16,
    forward: &'a Spec,
    reverse: &'a Spec,
}

#[derive(Serialize)]
struct Progress {
    forward: Now,
    reverse: Now,
}

#[derive(Serialize)]
struct Now {
    #[serde(flatten)]
    counts: Counts,
    queue_packets: u32,
}

#[derive(Serialize)]
struct Summary {
    elapsed_ns: i64,
    forward: OfDirection,
    reverse: OfDirection,
    cpu_ns: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows_dropped: Option<u64>,
}

#[derive(Serialize)]
struct OfDirection {
    #[serde(flatten)]
    counts: Counts,
    /// Dropped by the kernel where the direction begins, because we read too late; not among `packets`.
    missed: Option<u64>,
    /// Under way when the link ended.
    queue_packets: u32,
    queue_packets_max: u32,
    /// Packets whose far end had a delay of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    far_packets: Option<u64>,
    delay_ns: Delay,
    late_ns: Late,
}

/// Prints and writes what comes due.
pub struct Report {
    start_ns: i64,
    progress_timer: ProgressTimer,
    rows: Option<RowWriter<Row>>,
    interval_ns: i64,
    row_due_ns: i64,
}

impl Report {
    /// A report of the link that began at `start_ns`; prints `ready`.
    pub fn new(
        arguments: &Arguments,
        rows: Option<RowWriter<Row>>,
        start_ns: i64,
        anchors: Anchors,
    ) -> Result<Self, Failure> {
        let Arguments { left, right, mtu, forward, reverse, interval: interval_ns, .. } = arguments;
        emit("ready", start_ns, &Ready { left, right, mtu_bytes: *mtu, forward, reverse })?;
        let progress_timer = ProgressTimer::new(start_ns, PROGRESS_INTERVAL_NS, anchors);
        Ok(Report { start_ns, progress_timer, rows, interval_ns: *interval_ns, row_due_ns: start_ns + interval_ns })
    }

    /// When something may be due, in monotonic nanoseconds.
    pub fn due_ns(&self) -> i64 {
        self.progress_timer.due_ns().min(self.row_due_ns)
    }

    /// Prints events and writes rows if they are due.
    pub fn emit_due(&mut self, now_ns: i64, forwarder: &mut Forwarder) -> Result<(), Failure> {
        if now_ns >= self.row_due_ns {
            // Times that were slept through have no rows of their own: the next row has all.
            let missed = (now_ns - self.row_due_ns) / self.interval_ns;
            self.row_due_ns += (missed + 1) * self.interval_ns;
            self.push_rows(now_ns, forwarder);
        }
        if self.progress_timer.is_progress_due(now_ns)? {
            // What a crash of the machine may cost. If it failed, the end says so.
            let _ = self.rows.as_mut().is_none_or(RowWriter::flush);
            let [forward, reverse] = forwarder.directions.each_ref().map(|Direction { line, counters }| Now {
                counts: counters.counts(),
                queue_packets: line.waiting_packets(),
            });
            emit("progress", now_ns, &Progress { forward, reverse })?;
        }
        Ok(())
    }

    /// Writes the last rows, ends the file and prints the `summary`.
    pub fn finish(mut self, mut forwarder: Forwarder) -> Result<(), Failure> {
        let now_ns = clock::monotonic_ns();
        self.push_rows(now_ns, &mut forwarder);
        let rows = self.rows.map(RowWriter::finish).transpose()?;
        let missed = forwarder.missed_packets();
        let of = |number: usize| {
            let Direction { line, counters } = &forwarder.directions[number];
            OfDirection {
                counts: counters.counts(),
                missed: missed[number],
                queue_packets: line.waiting_packets(),
                queue_packets_max: counters.queue_packets_max(),
                far_packets: line.far_packets(),
                delay_ns: counters.delay(),
                late_ns: counters.late(),
            }
        };
        let summary = Summary {
            elapsed_ns: now_ns - self.start_ns,
            forward: of(0),
            reverse: of(1),
            cpu_ns: clock::process_cpu_ns(),
            rows: rows.map(|(written, _)| written),
            rows_dropped: rows.map(|(_, dropped)| dropped),
        };
        events::summary(now_ns, &summary)
    }

    fn push_rows(&mut self, time_ns: i64, forwarder: &mut Forwarder) {
        let Some(rows) = &mut self.rows else { return };
        for (direction, Direction { line, counters }) in (0..DIRECTIONS.len()).zip(&mut forwarder.directions) {
            let (counts, late_ns_max) = counters.interval();
            let (queue_packets, queue_bytes) = (line.waiting_packets(), line.waiting_bytes());
            rows.push(Row { time_ns, direction, counts, queue_packets, queue_bytes, late_ns_max });
        }
    }
}

/// The most rows that wait for the disk; more are dropped and counted.
const WAITING_MAX: usize = 4096;

/// The directions, by number.
const DIRECTIONS: [&str; 2] = ["forward", "reverse"];

/// One direction in one interval.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// When the interval ended, in monotonic nanoseconds.
    pub time_ns: i64,
    /// Which of [`DIRECTIONS`].
    pub direction: usize,
    /// Since the row before.
    pub counts: Counts,
    /// What waits now.
    pub queue_packets: u32,
    /// And how many bytes that is.
    pub queue_bytes: u64,
    /// The largest lateness since the row before.
    pub late_ns_max: u64,
}

/// Makes the file and starts its writer.
pub fn create_rows(path: &Path) -> Result<RowWriter<Row>, Failure> {
    let columns = Columns::<Row>::default()
        .value("time_ns", |row| row.time_ns)
        .word("direction", DIRECTIONS, |row| row.direction)
        .value("packets", |row| row.counts.packets)
        .value("bytes", |row| row.counts.bytes)
        .value("delivered_packets", |row| row.counts.delivered_packets)
        .value("delivered_bytes", |row| row.counts.delivered_bytes)
        .value("lost", |row| row.counts.lost)
        .value("overflowed", |row| row.counts.overflowed)
        .value("too_big", |row| row.counts.too_big)
        .value("refused", |row| row.counts.refused)
        .value("queue_packets", |row| row.queue_packets)
        .value("queue_bytes", |row| row.queue_bytes)
        .value("late_ns_max", |row| u32::try_from(row.late_ns_max).unwrap_or(u32::MAX));
    RowWriter::create(path, columns, WAITING_MAX)
}
