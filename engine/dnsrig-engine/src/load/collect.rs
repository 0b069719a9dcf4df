//! Hands complete intervals over to the thread that collects them, and puts the intervals of all threads together.
//!
//! The collecting thread writes files and events, and may be slow; the thread that sends neither waits nor takes memory
//! for that. Intervals that find no room are put together: their queries stay in the summary, and the intervals
//! themselves are not reported.
//!
//! Both ways are rings whose sides never wait for each other, not even for a value that is being put in. The thread may
//! go before everything else on its CPU: if it waited for an ordinary one that is to run there, it would wait until the
//! kernel took the CPU from it.

use std::{
    collections::BTreeMap,
    mem,
    thread::{self, Thread},
};

use dnsrig_core::stats::Times;
use rtrb::{Consumer, Producer, RingBuffer};

use super::{
    arrivals::Period,
    client_totals::{self, ClientCounts, ClientTotals, UnequalClients},
    counter::Counter as _,
    counts::{Connections, Counts},
    expect::judge::{EXAMPLES_MAX, WrongExample},
    interval_stats::{Interval, IntervalStats, Series},
    priority::Priority,
    ramp::Measured,
    record::Rows,
};

/// The number of intervals of a thread that can wait, about half a megabyte each.
const WAITING_MAX: usize = 64;

/// A message of a thread to the collecting thread.
pub enum ThreadReport {
    /// An interval is complete.
    Interval(Box<Interval>),
    /// The period is over and every query has ended.
    Ended(Box<PeriodEnd>),
}

/// The result of a period on one thread, apart from its intervals.
pub struct PeriodEnd {
    /// By class of clients.
    pub connections: Vec<Connections>,
    /// Since the start.
    pub datagrams_dropped: u64,
    /// For how long connections were open that the server ended, in microseconds.
    pub lifetimes_us: Option<Times>,
    pub sending_ns: i64,
    pub priority: Priority,
    /// The time in which the thread was to run and had no CPU.
    pub cpu_wait_ns: i64,
    /// The intervals that had no room, put together.
    pub rest: Option<Box<Interval>>,
    /// The number of all intervals, with those that had no room.
    pub intervals: u64,
    /// What clients saw, if intervals do not have it.
    pub clients: Option<ClientTotals>,
    /// The rows of queries, if they are wanted.
    pub rows: Option<Rows>,
    /// The first wrong answers.
    pub wrong: Vec<WrongExample>,
}

/// The thread's side.
pub struct Handover {
    reports: Producer<ThreadReport>,
    /// The thread that is woken when there is something to collect.
    collector: Thread,
    /// Intervals that come back to be used again.
    spare: Consumer<Box<Interval>>,
    waiting: usize,
    /// The intervals that had no room, put together.
    rest: Option<Box<Interval>>,
    /// The number of intervals that were complete in this period.
    count: u64,
}

/// The side of the thread that collects.
pub struct Collected {
    pub reports: Consumer<ThreadReport>,
    spare: Producer<Box<Interval>>,
}

/// Makes both sides. The calling thread is the one that collects, and can park until there is something.
pub fn handover() -> (Handover, Collected) {
    // The intervals that wait, and the end of the period.
    let (give, reports) = RingBuffer::new(WAITING_MAX + 1);
    let (give_back, spare) = RingBuffer::new(WAITING_MAX);
    let handover = Handover { reports: give, collector: thread::current(), spare, waiting: 0, rest: None, count: 0 };
    (handover, Collected { reports, spare: give_back })
}

impl Collected {
    /// Gives an interval back to be used again.
    pub fn give_back(&mut self, interval: Box<Interval>) {
        // There is room for all intervals that can wait.
        let _ = self.spare.push(interval);
    }
}

impl Handover {
    /// Gives complete intervals away and takes used ones back. `next_due_ns` is when the next query falls due.
    pub fn give(&mut self, interval_stats: &mut IntervalStats, next_due_ns: i64) {
        while let Ok(interval) = self.spare.pop() {
            self.waiting -= 1;
            interval_stats.reuse(interval);
        }
        while let Some(interval) = interval_stats.complete(next_due_ns) {
            self.count += 1;
            if self.waiting < WAITING_MAX {
                self.waiting += 1;
                self.report(ThreadReport::Interval(interval));
            } else if let Some(rest) = &mut self.rest {
                rest.add(&interval, 0);
                rest.busy_ns += interval.busy_ns;
                interval_stats.reuse(interval);
            } else {
                self.rest = Some(interval);
            }
        }
    }

    /// What had no room, and the number of complete intervals, at the end of a period.
    pub fn end(&mut self) -> (Option<Box<Interval>>, u64) {
        (self.rest.take(), mem::take(&mut self.count))
    }

