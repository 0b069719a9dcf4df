//! Queries that wait for an answer, by message id (RFC 1035 §4.1.1), in the order in which they were sent. No I/O, no
//! clock.
//!
//! An answer is found by its id, and the first query whose time is over is the oldest one. The user of the
//! table decides how long a query may wait: the time of sending is in the value that is kept with each query.

/// More queries than this cannot be outstanding at a time: there is one id more, so a table never needs to be full.
pub const OUTSTANDING_MAX: u32 = 65_535;

/// The number of low bits of an id that are its place in the table: at most all of them.
const PLACE_BITS_MAX: u32 = 16;

/// Marks the end of a list of places.
const NONE: u32 = u32::MAX;

/// A table of queries, with room for as many as may be outstanding at a time.
///
/// An id is the number of a place and, above it, of the round in which the place is used. The place of a query that has
/// ended is used again after all other free places. So a late or repeated answer is not taken for the answer to the
/// next query with this id, and a large table still knows which query a late answer belongs to.
///
/// On a connection, an id whose answer may still come must not be used again ([`Outstanding::retire`]): its place goes
/// on with the next round, and is lost when no round is left.
pub struct Outstanding<T> {
    place_bits: u32,
    places: Box<[Place<T>]>,
    queries: List,
    free: List,
    /// Whether no query was added since the table was cleared.
    is_fresh: bool,
}

#[derive(Clone, Copy)]
struct Place<T> {
    /// The query that was sent last from this place.
    query: Option<T>,
    is_outstanding: bool,
    round: u16,
    /// The place before and after this one in its list: of queries, or of free places.
    before: u32,
    after: u32,
}

/// A list of places, linked by [`Place::before`] and [`Place::after`].
#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
    count: usize,
}

const EMPTY: List = List { first: NONE, last: NONE, count: 0 };

impl<T: Copy> Outstanding<T> {
    /// An empty table for at most `queries_max` queries at a time, which is at most [`OUTSTANDING_MAX`].
    pub fn new(queries_max: u32) -> Self {
        let place_bits = place_bits(queries_max);
        let place = Place { query: None, is_outstanding: false, round: 0, before: NONE, after: NONE };
        let places = vec![place; 1 << place_bits].into_boxed_slice();
        let mut table = Outstanding { place_bits, places, queries: EMPTY, free: EMPTY, is_fresh: false };
        table.clear();
        table
    }

    /// The memory that the table for `queries_max` queries takes.
    pub fn bytes(queries_max: u32) -> usize {
        size_of::<Place<T>>() << place_bits(queries_max)
    }

    /// Forgets everything, for the next connection.
    pub fn clear(&mut self) {
        if std::mem::replace(&mut self.is_fresh, true) {
            return;
        }
        (self.queries, self.free) = (EMPTY, EMPTY);
        for place in 0..self.places.len() {
            let entry = &mut self.places[place];
            (entry.query, entry.is_outstanding, entry.round) = (None, false, 0);
            self.free.push(&mut self.places, place as u32);
        }
    }

    /// Adds a query that is sent now, and returns its id; None if no id is left.
    pub fn add(&mut self, query: T) -> Option<u16> {
        let place = self.free.first;
        if place == NONE {
            return None;
        }
        self.is_fresh = false;
        self.free.remove(&mut self.places, place);
        self.queries.push(&mut self.places, place);
        let entry = &mut self.places[place as usize];
        (entry.query, entry.is_outstanding) = (Some(query), true);
        Some(self.id(place))
    }

    /// The outstanding query with this id.
    pub fn get(&self, id: u16) -> Option<T> {
        self.find(id).and_then(|place| self.places[place].query)
    }

    /// The query that was sent with this id last, outstanding or not; None after [`Outstanding::retire`].
    pub fn last_with(&self, id: u16) -> Option<T> {
        let place = self.place(id);
        self.places[place].query.filter(|_| self.id(place as u32) == id)
    }

    /// The outstanding query with this id, to be changed.
    pub fn get_mut(&mut self, id: u16) -> Option<&mut T> {
        self.find(id).and_then(|place| self.places[place].query.as_mut())
    }

