//! The rows of a link: one a direction and interval.

use std::path::Path;

use super::counters::Counts;
use crate::base::{failure::Failure, row_writer::RowWriter, rows::Columns};

/// So many rows may wait for the disk; more are dropped and counted.
const WAITING_MAX: usize = 4096;

/// The directions, by number.
pub const DIRECTIONS: [&str; 2] = ["forward", "reverse"];

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
pub fn create(path: &Path) -> Result<RowWriter<Row>, Failure> {
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
