//! To whom `load` speaks: JSON lines to programs, text to people.

use std::{
    fs,
    io::{self, IsTerminal},
    net::SocketAddr,
    path::Path,
};

use serde::Serialize;

use super::{
    human_report::text,
    interval_stats::Interval,
    notes::without_real_time,
    record::{self, RecordError},
    summary::{Step, Summary},
};
use crate::{
    base::{
        clock,
        events::{self},
        failure::Failure,
    },
    stats::{grouped, latency, percentiles},
};

/// An interval's event.
#[derive(Serialize)]
struct Progress {
    interval: u64,
    due: u64,
    sent: u64,
    answered: u64,
    unanswered: u64,
    p50_ns: u64,
    p99_ns: u64,
    max_ns: u64,
    lag_p99_ns: u64,
}

/// Who reads what we say.
#[derive(Clone, Copy, Debug)]
pub struct Reporter {
    /// JSON lines on standard output.
    pub program: bool,
    /// Text on standard error.
    pub person: bool,
    /// Latencies from here on are told as "at least so much": queries without an answer count at this limit.
    pub timeout_ns: u64,
}

impl Reporter {
    /// A program reads a pipe; a person a terminal.
    pub fn find(json: bool, timeout_ns: i64) -> Self {
        let terminal = io::stdout().is_terminal();
        let person = io::stderr().is_terminal() || terminal;
        Reporter { program: json || !terminal, person, timeout_ns: timeout_ns.unsigned_abs() }
    }

    /// Says what is about to happen.
    pub fn say(self, text: impl FnOnce() -> String) {
        if self.person {
            events::say(text());
        }
    }

    /// Says how an interval went.
    pub fn interval(self, interval: &Interval, interval_s: f64) -> Result<(), Failure> {
        let (counts, series) = (&interval.counts, &interval.series);
        let [p50_ns, p99_ns] = percentiles(&series.due, [5_000, 9_900]);
        let [lag_p99_ns] = percentiles(&series.lag, [9_900]);
        let progress = Progress {
            interval: interval.number,
            due: counts.due,
            sent: counts.sent,
            answered: counts.answered,
            unanswered: counts.unanswered(),
            p50_ns,
            p99_ns,
            max_ns: series.due.max(),
            lag_p99_ns,
        };
        if self.person && interval_s >= 0.5 {
            events::say(format!(
                "{:>7.1} s  sent {:>9}  answered {:>9}  p50 {:>9}  p99 {:>9}  max {:>9}\n",
                interval.number as f64 * interval_s,
                grouped(progress.sent),
                grouped(progress.answered),
                latency(progress.p50_ns, Some(self.timeout_ns)),
                latency(progress.p99_ns, Some(self.timeout_ns)),
                latency(progress.max_ns, Some(self.timeout_ns)),
            ));
        }
        if self.program { events::emit("progress", clock::monotonic_ns(), &progress) } else { Ok(()) }
    }

    /// Says how a rate of a ramp went.
    pub fn step(self, step: &Step) -> Result<(), Failure> {
        if self.person {
            let verdict = if step.instrument_failed {
                "the instrument cannot send faster"
            } else if step.holds {
                "holds"
            } else if step.holds_but_for_loss {
                "holds but for the loss"
            } else {
                "does not hold"
            };
            events::say(format!(
                "{:>9} queries/s  answered {:>9}/s  lost {:>7.3} %  p50 {:>9}  p99 {:>9}  {verdict}\n",
                grouped(step.rate_qps as u64),
                grouped(step.answered_qps as u64),
                step.loss_share * 100.0,
                latency(step.p50_ns, Some(self.timeout_ns)),
                latency(step.p99_ns, Some(self.timeout_ns)),
            ));
        }
        if self.program { events::emit("step", clock::monotonic_ns(), step) } else { Ok(()) }
    }

    /// Says how it all went, and keeps the event in a file if there is a folder for it.
    pub fn summary(self, summary: &Summary, server: SocketAddr, folder: Option<&Path>) -> Result<(), Failure> {
        if self.person {
            events::say(text(summary, server));
        } else if let Some(why) = summary.real_time_missing {
            events::say(format!("note: {}\n", without_real_time(why)));
        }
        let line = events::summary_line(clock::monotonic_ns(), summary)?;
        if let Some(path) = folder.map(|folder| folder.join(record::SUMMARY)) {
            fs::write(&path, &line).map_err(|error| RecordError::Log(path, error))?;
        }
        if self.program {
            events::say_last(line)?;
        }
        Ok(())
    }
}