    /// Notes that an outstanding query was sent again: it is the youngest now.
    pub fn renew(&mut self, id: u16, query: T) {
        if let Some(place) = self.find(id) {
            self.queries.remove(&mut self.places, place as u32);
            self.queries.push(&mut self.places, place as u32);
            self.places[place].query = Some(query);
        }
    }

    /// Ends an outstanding query: it was answered, or is no longer waited for.
    pub fn end(&mut self, id: u16) {
        if let Some(place) = self.leave(id) {
            self.free.push(&mut self.places, place);
        }
    }

    /// Ends an outstanding query that was not sent after all: no answer belongs to it.
    pub fn take_back(&mut self, id: u16) {
        if let Some(place) = self.leave(id) {
            self.places[place as usize].query = None;
            self.free.push(&mut self.places, place);
        }
    }

    /// Ends an outstanding query whose answers may go on: its id is not used again.
    pub fn retire(&mut self, id: u16) {
        let Some(place) = self.leave(id) else { return };
        let rounds = 1_u32 << (PLACE_BITS_MAX - self.place_bits);
        let entry = &mut self.places[place as usize];
        entry.query = None;
        if u32::from(entry.round) + 1 < rounds {
            entry.round += 1;
            self.free.push(&mut self.places, place);
        }
    }

    /// The query that was sent before all other outstanding ones, with its id.
    pub fn oldest(&self) -> Option<(u16, T)> {
        self.iter().next()
    }

    /// The outstanding queries with their ids, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (u16, T)> {
        let mut place = self.queries.first;
        std::iter::from_fn(move || {
            let entry = self.places.get(place as usize)?;
            let found = (self.id(place), entry.query?);
            place = entry.after;
            Some(found)
        })
    }

    /// The outstanding queries that were sent just before and just after the one with this id.
    pub fn neighbours(&self, id: u16) -> (Option<T>, Option<T>) {
        let Some(place) = self.find(id) else { return (None, None) };
        let query = |place: u32| self.places.get(place as usize).and_then(|entry| entry.query);
        (query(self.places[place].before), query(self.places[place].after))
    }

    /// The number of outstanding queries.
    pub fn len(&self) -> usize {
        self.queries.count
    }

    /// Whether no query is outstanding.
    pub fn is_empty(&self) -> bool {
        self.queries.count == 0
    }

    /// The number of queries that could be added now.
    pub fn ids_left(&self) -> usize {
        self.free.count
    }

    /// The place of the outstanding query with this id.
    fn find(&self, id: u16) -> Option<usize> {
        let place = self.place(id);
        (self.places[place].is_outstanding && self.id(place as u32) == id).then_some(place)
    }

    fn leave(&mut self, id: u16) -> Option<u32> {
        let place = self.find(id)? as u32;
        self.queries.remove(&mut self.places, place);
        self.places[place as usize].is_outstanding = false;
        Some(place)
    }

    fn place(&self, id: u16) -> usize {
        usize::from(id) & (self.places.len() - 1)
    }

    fn id(&self, place: u32) -> u16 {
        // A table of all ids has one round, and nothing can be shifted by all bits.
        place as u16 | self.places[place as usize].round.checked_shl(self.place_bits).unwrap_or(0)
    }
}

impl List {
    fn push<T>(&mut self, places: &mut [Place<T>], place: u32) {
        (places[place as usize].before, places[place as usize].after) = (self.last, NONE);
        match self.last {
            NONE => self.first = place,
            last => places[last as usize].after = place,
        }
        self.last = place;
        self.count += 1;
    }

    fn remove<T>(&mut self, places: &mut [Place<T>], place: u32) {
        let Place { before, after, .. } = places[place as usize];
        match before {
            NONE => self.first = after,
            before => places[before as usize].after = after,
        }
        match after {
            NONE => self.last = before,
            after => places[after as usize].before = before,
        }
        self.count -= 1;
    }
}

