//! Options as they were spelled once. Durations had their unit in the name: `--duration-s 5` is `--duration 5s` now.

use std::{ffi::OsString, iter};

/// The endings of such options. Rates end with `-per-s`, and are no durations.
const UNITS: [&str; 3] = ["s", "ms", "us"];

/// Replaces old spellings in the arguments of a command. What follows `--` belongs to another program and stays.
pub fn renew(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments = arguments.into_iter();
    let mut renewed = Vec::new();
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            renewed.extend(iter::once(argument).chain(arguments.by_ref()));
        } else if let Some((option, unit, value)) = argument.to_str().and_then(old_duration) {
            renewed.push(option.into());
            let value = value.map(OsString::from).or_else(|| arguments.next());
            renewed.extend(value.map(|value| with_unit(value, unit)));
        } else {
            renewed.push(argument);
        }
    }
    renewed
}

/// The new spelling of an option with a unit in its name, the unit, and the value if it is in the same argument.
fn old_duration(argument: &str) -> Option<(&str, &str, Option<&str>)> {
    let (name, value) = argument.split_once('=').map_or((argument, None), |(name, value)| (name, Some(value)));
    let (option, unit) = name.rsplit_once('-')?;
    let is_old = option.len() > 2 && option.starts_with("--") && UNITS.contains(&unit) && !option.ends_with("-per");
    is_old.then_some((option, unit, value))
}

/// A bare number gets the unit; anything else is left for the parser of the option to judge.
fn with_unit(mut value: OsString, unit: &str) -> OsString {
    if value.to_str().is_some_and(|text| text.parse::<f64>().is_ok_and(f64::is_finite)) {
        value.push(unit);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renewed(arguments: &str) -> String {
        let renewed = renew(arguments.split(' ').map(OsString::from));
        renewed.iter().map(|argument| argument.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_bare_number_gets_the_unit_of_the_old_name() {
        for (old, new) in [
            ("load --duration-s 5 --json", "load --duration 5s --json"),
            ("load --duration-s=0.5", "load --duration 0.5s"),
            ("load --ramp-latency-ms 1e2", "load --ramp-latency 1e2ms"),
            ("load --duration-s 5m", "load --duration 5m"),
            ("load --duration-s soon", "load --duration soon"),
            ("load --duration-s", "load --duration"),
        ] {
            assert_eq!(renewed(old), new);
        }
    }

    #[test]
    fn everything_else_stays() {
        for arguments in [
            "load 127.0.0.1 --duration 5s --queries=a-s",
            "change --changes-per-s 5 --members-changed-per-s=5",
            "merge --start-ns 5",
            "enter --netns a -- program --wait-s 5",
            "load --s 5 -s 5",
        ] {
            assert_eq!(renewed(arguments), arguments);
        }
    }
}