    /// Reports to the collecting thread. Nobody takes the report only when the whole process ends.
    pub fn report(&mut self, report: ThreadReport) {
        let _ = self.reports.push(report);
        self.collector.unpark();
    }
}

/// An interval that some threads have handed over.
struct Partial {
    whole: Box<Interval>,
    threads: usize,
}

/// What has been collected of a period.
pub struct Collection {
    /// The number of a thread's first client among all.
    first_client: Vec<usize>,
    partial: BTreeMap<u64, Partial>,
    /// The interval that each thread handed over last, if any, and the number of its intervals in the end.
    last: Vec<Option<u64>>,
    intervals: Vec<u64>,
    /// The number of intervals that were returned whole.
    whole: u64,
    /// By client.
    clients: Vec<ClientCounts>,
    /// By thread.
    busy_ns: Vec<i64>,
    outcome: Outcome,
}

impl Collection {
    /// Nothing is collected yet of threads with these numbers of clients.
    pub fn new(clients: &[usize]) -> Self {
        let first_client = clients.iter().scan(0, |sum, count| Some(mem::replace(sum, *sum + count))).collect();
        Collection {
            first_client,
            partial: BTreeMap::new(),
            last: vec![None; clients.len()],
            intervals: vec![0; clients.len()],
            whole: 0,
            clients: Vec::new(),
            busy_ns: vec![0; clients.len()],
            outcome: Outcome { priority: Priority::RealTime, ..Outcome::default() },
        }
    }

    /// Takes in an interval of a thread. If it was the last one, returns the interval of all threads together.
    pub fn add(&mut self, thread: usize, interval: &Interval) -> Option<Box<Interval>> {
        self.busy_ns[thread] += interval.busy_ns;
        let number = interval.number;
        self.last[thread] = Some(number);
        let partial = self
            .partial
            .entry(number)
            .or_insert_with(|| Partial { whole: Box::new(Interval::empty(number)), threads: 0 });
        partial.whole.add(interval, self.first_client[thread]);
        partial.whole.busy_ns = partial.whole.busy_ns.max(interval.busy_ns);
        partial.threads += 1;
        let is_whole = partial.threads == self.last.len();
        let whole = if is_whole { self.partial.remove(&number) } else { None };
        self.settle();
        let whole = whole?.whole;
        self.keep(&whole, 0);
        self.whole += 1;
        Some(whole)
    }

    /// Takes in the end of a thread.
    pub fn end(&mut self, thread: usize, end: PeriodEnd) {
        self.end_intervals(thread, end.rest.as_deref(), end.intervals);
        self.outcome.add_thread(end);
    }

    /// Takes in the number of a thread's intervals, of which `rest` are those that it did not hand over.
    fn end_intervals(&mut self, thread: usize, rest: Option<&Interval>, intervals: u64) {
        self.intervals[thread] = intervals;
        if let Some(rest) = rest {
            self.busy_ns[thread] += rest.busy_ns;
            self.keep(rest, self.first_client[thread]);
        }
    }

    /// The result, when all threads have ended.
    pub fn finish(mut self) -> Outcome {
        while let Some((_, partial)) = self.partial.pop_first() {
            self.keep(&partial.whole, 0);
        }
        // An interval that an interruption cut off on some threads only was never to be whole.
        let intervals = self.intervals.iter().copied().min().unwrap_or(0);
        Outcome {
            intervals_lost: intervals.saturating_sub(self.whole),
            busy_ns: self.busy_ns.iter().copied().max().unwrap_or(0),
            unequal_clients: UnequalClients::of(&self.clients),
            ..self.outcome
        }
    }

    /// Adds intervals that cannot become whole any more: a thread hands them over in their order, and had no room for
    /// these.
    fn settle(&mut self) {
        let Some(passed) = self.last.iter().copied().min().flatten() else { return };
        while let Some(first) = self.partial.first_entry().filter(|first| *first.key() < passed) {
            let partial = first.remove();
            self.keep(&partial.whole, 0);
        }
    }

    /// Adds an interval whose clients have the numbers from `first` on among all.
    fn keep(&mut self, interval: &Interval, first: usize) {
        self.outcome.counts.add(&interval.counts);
        self.outcome.series.add(&interval.series);
        client_totals::add_from(&mut self.clients, first, &interval.clients);
    }
}

/// The result of a period, or of all periods of a ramp.
#[derive(Default)]
pub struct Outcome {
    pub counts: Counts,
    pub series: Series,
    /// By class of clients.
    pub connections: Vec<Connections>,
    /// Datagrams that found the receive buffer of their socket full, since the start.
    pub datagrams_dropped: u64,
    /// For how long connections were open that the server ended, in microseconds. `None` without connections.
    pub lifetimes_us: Option<Times>,
    pub sending_ns: i64,
    /// The time in which the busiest thread had work.
    pub busy_ns: i64,
    /// The worst priority of all threads.
    pub priority: Priority,
    pub intervals_lost: u64,
    pub unequal_clients: Option<UnequalClients>,
    /// The longest time for which a thread was ready to run and had no CPU.
    pub cpu_wait_ns: i64,
    /// What clients saw, if intervals do not have it.
    pub clients: Option<ClientTotals>,
    /// The rows of each thread. Empty if rows are not wanted.
    pub rows: Vec<Rows>,
    /// Some wrong answers.
    pub wrong: Vec<WrongExample>,
}

