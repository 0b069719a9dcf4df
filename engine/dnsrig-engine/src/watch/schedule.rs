//! When to sample: an absolute schedule, so that lateness does not add up, and an account of how well it was kept.

use hdrhistogram::Histogram;

/// Lateness is kept to two significant digits up to one minute.
const LATENESS_MAX_NS: u64 = 60_000_000_000;

/// Ticks at a fixed interval from a first one on.
pub struct Schedule {
    due_ns: i64,
    interval_ns: i64,
    ticks: u64,
    missed: u64,
    lateness: Histogram<u64>,
}

impl Schedule {
    /// The first tick is due at `first_ns`; `interval_ns` must be positive.
    pub fn new(first_ns: i64, interval_ns: i64) -> Self {
        let lateness = Histogram::new_with_max(LATENESS_MAX_NS, 2).expect("two digits of a minute are representable");
        Schedule { due_ns: first_ns, interval_ns, ticks: 0, missed: 0, lateness }
    }

    /// When the next tick is due, in monotonic nanoseconds.
    pub fn due_ns(&self) -> i64 {
        self.due_ns
    }

    /// Takes the tick that is due, at `now_ns`. False if none is due yet.
    ///
    /// Ticks that were due since as well are missed: sampling twice at once would add no knowledge.
    pub fn tick(&mut self, now_ns: i64) -> bool {
        let late_ns = now_ns - self.due_ns;
        if late_ns < 0 {
            return false;
        }
        let missed = late_ns / self.interval_ns;
        self.due_ns += (missed + 1) * self.interval_ns;
        self.ticks += 1;
        self.missed += missed.unsigned_abs();
        self.lateness.saturating_record(late_ns.unsigned_abs());
        true
    }

    /// How many ticks were taken.
    pub fn ticks(&self) -> u64 {
        self.ticks
    }

    /// How many were missed.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// The median of the lateness of ticks, in nanoseconds.
    pub fn lateness_p50_ns(&self) -> u64 {
        self.lateness.value_at_quantile(0.5)
    }

    /// The largest lateness of a tick, in nanoseconds.
    pub fn lateness_max_ns(&self) -> u64 {
        self.lateness.max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_does_not_add_up() {
        let mut schedule = Schedule::new(1000, 100);
        assert!(!schedule.tick(999));
        assert!(schedule.tick(1030));
        assert_eq!(schedule.due_ns(), 1100);
        assert!(schedule.tick(1100));
        assert_eq!((schedule.due_ns(), schedule.ticks(), schedule.missed()), (1200, 2, 0));
        assert_eq!(schedule.lateness_max_ns(), 30);
    }

    #[test]
    fn ticks_that_were_slept_through_are_missed() {
        let mut schedule = Schedule::new(1000, 100);
        assert!(schedule.tick(1350));
        assert_eq!((schedule.due_ns(), schedule.ticks(), schedule.missed()), (1400, 1, 3));
    }
}
