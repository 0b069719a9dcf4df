//! What all connections of a server share: its zones, how it cuts messages, what is wrong with it. No I/O.

use std::sync::{
    Arc,
    atomic::{AtomicI64, AtomicU32, Ordering},
};

use dnsrig_dns::tsig::sign::Signer;

use super::{
    faults::Faults,
    shape::{Shape, Zone},
};

/// In which order a connection's messages leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Order {
    /// One transfer after another, as they were asked for
    InOrder,
    /// One message of each transfer in turn, so that a small zone does not wait behind a large one
    Interleaved,
}

/// How transfers are cut into messages.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// The most bytes of a message, unless a single record needs more.
    pub bytes_max: usize,
    /// The most records of a message.
    pub records_max: u16,
    pub order: Order,
    /// The first and the last message of a transfer are signed, and one in this number between them.
    pub signed_every: u32,
}

/// A server's nature.
pub struct Primary {
    pub shape: Shape,
    pub cut: Cut,
    pub faults: Faults,
    pub key: Option<Signer>,
    pub concurrent: Option<Concurrent>,
    pub period: Period,
}

impl Primary {
    /// The version of a zone now.
    #[inline]
    pub fn version(&self, zone: Zone, now_ns: i64) -> u64 {
        self.shape.version(zone, self.period.elapsed_ns(now_ns))
    }
}

/// From when to when zones change, in monotonic nanoseconds: told once each, while all threads look.
///
/// A thread may look at the period a moment after it looked at the clock. So that no version that was once shown is
/// taken back, the end lies ahead when it is told.
#[derive(Debug)]
pub struct Period {
    begin_ns: AtomicI64,
    end_ns: AtomicI64,
}

impl Period {
    /// Not begun.
    pub fn new() -> Self {
        Period { begin_ns: AtomicI64::new(i64::MAX), end_ns: AtomicI64::new(i64::MAX) }
    }

    /// Begun at this time.
    pub fn since(begin_ns: i64) -> Self {
        let period = Period::new();
        period.begin(begin_ns);
        period
    }

    /// Zones change from `now_ns` on, unless they do already; whether they did not.
    pub fn begin(&self, now_ns: i64) -> bool {
        self.begin_ns.compare_exchange(i64::MAX, now_ns, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// No zone changes any more from a time on that is `ahead_ns` after now; which time that is.
    pub fn end(&self, clock_ns: impl Fn() -> i64, ahead_ns: i64) -> i64 {
        loop {
            let end_ns = clock_ns() + ahead_ns;
            self.end_ns.store(end_ns, Ordering::Relaxed);
            // Whoever saw no end before this looked at the clock before it, too: unless we were kept waiting too long.
            if clock_ns() < end_ns {
                return end_ns;
            }
        }
    }

    /// When it began, if it has.
    pub fn begin_ns(&self) -> Option<i64> {
        Some(self.begin_ns.load(Ordering::Relaxed)).filter(|begin_ns| *begin_ns < i64::MAX)
    }

    /// For how long zones have changed.
    #[inline]
    pub fn elapsed_ns(&self, now_ns: i64) -> i64 {
        let begin_ns = self.begin_ns.load(Ordering::Relaxed);
        now_ns.min(self.end_ns.load(Ordering::Relaxed)).saturating_sub(begin_ns).max(0)
    }

    /// When they will have changed for so long, if that will be.
    pub fn time_ns(&self, elapsed_ns: i64) -> Option<i64> {
        let time_ns = self.begin_ns()?.saturating_add(elapsed_ns);
        (time_ns <= self.end_ns.load(Ordering::Relaxed)).then_some(time_ns)
    }
}

impl Default for Period {
    fn default() -> Self {
        Period::new()
    }
}

/// Now, on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    pub monotonic_ns: i64,
    /// Wall time, for signatures; 0 where there is no key.
    pub wall_s: u64,
}

/// How many transfers there may be at a time, on all connections.
#[derive(Clone)]
pub struct Concurrent {
    max: u32,
    now: Arc<AtomicU32>,
}

/// One of the transfers that there may be; it counts until it is dropped.
#[derive(Debug)]
pub struct Place(Arc<AtomicU32>);

impl Concurrent {
    /// None yet, and never more than `max`.
    pub fn new(max: u32) -> Self {
        Concurrent { max, now: Arc::default() }
    }

    /// One more, if there may be.
    pub fn enter(&self) -> Option<Place> {
        let place = Place(Arc::clone(&self.now));
        // The place gives back what it counts even if it is one too many.
        (self.now.fetch_add(1, Ordering::Relaxed) < self.max).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_from_the_begin_to_the_end() {
        let period = Period::new();
        assert_eq!((period.elapsed_ns(1_000), period.time_ns(5), period.begin_ns()), (0, None, None));
        assert!(period.begin(100) && !period.begin(200));
        assert_eq!((period.elapsed_ns(50), period.elapsed_ns(150), period.time_ns(70)), (0, 50, Some(170)));
        assert_eq!(period.end(|| 150, 10), 160);
        assert_eq!((period.elapsed_ns(155), period.elapsed_ns(1_000), period.time_ns(70)), (55, 60, None));
    }

    #[test]
    fn the_end_is_moved_on_if_it_was_told_too_late() {
        let now_ns = AtomicI64::new(0);
        let period = Period::since(0);
        // Each look at the clock comes four later; the third, at 8, is the first that is followed soon enough.
        let clock_ns = || now_ns.fetch_add(if now_ns.load(Ordering::Relaxed) < 8 { 4 } else { 1 }, Ordering::Relaxed);
        assert_eq!(period.end(clock_ns, 3), 11);
    }

    #[test]
    fn places_are_given_back() {
        let concurrent = Concurrent::new(2);
        let [one, two] = [(); 2].map(|()| concurrent.enter());
        assert!(one.is_some() && two.is_some() && concurrent.enter().is_none());
        drop(one);
        assert!(concurrent.enter().is_some());
    }
}
