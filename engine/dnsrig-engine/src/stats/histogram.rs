//! Histograms of times.

use hdrhistogram::Histogram;

/// Three significant digits: values are known to 0.1 %.
const DIGITS: u8 = 3;

/// The longest time that is told apart from longer ones, in nanoseconds.
pub const TIME_MAX_NS: u64 = 120_000_000_000;

/// A histogram of times in nanoseconds, from 1 to [`TIME_MAX_NS`].
pub type Times = Histogram<u64>;

/// An empty one.
pub fn times() -> Times {
    Times::new_with_bounds(1, TIME_MAX_NS, DIGITS).expect("the bounds are in order")
}
