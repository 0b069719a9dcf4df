//! How a generator is led: when its periods begin, and at which rates. It reads lines on standard input and prints
//! events, each a JSON object.
//!
//! A period begins with a [`Start`]. In a ramp the first generator leads: it prints which rate to [`Try`], whoever runs
//! the generators writes a [`Start`] with that rate to each, every other generator prints what it [`Tried`], and that
//! line is written to the first one as it is. An [`End`] ends the others. A generator that nobody leads begins at once.

use std::{
    io::{self, BufRead, BufReader, Read},
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    time::{Duration, Instant},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use dnsrig_core::{
    clock, events,
    failure::Failure,
    stats::{DIGITS, TIME_MAX_NS, Times, times},
    stop::Stop,
    threads::Thread,
};
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use super::{
    arguments::Instrument,
    counts::Losses,
    ramp::{Measured, Try},
    segment::Segment,
    team::{HEAD_START_NS, LOOK_INTERVAL, Team},
};

/// A start is at most this far ahead.
const AHEAD_NS_MAX: i64 = 60_000_000_000;

/// The rates that may be tried, in queries per second.
const RATES_QPS: std::ops::RangeInclusive<f64> = 0.01..=1e8;

/// The first line comes when all generators are ready, within this time.
pub const FIRST_PATIENCE: Duration = Duration::from_secs(600);

/// Every other line comes within a period, its timeout, and this time.
pub const MORE_PATIENCE: Duration = Duration::from_secs(30);

/// The length of the longest line.
const LINE_BYTES_MAX: usize = 1 << 20;

/// The number of lines that can wait. After that, the program that writes them waits.
const WAITING_MAX: usize = 64;

/// What to do if lines cannot be used.
const LINES_HINT: &str = "write {\"start_ns\": T}, in a ramp with \"rate_qps\": R, or {\"end\": true}; to generator 1 also \
                          the `tried` of the others, as they are";

/// What to do if there are no lines any more.
const KEEP_OPEN: &str = "keep standard input open until the summary has appeared";

/// What a generator is to do next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    Start(Start),
    /// The ramp is over.
    End,
    /// Someone asked it to stop.
    Stop,
}

/// When periods begin: at once, or as lines on standard input say.
pub struct Starts {
    /// `None`: nobody leads this generator.
    lines: Option<Lines>,
    segment: Segment,
}

impl Starts {
    /// Begins to read standard input if the generator is led.
    pub fn new(instrument: &Instrument, stop: &Stop) -> Result<Self, Failure> {
        let Instrument { led, until_eof, segment, .. } = *instrument;
        let lines = if led { Some(Lines::start(stop, until_eof)?) } else { None };
        Ok(Starts { lines, segment })
    }

    /// Whether lines on standard input say when periods begin.
    fn is_led(&self) -> bool {
        self.lines.is_some()
    }

    /// Prints that a start can come, if the generator is led: sockets are open, and queries are prepared.
    pub fn emit_ready(&self) -> Result<(), Failure> {
        #[derive(Serialize)]
        struct Ready {
            segment: Segment,
        }
        if self.is_led() {
            events::emit_patiently("ready", clock::monotonic_ns(), &Ready { segment: self.segment })?;
        }
        Ok(())
    }

    /// Waits for what is to be done next, at most for `patience`.
    pub fn next(&self, team: &mut Team, patience: Duration) -> Result<Next, Failure> {
        if !self.is_led() {
            let start_ns = clock::monotonic_ns() + HEAD_START_NS;
            return Ok(Next::Start(Start { start_ns, rate_qps: None }));
        }
        let silent = || {
            let sentence = format!("no line came on standard input within {} s", patience.as_secs());
            Failure::new(sentence, LINES_HINT)
        };
        match self.next_line(team, Instant::now() + patience, silent)? {
            Some(Line::Start(start)) => Ok(Next::Start(start.check(clock::monotonic_ns())?)),
            Some(Line::End) => Ok(Next::End),
            Some(line @ Line::Tried(_)) => Err(line.instead_of("a start")),
            None => Ok(Next::Stop),
        }
    }

    /// When the only period begins. After a request to stop it begins at once, and ends.
    pub fn only_start_ns(&self, team: &mut Team) -> Result<i64, Failure> {
        match self.next(team, FIRST_PATIENCE)? {
            Next::Start(Start { rate_qps: Some(_), .. }) => Err(wrong_rate()),
            Next::Start(Start { start_ns, .. }) => Ok(start_ns),
            Next::Stop => Ok(clock::monotonic_ns() + HEAD_START_NS),
            Next::End => Err(Line::End.instead_of("a start")),
        }
    }