impl Outcome {
    /// The connections of all classes together.
    pub fn connections(&self) -> Connections {
        let mut all = Connections::default();
        self.connections.iter().for_each(|counts| all.add(counts));
        all
    }

    /// The share of the period's time that the busiest thread had work.
    pub fn busy_share(&self, period: Period) -> f64 {
        (self.busy_ns as f64 / self.sending_ns.max(period.end_ns - period.start_ns).max(1) as f64).min(1.0)
    }

    /// What a ramp needs of it, for one generator.
    pub fn measured(&self, period: Period) -> Measured {
        let Outcome { counts, series, sending_ns, .. } = self;
        Measured {
            due: counts.due,
            sent: counts.sent,
            answered: counts.answered,
            wrong: counts.wrong.total(),
            timeouts: counts.timeouts,
            lost: counts.lost,
            sending_ns: *sending_ns,
            busy_share: self.busy_share(period),
            due_times: series.due.clone(),
            lag_times: series.lag.clone(),
        }
    }

    /// Adds what a thread has to report at the end of a period.
    fn add_thread(&mut self, thread: PeriodEnd) {
        // The classes are the same on all threads.
        self.connections.resize(self.connections.len().max(thread.connections.len()), Connections::default());
        self.connections.iter_mut().zip(&thread.connections).for_each(|(all, other)| all.add(other));
        self.datagrams_dropped += thread.datagrams_dropped;
        match (&mut self.lifetimes_us, thread.lifetimes_us) {
            (Some(all), Some(other)) => all.add(&other).expect("all histograms have the same bounds"),
            (all, other) => *all = all.take().or(other),
        }
        self.sending_ns = self.sending_ns.max(thread.sending_ns);
        self.priority = self.priority.max(thread.priority);
        self.cpu_wait_ns = self.cpu_wait_ns.max(thread.cpu_wait_ns);
        match (&mut self.clients, thread.clients) {
            (Some(all), Some(other)) => all.add(&other),
            (all, other) => *all = all.take().or(other),
        }
        self.rows.extend(thread.rows);
        self.add_wrong(thread.wrong);
    }

    fn add_wrong(&mut self, wrong: Vec<WrongExample>) {
        self.wrong.extend(wrong);
        self.wrong.truncate(EXAMPLES_MAX);
    }

