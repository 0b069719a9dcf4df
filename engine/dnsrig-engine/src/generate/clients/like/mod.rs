//! `generate clients --like`: a population that is fitted to one half of a stream's clients, and tested on the other.
//!
//! [`measure`] counts, [`fit`] finds parameters, [`parameters`] puts them in the place of defaults, and [`quantities`]
//! says what a population has to reproduce. None of these does I/O. The stream is read twice: the second time for the
//! visits of clients that come rarely, which are known only then.

mod fit;
#[cfg(test)]
mod like_tests;
mod measure;
mod parameters;
mod quantities;
mod report;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use dnsrig_core::{failure::Failure, random::Random};

use self::{
    fit::pages::Visits,
    measure::{Client, Count, Measure, Measured, VISIT_NS},
    parameters::Parameter,
};
pub use self::{
    parameters::Parameters,
    report::{Likeness, text},
};
use super::{
    arguments::{Arguments, CLIENTS_MAX, Size},
    population::Population,
};
use crate::{
    dataset::name_table::NameTable,
    query_stream::{RETRANSMISSION, Record, StreamReader},
};

/// Streams of random numbers of the same seed.
const PURPOSE_HALVES: u64 = 35;
const PURPOSE_RESAMPLES: u64 = 36;

/// A half has at least so many clients: of fewer, resampling says little.
const CLIENTS_MIN: usize = 50;

/// Visits are looked at of clients that come back so rarely, on average: one in twenty then meets the one before.
const RARE_NS: i64 = 20 * VISIT_NS;

/// A stream that a population is to be like.
pub struct Model {
    path: PathBuf,
    queries: u64,
    clients: u64,
    duration_ns: i64,
    fitted: Measured,
    other: Measured,
    visits: Visits,
}

/// Which half a client is in, and which number it has there.
struct Halves {
    seed: u64,
    /// By the number in the stream: the number in the half, twice, and one more for the other half.
    places: Vec<u32>,
    counts: [u32; 2],
}

const UNSEEN: u32 = u32::MAX;

impl Halves {
    fn new(clients: u64, seed: u64) -> Self {
        Halves { seed, places: vec![UNSEEN; clients as usize], counts: [0; 2] }
    }

    fn place(&mut self, client: u32) -> (bool, u32) {
        let place = &mut self.places[client as usize];
        if *place == UNSEEN {
            let hash = Random::new(self.seed ^ u64::from(client).rotate_left(32), PURPOSE_HALVES).bits();
            let half = (hash >> 63) as u32;
            *place = 2 * self.counts[half as usize] + half;
            self.counts[half as usize] += 1;
        }
        ((*place).is_multiple_of(2), *place / 2)
    }
}

impl Model {
    /// Reads a stream, with the TTLs of a table.
    pub fn read(path: &Path, seed: u64, table: Option<&NameTable>) -> Result<Self, Failure> {
        let unfit = |reason: String| {
            let hint = "give a longer stream with more clients, or give the parameters yourself without --like";
            Failure::bad_input(format!("{}: {reason}", path.display()), hint)
        };
        let mut reader = StreamReader::open(path)?;
        let header = *reader.header();
        if header.clients > u64::from(CLIENTS_MAX) {
            return Err(unfit(format!("it has more than {CLIENTS_MAX} clients")));
        }
        let mut halves = Halves::new(header.clients, seed);
        let [mut fitted, mut other] = [(); 2].map(|()| Measure::new(header.duration_ns, table));
        while let Some(record) = reader.next()? {
            let (is_fitted, number) = halves.place(record.client);
            if is_fitted { fitted.add(number, &record) } else { other.add(number, &record) }
        }
        let [fitted, other] = [fitted, other].map(Measure::finish);
        let counts = [&fitted, &other].map(|half| half.clients.len());
        if counts.iter().any(|count| *count < CLIENTS_MIN) {
            let [fitted, other] = counts;
            let reason = format!(
                "{} clients, of which one half has {fitted} and the other {other}: each needs {CLIENTS_MIN} at least",
                header.clients
            );
            return Err(unfit(reason));
        }
        if header.duration_ns < 2 * VISIT_NS {
            return Err(unfit("it lasts less than two seconds".into()));
        }
        if [&fitted, &other].iter().any(|half| half.sum(Count::Asked) == 0) {
            return Err(unfit("it has no question that can be read".into()));
        }
        reader.rewind();
        let mut rare = Rare::new(&fitted);
        while let Some(record) = reader.next()? {
            let (is_fitted, number) = halves.place(record.client);
            if is_fitted {
                rare.add(number, &record);
            }
        }
        let (queries, clients) = (header.queries, header.clients);
        let visits = rare.finish();
        Ok(Model { path: path.into(), queries, clients, duration_ns: header.duration_ns, fitted, other, visits })
    }

