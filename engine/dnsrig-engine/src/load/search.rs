//! Periods of rising and falling rates, until the highest that holds is known: by one generator, or by the first of
//! several whom the others follow.

use std::{
    thread,
    time::{Duration, Instant},
};

use super::{
    Arguments,
    arrivals::{Model, Period},
    judge::{self, Measured},
    led::{self, Followers, LedError, Line, Start, Tried},
    priority::Priority,
    ramp::{self, Limits, Search, Settings, Try},
    start::{self, FIRST_PATIENCE, MORE_PATIENCE, Next},
    summary::{Step, Summary},
    team::{Outcome, Team},
};
use crate::base::{clock, events, failure::Failure};

/// Between two rates of a ramp the server's queues run empty.
const PAUSE_NS: i64 = 100_000_000;

/// Searches, with those that follow if there are any.
pub fn lead(arguments: &Arguments, team: &mut Team, limits: Limits, settings: Settings) -> Result<Summary, Failure> {
    let mut search = Search::new(settings);
    let (mut all, mut steps) = (Outcome::default(), Vec::new());
    while let Some((rate_qps, repeat)) = search.next() {
        let patience = if steps.is_empty() { FIRST_PATIENCE } else { patience(arguments) };
        let Some(period) = next_period(arguments, team, Try { rate_qps, repeat }, patience)? else { break };
        let period = team.wait_for(period)?;
        let outcome = team.work(period, |_| Ok(()))?;
        let mut measured = Measured::of(&outcome, period);
        add(&mut all, outcome);
        add_followers(arguments, team, rate_of(period, rate_qps), &mut measured)?;
        if team.is_stopping() {
            break;
        }
        let base = search.base_loss_share().unwrap_or(0.0);
        let step = judge::step(&measured, period.end_ns - period.start_ns, limits, Try { rate_qps, repeat }, base);
        if step.instrument_failed {
            search.instrument_failed()
        } else {
            let Step { holds, holds_but_for_loss, .. } = step;
            search.tried(ramp::Tried { holds, holds_but_for_loss, loss: measured.loss() })
        }
        team.reporter().step(&step)?;
        steps.push(step);
        thread::sleep(Duration::from_nanos(PAUSE_NS.unsigned_abs()));
    }
    let mut summary = summary(arguments, team, &all);
    summary.busy_share = steps.iter().map(|step: &Step| step.busy_share).fold(0.0, f64::max);
    summary.capacity_qps = search.capacity_qps();
    summary.capacity_is_lower_bound = search.is_lower_bound();
    summary.base_loss_share = search.base_loss_share();
    if let (Some(capacity_qps), Some(_)) = (summary.capacity_qps, summary.base_loss_share) {
        // Some were tried before the loss was known to be the same at every rate.
        steps.iter_mut().for_each(|step| step.holds |= step.holds_but_for_loss && step.rate_qps <= capacity_qps);
    }
    summary.steps = steps;
    Ok(summary)
}

/// Tries the rates that generator 1 wants to be tried, until it is told to end.
pub fn follow(arguments: &Arguments, team: &mut Team) -> Result<Summary, Failure> {
    let segment = arguments.instrument.segment;
    let (mut all, mut busy_share, mut wait) = (Outcome::default(), 0.0_f64, FIRST_PATIENCE);
    while let Next::Start(start) = team.next_start(wait)? {
        let rate_qps = led::rate(start)?;
        let period = team.wait_for(arguments.period(rate(rate_qps), start.start_ns))?;
        let outcome = team.work(period, |_| Ok(()))?;
        let measured = Measured::of(&outcome, period);
        add(&mut all, outcome);
        busy_share = busy_share.max(measured.busy_share);
        if team.is_stopping() {
            break;
        }
        let tried = Tried::of(segment, rate_qps, &measured);
        events::emit_patiently("tried", clock::monotonic_ns(), &tried)?;
        wait = patience(arguments);
    }
    Ok(Summary { busy_share, ..summary(arguments, team, &all) })
}

/// The period of a rate, when it begins soon or as a line says; none if someone asked us to end.
fn next_period(
    arguments: &Arguments,
    team: &mut Team,
    wanted: Try,
    patience: Duration,
) -> Result<Option<Period>, Failure> {
    if team.is_led() {
        start::say_try(wanted)?;
    }
    let start = match team.next_start(patience)? {
        Next::Start(start) => start,
        Next::Stop => return Ok(None),
        Next::End => return Err(LedError::Other { got: Line::End.name(), wanted: "a start" }.into()),
    };
    // As the line has it: that is what all generators read.
    let rate_qps = if team.is_led() { led::rate_for(start, wanted)? } else { wanted.rate_qps };
    let Start { start_ns, .. } = start;
    Ok(Some(arguments.period(rate(rate_qps), start_ns)))
}

/// Adds what those that follow tried, as soon as each has said so.
fn add_followers(
    arguments: &Arguments,
    team: &mut Team,
    rate_qps: f64,
    measured: &mut Measured,
) -> Result<(), Failure> {
    let mut followers = Followers::new(arguments.instrument.segment.of, rate_qps);
    let limit = patience(arguments);
    let until = Instant::now() + limit;
    while let Some(segment) = followers.missing() {
        match team.next_line(until, || LedError::Missing { segment, limit })? {
            Some(Line::Tried(tried)) => measured.add(&followers.take(&tried)?),
            Some(line) => return Err(LedError::Other { got: line.name(), wanted: "a `tried`" }.into()),
            None => break,
        }
    }
    Ok(())
}

/// A line comes within so long.
fn patience(arguments: &Arguments) -> Duration {
    arguments.duration + arguments.timeout + MORE_PATIENCE
}

fn rate(qps: f64) -> Model {
    Model::Rate { qps, poisson: false }
}

/// The rate of a period that has one.
fn rate_of(period: Period, otherwise: f64) -> f64 {
    if let Model::Rate { qps, .. } = period.model { qps } else { otherwise }
}

/// Adds what became of another period.
fn add(all: &mut Outcome, outcome: Outcome) {
    all.counts.add(&outcome.counts);
    all.series.add(&outcome.series);
    all.connections = outcome.connections;
    all.priority = all.priority.max(outcome.priority);
}

/// What this generator sent at all rates.
fn summary(arguments: &Arguments, team: &Team, all: &Outcome) -> Summary {
    let now_ns = clock::monotonic_ns();
    let mut summary = Summary::asked(arguments, arguments.period(Model::Outstanding(1), now_ns));
    summary.model = "ramp";
    summary.fill(&all.counts, &all.series);
    summary.connections = all.connections();
    if all.priority == Priority::Denied {
        summary.set_priority(all.priority);
    }
    summary.interrupted = team.is_stopping();
    summary
}
