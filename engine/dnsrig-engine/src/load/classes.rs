//! Which class each client of a replay is in. No clock, no socket.

use std::sync::Arc;

use crate::base::{draw::uniform, random::Random};

/// There are at most so many, class 0 among them.
pub const CLASSES_MAX: usize = 16;

/// Tells the random numbers of classes from others of the same seed.
const PURPOSE: u64 = 0x636c_6173_7365_7321;

/// The classes of clients. Who is in no other is in class 0.
#[derive(Clone, Debug)]
pub struct Classes {
    /// By the numbers of clients: a byte each, as every query asks for it. Empty where all are in class 0.
    of: Arc<[u8]>,
    count: usize,
}

impl Classes {
    /// Puts so many clients into classes by hashes of their numbers; the first share is that of class 1.
    pub fn by_shares(clients: usize, shares: &[f64], seed: u64) -> Self {
        assert!(shares.len() < CLASSES_MAX);
        let clients = if shares.is_empty() { 0 } else { clients as u64 };
        Classes { of: (0..clients).map(|client| drawn(client, shares, seed)).collect(), count: shares.len() + 1 }
    }

    /// The class of a client.
    #[inline]
    pub fn of(&self, client: u32) -> usize {
        self.of.get(client as usize).map_or(0, |class| usize::from(*class))
    }

    /// How many there are, class 0 among them.
    pub fn count(&self) -> usize {
        self.count
    }
}

fn drawn(client: u64, shares: &[f64], seed: u64) -> u8 {
    let seed = Random::new(seed, PURPOSE).bits();
    let mut left = uniform(&mut Random::new(seed, client));
    let class = shares.iter().position(|share| {
        left -= share;
        left < 0.0
    });
    class.map_or(0, |class| class as u8 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENTS: usize = 10_000;

    fn classes(shares: &[f64], seed: u64) -> Vec<usize> {
        let classes = Classes::by_shares(CLIENTS, shares, seed);
        (0..CLIENTS as u32).map(|client| classes.of(client)).collect()
    }

    #[test]
    fn classes_have_their_shares_and_the_others_are_the_rest() {
        let classes = classes(&[0.2, 0.5], 1);
        let of = |wanted| classes.iter().filter(|class| **class == wanted).count();
        assert!((1_800..2_200).contains(&of(1)) && (4_800..5_200).contains(&of(2)), "{} {}", of(1), of(2));
        assert_eq!(of(0) + of(1) + of(2), CLIENTS);
    }

    #[test]
    fn the_seed_decides_who_is_in_a_class() {
        assert_eq!(classes(&[0.5], 1), classes(&[0.5], 1));
        let same = classes(&[0.5], 1).iter().zip(classes(&[0.5], 2)).filter(|(one, other)| **one == *other).count();
        assert!((4_800..5_200).contains(&same), "{same}");
    }

    #[test]
    fn all_clients_are_in_a_class_of_all_and_none_without_classes() {
        assert!(classes(&[1.0], 7).iter().all(|class| *class == 1));
        let none = Classes::by_shares(CLIENTS, &[], 1);
        assert_eq!((none.of(0), none.of(u32::MAX), none.count(), none.of.len()), (0, 0, 1, 0));
    }
}
