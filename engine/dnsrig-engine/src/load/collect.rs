//! Puts the intervals of all threads together, writes them down, and keeps the whole.

use std::collections::BTreeMap;

use super::meter::{ClientCounts, Counts, Interval, Series};

/// An interval that some threads have handed over.
struct Partial {
    whole: Box<Interval>,
    threads: usize,
}

/// What has been collected of a period.
pub struct Collection {
    threads: usize,
    /// The number of a thread's first client among all.
    first_client: Vec<usize>,
    partial: BTreeMap<u64, Partial>,
    /// Of all complete intervals.
    pub counts: Counts,
    pub series: Series,
    /// Of the busiest thread, by thread.
    pub busy_ns: Vec<i64>,
}

impl Collection {
    /// Of threads with so many clients each.
    pub fn new(clients: &[usize]) -> Self {
        let first_client = clients.iter().scan(0, |sum, count| Some(std::mem::replace(sum, *sum + count))).collect();
        Collection {
            threads: clients.len(),
            first_client,
            partial: BTreeMap::new(),
            counts: Counts::default(),
            series: Series::default(),
            busy_ns: vec![0; clients.len()],
        }
    }

    /// Takes in an interval of a thread; returns it put together with those of all others, if it was the last.
    pub fn add(&mut self, thread: usize, interval: &Interval) -> Option<Box<Interval>> {
        self.busy_ns[thread] += interval.busy_ns;
        let number = interval.number;
        let first = self.first_client[thread];
        let partial = self
            .partial
            .entry(number)
            .or_insert_with(|| Partial { whole: Box::new(Interval::empty(number)), threads: 0 });
        let whole = &mut partial.whole;
        whole.counts.add(&interval.counts);
        whole.series.add(&interval.series);
        whole.bins.add(&interval.bins);
        whole.busy_ns = whole.busy_ns.max(interval.busy_ns);
        let last = first + interval.clients.len();
        if whole.clients.len() < last {
            whole.clients.resize(last, ClientCounts::default());
        }
        whole.clients[first..last].iter_mut().zip(&interval.clients).for_each(|(mine, other)| mine.add(other));
        partial.threads += 1;
        if partial.threads < self.threads {
            return None;
        }
        let whole = self.partial.remove(&number)?.whole;
        self.counts.add(&whole.counts);
        self.series.add(&whole.series);
        Some(whole)
    }
}