/// With twice as many places as are in use, the place of a query that has ended rests for a while.
fn place_bits(queries_max: u32) -> u32 {
    (queries_max.min(OUTSTANDING_MAX) * 2).next_power_of_two().ilog2().min(PLACE_BITS_MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use proptest::{collection::vec, prelude::*};

    use super::*;

    #[test]
    fn all_ids_can_be_in_use() {
        let mut table = Outstanding::new(OUTSTANDING_MAX);
        let taken: HashSet<u16> = (0..=OUTSTANDING_MAX).map(|query| table.add(query).unwrap()).collect();
        assert_eq!((taken.len(), table.add(0)), (65_536, None));
        taken.into_iter().for_each(|id| table.end(id));
        assert_eq!((table.ids_left(), table.len()), (65_536, 0));
    }

    #[test]
    fn a_connection_whose_ids_were_all_retired_has_none_left() {
        let mut table = Outstanding::new(100);
        let mut seen = HashSet::new();
        while let Some(id) = table.add(0_u32) {
            assert!(seen.insert(id), "{id} was used again");
            table.retire(id);
            assert_eq!((table.get(id), table.last_with(id)), (None, None));
        }
        assert_eq!(seen.len(), 65_536);
        table.clear();
        assert!(table.add(0).is_some());
    }

    #[test]
    fn a_late_answer_finds_its_query_until_all_other_ids_were_used() {
        let mut table = Outstanding::new(OUTSTANDING_MAX);
        let first = table.add(7).unwrap();
        table.end(first);
        assert_eq!((table.get(first), table.last_with(first)), (None, Some(7)));
        for query in 0..65_535 {
            let id = table.add(query).unwrap();
            assert_ne!(id, first);
            table.end(id);
        }
        assert_eq!((table.last_with(first), table.add(8), table.last_with(first)), (Some(7), Some(first), Some(8)));
        table.take_back(first);
        assert_eq!(table.last_with(first), None, "what was not sent has no answer");
    }

    proptest! {
        #[test]
        fn an_id_belongs_to_one_query_at_a_time(queries_max in 1..300_u32, steps in vec((0..4_u8, any::<u16>()), 1..2_000)) {
            let mut table = Outstanding::new(queries_max);
            // Ids with their queries, oldest first; and the ids that must not be used again.
            let (mut waiting, mut retired): (Vec<(u16, u32)>, _) = (Vec::new(), HashSet::new());
            let mut last_with: HashMap<u16, u32> = HashMap::new();
            for (number, (step, choice)) in steps.into_iter().enumerate() {
                let chosen = usize::from(choice) % waiting.len().max(1);
                match (step, waiting.get(chosen).copied()) {
                    (0, _) if waiting.len() < queries_max as usize => {
                        if let Some(id) = table.add(number as u32) {
                            prop_assert!(!retired.contains(&id) && waiting.iter().all(|(other, _)| *other != id));
                            waiting.push((id, number as u32));
                            last_with.insert(id, number as u32);
                        }
                    }
                    (1, Some((id, _))) => {
                        table.end(id);
                        waiting.remove(chosen);
                    }
                    (2, Some((id, _))) => {
                        table.retire(id);
                        waiting.remove(chosen);
                        retired.insert(id);
                        last_with.remove(&id);
                    }
                    (3, Some(query)) => {
                        let near = [chosen.checked_sub(1), Some(chosen + 1)].map(|at| Some(waiting.get(at?)?.1));
                        prop_assert_eq!(table.neighbours(query.0), near.into());
                        table.renew(query.0, query.1);
                        waiting.remove(chosen);
                        waiting.push(query);
                    }
                    _ => {}
                }
                prop_assert_eq!(table.oldest(), waiting.first().copied());
                for id in [choice, choice ^ 1] {
                    let found = waiting.iter().find(|(other, _)| *other == id).map(|(_, query)| *query);
                    prop_assert_eq!(table.get(id), found);
                    prop_assert_eq!(table.last_with(id), last_with.get(&id).copied());
                }
            }
            prop_assert_eq!(table.iter().collect::<Vec<_>>(), waiting);
        }
    }
}
