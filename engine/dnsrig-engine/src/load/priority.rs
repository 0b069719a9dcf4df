//! How a thread is in time for its queries: with real-time priority where that helps, and awake early enough.
//!
//! A thread that sleeps until a query is due and finds another program on its CPU waits for that program's slice, some
//! milliseconds. With real-time priority (SCHED_FIFO, sched(7)) it does not. But from a real-time thread that never
//! sleeps the kernel takes 5 % of each second in one piece, some 50 ms, so at high rates, and in a closed loop,
//! ordinary priority is better.
//!
//! To be woken takes time, too: a timer's interrupt, the way to the thread, on a virtual machine also the way through
//! the hypervisor. A thread that wakes too late sends late; one that wakes too early uses the CPU for nothing.

use super::{arrivals::Model, segment::Part};

/// The highest rate at which a thread sleeps between queries: at 20,000 it used 68 % of a CPU in real time; at 40,000
/// it used 85 %, and whatever else took its time made it use all.
const RATE_MAX_QPS: f64 = 20_000.0;

/// The time before a query is due in which a thread looks instead of sleeping: to be woken takes as long, and more on a
/// virtual machine.
const SPIN_NS: i64 = 80_000;

/// The least such time with real-time priority. It is more if waking takes longer.
const SPIN_REAL_TIME_NS: i64 = 5_000;

/// The highest share of the time between two queries that is spent looking: other programs need the CPU, too.
const SPIN_SHARE: f64 = 0.5;

/// The priority of a thread in a period, the best first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    RealTime,
    /// Real-time priority was not asked for.
    #[default]
    Ordinary,
    /// The thread hardly sleeps: real-time priority would do harm.
    Unsuitable,
    /// The kernel refuses real-time priority.
    Denied,
}

impl Priority {
    /// Why there was no real-time priority though it was asked for.
    pub fn why_ordinary(self) -> Option<&'static str> {
        match self {
            Priority::RealTime | Priority::Ordinary => None,
            Priority::Unsuitable => Some(
                "at this rate, or in a closed loop, a thread hardly sleeps, and would be stopped for 50 ms a second",
            ),
            Priority::Denied => Some("the kernel refuses it: run as root, or allow it (ulimit -r 1)"),
        }
    }
}

/// Gives the calling thread the priority for a period of `model`: real-time priority if that is `wanted`, allowed and
/// useful, and ordinary priority otherwise. Returns the priority, and how early to be awake.
pub fn choose(wanted: bool, model: Model, part: Part) -> (Priority, Waking) {
    let qps = match model {
        Model::Rate { qps, .. } | Model::Captured { qps } => qps / part.count() as f64,
        Model::Outstanding(_) => f64::INFINITY,
    };
    let priority = match wanted {
        false => Priority::Ordinary,
        true if qps > RATE_MAX_QPS => Priority::Unsuitable,
        true if schedule(libc::SCHED_FIFO, 1) => Priority::RealTime,
        true => Priority::Denied,
    };
    if matches!(priority, Priority::Unsuitable | Priority::Denied) {
        schedule(libc::SCHED_OTHER, 0);
    }
    let real_time = priority == Priority::RealTime;
    let spin_ns = SPIN_NS.min((SPIN_SHARE * 1e9 / qps) as i64);
    (priority, if real_time { Waking::between(SPIN_REAL_TIME_NS, spin_ns) } else { Waking::always(SPIN_NS) })
}

fn schedule(policy: i32, priority: i32) -> bool {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel reads `parameters`, which outlives the call, and keeps no pointer to it. 0 is this thread.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) == 0 }
}

/// Waking early follows the 99th percentile of the time that it takes to be woken: a longer time raises it by this
/// much, and each other time lowers it by the 99th part of that.
const RAISE_NS: i64 = 99 * LOWER_NS;
const LOWER_NS: i64 = 50;

/// How early to wake, learnt from how late the thread was before.
#[derive(Clone, Copy, Debug)]
pub struct Waking {
    early_ns: i64,
    least_ns: i64,
    most_ns: i64,
}

impl Waking {
    /// As early as it takes, between `least_ns` and `most_ns`.
    pub fn between(least_ns: i64, most_ns: i64) -> Self {
        Waking { early_ns: most_ns, least_ns: least_ns.min(most_ns), most_ns }
    }

    /// Always by the same time.
    pub fn always(early_ns: i64) -> Self {
        Waking::between(early_ns, early_ns)
    }

    /// How long before a query is due the thread is to be awake.
    pub fn early_ns(&self) -> i64 {
        self.early_ns
    }

    /// Takes in that the thread woke `late_ns` after the time that it had asked for.
    pub fn woke(&mut self, late_ns: i64) {
        let change_ns = if late_ns > self.early_ns { RAISE_NS } else { -LOWER_NS };
        self.early_ns = (self.early_ns + change_ns).clamp(self.least_ns, self.most_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::segment::Segment;

    #[test]
    fn real_time_priority_that_is_not_had_has_a_reason() {
        let all = [Priority::RealTime, Priority::Ordinary, Priority::Unsuitable, Priority::Denied];
        assert_eq!(all.map(|priority| priority.why_ordinary().is_some()), [false, false, true, true]);
        let part = Part { thread: 0, threads: 1, segment: Segment::default() };
        let chosen = |wanted| choose(wanted, Model::Outstanding(1), part).0;
        assert_eq!([chosen(false), chosen(true)], [Priority::Ordinary, Priority::Unsuitable]);
    }

    const US: i64 = 1_000;

    /// Wakes up `times` times: every hundredth time `rarely_ns` late, and otherwise `mostly_ns`.
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
