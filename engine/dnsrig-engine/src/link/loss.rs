//! Which packets are lost: each by itself, with a probability that may change over time. No I/O, no clock.

use crate::base::random::Random;

/// The dice of one direction.
pub struct Loss {
    /// From when on; and below which of 2^64 a packet is lost.
    steps: Vec<(i64, u128)>,
    /// The step that holds.
    at: usize,
    random: Random,
}

impl Loss {
    /// By `steps`, (nanoseconds since the link began, share), in the order of times; the link begins at `start_ns`.
    pub fn new(steps: &[(i64, f64)], random: Random, start_ns: i64) -> Self {
        // A share of 1 is all of 2^64, which 64 bits do not hold.
        let threshold = |share: f64| (share * 2_f64.powi(64)) as u128;
        let steps = steps.iter().map(|(since_ns, share)| (start_ns + since_ns, threshold(*share))).collect();
        Loss { steps, at: 0, random }
    }

    /// Whether the packet that comes at `now_ns` is lost; times do not go back.
    pub fn hits(&mut self, now_ns: i64) -> bool {
        while self.steps.get(self.at + 1).is_some_and(|(since_ns, _)| *since_ns <= now_ns) {
            self.at += 1;
        }
        // Drawn for each packet, so that a step changes nothing of what comes after it but the share.
        let drawn = u128::from(self.random.bits());
        self.steps.get(self.at).is_some_and(|(_, threshold)| drawn < *threshold)
    }
}
