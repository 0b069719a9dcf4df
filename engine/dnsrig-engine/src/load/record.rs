//! The files of a measurement, and their names.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use hdrhistogram::serialization::{
    V2DeflateSerializer,
    interval_log::{IntervalLogWriterBuilder, Tag},
};

use super::{
    answers::Bin,
    arrivals::Period,
    client_totals::{ClientCounts, ClientTotal, ClientTotals},
    interval_stats::{Counts, Interval, Series},
    segment::Segment,
};
use crate::{
    base::{
        clock::Anchor,
        failure::{Advice, Failure},
        rows::{Columns, RowFile},
    },
    stats::Times,
};

const LATENCY: &str = "latency.hlog";
const INTERVALS: &str = "intervals.arrow";
const CLIENTS: &str = "clients.arrow";
const ANSWERS: &str = "answers.arrow";
pub const QUERIES: &str = "queries.arrow";
pub const SUMMARY: &str = "summary.json";

/// All files that `--out` may get.
pub const FILES: [&str; 6] = [LATENCY, INTERVALS, CLIENTS, ANSWERS, QUERIES, SUMMARY];

/// A file could not be written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("cannot write {}: {}", .0.display(), .1)]
    Log(PathBuf, io::Error),
    #[error(transparent)]
    Rows(#[from] Failure),
}

impl Advice for RecordError {
    fn hint(&self) -> String {
        "give --out an existing folder that you may write to, with free space (df)".into()
    }
}

/// So many clients at once: with their columns about 5 MB.
const CLIENT_ROWS: usize = 65_536;

/// The open files.
pub struct Record {
    folder: PathBuf,
    log_path: PathBuf,
    log: BufWriter<File>,
    start_ns: i64,
    interval_ns: i64,
    end_ns: i64,
    first_client: u32,
    wall_start: Duration,
    begun: bool,
    intervals: RowFile<'static, IntervalRow>,
    clients: RowFile<'static, ClientRow>,
    answers: RowFile<'static, AnswerRow>,
}

impl Record {
    /// Makes the files in `folder`, over old ones; `first_client` is the number of the first one here among those of
    /// all generators.
    pub fn create(
        folder: &Path,
        anchor: Anchor,
        Period { start_ns, end_ns, .. }: Period,
        interval_ns: i64,
        first_client: u32,
    ) -> Result<Self, RecordError> {
        let log_path = folder.join(LATENCY);
        let log = File::create(&log_path).map_err(|error| RecordError::Log(log_path.clone(), error))?;
        let wall_ns = anchor.realtime_ns + (start_ns - anchor.monotonic_ns);
        Ok(Record {
            folder: folder.into(),
            log: BufWriter::new(log),
            log_path,
            start_ns,
            interval_ns,
            end_ns,
            first_client,
            wall_start: Duration::from_nanos(wall_ns.max(0).unsigned_abs()),
            begun: false,
            intervals: RowFile::create(&folder.join(INTERVALS), interval_columns())?,
            clients: RowFile::create(&folder.join(CLIENTS), client_columns())?,
            answers: RowFile::create(&folder.join(ANSWERS), answer_columns())?,
        })
    }

    /// Appends an interval of all threads: `number`, its series and counts, its clients.
    pub fn write(&mut self, interval: &Interval) -> Result<(), RecordError> {
        let from_ns = interval.number as i64 * self.interval_ns;
        let duration_ns = self.interval_ns.min(self.end_ns - self.start_ns - from_ns).max(1);
        let written = self.write_times(&interval.series, from_ns, duration_ns);
        written.map_err(|error| RecordError::Log(self.log_path.clone(), error))?;
        let start_ns = self.start_ns + from_ns;
        self.intervals.write(&[IntervalRow {
            start_ns,
            duration_ns,
            counts: interval.counts,
            busy_ns: interval.busy_ns,
        }])?;
        let clients = (self.first_client..).zip(interval.clients.iter().copied());
        let clients = clients.filter(|(_, counts)| counts.answered + counts.unanswered > 0);
        let clients = clients.map(|(number, counts)| ClientRow { start_ns, number, counts });
        self.clients.write(&clients.collect::<Vec<_>>())?;
        let answers: Vec<_> = interval.bins.used().map(|(into_ns, bin)| (start_ns + into_ns, *bin)).collect();
        Ok(self.answers.write(&answers)?)
    }

    /// Ends the files in order. What clients saw over all intervals, where intervals do not say it, is written then.
    ///
    /// Where other generators have a part of each class of clients, the latencies of the classes are written, too:
    /// those of all are to be put together.
    pub fn finish(mut self, clients: Option<&ClientTotals>, segment: Segment) -> Result<(), RecordError> {
        let classes = clients.filter(|_| segment.if_shared().is_some()).map_or(&[][..], ClientTotals::class_latencies);
        let tags = classes.iter().enumerate().map(|(class, times)| (format!("class-{class}"), times));
        let written = if classes.is_empty() { Ok(()) } else { self.log_times(tags, 0, self.end_ns - self.start_ns) };
        let written = written.and_then(|()| self.log.flush());
        written.map_err(|error| RecordError::Log(self.log_path.clone(), error))?;
        self.intervals.finish()?;
        self.clients.finish()?;
        self.answers.finish()?;
        match clients {
            Some(clients) => write_totals(&self.folder.join(CLIENTS), self.start_ns, clients),
            None => Ok(()),
        }
    }

