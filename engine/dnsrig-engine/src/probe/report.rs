//! What the probe reports: its events, its summary and its rows.

use std::path::Path;

use dnsrig_core::{
    clock,
    events::{self, Anchors, emit},
    failure::Failure,
    rows::{self, Columns},
    stats::{grouped, milliseconds},
    stop::Outcome,
};
use dnsrig_dns::{soa::Verdicts, zones::Zones};
use serde::Serialize;

use super::core::{Core, Settings};

/// The values of the column `outcome`.
const OUTCOMES: [&str; 2] = ["unseen", "seen"];

#[derive(Serialize)]
struct FirstAnswer {
    rcode: u8,
}

#[derive(Serialize)]
struct Nothing {}

#[derive(Serialize)]
struct Progress {
    seen: u64,
    zones: u64,
    polls: u64,
}

#[derive(Serialize)]
struct Summary<'a> {
    outcome: Outcome,
    zones: u64,
    seen: u64,
    started_ns: i64,
    first_answer_ns: Option<i64>,
    first_seen_ns: Option<i64>,
    last_seen_ns: Option<i64>,
    last_unseen_ns: Option<i64>,
    resolution_ns: Option<i64>,
    polls: u64,
    answers: &'a Verdicts,
    timeouts: u64,
    unreachable: u64,
    late: u64,
    send_errors: u64,
    cpu_ns: i64,
    rate: u32,
    window: u32,
}

/// Prints events as they come due, and counts what the summary needs.
pub struct Report {
    started_ns: i64,
    progress_interval_ns: i64,
    progress_due_ns: i64,
    seen_reported: u64,
    anchors: Anchors,
    first_answer_ns: Option<i64>,
    first_seen_ns: Option<i64>,
    /// The answers, by what they show.
    pub verdicts: Verdicts,
    /// Queries that the kernel did not take.
    pub send_errors: u64,
}

impl Report {
    /// A report of a probe that starts now.
    pub fn new(started_ns: i64, progress_interval_ns: i64, anchors: Anchors) -> Self {
        Report {
            started_ns,
            progress_interval_ns,
            progress_due_ns: started_ns + progress_interval_ns,
            seen_reported: 0,
            anchors,
            first_answer_ns: None,
            first_seen_ns: None,
            verdicts: Verdicts::default(),
            send_errors: 0,
        }
    }

    /// Prints `first-answer` at the first response to one of the polls, whatever its content.
    pub fn on_answer(&mut self, now_ns: i64, rcode: u8) -> Result<(), Failure> {
        if self.first_answer_ns.is_none() {
            self.first_answer_ns = Some(now_ns);
            emit("first-answer", now_ns, &FirstAnswer { rcode })?;
        }
        Ok(())
    }

    /// Prints `first-seen` at the first zone.
    pub fn on_seen(&mut self, now_ns: i64) -> Result<(), Failure> {
        if self.first_seen_ns.is_none() {
            self.first_seen_ns = Some(now_ns);
            emit("first-seen", now_ns, &Nothing {})?;
        }
        Ok(())
    }

    /// When an event may be due, in monotonic nanoseconds.
    pub fn due_ns(&self, core: &Core) -> i64 {
        let has_progress = core.counts().seen > self.seen_reported;
        self.anchors.due_ns().min(if has_progress { self.progress_due_ns } else { i64::MAX })
    }

    /// Prints `progress` and `anchor` if they are due.
    pub fn emit_if_due(&mut self, now_ns: i64, core: &Core) -> Result<(), Failure> {
        self.anchors.emit_if_due(now_ns)?;
        if now_ns < self.progress_due_ns || core.counts().seen == self.seen_reported {
            return Ok(());
        }
        self.progress_due_ns = now_ns + self.progress_interval_ns;
        self.progress(now_ns, core)
    }

