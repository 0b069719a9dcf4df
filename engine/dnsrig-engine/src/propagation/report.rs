//! What `propagation` reports: its events, its summary and its rows.

use std::{net::SocketAddr, path::Path};

use dnsrig_core::{
    clock,
    events::{self, Anchors, ProgressTimer, emit},
    failure::Failure,
    rows::{self, Columns},
    stats::{Spread, grouped, milliseconds},
    stop::Outcome,
};
use dnsrig_dns::{
    header::{Rcodes, count_rcode},
    zones::Zones,
};
use serde::Serialize;

use super::core::{Change, Core, Settings, Sighting};

const PROGRESS_INTERVAL_NS: i64 = 1_000_000_000;

#[derive(Serialize)]
struct Progress {
    sent: u64,
}

/// How changes arrived on one secondary, or on all.
#[derive(Serialize)]
struct Arrivals {
    seen: u64,
    unseen: u64,
    propagation_ns: Option<Spread>,
    from_acceptance_ns: Option<Spread>,
    resolution_ns: Option<Spread>,
    polls: u64,
    poll_timeouts: u64,
}

#[derive(Serialize)]
struct OfSecondary {
    address: SocketAddr,
    #[serde(flatten)]
    arrivals: Arrivals,
}

#[derive(Serialize)]
struct Summary<'a> {
    outcome: Outcome,
    started_ns: i64,
    limit_ns: i64,
    wanted: u64,
    changes: u64,
    accepted: u64,
    refused: u64,
    rcodes: &'a Rcodes,
    accept_timeouts: u64,
    accept_ns: Option<Spread>,
    lag_ns: Option<Spread>,
    last_ns: Option<Spread>,
    #[serde(flatten)]
    all: Arrivals,
    secondaries: Vec<OfSecondary>,
    unexpected: u64,
    without_serial: u64,
    send_errors: u64,
    cpu_ns: i64,
}

/// Prints events as they come due, and counts what the summary needs.
pub struct Report {
    started_ns: i64,
    progress_timer: ProgressTimer,
    rcodes: Rcodes,
    /// Datagrams that answer no query.
    pub unexpected: u64,
    /// Answers to polls without a serial: SERVFAIL and the like.
    pub without_serial: u64,
    /// Datagrams that the kernel did not take.
    pub send_errors: u64,
}

impl Report {
    /// A report of a measurement that starts now.
    pub fn new(started_ns: i64, anchors: Anchors) -> Self {
        let progress_timer = ProgressTimer::new(started_ns, PROGRESS_INTERVAL_NS, anchors);
        let (unexpected, without_serial, send_errors) = (0, 0, 0);
        Report { started_ns, progress_timer, rcodes: Rcodes::new(), unexpected, without_serial, send_errors }
    }

    /// Counts the primary's first answer to a change.
    pub fn count_rcode(&mut self, core: &Core, number: u32, rcode: u8) {
        if core.changes()[number as usize].answered.is_none() {
            count_rcode(&mut self.rcodes, rcode);
        }
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
        emit("progress", now_ns, &Progress { sent: core.changes().len() as u64 })
    }

    /// Prints the `summary`.
    pub fn summary(
        &self,
        outcome: Outcome,
        core: &Core,
        secondaries: &[SocketAddr],
        settings: Settings,
    ) -> Result<(), Failure> {
        let changes = core.changes();
        let limit_ns = settings.limit_ns;
        let made = || changes.iter().enumerate().filter(|(_, change)| !change.is_refused());
        let last = made().map(|(n, change)| {
            core.sightings(n)
                .iter()
                .map(|sighting| propagation_ns(change, sighting, limit_ns))
                .max()
                .unwrap_or(limit_ns)
        });
        let of = |addressed: (usize, &SocketAddr)| OfSecondary {
            address: *addressed.1,
            arrivals: arrivals(core, addressed.0..addressed.0 + 1, limit_ns),
        };
        let summary = Summary {
            outcome,
            started_ns: self.started_ns,
            limit_ns,
            wanted: u64::from(settings.changes),
            changes: changes.len() as u64,
            accepted: changes.iter().filter(|change| change.accepted_ns().is_some()).count() as u64,
            refused: changes.iter().filter(|change| change.is_refused()).count() as u64,
            rcodes: &self.rcodes,
            accept_timeouts: changes.iter().filter(|change| change.answered.is_none()).count() as u64,
            accept_ns: Spread::of(changes.iter().filter_map(|change| Some(change.accepted_ns()? - change.sent_ns))),
            lag_ns: Spread::of(changes.iter().map(|change| change.sent_ns - change.due_ns)),
            last_ns: Spread::of(last),
            all: arrivals(core, 0..secondaries.len(), limit_ns),
            secondaries: secondaries.iter().enumerate().map(of).collect(),
            unexpected: self.unexpected,
            without_serial: self.without_serial,
            send_errors: self.send_errors,
            cpu_ns: clock::process_cpu_ns(),
        };
        events::say(sentence(&summary));
        events::summary(clock::monotonic_ns(), &summary)
    }
}

