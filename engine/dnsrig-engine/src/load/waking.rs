//! How long before a query is due its thread wakes. No clock.
//!
//! To be woken takes time: a timer's interrupt, the way to the thread, on a virtual machine also the way through the
//! hypervisor. A thread that wakes too late sends late; one that wakes too early uses the CPU for nothing.

/// Of the times that it takes to be woken the 99th percentile is followed: one that is longer raises it, each other one
/// lowers it by the 99th part of that.
const RAISE_NS: i64 = 99 * LOWER_NS;
const LOWER_NS: i64 = 50;

/// How early to wake, learnt from how late it was before.
#[derive(Clone, Copy, Debug)]
pub struct Waking {
    early_ns: i64,
    least_ns: i64,
    most_ns: i64,
}

impl Waking {
    /// So early between `least_ns` and `most_ns` as it takes.
    pub fn between(least_ns: i64, most_ns: i64) -> Self {
        Waking { early_ns: most_ns, least_ns: least_ns.min(most_ns), most_ns }
    }

    /// Always so early.
    pub fn always(early_ns: i64) -> Self {
        Waking::between(early_ns, early_ns)
    }

    pub fn early_ns(&self) -> i64 {
        self.early_ns
    }

    /// It woke so long after the time that it had asked for.
    pub fn woke(&mut self, late_ns: i64) {
        let change_ns = if late_ns > self.early_ns { RAISE_NS } else { -LOWER_NS };
        self.early_ns = (self.early_ns + change_ns).clamp(self.least_ns, self.most_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: i64 = 1_000;

    /// Wakes up so often, every hundredth time `rarely_ns` late, else `mostly_ns`.
    fn woken(waking: &mut Waking, times: usize, mostly_ns: i64, rarely_ns: i64) {
        (0..times).for_each(|time| waking.woke(if time % 100 == 50 { rarely_ns } else { mostly_ns }));
    }

    #[test]
    fn it_follows_the_time_that_waking_takes() {
        let mut waking = Waking::between(5 * US, 80 * US);
        for mostly_us in [20, 40, 10] {
            woken(&mut waking, 2_000, mostly_us * US, mostly_us * US);
            assert!(waking.early_ns().abs_diff(mostly_us * US) < 6_000, "{waking:?}");
        }
        woken(&mut waking, 20_000, 10 * US, 5_000 * US);
        assert!(waking.early_ns() < 40 * US, "one in a hundred does not make it early: {waking:?}");
    }

    #[test]
    fn it_stays_within_its_limits() {
        let mut waking = Waking::between(5 * US, 50 * US);
        woken(&mut waking, 2_000, 900 * US, 900 * US);
        assert_eq!(waking.early_ns(), 50 * US);
        woken(&mut waking, 2_000, -3 * US, -3 * US);
        assert_eq!(waking.early_ns(), 5 * US, "who is woken by an answer is never late");
        assert_eq!(Waking::between(5 * US, 2 * US).early_ns(), 2 * US);
        let mut always = Waking::always(80 * US);
        woken(&mut always, 2_000, 900 * US, 900 * US);
        assert_eq!(always.early_ns(), 80 * US);
    }
}
