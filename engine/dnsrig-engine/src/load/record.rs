//! The files of a measurement: intervals as they are complete, and a row for each query, if wanted, at the end.

use std::{
    fs::File,
    hint::black_box,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use dnsrig_core::{
    clock::Anchor,
    failure::Failure,
    output::unwritten,
    rows::{self, Columns, RowFile},
    stats::Times,
};
use hdrhistogram::serialization::{
    V2DeflateSerializer,
    interval_log::{IntervalLogWriterBuilder, Tag},
};

use super::{
    arrivals::{Due, Period},
    client_totals::{ClientCounts, ClientTotal, ClientTotals, End},
    counts::Counts,
    interval_stats::{Bin, Interval, Series},
    segment::Segment,
    source::Source,
};

const LATENCY: &str = "latency.hlog";
const INTERVALS: &str = "intervals.arrow";
const CLIENTS: &str = "clients.arrow";
const ANSWERS: &str = "answers.arrow";
pub const QUERIES: &str = "queries.arrow";
pub const SUMMARY: &str = "summary.json";

/// All files that can be in the folder of `--out`.
pub const FILES: [&str; 6] = [LATENCY, INTERVALS, CLIENTS, ANSWERS, QUERIES, SUMMARY];

/// The number of clients that are written at a time: with their columns about 5 MB.
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
    /// Makes the files in `folder`, over old ones. `first_client` is the number of this generator's first client,
    /// counted over all generators.
    pub fn create(
        folder: &Path,
        anchor: Anchor,
        Period { start_ns, end_ns, .. }: Period,
        interval_ns: i64,
        first_client: u32,
    ) -> Result<Self, Failure> {
        let log_path = folder.join(LATENCY);
        let log = File::create(&log_path).map_err(|error| unwritten(&log_path, &error))?;
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
    pub fn write(&mut self, interval: &Interval) -> Result<(), Failure> {
        let from_ns = interval.number as i64 * self.interval_ns;
        let duration_ns = self.interval_ns.min(self.end_ns - self.start_ns - from_ns).max(1);
        let written = self.write_times(&interval.series, from_ns, duration_ns);
        written.map_err(|error| unwritten(&self.log_path, &error))?;
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
        self.answers.write(&answers)
    }

    /// Ends the files. If `clients` are given, what each of them saw over all intervals is written then.
    ///
    /// If other generators have a part of each class of clients, the latencies of the classes are written, too, so that
    /// they can be put together.
    pub fn finish(mut self, clients: Option<&ClientTotals>, segment: Segment) -> Result<(), Failure> {
        let classes = clients.filter(|_| segment.if_shared().is_some()).map_or(&[][..], ClientTotals::class_latencies);
        let tags = classes.iter().enumerate().map(|(class, times)| (format!("class-{class}"), times));
        let written = if classes.is_empty() { Ok(()) } else { self.log_times(tags, 0, self.end_ns - self.start_ns) };
        let written = written.and_then(|()| self.log.flush());
        written.map_err(|error| unwritten(&self.log_path, &error))?;
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

/// Writes a row for each client that had a query.
fn write_totals(path: &Path, start_ns: i64, clients: &ClientTotals) -> Result<(), Failure> {
    let mut file = RowFile::create(path, total_columns(start_ns, clients))?;
    let mut active = clients.active().map(|(number, total)| (number, *total)).peekable();
    while active.peek().is_some() {
        file.write(&active.by_ref().take(CLIENT_ROWS).collect::<Vec<_>>())?;
    }
    file.finish()
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
        .value("wrong", |row| row.counts.wrong.total())
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

/// The columns of a client over all intervals: the columns that `load` writes, and more.
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

/// The highest number of rows of all threads: 2.4 GB.
pub const ROWS_MAX: u64 = 50_000_000;

/// How a query ended, in the order of [`OUTCOMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOutcome {
    Answered,
    Timeout,
    /// The connection ended before the answer came.
    Lost,
    Unsent,
    /// The answer was not what was expected.
    Wrong,
}

const OUTCOMES: [&str; 5] = ["answered", "timeout", "lost", "unsent", "wrong"];

impl From<End> for RowOutcome {
    fn from(end: End) -> Self {
        match end {
            End::Answered { .. } => RowOutcome::Answered,
            End::Wrong { .. } => RowOutcome::Wrong,
            End::Timeout => RowOutcome::Timeout,
            End::Lost(_) => RowOutcome::Lost,
        }
    }
}

/// The client of a query that was never sent and could have been any client's.
const NOBODY: u32 = u32::MAX;

/// The row of a query, which exists from its draft on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub number: u64,
    pub due_ns: i64,
    pub sent_ns: i64,
    /// From the due time. Without a right answer it is the limit.
    pub latency_ns: i64,
    /// The client, or [`NOBODY`].
    pub client: u32,
    pub query: u64,
    pub outcome: RowOutcome,
}

/// The position of a row, or [`RowIndex::NONE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowIndex(u32);

impl RowIndex {
    pub const NONE: RowIndex = RowIndex(u32::MAX);
}

/// The rows of one thread.
pub struct Rows {
    rows: Vec<Row>,
    most: usize,
    /// The number of the thread's first client, counted over all threads and generators.
    first_client: u32,
    /// The number of queries that had no room.
    pub dropped: u64,
}

impl Rows {
    /// No rows, with room for `most`.
    pub fn new(most: usize, first_client: u32) -> Self {
        // Numbers that the compiler does not know are written, so that the memory is there when it is needed.
        let (number, outcome) = (black_box(1), RowOutcome::Unsent);
        let blank = Row { number, due_ns: 1, sent_ns: 1, latency_ns: 1, client: 1, query: 1, outcome };
        let mut rows = vec![blank; most];
        rows.clear();
        Rows { rows, most, first_client, dropped: 0 }
    }

    /// Begins the row of a query. `client` is the client of the thread that drafts it, if there is one already.
    pub fn draft(&mut self, due: Due, client: Option<usize>, source: &Source) -> RowIndex {
        let Due { at_ns, number, .. } = due;
        let client = due.client.or(client.map(|client| self.first_client + client as u32)).unwrap_or(NOBODY);
        // A captured query is named by its place in the file: `due.query` is a place in memory.
        let query = if matches!(source, Source::Captured(_)) { number } else { due.query.into() };
        if self.rows.len() == self.most {
            return RowIndex::NONE;
        }
        let place = RowIndex(self.rows.len() as u32);
        let outcome = RowOutcome::Unsent;
        self.rows.push(Row { number, due_ns: at_ns, sent_ns: at_ns, latency_ns: 0, client, query, outcome });
        place
    }

    /// Forgets the drafts from `first` on, which were not sent.
    pub fn forget(&mut self, first: RowIndex) {
        self.rows.truncate(first.0 as usize);
    }

    /// Takes in that a draft was sent.
    pub fn sent(&mut self, place: RowIndex, sent_ns: i64) {
        match self.rows.get_mut(place.0 as usize) {
            Some(row) => row.sent_ns = sent_ns,
            None => self.dropped += 1,
        }
    }

    /// Takes in that a query that was sent has ended.
    pub fn end(&mut self, place: RowIndex, ended_ns: i64, end: End) {
        if let Some(row) = self.rows.get_mut(place.0 as usize) {
            (row.latency_ns, row.outcome) = (ended_ns - row.due_ns, end.into());
        }
    }

    /// All rows, in the order in which the queries were sent.
    pub fn all(&self) -> &[Row] {
        &self.rows
    }

    /// Takes in that a query will never be sent.
    pub fn unsent(&mut self, due: Due, source: &Source) {
        let place = self.draft(due, None, source);
        self.dropped += u64::from(place == RowIndex::NONE);
    }
}

/// Writes the rows of all threads. Returns the number of queries that had no room.
pub fn write_rows(path: &Path, threads: &[Rows]) -> Result<u64, Failure> {
    let sent = |row: &Row| row.outcome != RowOutcome::Unsent;
    let columns = Columns::<Row>::default()
        .value("number", |row| row.number)
        .value("due_ns", |row| row.due_ns)
        .optional("sent_ns", move |row| sent(row).then_some(row.sent_ns))
        .optional("latency_ns", move |row| sent(row).then_some(row.latency_ns))
        .optional("client", |row| (row.client != NOBODY).then_some(row.client))
        .value("query", |row| row.query)
        .word("outcome", OUTCOMES, |row| row.outcome as usize);
    rows::write(path, columns, threads.iter().flat_map(|rows| rows.all().iter().copied()))?;
    Ok(threads.iter().map(|rows| rows.dropped).sum())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use dnsrig_core::rows::{Batch, RowReader};

    use super::*;
    use crate::load::{
        arrivals::Model,
        interval_stats::{Ended, IntervalStats},
    };

    const MS: i64 = 1_000_000;
    const PERIOD: Period = Period { model: Model::Outstanding(1), start_ns: 100 * MS, end_ns: 125 * MS, seed: 1 };
    const ANSWERED: End = End::Answered { rcode: 0, truncated: true, authenticated: false };

    fn rows(folder: &Path, name: &str) -> Batch {
        let bytes = fs::read(folder.join(name)).unwrap();
        let mut batches = RowReader::new(&bytes).unwrap().map(Result::unwrap);
        let mut all = batches.next().unwrap();
        batches.for_each(|batch| all.append(batch));
        all
    }

    /// A period of 25 ms in intervals of 20 ms. Of the generator's clients, which begin with the number 10, the first
    /// has one answer, the second none to one query, and the third does not ask.
    #[test]
    fn a_file_has_each_interval_and_each_client_that_asked_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let anchor = Anchor { monotonic_ns: 90 * MS, realtime_ns: 5_000 * MS, anchor_error_ns: 0 };
        let mut record = Record::create(folder.path(), anchor, PERIOD, 20 * MS, 10).unwrap();
        let mut stats = IntervalStats::new(PERIOD.start_ns, PERIOD.end_ns, 20 * MS, 3);
        for (client, due_ns, ended_ns, end) in
            [(0, 101 * MS, 103 * MS, ANSWERED), (1, 121 * MS, 124 * MS, End::Timeout)]
        {
            stats.sent(due_ns, due_ns + MS, 40);
            stats.answer_came(ended_ns);
            let (sent_ns, lower_ns) = (due_ns + MS, ended_ns - due_ns - MS);
            stats.end(client, Ended { due_ns, sent_ns, ended_ns, lower_ns, end });
        }
        stats.at(101 * MS).busy_ns = 7;
        while let Some(interval) = stats.complete(i64::MAX) {
            record.write(&interval).unwrap();
        }
        record.finish(None, Segment::default()).unwrap();

        let intervals = rows(folder.path(), INTERVALS);
        let times = ["start_ns", "duration_ns", "busy_ns"].map(|name| intervals.values::<i64>(name).unwrap());
        assert_eq!(times, [[100 * MS, 120 * MS], [20 * MS, 5 * MS], [7, 0]]);
        let counted = |name: &str| intervals.values::<u64>(name).unwrap();
        let names = ["due", "sent", "answered", "timeouts", "truncated", "wrong", "lost", "late"];
        assert_eq!(names.map(counted), [[1, 1], [1, 1], [1, 0], [0, 1], [1, 0], [0, 0], [0, 0], [0, 0]]);

        let clients = rows(folder.path(), CLIENTS);
        let of_clients = |name: &str| clients.values::<u32>(name).unwrap();
        assert_eq!(["client", "answered", "unanswered"].map(of_clients), [[10, 11], [1, 0], [0, 1]]);
        let times = ["start_ns", "sum_ns", "max_ns"].map(|name| clients.values::<i64>(name).unwrap());
        assert_eq!(times, [[100 * MS, 120 * MS], [2 * MS, 3 * MS], [2 * MS, 3 * MS]]);

        let answers = rows(folder.path(), ANSWERS);
        let times = ["time_ns", "first_ns", "last_ns"].map(|name| answers.values::<i64>(name).unwrap());
        assert_eq!(times, [[100 * MS, 120 * MS], [103 * MS, 124 * MS], [103 * MS, 124 * MS]]);
        let counted = |name: &str| answers.values::<u32>(name).unwrap();
        assert_eq!(["sent", "answered"].map(counted), [[1, 1], [1, 1]]);

        let log = fs::read_to_string(folder.path().join(LATENCY)).unwrap();
        let begins: Vec<_> = log.lines().filter(|line| !line.starts_with('#')).map(begin).collect();
        let of_interval = |times| ["due", "sent", "lower", "lag"].map(|tag| format!("Tag={tag},{times}"));
        assert_eq!(begins, [of_interval("0.000,0.020"), of_interval("0.020,0.005")].concat(), "{log}");
        assert!(log.contains("#[StartTime: 5.010 "), "{log}");
    }

    /// The first three fields of a line: tag, start and duration.
    fn begin(line: &str) -> String {
        line.splitn(4, ',').take(3).collect::<Vec<_>>().join(",")
    }

    /// A query that was never sent has neither a moment of sending nor a latency, nor a client if it could have been
    /// any client's.
    #[test]
    fn a_row_has_what_is_known_of_its_query() {
        let folder = tempfile::tempdir().unwrap();
        let due = |number: u64, client| Due { at_ns: 10 * number as i64, client, query: 5, number };
        let (mut one, mut other) = (Rows::new(4, 100), Rows::new(1, 200));
        let source = Source::none();
        let drafts = [(1, None), (2, Some(7)), (3, None), (4, None)];
        let places = drafts.map(|(number, client)| one.draft(due(number, client), Some(2), &source));
        for (place, end) in places.into_iter().zip([ANSWERED, End::Timeout]) {
            one.sent(place, 50);
            one.end(place, 90, end);
        }
        one.forget(places[2]);
        other.unsent(due(5, None), &source);
        other.unsent(due(6, None), &source);
        assert_eq!(write_rows(&folder.path().join(QUERIES), &[one, other]).unwrap(), 1, "one had no room");
        let found = rows(folder.path(), QUERIES);
        assert_eq!(found.values::<u64>("number").unwrap(), [1, 2, 5]);
        assert_eq!(found.values::<u64>("query").unwrap(), [5, 5, 5]);
        assert_eq!(found.values::<i64>("due_ns").unwrap(), [10, 20, 50]);
        assert_eq!(found.optional_values::<i64>("sent_ns").unwrap(), [Some(50), Some(50), None]);
        assert_eq!(found.optional_values::<i64>("latency_ns").unwrap(), [Some(80), Some(70), None]);
        assert_eq!(found.optional_values::<u32>("client").unwrap(), [Some(102), Some(7), None]);
    }
}
