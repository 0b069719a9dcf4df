//! An ordered list of numbers below a limit: to add, to take out and to find the first each cost the same, and nothing
//! is allocated after the start.

/// Marks the end of the list.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Link {
    before: u32,
    behind: u32,
    is_in: bool,
}

/// Each number is in it once at most.
pub struct Chain {
    links: Box<[Link]>,
    first: u32,
    last: u32,
    length: usize,
}

impl Chain {
    /// An empty list for the numbers below `limit`.
    pub fn new(limit: usize) -> Self {
        assert!(limit < NONE as usize);
        let links = vec![Link { before: NONE, behind: NONE, is_in: false }; limit].into_boxed_slice();
        Chain { links, first: NONE, last: NONE, length: 0 }
    }

    /// How many numbers are in it.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether no number is in it.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Whether `number` is in it.
    pub fn contains(&self, number: usize) -> bool {
        self.links[number].is_in
    }

    /// The number that was added before all others.
    pub fn first(&self) -> Option<usize> {
        (self.first != NONE).then_some(self.first as usize)
    }

    /// Adds `number` behind all others, unless it is in already.
    pub fn add(&mut self, number: usize) {
        if self.links[number].is_in {
            return;
        }
        self.links[number] = Link { before: self.last, behind: NONE, is_in: true };
        match self.last {
            NONE => self.first = number as u32,
            last => self.links[last as usize].behind = number as u32,
        }
        self.last = number as u32;
        self.length += 1;
    }

    /// Takes `number` out, if it is in.
    pub fn remove(&mut self, number: usize) {
        let Link { before, behind, is_in } = self.links[number];
        if !is_in {
            return;
        }
        match before {
            NONE => self.first = behind,
            before => self.links[before as usize].behind = behind,
        }
        match behind {
            NONE => self.last = before,
            behind => self.links[behind as usize].before = before,
        }
        self.links[number].is_in = false;
        self.length -= 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_list_without_repetition(steps in prop::collection::vec((any::<bool>(), 0_usize..6), 0..60)) {
            let (mut chain, mut list) = (Chain::new(6), Vec::new());
            for (adds, number) in steps {
                if adds {
                    chain.add(number);
                    if !list.contains(&number) {
                        list.push(number);
                    }
                } else {
                    chain.remove(number);
                    list.retain(|other| *other != number);
                }
                prop_assert_eq!(chain.first(), list.first().copied());
                prop_assert_eq!((chain.len(), chain.is_empty()), (list.len(), list.is_empty()));
                prop_assert!((0..6).all(|number| chain.contains(number) == list.contains(&number)));
            }
            for expected in list {
                prop_assert_eq!(chain.first(), Some(expected));
                chain.remove(expected);
            }
            prop_assert_eq!(chain.first(), None);
        }
    }
}
