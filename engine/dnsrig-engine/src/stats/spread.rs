//! How many durations lie: few enough to be kept, so exact.

use serde::Serialize;

/// Durations in nanoseconds; a percentile is the smallest that at least so many percent do not exceed (nearest rank).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Spread {
    pub mean: i64,
    pub min: i64,
    pub p50: i64,
    pub p90: i64,
    pub p99: i64,
    pub max: i64,
}

impl Spread {
    /// Of any number of durations; of none there is none.
    pub fn of(durations_ns: impl IntoIterator<Item = i64>) -> Option<Self> {
        let mut sorted: Vec<i64> = durations_ns.into_iter().collect();
        sorted.sort_unstable();
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let total: i128 = sorted.iter().map(|one| i128::from(*one)).sum();
        let rank = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1];
        let mean = (total / sorted.len() as i128) as i64;
        Some(Spread { mean, min, p50: rank(50), p90: rank(90), p99: rank(99), max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_there() {
        assert_eq!(Spread::of([]), None);
        let one = Spread::of([7]).unwrap();
        assert_eq!((one.min, one.p50, one.p99, one.max, one.mean), (7, 7, 7, 7, 7));
        let hundred = Spread::of((1..=100).rev()).unwrap();
        assert_eq!((hundred.p50, hundred.p90, hundred.p99, hundred.max), (50, 90, 99, 100));
        assert_eq!(Spread::of([1, 2, 3]).unwrap().p50, 2);
    }
}