    /// Adds the result of another period, as far as the summary of a ramp has it.
    pub fn add_period(&mut self, other: Outcome) {
        self.counts.add(&other.counts);
        self.series.add(&other.series);
        // All are counted since the start.
        (self.connections, self.datagrams_dropped) = (other.connections, other.datagrams_dropped);
        self.lifetimes_us = other.lifetimes_us;
        self.priority = self.priority.max(other.priority);
        self.add_wrong(other.wrong);
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    const MS: i64 = 1_000_000;

    /// Counts one query in each of `count` intervals of a millisecond.
    fn worked(interval_stats: &mut IntervalStats, from: i64, count: i64) {
        for number in from..from + count {
            interval_stats.given_up(number * MS);
        }
    }

    #[test]
    fn no_more_wait_than_may_and_nothing_is_lost() {
        let (mut handover, mut collected) = handover();
        let mut interval_stats = IntervalStats::new(0, 1_000 * MS, MS, 1);
        worked(&mut interval_stats, 0, 500);
        handover.give(&mut interval_stats, 500 * MS);
        let taken: Vec<_> = iter::from_fn(|| collected.reports.pop().ok()).collect();
        assert_eq!(taken.len(), WAITING_MAX);
        // Half of them are used, and as many find room again.
        for report in taken.into_iter().take(WAITING_MAX / 2) {
            let ThreadReport::Interval(interval) = report else { panic!("an interval") };
            assert_eq!(interval.counts.due, 1);
            collected.give_back(interval);
        }
        worked(&mut interval_stats, 500, 500);
        handover.give(&mut interval_stats, i64::MAX);
        assert_eq!(iter::from_fn(|| collected.reports.pop().ok()).count(), WAITING_MAX / 2);
        let (rest, count) = handover.end();
        assert_eq!((rest.unwrap().counts.due, count), (1_000 - 96, 1_000));
    }

    fn interval(number: u64, due: u64) -> Interval {
        let mut interval = Interval::empty(number);
        (interval.counts.due, interval.busy_ns) = (due, 10);
        interval
    }

    #[test]
    fn an_interval_is_whole_when_all_threads_have_given_it() {
        let mut collection = Collection::new(&[1, 1]);
        assert!(collection.add(0, &interval(0, 3)).is_none());
        assert_eq!(collection.add(1, &interval(0, 4)).unwrap().counts.due, 7);
        (0..2).for_each(|thread| collection.end_intervals(thread, None, 1));
        let outcome = collection.finish();
        assert_eq!((outcome.intervals_lost, outcome.counts.due), (0, 7));
    }

    #[test]
    fn queries_of_intervals_that_had_no_room_are_counted_and_take_no_memory() {
        let mut collection = Collection::new(&[1, 1]);
        for number in 0..100 {
            collection.add(0, &interval(number, 1));
        }
        // The other thread had room for two of them.
        for number in [50, 99] {
            collection.add(1, &interval(number, 1));
            assert!(collection.partial.len() < 50);
        }
        collection.end_intervals(0, None, 100);
        collection.end_intervals(1, Some(&interval(0, 98)), 100);
        assert_eq!(collection.busy_ns, [1_000, 30]);
        let outcome = collection.finish();
        assert_eq!((outcome.intervals_lost, outcome.counts.due, outcome.busy_ns), (98, 200, 1_000));
    }

    #[test]
    fn what_an_interruption_cut_off_on_one_thread_only_is_not_missed() {
        let mut collection = Collection::new(&[1, 1]);
        collection.add(0, &interval(0, 1));
        collection.add(1, &interval(0, 1));
        collection.add(0, &interval(1, 1));
        collection.end_intervals(0, None, 2);
        collection.end_intervals(1, None, 1);
        let outcome = collection.finish();
        assert_eq!((outcome.intervals_lost, outcome.counts.due), (0, 3));
    }

    /// The counts of threads are added up, and of their times and priorities the worst counts.
    #[test]
    fn the_ends_of_all_threads_make_the_outcome() {
        let end = |count, sending_ns, cpu_wait_ns, priority| {
            let mut lifetimes_us = dnsrig_core::stats::times();
            lifetimes_us.record(count).unwrap();
            PeriodEnd {
                connections: vec![Connections { attempted: count, ..Connections::default() }],
                datagrams_dropped: 10 * count,
                lifetimes_us: Some(lifetimes_us),
                sending_ns,
                priority,
                cpu_wait_ns,
                rest: Some(Box::new(interval(0, count))),
                intervals: count,
                clients: None,
                rows: Some(Rows::new(1, 0)),
                wrong: Vec::new(),
            }
        };
        let mut collection = Collection::new(&[1, 1]);
        collection.end(0, end(1, 5, 70, Priority::RealTime));
        collection.end(1, end(2, 4, 80, Priority::Ordinary));
        let outcome = collection.finish();
        assert_eq!((outcome.connections().attempted, outcome.datagrams_dropped, outcome.counts.due), (3, 30, 3));
        assert_eq!((outcome.sending_ns, outcome.cpu_wait_ns, outcome.priority), (5, 80, Priority::Ordinary));
        assert_eq!((outcome.lifetimes_us.unwrap().len(), outcome.rows.len(), outcome.intervals_lost), (2, 2, 1));
    }

    #[test]
    fn clients_are_numbered_over_all_threads_and_the_busiest_thread_counts() {
        let of = |answered: &[u32], busy_ns| {
            let client = |answered: &u32| ClientCounts { answered: *answered, ..ClientCounts::default() };
            let mut given = interval(0, 1);
            (given.clients, given.busy_ns) = (answered.iter().map(client).collect(), busy_ns);
            given
        };
        let mut collection = Collection::new(&[2, 3, 1]);
        assert!(collection.add(1, &of(&[3, 4, 5], 30)).is_none() && collection.add(2, &of(&[6], 10)).is_none());
        let whole = collection.add(0, &of(&[1, 2], 20)).unwrap();
        assert_eq!(whole.clients.iter().map(|client| client.answered).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
        assert_eq!((whole.busy_ns, whole.counts.due), (30, 3));
        assert_eq!(collection.clients.iter().map(|client| client.answered).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(collection.finish().busy_ns, 30);
    }

    #[test]
    fn a_thread_is_busy_for_a_share_of_the_period_or_of_its_sending() {
        for (busy_ns, sending_ns, end_ns, share) in
            [(50, 80, 200, 0.5), (50, 200, 200, 0.25), (500, 80, 200, 1.0), (0, 0, 100, 0.0), (1, 0, 100, 1.0)]
        {
            let model = crate::load::arrivals::Model::Outstanding(1);
            let outcome = Outcome { busy_ns, sending_ns, ..Outcome::default() };
            assert_eq!(outcome.busy_share(Period { model, start_ns: 100, end_ns, seed: 1 }), share, "{busy_ns}");
        }
    }
}
