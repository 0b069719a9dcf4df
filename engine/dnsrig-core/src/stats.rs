//! Statistics that more than one subcommand needs, and their texts for people. No I/O, no clock.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Three significant digits: values are known to 0.1 %.
pub const DIGITS: u8 = 3;

/// The longest time that differs from longer ones, in nanoseconds.
pub const TIME_MAX_NS: u64 = 120_000_000_000;

/// A histogram of times in nanoseconds, from 1 to [`TIME_MAX_NS`].
pub type Times = Histogram<u64>;

/// An empty histogram.
pub fn times() -> Times {
    Times::new_with_bounds(1, TIME_MAX_NS, DIGITS).expect("the bounds are in order")
}

/// A distribution in a few numbers, in nanoseconds; percentiles are the highest values of their bins.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Distribution {
    /// The number of values. If it is 0, the other fields have no meaning.
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

/// Returns a percentile, which is given to a hundredth of a percent.
pub fn percentile(times: &Times, percent: f64) -> u64 {
    percentiles(times, [(percent * 100.0).round() as u64])[0]
}

/// Returns percentiles, which are given in hundredths of a percent and in rising order. A percentile is the smallest
/// value for which at least this share of all values is not larger. Ranks are computed with whole numbers: a rank from
/// a fraction such as 0.999 can be one too high.
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

/// The exact distribution of durations in nanoseconds. A percentile is the smallest duration that at least this share
/// of all does not exceed (nearest rank).
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
    /// Computes the distribution, or returns None without durations.
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

/// Writes `1234567` as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The text where nothing was measured.
pub const NOTHING: &str = "–";

/// Writes a latency in milliseconds, or [`NOTHING`] if no query was measured.
pub fn latency(time_ns: u64, limit_ns: Option<u64>) -> String {
    if time_ns == 0 { NOTHING.into() } else { milliseconds(time_ns, limit_ns) }
}

/// Writes milliseconds with three significant digits, or `≥ limit` at and above a limit.
pub fn milliseconds(time_ns: u64, limit_ns: Option<u64>) -> String {
    let limit_ns = limit_ns.unwrap_or(u64::MAX);
    let ms = time_ns.min(limit_ns) as f64 / 1e6;
    let digits = if ms >= 100.0 {
        0
    } else if ms >= 10.0 {
        1
    } else if ms >= 1.0 {
        2
    } else {
        3
    };
    format!("{}{ms:.digits$} ms", if time_ns >= limit_ns { "≥ " } else { "" })
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
    fn an_empty_histogram_has_percentiles_of_zero() {
        assert_eq!(percentiles(&times(), [5_000]), [0]);
        assert_eq!(Distribution::from(&times()).max, 0);
    }

    #[test]
    fn a_distribution_has_the_values_at_its_ranks() {
        let mut recorded = times();
        (1..=1_000).for_each(|value| recorded.record(value).unwrap());
        let Distribution { count, mean, min, p50, p90, p99, p99_9, p99_99, max } = Distribution::from(&recorded);
        assert_eq!((count, min, max), (1_000, 1, 1_000));
        assert!((mean - 500.5).abs() < 1e-6, "{mean}");
        assert_eq!([p50, p90, p99, p99_9, p99_99], [500, 900, 990, 999, 1_000]);
        assert_eq!([0.1, 50.0, 99.9, 99.99].map(|percent| percentile(&recorded, percent)), [1, 500, 999, 1_000]);
    }

    #[test]
    fn digits_are_grouped_by_three() {
        for (number, text) in [
            (0, "0"),
            (12, "12"),
            (999, "999"),
            (1_000, "1,000"),
            (12_345, "12,345"),
            (123_456, "123,456"),
            (1_234_567, "1,234,567"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn milliseconds_have_three_digits_and_a_limit() {
        for (time_ns, text) in [
            (0, "0.000 ms"),
            (1_400, "0.001 ms"),
            (999_000, "0.999 ms"),
            (1_000_000, "1.00 ms"),
            (9_990_000, "9.99 ms"),
            (10_000_000, "10.0 ms"),
            (99_900_000, "99.9 ms"),
            (100_000_000, "100 ms"),
            (1_234_567_890, "1235 ms"),
        ] {
            assert_eq!(milliseconds(time_ns, None), text);
            assert_eq!(milliseconds(time_ns, Some(time_ns + 1)), text, "below the limit");
            assert_eq!(milliseconds(time_ns, Some(time_ns)), format!("≥ {text}"), "at the limit");
            assert_eq!(milliseconds(time_ns + 1_000_000_000, Some(time_ns)), format!("≥ {text}"));
        }
        assert_eq!((latency(0, None), latency(1_500_000, None)), (NOTHING.to_owned(), "1.50 ms".to_owned()));
        assert_eq!(latency(2_000_000, Some(2_000_000)), "≥ 2.00 ms");
    }

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
