//! Answers that wait until they are due, in room that is set aside once. No I/O and no clock: times are given.

use std::{cmp::Reverse, collections::BinaryHeap};

use slab::Slab;

/// An answer that waits has at most so many bytes: what fits one packet (1,232 bytes is the EDNS size that the DNS
/// flag day of 2020 settled on).
pub const BYTES_MAX: usize = 1232;

/// A bounded queue in the order of due times; equal ones come out as they went in.
///
/// The room for all answers is reserved at the start and is touched, by the kernel's reckoning used, only as far as the
/// most that ever waited at once.
pub struct Delayed<T> {
    capacity: usize,
    order: BinaryHeap<Reverse<(i64, u64, u32)>>,
    pushed: u64,
    /// Where each slot's answer goes, and its length.
    slots: Slab<(T, u16)>,
    bytes: Box<[u8]>,
}

impl<T: Copy> Delayed<T> {
    /// Room for `capacity` answers, below 2^32.
    pub fn new(capacity: usize) -> Self {
        Delayed {
            capacity,
            order: BinaryHeap::with_capacity(capacity),
            pushed: 0,
            slots: Slab::with_capacity(capacity),
            // Zeroed pages come from the kernel, each when it is first written to.
            bytes: vec![0; capacity * BYTES_MAX].into_boxed_slice(),
        }
    }

    /// Keeps an answer of at most [`BYTES_MAX`] until `due_ns`; false if there is no room.
    pub fn push(&mut self, due_ns: i64, to: T, bytes: &[u8]) -> bool {
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        assert!(bytes.len() <= BYTES_MAX);
        if self.slots.len() >= self.capacity {
            return false;
        }
        let slot = self.slots.insert((to, length));
        let start = slot * BYTES_MAX;
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        self.order.push(Reverse((due_ns, self.pushed, slot as u32)));
        self.pushed += 1;
        true
    }

    /// When the next answer is due.
    pub fn due_ns(&self) -> Option<i64> {
        self.order.peek().map(|Reverse((due_ns, ..))| *due_ns)
    }

    /// Takes out the next answer that is due by `now_ns`, and where it goes.
    pub fn pop(&mut self, now_ns: i64) -> Option<(T, &[u8])> {
        if self.due_ns()? > now_ns {
            return None;
        }
        let Reverse((_, _, slot)) = self.order.pop()?;
        let (to, length) = self.slots.remove(slot as usize);
        let start = slot as usize * BYTES_MAX;
        Some((to, &self.bytes[start..start + usize::from(length)]))
    }

    /// How many answers wait.
    pub fn len(&self) -> usize {
        self.order.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    #[test]
    fn answers_come_out_when_due_and_equal_ones_in_order() {
        let mut delayed = Delayed::new(4);
        for (due_ns, to) in [(30, 'c'), (10, 'a'), (30, 'd'), (20, 'b')] {
            assert!(delayed.push(due_ns, to, &[to as u8]));
        }
        assert_eq!((delayed.due_ns(), delayed.pop(9)), (Some(10), None));
        let found: Vec<_> = std::iter::from_fn(|| delayed.pop(30).map(|(to, bytes)| (to, bytes.to_vec()))).collect();
        assert_eq!(found, ['a', 'b', 'c', 'd'].map(|to| (to, vec![to as u8])));
        assert_eq!(delayed.len(), 0);
    }

    #[test]
    fn what_finds_no_room_is_refused_until_something_leaves() {
        let mut delayed = Delayed::new(2);
        assert!(delayed.push(1, (), &[1; BYTES_MAX]) && delayed.push(2, (), &[2]));
        assert!(!delayed.push(0, (), &[3]));
        assert_eq!(delayed.pop(1), Some(((), &[1; BYTES_MAX][..])));
        assert!(delayed.push(3, (), &[]));
        assert_eq!(delayed.pop(9), Some(((), &[2][..])));
        assert_eq!(delayed.pop(9), Some(((), &[][..])));
        assert_eq!(delayed.pop(9), None);
        assert!(!Delayed::new(0).push(0, (), &[]));
    }

    proptest! {
        #[test]
        fn it_does_as_a_sorted_list_would(steps in vec((any::<bool>(), 0..50_i64), 0..200)) {
            let mut delayed = Delayed::new(16);
            let mut list: Vec<(i64, usize)> = Vec::new();
            for (number, (push, time_ns)) in steps.into_iter().enumerate() {
                if push {
                    let took = delayed.push(time_ns, number, &number.to_be_bytes());
                    prop_assert_eq!(took, list.len() < 16);
                    if took {
                        list.push((time_ns, number));
                        list.sort_unstable();
                    }
                } else {
                    let due = list.first().copied().filter(|(due_ns, _)| *due_ns <= time_ns);
                    let found = delayed.pop(time_ns).map(|(to, bytes)| (to, bytes.to_vec()));
                    prop_assert_eq!(found, due.map(|(_, to)| (to, to.to_be_bytes().to_vec())));
                    if due.is_some() {
                        list.remove(0);
                    }
                }
                prop_assert_eq!(delayed.len(), list.len());
            }
        }
    }
}
