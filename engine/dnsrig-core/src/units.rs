//! Arguments with a unit: durations, shares, rates.

use std::{ops::RangeInclusive, time::Duration};

pub const MINUTE: Duration = Duration::from_secs(60);

/// The longest duration that an option takes: eleven days.
pub const DURATION_MAX: Duration = Duration::from_secs(1_000_000);

const UNITS_NS: [(&str, f64); 7] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];

/// Makes a parser of durations such as `5s`, `200ms`, `50us` or `1.5h`, for options that take a `range` of them.
pub fn duration(range: RangeInclusive<Duration>) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    move |text| {
        let number = |unit: &str| text.strip_suffix(unit)?.trim_end().parse::<f64>().ok();
        let found = UNITS_NS.iter().find_map(|(unit, scale_ns)| Some(number(unit)? * scale_ns));
        let zero = (text == "0").then_some(0.0);
        let ns = found.or(zero).ok_or_else(|| match text.parse::<f64>() {
            Ok(bare) if bare.is_finite() => format!("a duration needs a unit: write {text}s or {text}ms"),
            _ => "write a duration as a number with its unit, such as 5s, 200ms, 50us, 2m or 1h".into(),
        })?;
        // The comparison also keeps out infinity and NaN.
        let is_possible = (0.0..=i64::MAX as f64).contains(&ns);
        let duration =
            is_possible.then(|| Duration::from_nanos(ns.round() as u64)).filter(|found| range.contains(found));
        duration.ok_or_else(|| format!("give a duration from {:?} to {:?}", range.start(), range.end()))
    }
}

/// Reads a duration from a millisecond to eleven days.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    duration(Duration::from_millis(1)..=DURATION_MAX)(text)
}

/// Reads a duration of at most a minute, perhaps none, into nanoseconds.
pub fn parse_delay(text: &str) -> Result<i64, String> {
    duration(Duration::ZERO..=MINUTE)(text).map(nanoseconds)
}

/// Reads the refresh timer of a SOA record, in whole seconds.
pub fn parse_refresh_s(text: &str) -> Result<u32, String> {
    let refresh = duration(Duration::from_secs(1)..=Duration::from_secs(86_400))(text)?;
    if refresh.subsec_nanos() > 0 { Err("give whole seconds".into()) } else { Ok(refresh.as_secs() as u32) }
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn delays_have_a_unit_and_a_limit() {
        let read = [
            ("10ms", 10_000_000),
            ("0.5s", 500_000_000),
            ("250us", 250_000),
            ("7 ns", 7),
            ("0", 0),
            ("60s", 60_000_000_000),
            ("1m", 60_000_000_000),
        ];
        for (text, ns) in read {
            assert_eq!(parse_delay(text), Ok(ns), "{text}");
        }
        for text in ["10", "", "ms", "-1ms", "61s", "infs", "NaNs", "1h", "1e99s", "1d"] {
            assert!(parse_delay(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_duration_out_of_range_is_refused_with_the_range() {
        let read = duration(Duration::from_millis(10)..=MINUTE);
        assert_eq!(read("1h").unwrap_err(), "give a duration from 10ms to 60s");
        assert_eq!(read("50us").unwrap_err(), "give a duration from 10ms to 60s");
        assert_eq!(parse_refresh_s("1h"), Ok(3600));
        assert!(parse_refresh_s("1.5s").is_err() && parse_refresh_s("0").is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_with_a_unit_is_read_again(number in 0..100_u32, thousandths in 0..1_000_u32) {
            let read = duration(Duration::ZERO..=Duration::from_secs(1 << 33));
            let written_ns = u64::from(number) * 1_000 + u64::from(thousandths);
            for (unit, unit_ns) in UNITS_NS.into_iter().filter(|(unit, _)| *unit != "ns") {
                let found = read(&format!("{number}.{thousandths:03}{unit}")).unwrap();
                prop_assert_eq!(found, Duration::from_nanos(written_ns * (unit_ns as u64 / 1_000)), "{}", unit);
            }
        }

        #[test]
        fn a_bare_number_is_refused_with_a_hint(number in 1..1_000_000_u32, is_decimal: bool) {
            let text = if is_decimal { format!("{number}.5") } else { number.to_string() };
            let hint = format!("a duration needs a unit: write {text}s or {text}ms");
            prop_assert_eq!(parse_duration(&text), Err(hint));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,12}") {
            if let Ok(found) = parse_duration(&text) {
                prop_assert!((Duration::from_millis(1)..=DURATION_MAX).contains(&found));
            }
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
