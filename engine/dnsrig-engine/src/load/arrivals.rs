//! Which queries fall due, and when: by a rate, or as windows become free. No clock, no socket.

use std::collections::VecDeque;

use super::{captured::Taken, segment::Part, source::Source};
use crate::base::{draw::exponential, random::Random};

/// Tells the random stream of arrivals from others of the same seed.
const PURPOSE: u64 = 0x6172_7269_7661_6c73;

/// What decides when a query falls due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Model {
    /// Queries at this many a second, evenly or as a Poisson process, whatever becomes of those before ("open loop").
    Rate { qps: f64, poisson: bool },
    /// As many at a time: the next is due when one ends ("closed loop").
    Outstanding(usize),
    /// When a stream says, which is so many a second on average.
    Stream { qps: f64 },
}

/// A period in which queries fall due.
#[derive(Clone, Copy, Debug)]
pub struct Period {
    pub model: Model,
    pub start_ns: i64,
    pub end_ns: i64,
    pub seed: u64,
}

/// A query that falls due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    pub at_ns: i64,
    /// The number of the thread's client that sends it; none: whichever client's turn it is.
    pub client: Option<u32>,
    /// Its position in the order of queries.
    pub query: u32,
    /// Its number in the schedule of all threads and generators; of a stream, its place there.
    pub number: u64,
}

/// The order of queries, one for all threads and generators: the first comes again after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The query that is number 0 of a schedule.
    pub next: u32,
    pub count: u32,
}

impl Order {
    /// The query so many further on.
    fn after(self, queries: u64) -> u32 {
        ((u64::from(self.next) + queries) % u64::from(self.count)) as u32
    }
}

/// The queries of one thread that fall due from a start to before an end.
///
/// The schedule is the same however many threads and generators share it: of `count` parts, part i has the queries
/// number i, i + `count`, i + 2 `count` …
pub struct Arrivals {
    start_ns: i64,
    end_ns: i64,
    order: Order,
    /// The number of the next query in the schedule, and which one it is.
    number: u64,
    query: u32,
    /// From one number to the next, and as far in the order.
    step: u64,
    query_step: u32,
    kind: Kind,
}

enum Kind {
    Even {
        qps: f64,
    },
    Poisson {
        /// From the start.
        next_ns: f64,
        mean_gap_ns: f64,
        random: Random,
    },
    Windows {
        free_ns: VecDeque<i64>,
    },
    /// None is due before `next_ns`.
    Stream {
        next_ns: i64,
    },
}

impl Arrivals {
    /// Of the thread `part`, in `period`; Poisson arrivals are the same for the same seed.
    pub fn new(period: Period, part: Part, order: Order) -> Self {
        let Period { model, start_ns, end_ns, seed } = period;
        let (number, step) = (part.number() as u64, part.count() as u64);
        let kind = match model {
            Model::Rate { qps, poisson: false } => Kind::Even { qps },
            Model::Rate { qps, poisson: true } => {
                let (mean_gap_ns, mut random) = (1e9 / qps, Random::new(seed, PURPOSE));
                let next_ns = pass(0.0, number + 1, mean_gap_ns, &mut random);
                Kind::Poisson { next_ns, mean_gap_ns, random }
            }
            Model::Outstanding(windows) => {
                let mine = part.share(windows);
                let mut free_ns = VecDeque::with_capacity(mine);
                free_ns.resize(mine, start_ns);
                Kind::Windows { free_ns }
            }
            Model::Stream { .. } => Kind::Stream { next_ns: start_ns },
        };
        let (query, query_step) = (order.after(number), Order { next: 0, ..order }.after(step));
        Arrivals { start_ns, end_ns, order, number, query, step, query_step, kind }
    }

    /// When the next query is due; `i64::MAX` if none will be, as far as is known.
    pub fn next_due_ns(&self) -> i64 {
        let next_ns = match &self.kind {
            Kind::Even { qps } => self.start_ns + even_ns(self.number, *qps),
            Kind::Poisson { next_ns, .. } => self.start_ns + *next_ns as i64,
            Kind::Windows { free_ns } => free_ns.front().copied().unwrap_or(i64::MAX),
            Kind::Stream { next_ns } => *next_ns,
        };
        if next_ns < self.end_ns { next_ns } else { i64::MAX }
    }