    fn progress(&mut self, now_ns: i64, core: &Core) -> Result<(), Failure> {
        let counts = core.counts();
        self.seen_reported = counts.seen;
        let zones = core.zones().len() as u64;
        emit("progress", now_ns, &Progress { seen: counts.seen, zones, polls: counts.polls })
    }

    /// Prints the `summary`, after a last `progress` if there was any since.
    pub fn summary(&mut self, outcome: Outcome, core: &Core, settings: Settings) -> Result<(), Failure> {
        let now_ns = clock::monotonic_ns();
        let counts = core.counts();
        if counts.seen > self.seen_reported {
            self.progress(now_ns, core)?;
        }
        let last_seen_ns = core.zones().filter_map(|zone| zone.seen).map(|(seen_ns, _)| seen_ns).max();
        let last_unseen_ns = core.zones().filter_map(|zone| zone.last_unseen_ns).max();
        let summary = Summary {
            outcome,
            zones: core.zones().len() as u64,
            seen: counts.seen,
            started_ns: self.started_ns,
            first_answer_ns: self.first_answer_ns,
            first_seen_ns: self.first_seen_ns,
            last_seen_ns,
            last_unseen_ns,
            // Complete at the earliest after the last poll that missed a zone, at the latest when the last was seen.
            // If no poll ever missed one, the set was complete before we began, and there is nothing to resolve.
            resolution_ns: last_seen_ns.zip(last_unseen_ns).filter(|_| outcome == Outcome::Done).map(|(a, b)| a - b),
            polls: counts.polls,
            answers: &self.verdicts,
            timeouts: counts.timeouts,
            unreachable: counts.unreachable,
            late: counts.late,
            send_errors: self.send_errors,
            cpu_ns: clock::process_cpu_ns(),
            rate: settings.rate,
            window: settings.window,
        };
        events::say(sentence(&summary));
        events::summary(now_ns, &summary)
    }
}

/// The result for people.
fn sentence(summary: &Summary<'_>) -> String {
    let Summary { seen, zones, last_seen_ns, started_ns, outcome, .. } = *summary;
    let when = last_seen_ns.map_or(String::new(), |last_ns| {
        format!(" within {}", milliseconds((last_ns - started_ns).max(0) as u64, None))
    });
    format!("{} of {} zones seen{when}{}\n", grouped(seen), grouped(zones), outcome.remark("--limit"))
}

/// Writes a row for each zone to `path`.
pub fn write_rows(path: &Path, zones: &Zones, core: &Core) -> Result<(), Failure> {
    let columns = Columns::<u32>::default()
        .value("zone", |zone| zones.name(*zone).to_string())
        .optional("last_unseen_ns", |zone| core.zone(*zone).last_unseen_ns)
        .optional("seen_ns", |zone| core.zone(*zone).seen.map(|(seen_ns, _)| seen_ns))
        .optional("serial", |zone| core.zone(*zone).seen.map(|(_, serial)| serial))
        .value("polls", |zone| core.zone(*zone).polls)
        .word("outcome", OUTCOMES, |zone| usize::from(core.zone(*zone).seen.is_some()));
    rows::write(path, columns, 0..zones.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_what_is_missing() {
        let answers = Verdicts::default();
        let summary = |outcome, last_seen_ns| Summary {
            outcome,
            zones: 10_000,
            seen: 9_990,
            started_ns: 1_000_000,
            first_answer_ns: None,
            first_seen_ns: None,
            last_seen_ns,
            last_unseen_ns: None,
            resolution_ns: None,
            polls: 0,
            answers: &answers,
            timeouts: 0,
            unreachable: 0,
            late: 0,
            send_errors: 0,
            cpu_ns: 0,
            rate: 0,
            window: 0,
        };
        assert_eq!(
            sentence(&summary(Outcome::Timeout, Some(151_000_000))),
            "9,990 of 10,000 zones seen within 150 ms; not all within --limit\n"
        );
        assert_eq!(sentence(&summary(Outcome::Interrupted, None)), "9,990 of 10,000 zones seen; interrupted\n");
    }
}
