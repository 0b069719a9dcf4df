//! Which message ids of a client rest: their queries had no answer, and it may still come. No clock, no socket.
//!
//! If an id were used again too soon, the late answer would count for the new query, as soon as both ask the same. So
//! the id of a query without an answer rests for [`REST_NS`], or for [`rest_ns_min`] if more than half of the ids of
//! its client rest. If an id rested for the shorter time only, answers to its later queries are *unsure*: the number of
//! wrong matches is at most theirs, if no answer comes later than `REST_NS`. Second answers to a query that had one are
//! not covered.

use std::collections::VecDeque;

/// The time for which an id rests: a datagram is in the network for two minutes at most (RFC 9293 §3.4.1).
const REST_NS: i64 = 120_000_000_000;

/// Up to this number of resting ids of a client, each rests for the whole [`REST_NS`]: as many others are free.
const RESTING_MAX: usize = IDS / 2;

/// The least time between two queries with one id, if the first had no answer. A server that answers later than this
/// answers queries that their clients gave up long ago.
const REST_NS_MIN: i64 = 2_000_000_000;

/// Every id: it has 16 bits (RFC 1035 §4.1.1).
const IDS: usize = 1 << 16;

/// The least time for which the id of a query without an answer rests, from its sending.
pub fn rest_ns_min(timeout_ns: i64) -> i64 {
    REST_NS_MIN.max(timeout_ns.saturating_mul(2))
}

/// Some of all ids.
struct Ids(Box<[u64; IDS / 64]>);

impl Ids {
    fn none() -> Self {
        Ids(Box::new([0; IDS / 64]))
    }

    fn contains(&self, id: u16) -> bool {
        self.0[usize::from(id >> 6)] >> (id & 63) & 1 != 0
    }

    fn add(&mut self, id: u16) {
        self.0[usize::from(id >> 6)] |= 1 << (id & 63);
    }

    fn remove(&mut self, id: u16) {
        self.0[usize::from(id >> 6)] &= !(1 << (id & 63));
    }
}

/// The ids of one client that rest, or are unsure; memory is taken with the first one.
#[derive(Default)]
pub struct IdRest(Option<Box<Resting>>);

struct Resting {
    ids: Ids,
    /// Each id that rests, with the time of its query, oldest first.
    order: VecDeque<(u16, i64)>,
    /// Ids that were used again after less than [`REST_NS`].
    unsure: Ids,
}

impl IdRest {
    /// The query with this id, sent then, has no answer. No query before it was sent later.
    pub fn begin(&mut self, id: u16, sent_ns: i64) {
        let new = || Box::new(Resting { ids: Ids::none(), order: VecDeque::new(), unsure: Ids::none() });
        let resting = self.0.get_or_insert_with(new);
        resting.ids.add(id);
        resting.order.push_back((id, sent_ns));
    }

    /// Lets ids go that have rested for long enough, at least for `rest_ns_min`.
    pub fn end(&mut self, now_ns: i64, rest_ns_min: i64) {
        let Some(resting) = &mut self.0 else { return };
        while let Some((id, sent_ns)) = resting.order.front().copied() {
            let rested_ns = now_ns - sent_ns;
            let is_needed = resting.order.len() > RESTING_MAX && rested_ns >= rest_ns_min;
            if rested_ns < REST_NS.max(rest_ns_min) && !is_needed {
                return;
            }
            resting.order.pop_front();
            resting.ids.remove(id);
            if is_needed {
                resting.unsure.add(id);
            }
        }
    }

    /// Whether an id rests.
    #[inline]
    pub fn contains(&self, id: u16) -> bool {
        self.0.as_ref().is_some_and(|resting| resting.ids.contains(id))
    }

    /// Whether the answer to a query with this id may be that to one before it.
    #[inline]
    pub fn is_unsure(&self, id: u16) -> bool {
        self.0.as_ref().is_some_and(|resting| resting.unsure.contains(id))
    }

    /// How many ids rest.
    pub fn count(&self) -> usize {
        self.0.as_ref().map_or(0, |resting| resting.order.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn an_id_rests_for_two_minutes_while_there_are_others() {
        let mut rest = IdRest::default();
        rest.begin(7, 0);
        rest.end(119 * SECOND, 2 * SECOND);
        assert_eq!([6, 7, 8].map(|id| rest.contains(id)), [false, true, false]);
        rest.end(120 * SECOND, 2 * SECOND);
        assert!(!rest.contains(7) && !rest.is_unsure(7));
    }

    #[test]
    fn the_oldest_of_more_than_half_of_all_ids_rest_for_the_least_time_only_and_are_unsure() {
        let mut rest = IdRest::default();
        (0..=u16::MAX).for_each(|id| rest.begin(id, i64::from(id)));
        rest.end(2 * SECOND - 1, 2 * SECOND);
        assert_eq!(rest.count(), IDS);
        rest.end(3 * SECOND, 2 * SECOND);
        let resting = (0..=u16::MAX).filter(|id| rest.contains(*id)).count();
        assert_eq!((resting, rest.count(), rest.is_unsure(0)), (RESTING_MAX, RESTING_MAX, true));
        assert!(rest.contains(u16::MAX) && !rest.is_unsure(u16::MAX));
    }

    #[test]
    fn a_query_that_waits_for_longer_has_an_id_that_rests_for_longer() {
        assert_eq!([0, SECOND, 60 * SECOND].map(rest_ns_min), [2 * SECOND, 2 * SECOND, 120 * SECOND]);
    }
}