    /// Asks all generators to try a rate. Returns when the try begins, and its rate. `None` if someone asked to stop.
    pub fn next_try(&self, team: &mut Team, wanted: Try, patience: Duration) -> Result<Option<(i64, f64)>, Failure> {
        if self.is_led() {
            events::emit_patiently("try", clock::monotonic_ns(), &wanted)?;
        }
        match self.next(team, patience)? {
            // The rate as the line has it: all generators read that one.
            Next::Start(start) if self.is_led() => Ok(Some((start.start_ns, rate_for(start, wanted)?))),
            Next::Start(start) => Ok(Some((start.start_ns, wanted.rate_qps))),
            Next::Stop => Ok(None),
            Next::End => Err(Line::End.instead_of("a start")),
        }
    }

    /// Adds what the generators that follow tried at a rate, as soon as each has printed it.
    pub fn add_followers(
        &self,
        team: &mut Team,
        rate_qps: f64,
        patience: Duration,
        measured: &mut Measured,
    ) -> Result<(), Failure> {
        let mut followers = Followers::new(self.segment.of, rate_qps);
        let until = Instant::now() + patience;
        while let Some(segment) = followers.missing() {
            let missing = || {
                Failure::new(
                    format!("generator {segment} did not report its result within {} s", patience.as_secs()),
                    "check how that generator ended, and that its lines are passed on",
                )
            };
            match self.next_line(team, until, missing)? {
                Some(Line::Tried(tried)) => measured.add(&followers.take(&tried)?),
                Some(line) => return Err(line.instead_of("a `tried`")),
                None => break,
            }
        }
        Ok(())
    }

    /// The next line. If no line comes by `until`, it fails with `late`. `None` if someone asked to stop.
    fn next_line(&self, team: &mut Team, until: Instant, late: impl Fn() -> Failure) -> Result<Option<Line>, Failure> {
        let lines = self.lines.as_ref().expect("only a generator that is led waits for lines");
        loop {
            let line = lines.next(LOOK_INTERVAL);
            // A line that came before the request to stop is taken. The end of the lines may be that request.
            if let Ok(Some(line)) = line {
                return Ok(Some(Line::parse(&line)?));
            }
            team.supervise()?;
            if team.is_stopping() {
                return Ok(None);
            }
            line?;
            if Instant::now() >= until {
                return Err(late());
            }
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
    /// Checks that the start is yet to come, and soon.
    fn check(self, now_ns: i64) -> Result<Self, Failure> {
        let ahead_ns = self.start_ns.saturating_sub(now_ns);
        let sentence = if ahead_ns < 0 {
            format!("`start_ns` is {} ms in the past", ahead_ns.saturating_neg() / 1_000_000)
        } else if ahead_ns > AHEAD_NS_MAX {
            format!("`start_ns` is {} s ahead, more than {} s", ahead_ns / 1_000_000_000, AHEAD_NS_MAX / 1_000_000_000)
        } else {
            return Ok(self);
        };
        Err(Failure::new(
            sentence,
            "give CLOCK_MONOTONIC of the machine of this generator, in nanoseconds, and some time to write it",
        ))
    }
}

/// The event of another generator, which has tried its part of a rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    pub segment: Segment,
    pub rate_qps: f64,
    pub due: u64,
    pub sent: u64,
    pub answered: u64,
    pub wrong: u64,
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

/// The value `true`, and no other.
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
    /// Reads a line.
    fn parse(text: &str) -> Result<Self, Failure> {
        /// What shows the kind of a line.
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
        let refused = |error: serde_json::Error| {
            Failure::bad_input(format!("cannot understand a line on standard input: {error}"), LINES_HINT)
        };
        parse().map_err(refused)
    }

    /// The failure that this line came instead of another.
    fn instead_of(&self, wanted: &str) -> Failure {
        let name = match self {
            Line::Start(_) => "a start",
            Line::Tried(_) => "a `tried`",
            Line::End => "an end",
        };
        Failure::bad_input(format!("a line on standard input is {name}, but {wanted} must come here"), LINES_HINT)
    }
}

/// Whether two rates are the same: numbers in JSON may be read with another last digit.
fn is_same(one: f64, other: f64) -> bool {
    (one / other - 1.0).abs() < 1e-9
}

/// The rate of a start, which must be the wanted one.
fn rate_for(start: Start, wanted: Try) -> Result<f64, Failure> {
    let (rate_qps, wanted_qps) = (rate(start)?, wanted.rate_qps);
    let other = || format!("a start has the rate {rate_qps}, but the rate to try is {wanted_qps}");
    if is_same(rate_qps, wanted_qps) { Ok(rate_qps) } else { Err(Failure::bad_input(other(), LINES_HINT)) }
}

/// The rate of a start in a ramp.
pub fn rate(start: Start) -> Result<f64, Failure> {
    start.rate_qps.filter(|rate_qps| RATES_QPS.contains(rate_qps)).ok_or_else(wrong_rate)
}

fn wrong_rate() -> Failure {
    let (from, to) = (RATES_QPS.start(), RATES_QPS.end());
    let sentence = format!("a start of a ramp needs `rate_qps` from {from} to {to}, and no other start has it");
    Failure::bad_input(sentence, LINES_HINT)
}

impl Tried {
    /// The event of this generator.
    pub fn of(segment: Segment, rate_qps: f64, measured: &Measured) -> Self {
        let Measured { due, sent, answered, wrong, timeouts, lost, sending_ns, busy_share, due_times, lag_times } =
            measured;
        Tried {
            segment,
            rate_qps,
            due: *due,
            sent: *sent,
            answered: *answered,
            wrong: *wrong,
            timeouts: *timeouts,
            lost: *lost,
            sending_ns: *sending_ns,
            busy_share: *busy_share,
            due_histogram: encode(due_times),
            lag_histogram: encode(lag_times),
        }
    }

