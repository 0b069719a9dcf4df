//! What a generator that is led hears on standard input and says of it, a line of JSON each. No clock, no socket.
//!
//! A period begins with a [`Start`]. In a ramp the first generator leads: it says which rate to [`Try`], whoever runs
//! the generators writes a [`Start`] with that rate to each, every other one says what it [`Tried`], and that line is
//! written to the first one as it is. An [`End`] ends the others.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use super::{interval_stats::Losses, judge::Measured, ramp::Try, segment::Segment};
use crate::{
    base::failure::Advice,
    stats::{DIGITS, TIME_MAX_NS, Times, times},
};

/// A start is at most so far ahead.
const AHEAD_NS_MAX: i64 = 60_000_000_000;

/// The rates that may be tried, in queries per second.
const RATES_QPS: std::ops::RangeInclusive<f64> = 0.01..=1e8;

/// The lines do not make sense.
#[derive(Debug, thiserror::Error)]
pub enum LedError {
    #[error("cannot understand a line on standard input: {0}")]
    Line(serde_json::Error),
    #[error("a histogram of generator {0} cannot be read: {1}")]
    Histogram(Segment, String),
    #[error("a line on standard input is {got}, but {wanted} must come here")]
    Other { got: &'static str, wanted: &'static str },
    #[error("`start_ns` is {} ms in the past", .0.div_euclid(1_000_000))]
    Past(i64),
    #[error("`start_ns` is {} s ahead, more than {} s", .0 / 1_000_000_000, AHEAD_NS_MAX / 1_000_000_000)]
    Ahead(i64),
    #[error(
        "a start of a ramp needs `rate_qps` from {} to {}, and no other start has it",
        RATES_QPS.start(),
        RATES_QPS.end()
    )]
    Rate,
    #[error("a start has the rate {0}, but the rate to try is {1}")]
    OtherRate(f64, f64),
    #[error("generator {0} tried another rate, tried twice, or is not one of the followers")]
    Foreign(Segment),
    #[error("no line came on standard input within {} s", .0.as_secs())]
    Silent(Duration),
    #[error("generator {segment} did not report its result within {} s", limit.as_secs())]
    Missing { segment: Segment, limit: Duration },
}

impl Advice for LedError {
    fn hint(&self) -> String {
        match self {
            LedError::Past(_) | LedError::Ahead(_) => {
                "give CLOCK_MONOTONIC of the machine of this generator, in nanoseconds, and some time to write it"
                    .into()
            }
            LedError::Foreign(_) => "pass each `tried` line of the others on once, and only to generator 1".into(),
            LedError::Missing { .. } => "check how that generator ended, and that its lines are passed on".into(),
            _ => "write {\"start_ns\": T}, in a ramp with \"rate_qps\": R, or {\"end\": true}; to generator 1 also \
                  the `tried` of the others, as they are"
                .into(),
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            LedError::Past(_) | LedError::Ahead(_) | LedError::Silent(_) | LedError::Missing { .. } => 1,
            _ => 2,
        }
    }
}

/// A period begins.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    pub start_ns: i64,
    /// In a ramp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_qps: Option<f64>,
}

impl Start {
    /// Sees to it that it is yet to come, and soon.
    pub fn check(self, now_ns: i64) -> Result<Self, LedError> {
        match self.start_ns.saturating_sub(now_ns) {
            ahead_ns if ahead_ns < 0 => Err(LedError::Past(ahead_ns.saturating_neg())),
            ahead_ns if ahead_ns > AHEAD_NS_MAX => Err(LedError::Ahead(ahead_ns)),
            _ => Ok(self),
        }
    }
}

/// The event of another one that has tried its part of a rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    pub segment: Segment,
    pub rate_qps: f64,
    pub due: u64,
    pub sent: u64,
    pub answered: u64,
    pub timeouts: u64,
    pub lost: Losses,
    pub sending_ns: i64,
    pub busy_share: f64,
    /// Times from the due time to the answer, and to the sending: HdrHistogram V2, deflated, in base64.
    pub due_histogram: String,
    pub lag_histogram: String,
}

/// The ramp is over.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    pub end: True,
}

/// Nothing but `true`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "bool", into = "bool")]
pub struct True;

impl TryFrom<bool> for True {
    type Error = &'static str;

    fn try_from(is_true: bool) -> Result<Self, Self::Error> {
        is_true.then_some(True).ok_or("expected true")
    }
}

impl From<True> for bool {
    fn from(_: True) -> Self {
        true
    }
}

/// A line on standard input.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    Start(Start),
    Tried(Box<Tried>),
    End,
}

