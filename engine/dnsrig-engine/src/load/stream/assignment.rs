//! Which client has which slot, where clients are many and slots are few. No clock, no socket.

use std::collections::HashMap;

/// The slots of clients that have a connection.
pub struct Assignment {
    slot_of: HashMap<u32, usize>,
    client_of: Box<[Option<u32>]>,
    free: Vec<usize>,
}

impl Assignment {
    /// Of so many slots, none of which is a client's yet.
    pub fn new(slots: usize) -> Self {
        Assignment {
            slot_of: HashMap::with_capacity(slots),
            client_of: vec![None; slots].into(),
            free: (0..slots).rev().collect(),
        }
    }

    /// The slot of a client, if it has one.
    pub fn slot(&self, client: u32) -> Option<usize> {
        self.slot_of.get(&client).copied()
    }

    /// The client of a slot, if it is one's.
    pub fn client(&self, slot: usize) -> Option<u32> {
        self.client_of[slot]
    }

    /// Whether every slot is a client's.
    pub fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Gives a client without a slot one, if there is one.
    pub fn assign(&mut self, client: u32) -> Option<usize> {
        let slot = self.free.pop()?;
        self.client_of[slot] = Some(client);
        self.slot_of.insert(client, slot);
        Some(slot)
    }

    /// Lets a client have another slot beside this one, which takes no more of its queries.
    pub fn detach(&mut self, slot: usize) {
        if let Some(client) = self.client_of[slot]
            && self.slot(client) == Some(slot)
        {
            self.slot_of.remove(&client);
        }
    }

    /// Takes a slot back.
    pub fn release(&mut self, slot: usize) {
        self.detach(slot);
        if self.client_of[slot].take().is_some() {
            self.free.push(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_one_clients_until_it_is_released() {
        let mut assignment = Assignment::new(2);
        let [seven, nine] = [7, 9].map(|client| assignment.assign(client).unwrap());
        assert!(seven != nine && assignment.is_full() && assignment.assign(11).is_none());
        assert_eq!((assignment.slot(7), assignment.client(nine)), (Some(seven), Some(9)));
        assignment.release(seven);
        assignment.release(seven);
        assert_eq!((assignment.slot(7), assignment.client(seven)), (None, None));
        assert_eq!((assignment.assign(11), assignment.is_full()), (Some(seven), true));
    }

    #[test]
    fn a_client_has_another_slot_beside_one_that_was_detached() {
        let mut assignment = Assignment::new(2);
        let first = assignment.assign(7).unwrap();
        assignment.detach(first);
        assert_eq!((assignment.slot(7), assignment.client(first)), (None, Some(7)));
        let second = assignment.assign(7).unwrap();
        assignment.detach(first);
        assert_eq!((assignment.slot(7), assignment.is_full()), (Some(second), true));
        assignment.release(first);
        assert_eq!((assignment.slot(7), assignment.client(first), assignment.is_full()), (Some(second), None, false));
    }
}