    /// Takes the next query of `source` if its time has come.
    pub fn take(&mut self, now_ns: i64, source: &mut Source) -> Option<Due> {
        let at_ns = self.next_due_ns();
        if at_ns > now_ns {
            return None;
        }
        if let (Kind::Stream { next_ns }, Source::Captured(captured)) = (&mut self.kind, source) {
            let latest_ns = now_ns.min(self.end_ns - 1) - self.start_ns;
            let taken = captured.take(latest_ns);
            *next_ns = captured.next_due_ns().saturating_add(self.start_ns);
            return taken.map(|Taken { due_ns, client, place, number }| Due {
                at_ns: self.start_ns + due_ns,
                client: Some(client),
                query: place,
                number,
            });
        }
        match &mut self.kind {
            Kind::Even { .. } => {}
            Kind::Poisson { next_ns, mean_gap_ns, random } => {
                *next_ns = pass(*next_ns, self.step, *mean_gap_ns, random);
            }
            Kind::Windows { free_ns } => {
                free_ns.pop_front();
            }
            Kind::Stream { .. } => return None,
        }
        let due = Due { at_ns, client: None, query: self.query, number: self.number };
        self.number += self.step;
        self.query = add_within(self.query, self.query_step, self.order.count);
        Some(due)
    }

    /// Where the next period goes on: behind all queries of this one's schedule, whoever sent them or could not.
    pub fn order_after(&self) -> Order {
        let passed = match self.kind {
            Kind::Even { qps } => even_count(self.end_ns - self.start_ns, qps),
            // Of one thread alone; several have no order in common.
            _ => self.number,
        };
        Order { next: self.order.after(passed), ..self.order }
    }

    /// Takes in that a query ended: with outstanding queries the next is due at that moment.
    pub fn ended(&mut self, ended_ns: i64) {
        if let Kind::Windows { free_ns } = &mut self.kind {
            // Mostly the last; a lost query ends at its timeout, which is yet to come, and must not keep others
            // waiting.
            let place = free_ns.partition_point(|free_ns| *free_ns <= ended_ns);
            free_ns.insert(place, ended_ns);
        }
    }

    /// Ends the period earlier.
    pub fn cut(&mut self, end_ns: i64) {
        self.end_ns = self.end_ns.min(end_ns);
    }

    /// Whether somebody reads the queries, who may be late with it: what is due then is not there to be taken.
    pub fn is_read_ahead(&self) -> bool {
        matches!(self.kind, Kind::Stream { .. })
    }

    /// Whether a query that ends makes another one due.
    pub fn is_closed_loop(&self) -> bool {
        matches!(self.kind, Kind::Windows { .. })
    }
}

/// How long after the start query `number` is due: counted from the start each time, so that no error adds up.
fn even_ns(number: u64, qps: f64) -> i64 {
    (number as f64 * 1e9 / qps) as i64
}

/// How many queries are due within so long.
fn even_count(duration_ns: i64, qps: f64) -> u64 {
    let about = (duration_ns as f64 * qps / 1e9) as u64;
    // The estimate is rounded, and so are the moments.
    (about.saturating_sub(2)..).find(|number| even_ns(*number, qps) >= duration_ns).unwrap_or(about)
}

/// The moment `arrivals` arrivals of a Poisson process after `from_ns`. Those of other threads are drawn as well: all
/// threads have the one process of the seed, and the same roundings in it.
fn pass(from_ns: f64, arrivals: u64, mean_gap_ns: f64, random: &mut Random) -> f64 {
    (0..arrivals).fold(from_ns, |at_ns, _| at_ns + mean_gap_ns * exponential(random))
}

/// The sum of two numbers below `count`, begun anew from there.
fn add_within(one: u32, other: u32, count: u32) -> u32 {
    if other < count - one { one + other } else { other - (count - one) }
}

#[cfg(test)]
#[path = "arrivals_tests.rs"]
mod tests;
