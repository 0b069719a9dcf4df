//! Pairs the queries of a stream with those that arrived, and counts what differs.

use std::collections::{HashMap, VecDeque};

use dnsrig_core::stats::{Distribution, Times, times};

use super::report::Summary;

/// A query of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    pub due_ns: i64,
    /// Equal queries have equal keys.
    pub key: u64,
    pub bytes: usize,
    /// A capture does not show it, unless it was replayed over another transport.
    pub is_encrypted: bool,
}

/// One that has arrived.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    place: u64,
    at_ns: i64,
    due_ns: i64,
}

/// Counts over a stream and its arrival, in memory that grows with the window only.
#[derive(Debug)]
pub struct Arrivals {
    /// Queries in the order of the stream; None for a query that has arrived.
    expected: VecDeque<Option<Query>>,
    /// The place in the stream of the first of them.
    first: u64,
    /// The places of equal queries that have not arrived.
    places: HashMap<u64, VecDeque<u64>>,
    previous_due_ns: Option<i64>,
    previous: Option<Arrived>,
    /// The last query in the stream that has arrived.
    furthest: Option<Arrived>,
    due_gaps: Times,
    gaps: Times,
    deviations: Times,
    summary: Summary,
}

impl Default for Arrivals {
    fn default() -> Self {
        Arrivals {
            expected: VecDeque::new(),
            first: 0,
            places: HashMap::new(),
            previous_due_ns: None,
            previous: None,
            furthest: None,
            due_gaps: times(),
            gaps: times(),
            deviations: times(),
            summary: Summary::default(),
        }
    }
}

impl Arrivals {
    /// The next query of the stream.
    pub fn due(&mut self, query: Query) {
        self.summary.queries += 1;
        self.summary.bytes += query.bytes as u64;
        if let Some(previous_ns) = self.previous_due_ns.replace(query.due_ns) {
            self.due_gaps.saturating_record(query.due_ns.abs_diff(previous_ns));
        }
        self.places.entry(query.key).or_default().push_back(self.first + self.expected.len() as u64);
        self.expected.push_back(Some(query));
    }

    /// A query that came; without a key it is of nobody whom the stream knows. Of equal ones the first that is due is
    /// the first that came.
    pub fn arrived(&mut self, at_ns: i64, bytes: usize, key: Option<u64>) {
        self.summary.arrived += 1;
        self.summary.arrived_bytes += bytes as u64;
        match key.and_then(|key| self.take(key)) {
            Some((place, query)) => self.pair(Arrived { place, at_ns, due_ns: query.due_ns }),
            None => self.summary.unknown += 1,
        }
    }

    /// Gives up queries that were due before `before_ns`.
    pub fn give_up(&mut self, before_ns: i64) {
        while let Some(&query) = self.expected.front()
            && query.is_none_or(|query| query.due_ns < before_ns)
        {
            if let Some(query) = query {
                self.take(query.key);
                let count = if query.is_encrypted { &mut self.summary.encrypted } else { &mut self.summary.missing };
                *count += 1;
            }
            self.expected.pop_front();
            self.first += 1;
        }
    }

    /// All has come that comes.
    pub fn finish(mut self) -> Summary {
        self.give_up(i64::MAX);
        Summary {
            due_gap_ns: Distribution::from(&self.due_gaps),
            gap_ns: Distribution::from(&self.gaps),
            gap_deviation_ns: Distribution::from(&self.deviations),
            ..self.summary
        }
    }

    /// The first of the equal queries that have not arrived, which now has.
    fn take(&mut self, key: u64) -> Option<(u64, Query)> {
        let places = self.places.get_mut(&key)?;
        let place = places.pop_front()?;
        if places.is_empty() {
            self.places.remove(&key);
        }
        let query = self.expected.get_mut((place - self.first) as usize)?.take()?;
        Some((place, query))
    }

