//! The queries of one client by message id: which are outstanding, which id is next, which ids rest. No clock, no
//! socket.
//!
//! A client (a source address and port, or a connection) hands out its ids in turn, and has a table of its queries by
//! id. An id keeps its meaning until the table has gone round once, so late answers and duplicates differ from messages
//! that nobody asked for. Ids of outstanding queries are left out.
//!
//! Ids of queries without an answer are left out, too, because the answer may still come: if such an id were used again
//! too soon, the late answer would count for the new query, as soon as both ask the same. The id *rests* for
//! [`REST_NS`], or for [`rest_ns_min`] if more than half of the ids of its client rest. If an id rested for the shorter
//! time only, answers to its later queries are *unsure*: the number of wrong matches is at most the number of these
//! answers, if no answer comes later than `REST_NS`. Second answers to a query that had one are not covered.

use std::collections::VecDeque;

use super::{lateness::Mark, record::RowIndex};

/// The highest number of places in the table of a client: an id has 16 bits (RFC 1035 §4.1.1).
pub const TABLE_MAX: usize = 1 << 16;

/// The largest distance between the sequence numbers of a client's oldest outstanding query and its next one: a query
/// keeps the low 24 bits of its number.
const NUMBERS_OPEN_MAX: u64 = 1 << 24;

/// The time for which an id rests: a datagram is in the network for two minutes at most (RFC 9293 §3.4.1).
const REST_NS: i64 = 120_000_000_000;

/// Up to this number of resting ids of a client, each rests for the whole [`REST_NS`]: as many others are free.
const RESTING_MAX: usize = IDS / 2;

/// The least time between two queries with one id, if the first had no answer. A server that answers later than this
/// answers queries that their clients gave up long ago.
const REST_NS_MIN: i64 = 2_000_000_000;

/// Number of all ids: an id has 16 bits (RFC 1035 §4.1.1).
const IDS: usize = TABLE_MAX;

/// The least time for which the id of a query without an answer rests, from its sending.
pub fn rest_ns_min(timeout_ns: i64) -> i64 {
    REST_NS_MIN.max(timeout_ns.saturating_mul(2))
}

/// The state of a place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Unused,
    Outstanding,
    Answered,
    TimedOut,
    Lost,
}

/// A query that was written.
#[derive(Clone, Copy)]
pub struct Query {
    pub due_ns: i64,
    pub sent_ns: i64,
    pub mark: Mark,
    /// The client whose counts and times it belongs to.
    pub owner: u32,
    /// Its position in the order of queries.
    pub position: u32,
    pub row: RowIndex,
    /// The low 16 bits of its sequence number, which are the message id, and the 8 bits above them.
    pub id: u16,
    pub round: u8,
    pub state: State,
}

impl Query {
    /// A place in the table that no query has.
    pub const UNUSED: Query = Query {
        due_ns: 0,
        sent_ns: 0,
        mark: Mark::UNSENT,
        owner: 0,
        position: 0,
        row: RowIndex::NONE,
        id: 0,
        round: 0,
        state: State::Unused,
    };

    #[inline]
    fn has_number(&self, number: u64) -> bool {
        self.id == number as u16 && self.round == (number >> 16) as u8
    }
}

/// The queries of one client. Sequence numbers count from 0, and the id is their low 16 bits. Some are left out.
pub struct ClientQueries {
    table: Box<[Query]>,
    rest: IdRest,
    /// All queries before this number have ended.
    oldest: u64,
    /// The number of the next query to be sent. From here on `drafts` are written but not sent.
    next: u64,
    drafts: u64,
    outstanding: u32,
}

impl ClientQueries {
    /// A client with a table of so many places, a power of two.
    pub fn new(places: usize) -> Self {
        assert!(places.is_power_of_two() && places <= TABLE_MAX);
        let table = vec![Query::UNUSED; places].into_boxed_slice();
        ClientQueries { table, rest: IdRest::default(), oldest: 0, next: 0, drafts: 0, outstanding: 0 }
    }

