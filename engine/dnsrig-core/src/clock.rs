//! Time: CLOCK_MONOTONIC everywhere, and anchors that relate it to wall time.

use nix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// How many readings an [`Anchor`] chooses the best of.
///
/// A reading is bad only when something (an interrupt, the hypervisor) comes between its three clock readings, which
/// take well under a microsecond together; that it happens five times in a row is not expected.
const ANCHOR_ATTEMPTS: usize = 5;

/// A moment on two clocks, and the error of the pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Anchor {
    /// CLOCK_MONOTONIC, in nanoseconds.
    pub monotonic_ns: i64,
    /// CLOCK_REALTIME (nanoseconds since 1970-01-01 UTC) at that moment.
    pub realtime_ns: i64,
    /// The true moment lies within this many nanoseconds of `monotonic_ns`.
    pub anchor_error_ns: i64,
}

/// Now, in nanoseconds of CLOCK_MONOTONIC (clock_gettime(2)): never steps, and is common to all processes of a boot.
pub fn monotonic_ns() -> i64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// CPU time that this process has used, user and system, in nanoseconds.
pub fn process_cpu_ns() -> i64 {
    read(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time that this thread has used, user and system, in nanoseconds.
pub fn thread_cpu_ns() -> i64 {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// Wall time, in whole seconds since 1970.
pub fn wall_time_s() -> u64 {
    (read(ClockId::CLOCK_REALTIME) / 1_000_000_000).unsigned_abs()
}

/// Has the waits of this thread end when they are over, not up to 50 µs later (prctl(2), PR_SET_TIMERSLACK): by default
/// the kernel gathers timers to save power.
pub fn wait_exactly() -> nix::Result<()> {
    nix::sys::prctl::set_timerslack(1)
}

/// Takes an anchor: wall time read between two readings of the monotonic clock, the narrowest of five.
pub fn anchor() -> Anchor {
    (0..ANCHOR_ATTEMPTS)
        .map(|_| {
            let before_ns = monotonic_ns();
            let realtime_ns = read(ClockId::CLOCK_REALTIME);
            between(before_ns, realtime_ns, monotonic_ns())
        })
        .min_by_key(|anchor| anchor.anchor_error_ns)
        .expect("five attempts give at least one anchor")
}

/// The anchor of a wall time read between two monotonic times: their middle, half the gap being the error.
fn between(before_ns: i64, realtime_ns: i64, after_ns: i64) -> Anchor {
    let gap_ns = after_ns - before_ns;
    Anchor { monotonic_ns: before_ns + gap_ns / 2, realtime_ns, anchor_error_ns: (gap_ns + 1) / 2 }
}

fn read(clock: ClockId) -> i64 {
    let time = clock_gettime(clock).expect("Linux always has the clocks that we ask for");
    time.tv_sec() * 1_000_000_000 + time.tv_nsec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_covers_both_readings() {
        for (before, after) in [(10, 10), (10, 11), (10, 17), (10, 18)] {
            let anchor = between(before, 99, after);
            assert!(anchor.monotonic_ns - anchor.anchor_error_ns <= before);
            assert!(anchor.monotonic_ns + anchor.anchor_error_ns >= after);
            assert_eq!(anchor.realtime_ns, 99);
        }
    }

    #[test]
    fn the_monotonic_clock_does_not_go_back() {
        let first = monotonic_ns();
        assert!(anchor().monotonic_ns >= first);
    }
}
