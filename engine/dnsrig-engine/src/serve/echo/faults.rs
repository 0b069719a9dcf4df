//! What may happen to an answer on purpose: delay, jitter, loss, a stall. No I/O and no clock: times are given.

use crate::base::random::Random;

/// Tells this stream of random numbers from others of the same seed.
const PURPOSE: u64 = 0x6563_686f;

/// The faults of a server, as asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Settings {
    /// Each answer waits this long.
    pub delay_ns: i64,
    /// And up to so much less or more, uniformly; at most the delay.
    pub jitter_ns: i64,
    /// This share of the queries, from 0 to 1, has no answer.
    pub loss: f64,
    /// At the end of every period nothing is done for so long; at most the period.
    pub stall_ns: i64,
    /// The period; 0: there are no stalls.
    pub stall_every_ns: i64,
    /// Other seeds lose other queries.
    pub seed: u64,
}

impl Settings {
    /// Whether any answer waits.
    pub fn has_delay(&self) -> bool {
        self.delay_ns > 0
    }

    /// Whether anything happens to any answer.
    pub fn is_any(&self) -> bool {
        self.has_delay() || self.loss > 0.0 || self.stall_every_ns > 0
    }
}

/// What happens to one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is sent at once.
    Now,
    /// It is sent at this time.
    At(i64),
    /// It is never sent.
    Lost,
}

/// The faults of one thread.
///
/// Answers are sent when they are due, so jitter changes their order.
#[derive(Clone, Debug)]
pub struct Faults {
    settings: Settings,
    start_ns: i64,
    random: Random,
}

impl Faults {
    /// The faults of thread number `thread`; the first stall period starts at `start_ns`.
    pub fn new(settings: Settings, thread: usize, start_ns: i64) -> Self {
        let random = Random::new(settings.seed.wrapping_add(thread as u64), PURPOSE);
        Faults { settings, start_ns, random }
    }

    /// Decides about the answer to a query that is read at `now_ns`.
    pub fn fate(&mut self, now_ns: i64) -> Fate {
        let Settings { delay_ns, jitter_ns, loss, .. } = self.settings;
        if loss > 0.0 && self.fraction() < loss {
            return Fate::Lost;
        }
        if delay_ns == 0 {
            return Fate::Now;
        }
        let mut due_ns = now_ns + delay_ns;
        if jitter_ns > 0 {
            due_ns += self.random.below(2 * jitter_ns.unsigned_abs() + 1).cast_signed() - jitter_ns;
        }
        Fate::At(due_ns)
    }

    /// The end of the stall that we are in at `now_ns`, if we are: the next whole number of periods since the start.
    pub fn stalled_until_ns(&self, now_ns: i64) -> Option<i64> {
        let Settings { stall_ns, stall_every_ns, .. } = self.settings;
        if stall_every_ns == 0 {
            return None;
        }
        let left_ns = stall_every_ns - (now_ns - self.start_ns).rem_euclid(stall_every_ns);
        (left_ns <= stall_ns).then_some(now_ns + left_ns)
    }

    /// From 0 to below 1, in steps of 2^-53: all that a 64-bit float tells apart there.
    fn fraction(&mut self) -> f64 {
        (self.random.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
#[path = "faults_tests.rs"]
mod tests;
