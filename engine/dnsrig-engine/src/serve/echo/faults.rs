//! What may happen to an answer on purpose: delay, jitter, loss, a stall. No I/O and no clock: times are given.

use dnsrig_core::random::Random;

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
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn faults(settings: Settings) -> Faults {
        Faults::new(settings, 0, 1_000)
    }

    #[test]
    fn without_faults_all_is_now() {
        let settings = Settings::default();
        assert!(!settings.is_any());
        let mut faults = faults(settings);
        for now_ns in 0..1000 {
            assert_eq!(faults.fate(now_ns), Fate::Now);
            assert_eq!(faults.stalled_until_ns(now_ns), None);
        }
    }

    #[test]
    fn a_fixed_delay_is_exact() {
        let mut faults = faults(Settings { delay_ns: 10 * MS, ..Settings::default() });
        assert_eq!(faults.fate(7), Fate::At(10 * MS + 7));
    }

    #[test]
    fn jitter_is_uniform_around_the_delay_and_reorders() {
        let mut faults = faults(Settings { delay_ns: 1000, jitter_ns: 100, ..Settings::default() });
        let count = 100_000;
        let dues: Vec<i64> = (0..count)
            .map(|_| match faults.fate(0) {
                Fate::At(due_ns) => due_ns,
                fate => panic!("{fate:?}"),
            })
            .collect();
        assert_eq!((dues.iter().min(), dues.iter().max()), (Some(&900), Some(&1100)));
        let mean = dues.iter().sum::<i64>() as f64 / f64::from(count);
        // The standard error of the mean is 201 / sqrt(12 × 100,000) = 0.18.
        assert!((mean - 1000.0).abs() < 1.0, "{mean}");
        assert!(dues.windows(2).any(|pair| pair[1] < pair[0]));
    }

    #[test]
    fn the_lost_share_is_the_share_asked_for() {
        let lost = |loss: f64, seed: u64| {
            let mut faults = faults(Settings { loss, seed, ..Settings::default() });
            (0..100_000).filter(|now_ns| faults.fate(*now_ns) == Fate::Lost).count()
        };
        assert_eq!((lost(0.0, 1), lost(1.0, 1)), (0, 100_000));
        // The standard deviation is sqrt(100,000 × 0.01 × 0.99) = 31.
        assert!((800..1200).contains(&lost(0.01, 1)));
        assert_ne!(lost(0.5, 1), lost(0.5, 2));
    }

    #[test]
    fn a_seed_and_a_thread_repeat_themselves() {
        let settings = Settings { delay_ns: 100, jitter_ns: 50, loss: 0.3, seed: 5, ..Settings::default() };
        let fates = |thread| {
            let mut faults = Faults::new(settings, thread, 0);
            (0..100).map(|now_ns| faults.fate(now_ns)).collect::<Vec<_>>()
        };
        assert_eq!(fates(0), fates(0));
        assert_ne!(fates(0), fates(1));
    }

    #[test]
    fn a_stall_ends_each_period() {
        let faults = faults(Settings { stall_ns: 200 * MS, stall_every_ns: 1000 * MS, ..Settings::default() });
        let at = |ms: i64, ns: i64| faults.stalled_until_ns(1_000 + ms * MS + ns);
        assert_eq!((at(0, 0), at(799, 0), at(800, -1)), (None, None, None));
        for period in 0..3 {
            let end_ns = Some(1_000 + (period + 1) * 1000 * MS);
            assert_eq!(at(period * 1000 + 800, 0), end_ns);
            assert_eq!(at(period * 1000 + 1000, -1), end_ns);
            assert_eq!(at(period * 1000 + 1000, 0), None, "the end belongs to the next period");
        }
    }

    #[test]
    fn the_mean_wait_of_a_stall_is_as_by_hand() {
        // A query in each millisecond: 200 of 1000 wait, on average 100 ms.
        let faults = faults(Settings { stall_ns: 200 * MS, stall_every_ns: 1000 * MS, ..Settings::default() });
        let waits: Vec<i64> =
            (0..1000).map(|ms| 1_000 + ms * MS).filter_map(|at| Some(faults.stalled_until_ns(at)? - at)).collect();
        assert_eq!(waits.len(), 200);
        assert_eq!((waits[0], waits[199]), (200 * MS, MS));
    }
}
