//! Puts the intervals of all threads together, writes them down, and keeps the whole.

use std::collections::BTreeMap;

use super::{
    client_totals::{self, ClientCounts},
    interval_stats::{Counts, Interval, Series},
};

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
    /// The interval that each thread handed over last, if any, and how many it had in the end.
    last: Vec<Option<u64>>,
    intervals: Vec<u64>,
    /// Intervals that were returned whole.
    whole: u64,
    /// Of all intervals, also of those that never were whole.
    pub counts: Counts,
    pub series: Series,
    /// By client.
    pub clients: Vec<ClientCounts>,
    /// Of the busiest thread, by thread.
    pub busy_ns: Vec<i64>,
}

impl Collection {
    /// Of threads with so many clients each.
    pub fn new(clients: &[usize]) -> Self {
        let first_client = clients.iter().scan(0, |sum, count| Some(std::mem::replace(sum, *sum + count))).collect();
        Collection {
            first_client,
            partial: BTreeMap::new(),
            last: vec![None; clients.len()],
            intervals: vec![0; clients.len()],
            whole: 0,
            counts: Counts::default(),
            series: Series::default(),
            clients: Vec::new(),
            busy_ns: vec![0; clients.len()],
        }
    }

    /// Takes in an interval of a thread; returns it put together with those of all others, if it was the last.
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

    /// A thread has come to its end after so many intervals, of which `rest` are those that it did not hand over.
    pub fn end(&mut self, thread: usize, rest: Option<&Interval>, intervals: u64) {
        self.intervals[thread] = intervals;
        if let Some(rest) = rest {
            self.busy_ns[thread] += rest.busy_ns;
            self.keep(rest, self.first_client[thread]);
        }
    }

    /// At the end of all threads: how many intervals never were whole.
    pub fn finish(&mut self) -> u64 {
        while let Some((_, partial)) = self.partial.pop_first() {
            self.keep(&partial.whole, 0);
        }
        // One that an interruption cut off on some threads only was never to be whole.
        self.intervals.iter().min().map_or(0, |intervals| intervals.saturating_sub(self.whole))
    }

    /// Keeps intervals that cannot become whole any more: a thread hands them over in their order, and had no room for
    /// these.
    fn settle(&mut self) {
        let Some(passed) = self.last.iter().copied().min().flatten() else { return };
        while let Some(first) = self.partial.first_entry().filter(|first| *first.key() < passed) {
            let partial = first.remove();
            self.keep(&partial.whole, 0);
        }
    }

    /// Keeps an interval whose clients stand from `first` on among all.
    fn keep(&mut self, interval: &Interval, first: usize) {
        self.counts.add(&interval.counts);
        self.series.add(&interval.series);
        client_totals::add_from(&mut self.clients, first, &interval.clients);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        (0..2).for_each(|thread| collection.end(thread, None, 1));
        assert_eq!((collection.finish(), collection.counts.due), (0, 7));
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
        collection.end(0, None, 100);
        collection.end(1, Some(&interval(0, 98)), 100);
        assert_eq!((collection.finish(), collection.counts.due), (98, 200));
        assert_eq!(collection.busy_ns, [1_000, 30]);
    }

    #[test]
    fn what_an_interruption_cut_off_on_one_thread_only_is_not_missed() {
        let mut collection = Collection::new(&[1, 1]);
        collection.add(0, &interval(0, 1));
        collection.add(1, &interval(0, 1));
        collection.add(0, &interval(1, 1));
        collection.end(0, None, 2);
        collection.end(1, None, 1);
        assert_eq!((collection.finish(), collection.counts.due), (0, 3));
    }
}
