//! The rows of a link: one a direction and interval, written by a thread of their own.
//!
//! A thread, because writing to a file may block for long when the disk is busy, and packets would be late meanwhile.

use std::{
    path::Path,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    time::{Duration, Instant},
};

use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
    types::Int32Type,
};
use arrow_schema::{DataType, Field, Schema};

use super::counters::Counts;
use crate::base::{
    rows::{RowFile, RowsError, dictionary_field},
    threads::{Thread, ThreadError},
};

/// So many rows may wait for the disk; more are dropped and counted.
const WAITING_MAX: usize = 4096;

/// Rows go to the file this often: what a crash of the machine may cost.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// The directions, by number.
pub const DIRECTIONS: [&str; 2] = ["there", "back"];

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
    /// And how many octets that is.
    pub queue_octets: u64,
    /// The largest lateness since the row before.
    pub late_ns_max: u64,
}

/// The link's side of the writer.
pub struct Rows {
    rows: SyncSender<Row>,
    writer: Thread<u64, RowsError>,
    dropped: u64,
}

impl Rows {
    /// Makes the file and starts its writer.
    pub fn create(path: &Path) -> Result<Self, ThreadError<RowsError>> {
        let schema = schema();
        let file = RowFile::create(path, &schema).map_err(ThreadError::Failed)?;
        let (rows, to_write) = sync_channel(WAITING_MAX);
        let writer = Thread::start("rows", move || write(&to_write, file, &schema))?;
        Ok(Rows { rows, writer, dropped: 0 })
    }

    /// Adds a row, if there is room. [`Rows::finish`] says what went wrong.
    pub fn push(&mut self, row: Row) {
        if self.rows.try_send(row).is_err() {
            self.dropped += 1;
        }
    }

    /// Ends the file. Gives the number of rows written, and of those dropped.
    pub fn finish(self) -> Result<(u64, u64), ThreadError<RowsError>> {
        drop(self.rows);
        let written = self.writer.join()?;
        Ok((written, self.dropped))
    }
}

/// Writes until the sender is gone; returns how many rows.
fn write(rows: &Receiver<Row>, mut file: RowFile, schema: &Arc<Schema>) -> Result<u64, RowsError> {
    let mut written = 0;
    while let Ok(first) = rows.recv() {
        let mut all = vec![first];
        let flush = Instant::now() + FLUSH_INTERVAL;
        while let Ok(row) = rows.recv_timeout(flush.saturating_duration_since(Instant::now())) {
            all.push(row);
        }
        file.write(&batch(schema, &all))?;
        written += all.len() as u64;
    }
    file.finish()?;
    Ok(written)
}

fn schema() -> Arc<Schema> {
    use DataType::{Int64, UInt32, UInt64};
    let field = |name: &str, kind| Field::new(name, kind, false);
    Arc::new(Schema::new(vec![
        field("time_ns", Int64),
        dictionary_field("direction"),
        field("packets", UInt64),
        field("octets", UInt64),
        field("delivered_packets", UInt64),
        field("delivered_octets", UInt64),
        field("lost", UInt64),
        field("overflowed", UInt64),
        field("too_big", UInt64),
        field("refused", UInt64),
        field("queue_packets", UInt32),
        field("queue_octets", UInt64),
        field("late_ns_max", UInt32),
    ]))
}

fn batch(schema: &Arc<Schema>, rows: &[Row]) -> RecordBatch {
    let keys: Int32Array = rows.iter().map(|row| Some(row.direction as i32)).collect();
    let words = Arc::new(StringArray::from(DIRECTIONS.to_vec()));
    let directions = DictionaryArray::<Int32Type>::try_new(keys, words).expect("there is a word for each direction");
    let count = |value: fn(&Counts) -> u64| {
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| value(&row.counts)))) as ArrayRef
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.time_ns))),
        Arc::new(directions),
        count(|counts| counts.packets),
        count(|counts| counts.octets),
        count(|counts| counts.delivered_packets),
        count(|counts| counts.delivered_octets),
        count(|counts| counts.lost),
        count(|counts| counts.overflowed),
        count(|counts| counts.too_big),
        count(|counts| counts.refused),
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.queue_packets))),
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.queue_octets))),
        Arc::new(UInt32Array::from_iter_values(
            rows.iter().map(|row| u32::try_from(row.late_ns_max).unwrap_or(u32::MAX)),
        )),
    ];
    RecordBatch::try_new(schema.clone(), columns).expect("the columns are made after the schema")
}
