//! How often something may be done.

/// A token bucket as one time: the generic cell rate algorithm (ITU-T I.371, annex A, "virtual scheduling").
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    interval_ns: f64,
    burst_ns: f64,
    /// When the bucket will be full.
    full_ns: f64,
}

impl Pacer {
    /// Without a limit.
    pub const UNLIMITED: Pacer = Pacer { interval_ns: 0.0, burst_ns: f64::INFINITY, full_ns: 0.0 };

    /// `rate_per_s` times a second. After a pause it may be done at once as often as fits into `burst_ns`, and once
    /// more; from the beginning, too, unless [`Pacer::starting`] says when that is.
    pub fn new(rate_per_s: f64, burst_ns: f64) -> Self {
        Pacer { interval_ns: 1e9 / rate_per_s, burst_ns, full_ns: 0.0 }
    }

    /// For the first time at `start_ns`, and then at the rate: there is no burst at the beginning.
    pub fn starting(self, start_ns: i64) -> Self {
        Pacer { full_ns: start_ns as f64 + self.burst_ns, ..self }
    }

    /// When it may be done next.
    pub fn ready_ns(&self) -> i64 {
        (self.full_ns - self.burst_ns).ceil() as i64
    }

    /// It is done now.
    pub fn take(&mut self, now_ns: i64) {
        self.full_ns = self.full_ns.max(now_ns as f64) + self.interval_ns;
    }

    /// It does not count: it may be done once more.
    pub fn give_back(&mut self) {
        self.full_ns -= self.interval_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(pacer: &mut Pacer, from_ns: i64, to_ns: i64) -> usize {
        let mut is_done = |now_ns: &i64| {
            let ready = pacer.ready_ns() <= *now_ns;
            if ready {
                pacer.take(*now_ns);
            }
            ready
        };
        (from_ns..to_ns).step_by(1_000).filter(|now_ns| is_done(now_ns)).count()
    }

    #[test]
    fn a_rate_holds_over_time_and_after_a_pause() {
        let mut pacer = Pacer::new(10_000.0, 1e7);
        assert_eq!(count(&mut pacer, 1_000_000_000, 2_000_000_000) / 100, 101, "with what it had to catch up with");
        let after_a_pause = count(&mut pacer, 9_000_000_000, 9_001_000_000);
        assert!(after_a_pause <= 111, "{after_a_pause}");
    }

    #[test]
    fn without_a_limit_all_goes_at_once() {
        let mut pacer = Pacer::UNLIMITED;
        for _ in 0..1_000 {
            assert!(pacer.ready_ns() <= 5);
            pacer.take(5);
        }
    }

    #[test]
    fn lost_time_is_not_made_up_for_beyond_the_burst() {
        let mut pacer = Pacer::new(100.0, 1e7).starting(0);
        let mut times: Vec<i64> = Vec::new();
        for now_ns in [0, 10_000_000, 1_000_000_000, 1_000_000_000] {
            times.push(pacer.ready_ns());
            pacer.take(now_ns);
        }
        times.push(pacer.ready_ns());
        assert_eq!(times, [0, 10_000_000, 20_000_000, 1_000_000_000, 1_010_000_000]);
    }

    #[test]
    fn what_is_given_back_may_be_done_again() {
        let mut pacer = Pacer::new(100.0, 0.0).starting(7);
        pacer.take(7);
        pacer.give_back();
        assert_eq!(pacer.ready_ns(), 7);
    }
}