    /// The values of this event, to be added to those of other generators.
    fn measured(&self) -> Result<Measured, Failure> {
        let decode = |text: &str| {
            decode(text).map_err(|error| {
                let sentence = format!("a histogram of generator {} cannot be read: {error}", self.segment);
                Failure::bad_input(sentence, LINES_HINT)
            })
        };
        Ok(Measured {
            due: self.due,
            sent: self.sent,
            answered: self.answered,
            wrong: self.wrong,
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

/// The generators that follow and have not printed yet what they tried.
struct Followers {
    missing: Vec<Segment>,
    rate_qps: f64,
}

impl Followers {
    /// All generators but the first one.
    fn new(of: u32, rate_qps: f64) -> Self {
        Followers { missing: (2..=of).map(|number| Segment { number, of }).collect(), rate_qps }
    }

    /// The first generator that is missing.
    fn missing(&self) -> Option<Segment> {
        self.missing.first().copied()
    }

    /// Takes in what one generator tried.
    fn take(&mut self, tried: &Tried) -> Result<Measured, Failure> {
        let place = self.missing.iter().position(|segment| *segment == tried.segment);
        match place {
            Some(place) if is_same(tried.rate_qps, self.rate_qps) => {
                self.missing.remove(place);
                tried.measured()
            }
            _ => Err(Failure::bad_input(
                format!("generator {} tried another rate, tried twice, or is not one of the followers", tried.segment),
                "pass each `tried` line of the others on once, and only to generator 1",
            )),
        }
    }
}

/// The lines of standard input, as they come. A thread of its own reads them, so that the end of standard input is
/// noticed whatever the others do.
struct Lines(Receiver<Result<String, Failure>>);

impl Lines {
    /// Begins to read. With `until_eof`, the end of standard input is a request to stop.
    fn start(stop: &Stop, until_eof: bool) -> Result<Self, Failure> {
        let (sender, lines) = sync_channel(WAITING_MAX);
        let asker = until_eof.then(|| stop.asker());
        Thread::start("input", move || {
            read(BufReader::new(io::stdin()), &sender);
            if let Some(asker) = asker {
                asker.ask();
            }
        })?;
        Ok(Lines(lines))
    }

    /// The next line, if it comes within `patience`.
    fn next(&self, patience: Duration) -> Result<Option<String>, Failure> {
        match self.0.recv_timeout(patience) {
            Ok(line) => line.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Err(Failure::new("standard input ended before a line that was due", KEEP_OPEN))
            }
        }
    }
}

/// Passes lines on until the input ends, or nobody takes them. Nothing that follows a wrong line is read as a line.
fn read(mut input: impl BufRead, lines: &SyncSender<Result<String, Failure>>) {
    let wrong = |what: String| {
        let sentence = format!("a line on standard input is {what}");
        Failure::bad_input(sentence, "write one JSON object per line, and nothing else")
    };
    loop {
        let mut line = Vec::new();
        let line = match input.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(_) if line.pop_if(|last| *last == b'\n').is_none() && line.len() > LINE_BYTES_MAX => {
                Err(wrong(format!("longer than {LINE_BYTES_MAX} bytes")))
            }
            Ok(_) => String::from_utf8(line).map_err(|_| wrong("not UTF-8".into())),
            Err(error) => Err(Failure::new(format!("cannot read standard input: {error}"), KEEP_OPEN)),
        };
        let is_wrong = line.is_err();
        if lines.send(line).is_err() {
            return;
        }
        if is_wrong {
            let _ = io::copy(&mut input, &mut io::sink());
            return;
        }
    }
}

#[cfg(test)]
#[path = "led_tests.rs"]
mod tests;