impl Line {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Self, LedError> {
        /// What tells kinds of lines apart.
        #[derive(Deserialize)]
        struct Kind {
            event: Option<String>,
            end: Option<serde::de::IgnoredAny>,
        }
        let parse = || {
            let kind: Kind = serde_json::from_str(text)?;
            Ok(match (kind.event.as_deref(), kind.end) {
                (Some("tried"), _) => Line::Tried(serde_json::from_str(text)?),
                (_, Some(_)) => serde_json::from_str::<End>(text).map(|_| Line::End)?,
                _ => Line::Start(serde_json::from_str(text)?),
            })
        };
        parse().map_err(LedError::Line)
    }

    /// What it is called.
    pub fn name(&self) -> &'static str {
        match self {
            Line::Start(_) => "a start",
            Line::Tried(_) => "a `tried`",
            Line::End => "an end",
        }
    }
}

/// Whether two rates are the same: numbers in JSON may be read with another last digit.
fn is_same(one: f64, other: f64) -> bool {
    (one / other - 1.0).abs() < 1e-9
}

/// The rate of a start that is to have this one.
pub fn rate_for(start: Start, wanted: Try) -> Result<f64, LedError> {
    let rate_qps = rate(start)?;
    if is_same(rate_qps, wanted.rate_qps) { Ok(rate_qps) } else { Err(LedError::OtherRate(rate_qps, wanted.rate_qps)) }
}

/// The rate of a start in a ramp.
pub fn rate(start: Start) -> Result<f64, LedError> {
    start.rate_qps.filter(|rate_qps| RATES_QPS.contains(rate_qps)).ok_or(LedError::Rate)
}

impl Tried {
    /// What one generator measured.
    pub fn of(segment: Segment, rate_qps: f64, measured: &Measured) -> Self {
        let Measured { due, sent, answered, timeouts, lost, sending_ns, busy_share, due_times, lag_times } = measured;
        Tried {
            segment,
            rate_qps,
            due: *due,
            sent: *sent,
            answered: *answered,
            timeouts: *timeouts,
            lost: *lost,
            sending_ns: *sending_ns,
            busy_share: *busy_share,
            due_histogram: encode(due_times),
            lag_histogram: encode(lag_times),
        }
    }

    /// The same, to be added.
    pub fn measured(&self) -> Result<Measured, LedError> {
        let decode = |text: &str| decode(text).map_err(|error| LedError::Histogram(self.segment, error));
        Ok(Measured {
            due: self.due,
            sent: self.sent,
            answered: self.answered,
            timeouts: self.timeouts,
            lost: self.lost,
            sending_ns: self.sending_ns,
            busy_share: self.busy_share,
            due_times: decode(&self.due_histogram)?,
            lag_times: decode(&self.lag_histogram)?,
        })
    }
}

fn encode(times: &Times) -> String {
    let mut bytes = Vec::new();
    // To write to memory does not fail, and its counts fit.
    V2DeflateSerializer::new().serialize(times, &mut bytes).expect("a histogram of times");
    BASE64_STANDARD.encode(bytes)
}

fn decode(text: &str) -> Result<Times, String> {
    let bytes = BASE64_STANDARD.decode(text).map_err(|error| error.to_string())?;
    let read: Times = Deserializer::new().deserialize(&mut &bytes[..]).map_err(|error| format!("{error:?}"))?;
    if (read.sigfig(), read.high()) != (DIGITS, TIME_MAX_NS) {
        return Err(format!("its values have {} digits and go to {}", read.sigfig(), read.high()));
    }
    let mut own = times();
    own.add(&read).map_err(|error| error.to_string())?;
    Ok(own)
}

/// Who of those that follow has not said yet what it tried.
pub struct Followers {
    missing: Vec<Segment>,
    rate_qps: f64,
}

impl Followers {
    /// Of generator 1 of so many, at a rate.
    pub fn new(of: u32, rate_qps: f64) -> Self {
        Followers { missing: (2..=of).map(|number| Segment { number, of }).collect(), rate_qps }
    }

    /// The first that is missing.
    pub fn missing(&self) -> Option<Segment> {
        self.missing.first().copied()
    }

    /// Takes in what one tried.
    pub fn take(&mut self, tried: &Tried) -> Result<Measured, LedError> {
        let place = self.missing.iter().position(|segment| *segment == tried.segment);
        match place {
            Some(place) if is_same(tried.rate_qps, self.rate_qps) => {
                self.missing.remove(place);
                tried.measured()
            }
            _ => Err(LedError::Foreign(tried.segment)),
        }
    }
}

#[cfg(test)]
#[path = "led_tests.rs"]
mod tests;
