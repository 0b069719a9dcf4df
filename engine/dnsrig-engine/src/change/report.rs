//! What `change` reports: its events and its summary.

use dnsrig_core::{
    clock,
    events::{self, Anchors, ProgressTimer, emit},
    failure::Failure,
    stats::{Spread, grouped, milliseconds},
    stop::Outcome,
};
use dnsrig_dns::header::{Rcodes, count_rcode};
use serde::Serialize;

use super::{
    core::{Core, End, Sent},
    plan::Plan,
};
use crate::dataset::churn::Kind;

const PROGRESS_INTERVAL_NS: i64 = 1_000_000_000;

#[derive(Serialize)]
struct Progress {
    sent: u64,
    accepted: u64,
    open: u64,
}

#[derive(Serialize)]
struct Summary<'a> {
    outcome: Outcome,
    start_ns: i64,
    rate_per_s: f64,
    timeout_ns: i64,
    due: u64,
    sent: u64,
    unsent: u64,
    accepted: u64,
    rcodes: &'a Rcodes,
    timeouts: u64,
    send_errors: u64,
    late: u64,
    unexpected: u64,
    unsigned: u64,
    unreachable: u64,
    removed: u64,
    added: u64,
    touched: u64,
    accept_ns: Option<Spread>,
    lag_ns: Option<Spread>,
    cpu_ns: i64,
}

/// Prints events as they come due, and counts what the summary needs.
pub struct Report {
    start_ns: i64,
    progress_timer: ProgressTimer,
    rcodes: Rcodes,
    accepted: u64,
    /// Answers to changes that were given up.
    pub late: u64,
    /// Datagrams that answer no change.
    pub unexpected: u64,
    /// Answers to signed updates without a valid signature.
    pub unsigned: u64,
    /// ICMP errors: nothing listens there.
    pub unreachable: u64,
}

impl Report {
    /// A report of changes that start now.
    pub fn new(start_ns: i64, anchors: Anchors) -> Self {
        Report {
            start_ns,
            progress_timer: ProgressTimer::new(start_ns, PROGRESS_INTERVAL_NS, anchors),
            rcodes: Rcodes::new(),
            accepted: 0,
            late: 0,
            unexpected: 0,
            unsigned: 0,
            unreachable: 0,
        }
    }

    /// Counts an answer that a change waited for.
    pub fn count_rcode(&mut self, rcode: u8) {
        self.accepted += u64::from(rcode == 0);
        count_rcode(&mut self.rcodes, rcode);
    }

    /// When an event may be due, in monotonic nanoseconds.
    pub fn due_ns(&self) -> i64 {
        self.progress_timer.due_ns()
    }

    /// Prints `progress` and `anchor` if they are due.
    pub fn emit_if_due(&mut self, now_ns: i64, core: &Core) -> Result<(), Failure> {
        if !self.progress_timer.is_progress_due(now_ns)? {
            return Ok(());
        }
        let (sent, open) = (core.sent().len() as u64, core.open() as u64);
        emit("progress", now_ns, &Progress { sent, accepted: self.accepted, open })
    }

    /// Prints the `summary`. A change without an answer counts in `accept_ns` with the time after which it was given
    /// up.
    pub fn summary(
        &self,
        outcome: Outcome,
        core: &Core,
        plan: &Plan,
        rate_per_s: f64,
        timeout_ns: i64,
    ) -> Result<(), Failure> {
        let now_ns = clock::monotonic_ns();
        let due = core.due_by(now_ns);
        let count = |end: fn(&End) -> bool| core.sent().iter().filter(|sent| end(&sent.end)).count() as u64;
        let send_errors = count(|end| *end == End::NotSent);
        let of_kind =
            |kind: Kind| (0..core.sent().len() as u64).filter(|n| plan.change(*n).kind == kind).count() as u64;
        let summary = Summary {
            outcome,
            start_ns: self.start_ns,
            rate_per_s,
            timeout_ns,
            due,
            sent: core.sent().len() as u64 - send_errors,
            unsent: due.saturating_sub(core.sent().len() as u64) + send_errors,
            accepted: self.accepted,
            rcodes: &self.rcodes,
            timeouts: count(|end| *end == End::Timeout),
            send_errors,
            late: self.late,
            unexpected: self.unexpected,
            unsigned: self.unsigned,
            unreachable: self.unreachable,
            removed: of_kind(Kind::Remove),
            added: of_kind(Kind::Add),
            touched: of_kind(Kind::Touch),
            accept_ns: Spread::of(core.sent().iter().filter_map(|sent| accept_ns(sent, timeout_ns))),
            lag_ns: Spread::of(core.sent().iter().map(|sent| sent.sent_ns - sent.due_ns)),
            cpu_ns: clock::process_cpu_ns(),
        };
        events::say(sentence(&summary));
        events::summary(now_ns, &summary)
    }
}

/// The result for people.
fn sentence(summary: &Summary<'_>) -> String {
    let Summary { sent, unsent, accepted, timeouts, accept_ns, outcome, .. } = *summary;
    let mut parts = vec![format!("{} changes sent", grouped(sent)), format!("{} accepted", grouped(accepted))];
    let others = [
        (sent.saturating_sub(accepted + timeouts), "refused or still open"),
        (timeouts, "without an answer within --timeout"),
        (unsent, "due and not sent"),
    ];
    parts.extend(
        others.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{} {what}", grouped(*count))),
    );
    parts.extend(
        accept_ns.map(|times| format!("median time to the answer {}", milliseconds(times.p50.max(0) as u64, None))),
    );
    format!("{}{}\n", parts.join(", "), outcome.remark("--duration"))
}

fn accept_ns(sent: &Sent, timeout_ns: i64) -> Option<i64> {
    match sent.end {
        End::Answered { answered_ns, rcode: 0 } => Some(answered_ns - sent.sent_ns),
        End::Timeout => Some(timeout_ns),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_counts_changes_by_what_became_of_them() {
        let rcodes = Rcodes::new();
        let of = |accepted, timeouts, outcome| {
            sentence(&Summary {
                outcome,
                start_ns: 0,
                rate_per_s: 1.0,
                timeout_ns: 0,
                due: 1_000,
                sent: 1_000,
                unsent: 0,
                accepted,
                rcodes: &rcodes,
                timeouts,
                send_errors: 0,
                late: 0,
                unexpected: 0,
                unsigned: 0,
                unreachable: 0,
                removed: 0,
                added: 0,
                touched: 0,
                accept_ns: Spread::of([1_200_000]),
                lag_ns: None,
                cpu_ns: 0,
            })
        };
        assert_eq!(
            of(1_000, 0, Outcome::Done),
            "1,000 changes sent, 1,000 accepted, median time to the answer 1.20 ms\n"
        );
        let some = of(900, 60, Outcome::Interrupted);
        assert!(some.contains("40 refused or still open, 60 without an answer within --timeout, "), "{some}");
        assert!(some.ends_with("; interrupted\n"), "{some}");
    }
}
