//! Histograms of times, and what they come to: distributions and percentiles.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Three significant digits: values are known to 0.1 %.
pub const DIGITS: u8 = 3;

/// The longest time that is told apart from longer ones, in nanoseconds.
pub const TIME_MAX_NS: u64 = 120_000_000_000;

/// A histogram of times in nanoseconds, from 1 to [`TIME_MAX_NS`].
pub type Times = Histogram<u64>;

/// An empty one.
pub fn times() -> Times {
    Times::new_with_bounds(1, TIME_MAX_NS, DIGITS).expect("the bounds are in order")
}

/// A distribution in a few numbers, in nanoseconds; percentiles are the highest values of their bins.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Distribution {
    /// How many values there are: with none, the others say nothing.
    #[serde(skip)]
    pub count: u64,
    pub mean: f64,
    pub min: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p99_9: u64,
    pub p99_99: u64,
    pub max: u64,
}

impl From<&Times> for Distribution {
    fn from(times: &Times) -> Self {
        let [p50, p90, p99, p99_9, p99_99] = percentiles(times, [5_000, 9_000, 9_900, 9_990, 9_999]);
        Distribution {
            count: times.len(),
            mean: times.mean(),
            min: times.min(),
            p50,
            p90,
            p99,
            p99_9,
            p99_99,
            max: times.max(),
        }
    }
}

/// One percentile, known to a hundredth of a percent.
pub fn percentile(times: &Times, percent: f64) -> u64 {
    percentiles(times, [(percent * 100.0).round() as u64])[0]
}

/// Percentiles, asked for in hundredths of a percent and in rising order: the smallest values with at least that share
/// of all at or below them. By whole numbers: a rank computed from a fraction such as 0.999 can be one too high.
pub fn percentiles<const N: usize>(times: &Times, wanted: [u64; N]) -> [u64; N] {
    let rank = |share: u64| (u128::from(times.len()) * u128::from(share)).div_ceil(10_000) as u64;
    let mut found = [0; N];
    let (mut at, mut passed) = (0, 0);
    for value in times.iter_recorded() {
        passed += value.count_at_value();
        while at < N && passed >= rank(wanted[at]) {
            found[at] = times.highest_equivalent(value.value_iterated_to());
            at += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_value_at_its_rank_exactly() {
        let mut recorded = times();
        (1..=10_000).for_each(|value| recorded.record(value).unwrap());
        let found = percentiles(&recorded, [1, 5_000, 9_990, 9_999, 10_000]);
        let expected = [1, 5_000, 9_990, 9_999, 10_000].map(|value| recorded.highest_equivalent(value));
        assert_eq!(found, expected);
    }

    #[test]
    fn nothing_recorded_has_percentiles_of_zero() {
        assert_eq!(percentiles(&times(), [5_000]), [0]);
        assert_eq!(Distribution::from(&times()).max, 0);
    }
}