    /// The number of queries that wait for an answer.
    #[inline]
    pub fn outstanding(&self) -> usize {
        self.outstanding as usize
    }

    /// The number of queries that are written and not sent.
    #[inline]
    pub fn drafts(&self) -> usize {
        self.drafts as usize
    }

    /// The sequence number of the next draft. `None` if there is no place for it or no id. Drafts have consecutive
    /// numbers: if the next number is in use, a draft has to wait until the drafts before it are sent.
    #[inline]
    pub fn free_number(&mut self) -> Option<u64> {
        let first = self.next + self.drafts;
        let used = self.outstanding as usize + self.drafts as usize;
        if used >= self.table.len() || used + self.rest.count() >= TABLE_MAX {
            return None;
        }
        if self.drafts > 0 {
            return self.is_free(first).then_some(first);
        }
        self.next = (first..first + TABLE_MAX as u64).find(|number| self.is_free(*number))?;
        Some(self.next)
    }

    #[inline]
    fn is_free(&mut self, number: u64) -> bool {
        self.query(number).state != State::Outstanding
            && !self.rest.contains(number as u16)
            && number - self.oldest < NUMBERS_OPEN_MAX
    }

    /// Enters a draft with the number that [`ClientQueries::free_number`] gave.
    #[inline]
    pub fn draft(&mut self, number: u64, query: Query) {
        *self.query(number) = Query { id: number as u16, round: (number >> 16) as u8, ..query };
        self.drafts += 1;
    }

    /// The draft that follows the first `count`, if there is one.
    pub fn draft_after(&mut self, count: usize) -> Option<Query> {
        ((count as u64) < self.drafts).then(|| *self.query(self.next + count as u64))
    }

    /// Makes the first `count` drafts outstanding, each after a call of `each`. The others are forgotten.
    #[inline]
    pub fn sent(&mut self, count: usize, mut each: impl FnMut(&mut Query)) {
        for number in self.next..self.next + count as u64 {
            let query = self.query(number);
            query.state = State::Outstanding;
            each(query);
        }
        self.next += count as u64;
        self.drafts = 0;
        self.outstanding += count as u32;
    }

    /// The query that a message with this id belongs to, outstanding or ended. `None` if no query has the id.
    #[inline]
    pub fn with_id(&mut self, id: u16) -> Option<Query> {
        let query = *self.query(u64::from(id));
        (query.id == id && query.state != State::Unused).then_some(query)
    }

    /// Ends the outstanding query with this id, which was answered. Returns whether the answer is unsure.
    #[inline]
    pub fn answered(&mut self, id: u16) -> bool {
        self.query(u64::from(id)).state = State::Answered;
        self.outstanding -= 1;
        self.pass_ended();
        self.rest.is_unsure(id)
    }

    /// Whether an id rests.
    pub fn rests(&self, id: u16) -> bool {
        self.rest.contains(id)
    }

    /// Lets ids be used again that have rested for long enough, at least for `rest_ns_min`.
    pub fn end_rests(&mut self, now_ns: i64, rest_ns_min: i64) {
        self.rest.end(now_ns, rest_ns_min);
    }

    /// Ends the oldest outstanding query if it was sent a timeout ago or earlier, and returns it. Its id rests.
    pub fn time_out(&mut self, now_ns: i64, timeout_ns: i64) -> Option<Query> {
        let query = self.oldest_outstanding().filter(|query| query.sent_ns + timeout_ns <= now_ns)?;
        self.rest.begin(query.id, query.sent_ns);
        Some(self.end_oldest(State::TimedOut))
    }

    /// Ends the oldest outstanding query, because the connection is lost, and returns it.
    pub fn lose(&mut self) -> Option<Query> {
        self.oldest_outstanding()?;
        Some(self.end_oldest(State::Lost))
    }