    fn pair(&mut self, now: Arrived) {
        if let Some(previous) = self.previous.replace(now) {
            let gap_ns = now.at_ns.abs_diff(previous.at_ns);
            self.gaps.saturating_record(gap_ns);
            if now.place == previous.place + 1 {
                self.deviations.saturating_record(gap_ns.abs_diff(now.due_ns.abs_diff(previous.due_ns)));
            }
        }
        match self.furthest {
            Some(furthest) if now.place < furthest.place => {
                self.summary.out_of_order += 1;
                let behind_ns = now.at_ns.abs_diff(furthest.at_ns);
                self.summary.out_of_order_max_ns = self.summary.out_of_order_max_ns.max(behind_ns);
            }
            _ => self.furthest = Some(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: i64 = 1_000_000;

    fn query(due_ns: i64, key: u64) -> Query {
        Query { due_ns, key, bytes: 10, is_encrypted: false }
    }

    fn arrivals(dues: &[(i64, u64)]) -> Arrivals {
        let mut arrivals = Arrivals::default();
        dues.iter().for_each(|&(due_ns, key)| arrivals.due(query(due_ns, key)));
        arrivals
    }

    #[test]
    fn what_comes_as_it_was_due_differs_in_nothing() {
        let dues = [(0, 1), (3 * MS, 2), (3 * MS, 1), (5 * MS, 1)];
        let mut arrivals = arrivals(&dues);
        dues.iter().for_each(|&(due_ns, key)| arrivals.arrived(due_ns + 7, 10, Some(key)));
        let found = arrivals.finish();
        assert_eq!((found.queries, found.arrived, found.missing, found.unknown), (4, 4, 0, 0));
        assert_eq!((found.bytes, found.arrived_bytes, found.out_of_order), (40, 40, 0));
        assert_eq!((found.gap_deviation_ns.max, found.gap_ns.max), (0, found.due_gap_ns.max));
    }

    #[test]
    fn what_is_lost_sent_twice_or_of_others_is_counted() {
        let mut arrivals = arrivals(&[(0, 1), (MS, 2), (2 * MS, 3)]);
        arrivals.due(Query { is_encrypted: true, ..query(3 * MS, 4) });
        for key in [Some(1), Some(1), None, Some(3)] {
            arrivals.arrived(0, 10, key);
        }
        let found = arrivals.finish();
        assert_eq!((found.missing, found.encrypted, found.unknown, found.arrived), (1, 1, 2, 4));
    }

    #[test]
    fn what_was_overtaken_is_out_of_order_and_by_how_long() {
        let mut arrivals = arrivals(&[(0, 1), (MS, 2), (2 * MS, 3), (3 * MS, 4)]);
        for (at_ns, key) in [(0, 1), (2 * MS, 3), (3 * MS, 4), (5 * MS, 2)] {
            arrivals.arrived(at_ns, 10, Some(key));
        }
        let found = arrivals.finish();
        assert_eq!((found.out_of_order, found.out_of_order_max_ns), (1, 2 * MS as u64));
        // Only 3 and 4 follow each other on both sides.
        assert_eq!(found.gap_deviation_ns.max, 0);
    }

    #[test]
    fn a_burst_shows_in_the_intervals() {
        let mut arrivals = arrivals(&[(0, 1), (10 * MS, 2), (20 * MS, 3)]);
        for (at_ns, key) in [(0, 1), (20 * MS, 2), (20 * MS, 3)] {
            arrivals.arrived(at_ns, 10, Some(key));
        }
        let found = arrivals.finish();
        assert!((9 * MS as u64..11 * MS as u64).contains(&found.gap_deviation_ns.p50));
    }

    proptest! {
        #[test]
        fn every_query_is_counted_once(
            dues in prop::collection::vec((0_i64..50, 0_u64..8), 0..60),
            came in prop::collection::vec((0_i64..80, 0_u64..10), 0..60),
            window in 0_i64..60,
        ) {
            let (mut dues, mut came) = (dues, came);
            dues.sort_unstable();
            came.sort_unstable();
            let mut arrivals = arrivals(&dues);
            for &(at_ns, key) in &came {
                arrivals.give_up(at_ns - window);
                arrivals.arrived(at_ns, 1, Some(key));
            }
            let found = arrivals.finish();
            prop_assert_eq!(found.arrived, came.len() as u64);
            prop_assert_eq!(found.queries - found.missing, found.arrived - found.unknown);
            prop_assert!(found.out_of_order < found.arrived.max(1));
        }
    }
}