/// The result for people.
fn sentence(summary: &Summary<'_>) -> String {
    let Arrivals { seen, unseen, propagation_ns, .. } = summary.all;
    let times = propagation_ns.map_or(String::new(), |times| {
        let [median, longest] = [times.p50, times.max].map(|ns| milliseconds(ns.max(0) as u64, None));
        format!("; median {median}, longest {longest}")
    });
    format!(
        "{} of {} changes accepted, {} of {} arrivals on secondaries seen{times}{}\n",
        grouped(summary.accepted),
        grouped(summary.wanted),
        grouped(seen),
        grouped(seen + unseen),
        summary.outcome.remark("--limit")
    )
}

/// How a measurement ended: a change that was not made, was refused, or was not seen everywhere makes it a `timeout`.
pub fn outcome(core: &Core, wanted: u32, interrupted: bool) -> Outcome {
    let seen = |number| core.sightings(number).iter().all(|sighting| sighting.seen_ns.is_some());
    match interrupted {
        true => Outcome::Interrupted,
        false if core.changes().len() == wanted as usize && (0..core.changes().len()).all(seen) => Outcome::Done,
        false => Outcome::Timeout,
    }
}

/// The time from sending the update to its arrival. If it did not arrive, the time after which it was given up.
fn propagation_ns(change: &Change, sighting: &Sighting, limit_ns: i64) -> i64 {
    sighting.seen_ns.map_or(limit_ns, |seen_ns| seen_ns - change.sent_ns)
}

/// The arrivals on the secondaries in this range of numbers. Changes that the primary refused are not counted.
fn arrivals(core: &Core, secondaries: std::ops::Range<usize>, limit_ns: i64) -> Arrivals {
    let made = core.changes().iter().enumerate().filter(|(_, change)| !change.is_refused());
    let pairs: Vec<(&Change, &Sighting)> = made
        .flat_map(|(number, change)| core.sightings(number)[secondaries.clone()].iter().map(move |s| (change, s)))
        .collect();
    let seen = || pairs.iter().filter_map(|(change, sighting)| Some((*change, *sighting, sighting.seen_ns?)));
    let polls = secondaries.map(|secondary| core.polls(secondary));
    let (sent, timeouts) = polls.fold((0, 0), |sum, polls| (sum.0 + polls.sent, sum.1 + polls.timeouts));
    Arrivals {
        seen: seen().count() as u64,
        unseen: (pairs.len() - seen().count()) as u64,
        propagation_ns: Spread::of(pairs.iter().map(|(change, sighting)| propagation_ns(change, sighting, limit_ns))),
        // A secondary may have the change before the primary's answer is here: then the time is below zero.
        from_acceptance_ns: Spread::of(seen().filter_map(|(change, _, seen_ns)| Some(seen_ns - change.accepted_ns()?))),
        // Without a poll that found it missing, it arrived at any time since the update was sent.
        resolution_ns: Spread::of(seen().map(|(c, s, seen_ns)| seen_ns - s.last_unseen_ns.unwrap_or(c.sent_ns))),
        polls: sent,
        poll_timeouts: timeouts,
    }
}

/// One change, with its number, as one secondary saw it.
struct Row<'a> {
    number: usize,
    change: &'a Change,
    secondary: SocketAddr,
    sighting: &'a Sighting,
}

/// Writes a row for each change and secondary to `path`.
pub fn write_rows(path: &Path, zones: &Zones, secondaries: &[SocketAddr], core: &Core) -> Result<(), Failure> {
    let columns = Columns::<Row>::default()
        .value("change", |row| row.number as u32)
        .value("zone", |row| zones.name(row.change.zone).to_string())
        .value("serial", |row| row.change.serial)
        .value("secondary", |row| row.secondary.to_string())
        .value("due_ns", |row| row.change.due_ns)
        .value("changed_ns", |row| row.change.sent_ns)
        .optional("accepted_ns", |row| row.change.accepted_ns())
        .optional("rcode", |row| row.change.answered.map(|(_, rcode)| rcode))
        .optional("last_unseen_ns", |row| row.sighting.last_unseen_ns)
        .optional("seen_ns", |row| row.sighting.seen_ns);
    let of_change = |(number, change)| {
        let sightings = secondaries.iter().zip(core.sightings(number));
        sightings.map(move |(secondary, sighting)| Row { number, change, secondary: *secondary, sighting })
    };
    rows::write(path, columns, core.changes().iter().enumerate().flat_map(of_change))
}