    /// Ends the outstanding query with this id, if there is one, because it alone is lost, and returns it.
    pub fn lose_one(&mut self, id: u16) -> Option<Query> {
        let query = self.with_id(id).filter(|query| query.state == State::Outstanding)?;
        self.query(u64::from(id)).state = State::Lost;
        self.outstanding -= 1;
        self.pass_ended();
        Some(query)
    }

    fn oldest_outstanding(&mut self) -> Option<Query> {
        if self.outstanding == 0 {
            return None;
        }
        self.pass_ended();
        (self.oldest < self.next).then(|| *self.query(self.oldest))
    }

    fn end_oldest(&mut self, state: State) -> Query {
        self.outstanding -= 1;
        let query = self.query(self.oldest);
        query.state = state;
        *query
    }

    #[inline]
    fn pass_ended(&mut self) {
        while self.oldest < self.next && !self.is_outstanding(self.oldest) {
            self.oldest += 1;
        }
    }

    #[inline]
    fn is_outstanding(&mut self, number: u64) -> bool {
        let query = self.query(number);
        query.state == State::Outstanding && query.has_number(number)
    }

    #[inline]
    fn query(&mut self, number: u64) -> &mut Query {
        let place = number as usize & (self.table.len() - 1);
        &mut self.table[place]
    }
}

/// The fewest places of a table, so that ids keep their meaning for a while after their query's end.
pub const PLACES_MIN: usize = 256;

/// The fewest places of the table of a client that asks seldom.
pub const PLACES_MIN_HELD: usize = 16;

/// The number of places that the table of a client needs: twice the number of queries that may be outstanding, and at
/// least `places_min`. `None` if even the largest table does not hold that many.
pub fn table_for(outstanding: f64, clients: usize, places_min: usize) -> Option<usize> {
    let each = outstanding / clients as f64;
    (each * 1.25 < TABLE_MAX as f64)
        .then(|| ((each * 2.0) as usize).clamp(places_min, TABLE_MAX).next_power_of_two().min(TABLE_MAX))
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

/// The ids of one client that rest, or are unsure. Memory is taken with the first one.
#[derive(Default)]
struct IdRest(Option<Box<Resting>>);

struct Resting {
    ids: Ids,
    /// Each id that rests, with the time of its query, oldest first.
    order: VecDeque<(u16, i64)>,
    /// Ids that were used again after less than [`REST_NS`].
    unsure: Ids,
}

impl IdRest {
    /// The query with this id, sent then, has no answer. No query before it was sent later.
    fn begin(&mut self, id: u16, sent_ns: i64) {
        let new = || Box::new(Resting { ids: Ids::none(), order: VecDeque::new(), unsure: Ids::none() });
        let resting = self.0.get_or_insert_with(new);
        resting.ids.add(id);
        resting.order.push_back((id, sent_ns));
    }

    /// Lets ids go that have rested for long enough, at least for `rest_ns_min`.
    fn end(&mut self, now_ns: i64, rest_ns_min: i64) {
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
    fn contains(&self, id: u16) -> bool {
        self.0.as_ref().is_some_and(|resting| resting.ids.contains(id))
    }

    /// Whether the answer to a query with this id may be that to one before it.
    #[inline]
    fn is_unsure(&self, id: u16) -> bool {
        self.0.as_ref().is_some_and(|resting| resting.unsure.contains(id))
    }

    /// How many ids rest.
    fn count(&self) -> usize {
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

    #[test]
    fn tables_hold_twice_what_is_outstanding_or_say_that_they_cannot() {
        let found = |outstanding, clients| table_for(outstanding, clients, PLACES_MIN);
        assert_eq!(found(0.0, 1), Some(PLACES_MIN));
        assert_eq!(found(1_000.0, 1), Some(2_048));
        assert_eq!(found(1_000.0, 10), Some(PLACES_MIN));
        assert_eq!(found(50_000.0, 1), Some(TABLE_MAX));
        assert_eq!(found(60_000.0, 1), None);
        assert_eq!(table_for(1_000.0, 1_000, PLACES_MIN_HELD), Some(PLACES_MIN_HELD));
    }
}
