//! How many zones a second are asked for at most.

/// After a pause no more than this is caught up with.
const BEHIND_NS_MAX: i64 = 10_000_000;

/// Even steps in time; without a rate, none.
pub struct Pace {
    step_ns: f64,
    next_ns: f64,
}

impl Pace {
    /// `rate` in zones a second.
    pub fn new(rate: Option<f64>) -> Self {
        Pace { step_ns: rate.map_or(0.0, |rate| 1e9 / rate), next_ns: 0.0 }
    }

    /// Whether a zone may be asked for now, which it then counts as.
    pub fn take(&mut self, now_ns: i64) -> bool {
        if self.step_ns == 0.0 {
            return true;
        }
        if self.next_ns > now_ns as f64 {
            return false;
        }
        self.next_ns = self.next_ns.max((now_ns - BEHIND_NS_MAX) as f64) + self.step_ns;
        true
    }

    /// When the next zone may be asked for.
    pub fn next_ns(&self) -> i64 {
        self.next_ns.ceil() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_holds_over_time_and_after_a_pause() {
        let mut pace = Pace::new(Some(10_000.0));
        let count = |pace: &mut Pace, from_ns: i64, to_ns: i64| {
            (from_ns..to_ns).step_by(1_000).filter(|now_ns| pace.take(*now_ns)).count()
        };
        assert_eq!(count(&mut pace, 1_000_000_000, 2_000_000_000) / 100, 101, "with what it had to catch up with");
        let after_a_pause = count(&mut pace, 9_000_000_000, 9_001_000_000);
        assert!(after_a_pause <= 111, "{after_a_pause}");
    }

    #[test]
    fn without_a_rate_all_goes_at_once() {
        let mut pace = Pace::new(None);
        assert!((0..1_000).all(|_| pace.take(5)));
    }
}
