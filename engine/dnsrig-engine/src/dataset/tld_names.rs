//! The names of the delegations, in canonical order, one after the other.
//!
//! A name begins with letters that grow from name to name, all of the same number, so that order and uniqueness need
//! no memory; random letters follow, up to the lengths that registered names have.

use dnsrig_core::random::Random;

/// The delegation for the registry itself, under which the name servers of the zone are.
pub const REGISTRY: &str = "nic";

/// The growing part has at least so many letters: more than [`REGISTRY`], so none is equal to it.
const PREFIX_LETTERS_MIN: u32 = 4;

const LETTERS: u64 = 26;

/// Gives the names, [`REGISTRY`] among them.
pub struct Names {
    random: Random,
    count: u64,
    index: u64,
    stride: u64,
    prefix_letters: u32,
    /// A name that [`REGISTRY`] came before.
    waiting: Option<String>,
    registry_given: bool,
}

impl Names {
    /// `count` names of a seed, and [`REGISTRY`].
    pub fn new(count: u64, seed: u64) -> Self {
        let mut prefix_letters = PREFIX_LETTERS_MIN;
        while LETTERS.pow(prefix_letters) < 2 * count {
            prefix_letters += 1;
        }
        let stride = LETTERS.pow(prefix_letters) / count.max(1);
        let random = Random::new(seed, 0);
        Names { random, count, index: 0, stride, prefix_letters, waiting: None, registry_given: false }
    }

    fn random_name(&mut self) -> Option<String> {
        if self.index == self.count {
            return None;
        }
        let mut value = self.index * self.stride + self.random.below(self.stride);
        self.index += 1;
        let mut bytes = vec![0; self.prefix_letters as usize];
        for byte in bytes.iter_mut().rev() {
            *byte = letter(value % LETTERS);
            value /= LETTERS;
        }
        // The sum of three dice: 0 to 12 more letters, 6 on average; names of 10 to 12 letters are the most frequent.
        let more = self.random.below(4) + self.random.below(5) + self.random.below(6);
        bytes.extend((0..more).map(|_| letter(self.random.below(LETTERS))));
        String::from_utf8(bytes).ok()
    }
}

impl Iterator for Names {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let name = self.waiting.take().or_else(|| self.random_name());
        if self.registry_given || name.as_deref().is_some_and(|name| name < REGISTRY) {
            return name;
        }
        self.registry_given = true;
        self.waiting = name;
        Some(REGISTRY.to_owned())
    }
}

fn letter(number: u64) -> u8 {
    b'a' + number as u8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn names_are_sorted_unique_and_complete(count in 1_u64..5000, seed: u64) {
            let names: Vec<String> = Names::new(count, seed).collect();
            prop_assert_eq!(names.len() as u64, count + 1);
            prop_assert!(names.is_sorted_by(|a, b| a < b));
            prop_assert!(names.contains(&REGISTRY.to_owned()));
            prop_assert!(names.iter().all(|name| name.len() <= 63));
        }
    }
}
