//! The message ids of one connection (RFC 1035 §4.1.1): which are in use, and by which transfer.

/// There are so many ids; one of them stays unused, so that a table never needs to be quite full.
pub const OUTSTANDING_MAX: u32 = 65_535;

/// No transfer.
const FREE: u32 = u32::MAX;

/// So many low bits of an id say its place in the table, at most: all of them.
const PLACE_BITS_MAX: u32 = 16;

/// A table as large as the window needs, not as large as the ids are many: 1,000 secondaries have a table each.
///
/// An id is the number of a place and, above it, of the round in which the place is used. A place that was given back
/// is used again last of all, so an answer that comes twice is told from the next one's. An id that was given up,
/// because its answer may still come, is not used again: its place goes on with the next round, and is lost when there
/// is none left.
pub struct Ids {
    place_bits: u32,
    /// By place.
    entries: Box<[Entry]>,
    /// The places in the order of their use, as a ring.
    free: Box<[u16]>,
    first_free: usize,
    free_count: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    transfer: u32,
    round: u16,
}

impl Ids {
    /// For `window` transfers at a time, which is at most [`OUTSTANDING_MAX`].
    pub fn new(window: u32) -> Self {
        let place_bits = place_bits(window);
        let count = 1_usize << place_bits;
        Ids {
            place_bits,
            entries: vec![Entry { transfer: FREE, round: 0 }; count].into_boxed_slice(),
            free: (0..count).map(|place| place as u16).collect(),
            first_free: 0,
            free_count: count,
        }
    }

    /// How much memory the table for `window` takes.
    pub fn bytes(window: u32) -> usize {
        (size_of::<Entry>() + size_of::<u16>()) << place_bits(window)
    }

    /// Forgets everything, for the next connection.
    pub fn clear(&mut self) {
        self.entries.fill(Entry { transfer: FREE, round: 0 });
        self.free.iter_mut().enumerate().for_each(|(at, place)| *place = at as u16);
        (self.first_free, self.free_count) = (0, self.free.len());
    }

    /// An id for a transfer; None if none is left.
    pub fn take(&mut self, transfer: u32) -> Option<u16> {
        if self.free_count == 0 {
            return None;
        }
        let place = self.free[self.first_free];
        self.first_free = (self.first_free + 1) & (self.free.len() - 1);
        self.free_count -= 1;
        self.entries[usize::from(place)].transfer = transfer;
        Some(place | self.above(self.entries[usize::from(place)].round))
    }

    /// The transfer that has this id.
    pub fn find(&self, id: u16) -> Option<u32> {
        let place = self.place(id);
        let entry = self.entries[place];
        (entry.transfer != FREE && place as u16 | self.above(entry.round) == id).then_some(entry.transfer)
    }

    /// Gives an id in use back.
    pub fn release(&mut self, id: u16) {
        let place = self.place(id);
        self.entries[place].transfer = FREE;
        self.put_back(place);
    }

    /// Gives an id in use up: it is not used again.
    pub fn give_up(&mut self, id: u16) {
        let place = self.place(id);
        let rounds = 1_u32 << (PLACE_BITS_MAX - self.place_bits);
        let entry = &mut self.entries[place];
        entry.transfer = FREE;
        if u32::from(entry.round) + 1 < rounds {
            entry.round += 1;
            self.put_back(place);
        }
    }

    /// How many more ids there are.
    pub fn left(&self) -> usize {
        self.free_count
    }

    fn put_back(&mut self, place: usize) {
        let end = (self.first_free + self.free_count) & (self.free.len() - 1);
        self.free[end] = place as u16;
        self.free_count += 1;
    }

    fn place(&self, id: u16) -> usize {
        usize::from(id) & (self.entries.len() - 1)
    }

    fn above(&self, round: u16) -> u16 {
        // A table of all ids has no rounds, and a shift by all bits is none.
        round.checked_shl(self.place_bits).unwrap_or(0)
    }
}

/// With twice as many places as are in use, one that was given back rests for a while.
fn place_bits(window: u32) -> u32 {
    (window.min(OUTSTANDING_MAX) * 2).next_power_of_two().ilog2().min(PLACE_BITS_MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use proptest::{collection::vec, prelude::*};

    use super::*;

    #[test]
    fn all_ids_can_be_in_use_but_one() {
        let mut ids = Ids::new(OUTSTANDING_MAX);
        let taken: HashSet<u16> = (0..OUTSTANDING_MAX).map(|transfer| ids.take(transfer).unwrap()).collect();
        assert_eq!(taken.len(), OUTSTANDING_MAX as usize);
        taken.into_iter().for_each(|id| ids.release(id));
        assert_eq!(ids.left(), 65_536);
    }

    #[test]
    fn a_connection_whose_ids_were_all_given_up_has_none_left() {
        let mut ids = Ids::new(100);
        let mut seen = HashSet::new();
        while let Some(id) = ids.take(0) {
            assert!(seen.insert(id), "{id} was used again");
            ids.give_up(id);
            assert_eq!(ids.find(id), None);
        }
        assert_eq!(seen.len(), 65_536);
        ids.clear();
        assert!(ids.take(0).is_some());
    }

    proptest! {
        #[test]
        fn an_id_belongs_to_one_transfer_at_a_time(window in 1..300_u32, steps in vec((0..3_u8, any::<u16>()), 1..2_000)) {
            let mut ids = Ids::new(window);
            let (mut used, mut given_up) = (HashMap::new(), HashSet::new());
            for (number, (step, choice)) in steps.into_iter().enumerate() {
                let chosen = used.keys().copied().nth(usize::from(choice) % used.len().max(1));
                match (step, chosen) {
                    (0, _) if used.len() < window as usize => {
                        if let Some(id) = ids.take(number as u32) {
                            prop_assert!(!given_up.contains(&id));
                            prop_assert_eq!(used.insert(id, number as u32), None);
                        }
                    }
                    (1, Some(id)) => {
                        ids.release(id);
                        used.remove(&id);
                    }
                    (2, Some(id)) => {
                        ids.give_up(id);
                        used.remove(&id);
                        given_up.insert(id);
                    }
                    _ => {}
                }
                for id in [choice, choice ^ 1] {
                    prop_assert_eq!(ids.find(id), used.get(&id).copied());
                }
            }
        }
    }
}
