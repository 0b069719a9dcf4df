//! Arguments with a unit: durations, shares, rates.

use std::{ops::RangeInclusive, time::Duration};

/// No duration among the arguments is longer than this: a minute.
pub const DURATION_NS_MAX: i64 = 60_000_000_000;

const UNITS_NS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// Reads a duration such as `10ms`, `0.5s` or `250us`, at most a minute, into nanoseconds.
pub fn parse_duration(text: &str) -> Result<i64, String> {
    let number = |unit: &str| text.strip_suffix(unit)?.trim_end().parse::<f64>().ok();
    let found = UNITS_NS.iter().find_map(|(unit, scale_ns)| Some(number(unit)? * scale_ns));
    let zero = (text == "0").then_some(0.0);
    match found.or(zero) {
        // The range also keeps out infinity and NaN.
        Some(ns) if (0.0..=DURATION_NS_MAX as f64).contains(&ns) => Ok(ns.round() as i64),
        _ => Err("expected a duration of at most a minute with its unit, such as 10ms, 0.5s or 250us".into()),
    }
}

/// Reads a share such as `1%` or `0.01`, from nothing to all, as a number from 0 to 1.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim_end().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    let share = share.ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a share from 0% to 100%, such as 1% or 0.01".into())
}

/// Reads a number within `range`; `what` says in the error what it counts.
pub fn parse_number(text: &str, range: RangeInclusive<f64>, what: &str) -> Result<f64, String> {
    // The range also keeps out infinity and NaN.
    let number = text.parse::<f64>().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("give {what} from {} to {}", range.start(), range.end()))
}

/// Reads seconds, perhaps with a fraction, from a millisecond to a million.
pub fn parse_seconds(text: &str) -> Result<Duration, String> {
    parse_number(text, 0.001..=1e6, "seconds").map(Duration::from_secs_f64)
}

/// In whole nanoseconds.
pub fn nanoseconds(duration: Duration) -> i64 {
    duration.as_nanos().try_into().unwrap_or(i64::MAX)
}

/// Changes a second, perhaps with a fraction.
pub fn parse_changes_per_s(text: &str) -> Result<f64, String> {
    parse_number(text, 0.001..=100_000.0, "changes a second")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_and_a_limit() {
        let read = [
            ("10ms", 10_000_000),
            ("0.5s", 500_000_000),
            ("250us", 250_000),
            ("7 ns", 7),
            ("0", 0),
            ("60s", DURATION_NS_MAX),
        ];
        for (text, ns) in read {
            assert_eq!(parse_duration(text), Ok(ns), "{text}");
        }
        for text in ["10", "", "ms", "-1ms", "61s", "infs", "NaNs", "1h", "1e99s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_are_percent_or_parts_of_one() {
        for (text, share) in [("1%", 0.01), ("0.01", 0.01), ("0", 0.0), ("100%", 1.0), ("1", 1.0), ("0.5 %", 0.005)] {
            assert_eq!(parse_share(text), Ok(share), "{text}");
        }
        for text in ["", "%", "101%", "1.1", "-1%", "NaN", "one"] {
            assert!(parse_share(text).is_err(), "{text}");
        }
    }
}
