//! One row a query, where they are wanted: kept in memory while queries are sent, written afterwards. No clock, no
//! socket.
//!
//! All memory is taken, and touched, at the start: 48 bytes a query.

use std::{hint::black_box, path::Path};

use super::{arrivals::Due, client_totals::End, source::Source};
use crate::base::{
    failure::Failure,
    rows::{self, Columns},
};

/// Rows of all threads are at most so many: 2.4 GB.
pub const ROWS_MAX: u64 = 50_000_000;

/// What became of a query, in the order of [`OUTCOMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Answered,
    Timeout,
    /// Its connection ended before.
    Lost,
    Unsent,
}

const OUTCOMES: [&str; 4] = ["answered", "timeout", "lost", "unsent"];

impl From<End> for Outcome {
    fn from(end: End) -> Self {
        match end {
            End::Answered { .. } => Outcome::Answered,
            End::Timeout => Outcome::Timeout,
            End::Lost(_) => Outcome::Lost,
        }
    }
}

/// The client of a query that was never sent and could have been any client's.
const NOBODY: u32 = u32::MAX;

/// A query, from when it is drafted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub number: u64,
    pub due_ns: i64,
    pub sent_ns: i64,
    /// From the due time; without an answer at the limit.
    pub latency_ns: i64,
    /// Or [`NOBODY`].
    pub client: u32,
    pub query: u64,
    pub outcome: Outcome,
}

/// Names a row, or says that there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u32);

impl Place {
    pub const NONE: Place = Place(u32::MAX);
}

/// The rows of one thread.
pub struct Rows {
    rows: Vec<Row>,
    most: usize,
    /// The number of the thread's first client among those of all threads and generators.
    first_client: u32,
    /// Queries that had no room.
    pub dropped: u64,
}

impl Rows {
    /// With room for so many.
    pub fn new(most: usize, first_client: u32) -> Self {
        // Numbers that the compiler does not know are written, so that memory is there when it is needed.
        let (number, outcome) = (black_box(1), Outcome::Unsent);
        let untold = Row { number, due_ns: 1, sent_ns: 1, latency_ns: 1, client: 1, query: 1, outcome };
        let mut rows = vec![untold; most];
        rows.clear();
        Rows { rows, most, first_client, dropped: 0 }
    }

    /// Begins the row of a query that is drafted by one of the thread's clients, if it has one already.
    pub fn draft(&mut self, due: Due, client: Option<usize>, source: &Source) -> Place {
        let Due { at_ns, number, .. } = due;
        let client = due.client.or(client.map(|client| self.first_client + client as u32)).unwrap_or(NOBODY);
        // A query of a stream has its place there; what `due` names is memory.
        let query = if matches!(source, Source::Captured(_)) { number } else { due.query.into() };
        if self.rows.len() == self.most {
            return Place::NONE;
        }
        let place = Place(self.rows.len() as u32);
        let outcome = Outcome::Unsent;
        self.rows.push(Row { number, due_ns: at_ns, sent_ns: at_ns, latency_ns: 0, client, query, outcome });
        place
    }

    /// The drafts from `first` on were not sent, and are forgotten.
    pub fn forget(&mut self, first: Place) {
        self.rows.truncate(first.0 as usize);
    }

    /// A query that was drafted was sent.
    pub fn sent(&mut self, place: Place, sent_ns: i64) {
        match self.rows.get_mut(place.0 as usize) {
            Some(row) => row.sent_ns = sent_ns,
            None => self.dropped += 1,
        }
    }

    /// A query that was sent has ended.
    pub fn end(&mut self, place: Place, ended_ns: i64, end: End) {
        if let Some(row) = self.rows.get_mut(place.0 as usize) {
            (row.latency_ns, row.outcome) = (ended_ns - row.due_ns, end.into());
        }
    }

    /// All of them, in the order in which they were sent.
    pub fn all(&self) -> &[Row] {
        &self.rows
    }

    /// A query will never be sent.
    pub fn unsent(&mut self, due: Due, source: &Source) {
        let place = self.draft(due, None, source);
        self.dropped += u64::from(place == Place::NONE);
    }
}

/// Writes the rows of all threads; returns how many had no room.
pub fn write(path: &Path, threads: &[Rows]) -> Result<u64, Failure> {
    let sent = |row: &Row| row.outcome != Outcome::Unsent;
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