#[cfg(test)]
mod tests {
    use super::{
        super::core::{Action, Pace},
        *,
    };

    const MS: i64 = 1_000_000;
    const LIMIT_NS: i64 = 500 * MS;

    /// Two changes of a zone on two secondaries. The first is accepted after 2 ms, missing at 5 ms, and seen on one at
    /// 8 ms and on the other at 30 ms. The second has this answer, and is not seen.
    fn measured(rcode: u8) -> Core {
        let settings = Settings {
            zones: 1,
            secondaries: 2,
            changes: 2,
            pace: Pace::Single { pause_ns: 10 * MS, spread_ns: 0 },
            poll_rate_per_s: 1_000,
            poll_timeout_ns: 100 * MS,
            accept_timeout_ns: 200 * MS,
            end_ns: i64::MAX,
            limit_ns: LIMIT_NS,
        };
        let mut core = Core::new(settings, &[7], 0);
        assert!(matches!(core.next(0), Action::Change { number: 0, .. }));
        core.on_accepted(2 * MS, 0, 0);
        let poll = |core: &mut Core, sent_ns: i64, wanted: usize, answered_ns: i64, serial: u32| {
            while let Action::Poll { id, secondary, .. } = core.next(sent_ns) {
                if secondary == wanted {
                    core.on_polled(answered_ns, id, Some(serial));
                    break;
                }
            }
        };
        poll(&mut core, 5 * MS, 0, 6 * MS, 7);
        poll(&mut core, 7 * MS, 0, 8 * MS, 8);
        poll(&mut core, 29 * MS, 1, 30 * MS, 8);
        assert!(matches!(core.next(40 * MS), Action::Change { number: 1, .. }));
        core.on_accepted(43 * MS, 1, rcode);
        core
    }

    #[test]
    fn arrivals_are_counted_for_each_secondary_and_for_all() {
        let core = measured(0);
        let [first, second, all] = [0..1, 1..2, 0..2].map(|range| arrivals(&core, range, LIMIT_NS));
        for (found, seen, unseen) in [(&first, 1, 1), (&second, 1, 1), (&all, 2, 2)] {
            assert_eq!((found.seen, found.unseen), (seen, unseen));
            // What did not arrive counts at the limit.
            assert_eq!(found.propagation_ns.unwrap().max, LIMIT_NS);
        }
        let least = |spread: Option<Spread>| spread.unwrap().min / MS;
        assert_eq!([&first, &second].map(|found| least(found.propagation_ns)), [8, 30]);
        assert_eq!([&first, &second].map(|found| least(found.from_acceptance_ns)), [6, 28]);
        assert_eq!([&first, &second].map(|found| least(found.resolution_ns)), [3, 30], "since it was missing, or sent");
        assert_eq!((first.polls + second.polls, first.poll_timeouts), (all.polls, 0));
        assert!(first.polls >= 2 && second.polls >= 1);
        let refused = arrivals(&measured(5), 0..2, LIMIT_NS);
        assert_eq!((refused.seen, refused.unseen), (2, 0), "a change that was not made arrives nowhere");
    }

    #[test]
    fn a_measurement_is_done_if_every_change_was_seen_everywhere() {
        let mut core = measured(0);
        assert_eq!(
            [(2, false), (2, true)].map(|(wanted, ended)| outcome(&core, wanted, ended)),
            [Outcome::Timeout, Outcome::Interrupted]
        );
        let mut now_ns = 50 * MS;
        while outcome(&core, 2, false) != Outcome::Done {
            if let Action::Poll { id, .. } = core.next(now_ns) {
                core.on_polled(now_ns, id, Some(9));
            }
            now_ns += MS;
            assert!(now_ns < 100 * MS, "it was seen on both");
        }
        assert_eq!(
            [1, 3].map(|wanted| outcome(&core, wanted, false)),
            [Outcome::Timeout; 2],
            "another number of changes"
        );
    }
}
