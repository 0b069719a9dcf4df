//! The files of a measurement: `latency.hlog`, `intervals.arrow`, `clients.arrow`, `answers.arrow`.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use hdrhistogram::serialization::{
    V2DeflateSerializer,
    interval_log::{IntervalLogWriterBuilder, Tag},
};

use super::{
    answers::Bin,
    interval_stats::{Interval, Series},
};
use crate::{
    base::{
        clock::Anchor,
        failure::Advice,
        rows::{RowFile, RowsError},
    },
    stats::histogram::Times,
};

/// A file could not be written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("cannot write {}: {}", .0.display(), .1)]
    Log(PathBuf, io::Error),
    #[error(transparent)]
    Rows(#[from] RowsError),
}

impl Advice for RecordError {
    fn hint(&self) -> String {
        "give --out a directory that exists, with room left (df), and writable for you".into()
    }
}

/// The open files.
pub struct Record {
    log_path: PathBuf,
    log: BufWriter<File>,
    start_ns: i64,
    interval_ns: i64,
    end_ns: i64,
    wall_start: Duration,
    begun: bool,
    intervals: RowFile,
    clients: RowFile,
    answers: RowFile,
}

impl Record {
    /// Makes the files in `folder`, over old ones; `start_ns` is when the first interval begins.
    pub fn create(
        folder: &Path,
        anchor: Anchor,
        start_ns: i64,
        end_ns: i64,
        interval_ns: i64,
    ) -> Result<Self, RecordError> {
        let log_path = folder.join("latency.hlog");
        let log = File::create(&log_path).map_err(|error| RecordError::Log(log_path.clone(), error))?;
        let wall_ns = anchor.realtime_ns + (start_ns - anchor.monotonic_ns);
        Ok(Record {
            log: BufWriter::new(log),
            log_path,
            start_ns,
            interval_ns,
            end_ns,
            wall_start: Duration::from_nanos(wall_ns.max(0).unsigned_abs()),
            begun: false,
            intervals: RowFile::create(&folder.join("intervals.arrow"), &interval_schema())?,
            clients: RowFile::create(&folder.join("clients.arrow"), &client_schema())?,
            answers: RowFile::create(&folder.join("answers.arrow"), &answer_schema())?,
        })
    }

    /// Appends an interval of all threads: `number`, its series and counts, its clients.
    pub fn write(&mut self, interval: &Interval) -> Result<(), RecordError> {
        let from_ns = interval.number as i64 * self.interval_ns;
        let duration_ns = self.interval_ns.min(self.end_ns - self.start_ns - from_ns).max(1);
        let written = self.write_times(&interval.series, from_ns, duration_ns);
        written.map_err(|error| RecordError::Log(self.log_path.clone(), error))?;
        self.intervals.write(&interval_row(interval, self.start_ns + from_ns, duration_ns))?;
        self.clients.write(&client_rows(interval, self.start_ns + from_ns))?;
        Ok(self.answers.write(&answer_rows(interval, self.start_ns + from_ns))?)
    }

    /// Ends the files in order.
    pub fn finish(mut self) -> Result<(), RecordError> {
        self.log.flush().map_err(|error| RecordError::Log(self.log_path.clone(), error))?;
        self.intervals.finish()?;
        self.clients.finish()?;
        Ok(self.answers.finish()?)
    }

    fn write_times(&mut self, series: &Series, from_ns: i64, duration_ns: i64) -> io::Result<()> {
        let mut serializer = V2DeflateSerializer::new();
        let mut builder = IntervalLogWriterBuilder::new();
        let wall_start = UNIX_EPOCH + self.wall_start;
        if !self.begun {
            builder.add_comment("[dnsrig load: values in nanoseconds]").with_start_time(wall_start);
        }
        // Intervals are relative to the start, which the format calls the base time.
        builder.with_max_value_divisor(1e9);
        let mut log = builder.begin_log_with(&mut self.log, &mut serializer)?;
        self.begun = true;
        let tags: [(&str, &Times); 5] = [
            ("due", &series.due),
            ("sent", &series.sent),
            ("lower", &series.lower),
            ("lag", &series.lag),
            ("handshake", &series.handshake),
        ];
        let [from, duration] = [from_ns, duration_ns].map(|ns| Duration::from_nanos(ns.unsigned_abs()));
        for (tag, times) in tags {
            if tag != "handshake" || !times.is_empty() {
                log.write_histogram(times, from, duration, Tag::new(tag))
                    .map_err(|error| io::Error::other(format!("{error:?}")))?;
            }
        }
        self.log.flush()
    }
}