    /// Puts what was found in the place of what was not given.
    pub fn fit(&self, arguments: &mut Arguments, table: Option<&NameTable>) -> Parameters {
        let mut parameters = Parameters::fit(arguments, &self.fitted, &self.visits, table);
        let duration = Duration::from_nanos(self.duration_ns.unsigned_abs());
        let scale = self.clients as f64 / self.fitted.clients.len() as f64;
        let clients = (parameters.clients * scale).round().clamp(1.0, f64::from(CLIENTS_MAX)) as u32;
        let size = [
            ("clients", arguments.clients.is_some(), f64::from(*arguments.clients.get_or_insert(clients))),
            (
                "qps",
                arguments.qps.is_some(),
                *arguments.qps.get_or_insert(self.queries as f64 / duration.as_secs_f64()),
            ),
            ("duration", arguments.duration.is_some(), arguments.duration.get_or_insert(duration).as_secs_f64()),
        ];
        let [clients, qps, length] = size.map(|(option, is_given, value)| Parameter::number(option, is_given, value));
        parameters.all.splice(0..0, [clients, qps, length.with_unit("s")]);
        parameters
    }

    /// Makes a population as large as the other half, and compares. The arguments' size is for the stream that is made,
    /// not for this population.
    pub fn test(&self, arguments: &Arguments, parameters: Parameters, table: &NameTable, has_ttls: bool) -> Likeness {
        let share = self.other.clients.len() as f64 / self.fitted.clients.len() as f64;
        let duration_s = self.duration_ns as f64 / 1e9;
        let size = Size {
            clients: (parameters.clients * share).round().clamp(1.0, f64::from(CLIENTS_MAX)) as u32,
            qps: self.fitted.sum(Count::Queries) as f64 * share / duration_s,
            duration_s,
        };
        let mut measure = Measure::new(self.duration_ns, has_ttls.then_some(table));
        let mut population = Population::new(arguments, size, table);
        while let Some(record) = population.next() {
            measure.add(record.client, &record);
        }
        let made = measure.finish();
        let of = |measured| quantities::quantities(measured, Random::new(arguments.seed, PURPOSE_RESAMPLES));
        let [fitted, other, made] = [&self.fitted, &self.other, &made].map(of);
        Likeness::new(
            &self.path,
            [self.fitted.clients.len(), self.other.clients.len()],
            parameters,
            has_ttls,
            [fitted, other, made],
        )
    }
}

/// The visits of clients that come rarely.
struct Rare {
    duration_ns: i64,
    /// By number; none of clients that come often.
    visits: Vec<Option<Visit>>,
    found: Visits,
}

#[derive(Clone, Copy)]
struct Visit {
    first_ns: i64,
    last_ns: i64,
    queries: usize,
}

impl Rare {
    fn new(measured: &Measured) -> Self {
        let duration_ns = measured.duration_ns;
        let most = (duration_ns / RARE_NS).max(1) as u64;
        // A client that came n times, at any times, comes n (n - 1) / 2 times twice within a time, before or after; and
        // then it seems to have come n - 1 times.
        let pairs = |client: &Client| client.visits() as f64 * (client.visits() as f64 - 1.0);
        let met: f64 = measured.clients.iter().filter(|client| client.visits() <= most + 1).map(pairs).sum();
        let found = Visits { met_a_ns: met / duration_ns as f64, ..Visits::default() };
        let none = Visit { first_ns: 0, last_ns: 0, queries: 0 };
        let visits = measured.clients.iter().map(|client| (client.visits() <= most).then_some(none)).collect();
        Rare { duration_ns, visits, found }
    }

    fn add(&mut self, number: u32, record: &Record) {
        let Some(visit) = &mut self.visits[number as usize] else { return };
        if record.flags & RETRANSMISSION != 0 {
            return;
        }
        let gap_ns = record.due_ns - visit.last_ns;
        if visit.queries > 0 && gap_ns < VISIT_NS {
            self.found.gaps += 1.0;
            self.found.gaps_ns += gap_ns as f64;
        } else {
            let ended = std::mem::replace(visit, Visit { first_ns: record.due_ns, last_ns: 0, queries: 0 });
            self.found.end(ended, self.duration_ns);
        }
        visit.queries += 1;
        visit.last_ns = record.due_ns;
    }

    fn finish(mut self) -> Visits {
        self.visits.iter().flatten().for_each(|visit| self.found.end(*visit, self.duration_ns));
        self.found
    }
}

impl Visits {
    /// Counts a visit, unless only a part of it may be in the stream.
    fn end(&mut self, visit: Visit, duration_ns: i64) {
        if visit.queries > 0 && visit.first_ns >= VISIT_NS && visit.last_ns + VISIT_NS <= duration_ns {
            self.push(visit.queries);
        }
    }
}