    fn write_times(&mut self, series: &Series, from_ns: i64, duration_ns: i64) -> io::Result<()> {
        let tags: [(&str, &Times); 5] = [
            ("due", &series.due),
            ("sent", &series.sent),
            ("lower", &series.lower),
            ("lag", &series.lag),
            ("handshake", &series.handshake),
        ];
        let there = tags.into_iter().filter(|(tag, times)| *tag != "handshake" || !times.is_empty());
        self.log_times(there, from_ns, duration_ns)?;
        self.log.flush()
    }

    /// Appends a line for each tag.
    fn log_times<'t, T: AsRef<str>>(
        &mut self,
        tags: impl Iterator<Item = (T, &'t Times)>,
        from_ns: i64,
        duration_ns: i64,
    ) -> io::Result<()> {
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
        let [from, duration] = [from_ns, duration_ns].map(|ns| Duration::from_nanos(ns.unsigned_abs()));
        for (tag, times) in tags {
            log.write_histogram(times, from, duration, Tag::new(tag.as_ref()))
                .map_err(|error| io::Error::other(format!("{error:?}")))?;
        }
        Ok(())
    }
}

/// Writes one row a client that had a query.
fn write_totals(path: &Path, start_ns: i64, clients: &ClientTotals) -> Result<(), RecordError> {
    let mut file = RowFile::create(path, total_columns(start_ns, clients))?;
    let mut active = clients.active().map(|(number, total)| (number, *total)).peekable();
    while active.peek().is_some() {
        file.write(&active.by_ref().take(CLIENT_ROWS).collect::<Vec<_>>())?;
    }
    Ok(file.finish()?)
}

struct IntervalRow {
    start_ns: i64,
    duration_ns: i64,
    counts: Counts,
    busy_ns: i64,
}

fn interval_columns() -> Columns<'static, IntervalRow> {
    Columns::<IntervalRow>::default()
        .value("start_ns", |row| row.start_ns)
        .value("duration_ns", |row| row.duration_ns)
        .value("due", |row| row.counts.due)
        .value("sent", |row| row.counts.sent)
        .value("answered", |row| row.counts.answered)
        .value("timeouts", |row| row.counts.timeouts)
        .value("lost", |row| row.counts.lost.total())
        .value("late", |row| row.counts.unmatched.late)
        .value("truncated", |row| row.counts.truncated)
        .value("busy_ns", |row| row.busy_ns)
}

/// A client that had a query in an interval.
struct ClientRow {
    start_ns: i64,
    number: u32,
    counts: ClientCounts,
}

fn client_columns() -> Columns<'static, ClientRow> {
    Columns::<ClientRow>::default()
        .value("start_ns", |row| row.start_ns)
        .value("client", |row| row.number)
        .value("answered", |row| row.counts.answered)
        .value("unanswered", |row| row.counts.unanswered)
        .value("sum_ns", |row| row.counts.sum_ns)
        .value("max_ns", |row| row.counts.max_ns)
}

/// Those of a client over all intervals: what `load` tells, and more.
fn total_columns(start_ns: i64, clients: &ClientTotals) -> Columns<'_, (u32, ClientTotal)> {
    Columns::<(u32, ClientTotal)>::default()
        .value("start_ns", move |_| start_ns)
        .value("client", |(number, _)| *number)
        .value("answered", |(_, total)| total.counts.answered)
        .value("unanswered", |(_, total)| total.counts.unanswered)
        .value("sum_ns", |(_, total)| total.counts.sum_ns)
        .value("max_ns", |(_, total)| total.counts.max_ns)
        .value("timeouts", |(_, total)| total.timeouts)
        .value("truncated", |(_, total)| total.truncated)
        .value("authenticated", |(_, total)| total.authenticated)
        .value("nxdomain", |(_, total)| total.nxdomain)
        .value("servfail", |(_, total)| total.servfail)
        .value("p50_ns", |(number, _)| clients.latency_ns(*number, 50).unwrap_or(0))
        .value("p99_ns", |(number, _)| clients.latency_ns(*number, 99).unwrap_or(0))
        .value("class", |(number, _)| u32::from(clients.class(*number)))
}

/// A bin in which anything was sent or answered, and when it begins.
type AnswerRow = (i64, Bin);

fn answer_columns() -> Columns<'static, AnswerRow> {
    Columns::<AnswerRow>::default()
        .value("time_ns", |(time_ns, _)| *time_ns)
        .value("sent", |(_, bin)| bin.sent)
        .value("answered", |(_, bin)| bin.answered)
        .value("first_ns", |(_, bin)| bin.first_ns)
        .value("last_ns", |(_, bin)| bin.last_ns)
}