fn fields(columns: &[(&str, DataType)]) -> Arc<Schema> {
    let field = |(name, kind): &(&str, DataType)| Field::new(*name, kind.clone(), false);
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

fn interval_schema() -> Arc<Schema> {
    use DataType::{Int64, UInt64};
    fields(&[
        ("start_ns", Int64),
        ("duration_ns", Int64),
        ("due", UInt64),
        ("sent", UInt64),
        ("answered", UInt64),
        ("timeouts", UInt64),
        ("lost", UInt64),
        ("late", UInt64),
        ("truncated", UInt64),
        ("busy_ns", Int64),
    ])
}

fn interval_row(interval: &Interval, start_ns: i64, duration_ns: i64) -> RecordBatch {
    let counts = &interval.counts;
    let time = |value: i64| Arc::new(Int64Array::from(vec![value])) as ArrayRef;
    let count = |value: u64| Arc::new(UInt64Array::from(vec![value])) as ArrayRef;
    let columns = vec![
        time(start_ns),
        time(duration_ns),
        count(counts.due),
        count(counts.sent),
        count(counts.answered),
        count(counts.timeouts),
        count(counts.lost.total()),
        count(counts.strays.late),
        count(counts.truncated),
        time(interval.busy_ns),
    ];
    RecordBatch::try_new(interval_schema(), columns).expect("the columns are made after the schema")
}

fn client_schema() -> Arc<Schema> {
    use DataType::{Int64, UInt32};
    fields(&[
        ("start_ns", Int64),
        ("client", UInt32),
        ("answered", UInt32),
        ("unanswered", UInt32),
        ("sum_ns", Int64),
        ("max_ns", Int64),
    ])
}

/// A row for each client that had a query in the interval.
fn client_rows(interval: &Interval, start_ns: i64) -> RecordBatch {
    let active: Vec<_> =
        (0_u32..).zip(&interval.clients).filter(|(_, client)| client.answered + client.unanswered > 0).collect();
    let count = |value: fn(&super::interval_stats::ClientCounts) -> u32| {
        Arc::new(active.iter().map(|(_, client)| Some(value(client))).collect::<UInt32Array>()) as ArrayRef
    };
    let time = |value: fn(&super::interval_stats::ClientCounts) -> i64| {
        Arc::new(active.iter().map(|(_, client)| Some(value(client))).collect::<Int64Array>()) as ArrayRef
    };
    let columns = vec![
        Arc::new(Int64Array::from(vec![start_ns; active.len()])) as ArrayRef,
        Arc::new(active.iter().map(|(number, _)| Some(*number)).collect::<UInt32Array>()),
        count(|client| client.answered),
        count(|client| client.unanswered),
        time(|client| client.sum_ns),
        time(|client| client.max_ns),
    ];
    RecordBatch::try_new(client_schema(), columns).expect("the columns are made after the schema")
}

fn answer_schema() -> Arc<Schema> {
    use DataType::{Int64, UInt32};
    fields(&[("time_ns", Int64), ("sent", UInt32), ("answered", UInt32), ("first_ns", Int64), ("last_ns", Int64)])
}

/// A row for each bin in which anything was sent or answered.
fn answer_rows(interval: &Interval, start_ns: i64) -> RecordBatch {
    let used: Vec<_> = interval.bins.used().collect();
    let count = |value: fn(&Bin) -> u32| {
        Arc::new(used.iter().map(|(_, bin)| Some(value(bin))).collect::<UInt32Array>()) as ArrayRef
    };
    let time = |value: fn(&Bin) -> i64| {
        Arc::new(used.iter().map(|(_, bin)| Some(value(bin))).collect::<Int64Array>()) as ArrayRef
    };
    let columns = vec![
        Arc::new(used.iter().map(|(into_ns, _)| Some(start_ns + into_ns)).collect::<Int64Array>()) as ArrayRef,
        count(|bin| bin.sent),
        count(|bin| bin.answered),
        time(|bin| bin.first_ns),
        time(|bin| bin.last_ns),
    ];
    RecordBatch::try_new(answer_schema(), columns).expect("the columns are made after the schema")
}
