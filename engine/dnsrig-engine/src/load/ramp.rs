//! The search for the highest rate that a server holds. No clock, no socket.
//!
//! The rate is doubled until one does not hold. Then the gap between the highest rate that held and the lowest that did
//! not is halved (geometrically) until it is narrow enough. A rate is tried up to `repeats` times and the majority
//! counts, so that one hiccup of the machine does not decide. The first try of all makes the connections and fills
//! caches, too: if it fails, it does not count.
//!
//! A rate at which only too many queries are lost fails if more are lost there than at the rates far below it.
//! Otherwise the loss does not depend on the rate: it shows nothing about the capacity, and the search goes on for the
//! rate at which it grows.

use dnsrig_core::stats::{Distribution, Times, percentile};
use serde::{Deserialize, Serialize};

use super::{counter::Counter as _, counts::Losses};

/// One try of a rate. It is also the event by which generator 1 asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Try {
    pub rate_qps: f64,
    pub repeat: u32,
}

/// What a server must do at a rate to hold it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RampLimits {
    /// The highest share of queries without an answer, 0 to 1.
    pub loss_share: f64,
    /// This percentile of the latency from the due time …
    pub percentile: f64,
    /// … is at most this time.
    pub latency_ns: u64,
}

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RampSettings {
    pub start_qps: f64,
    pub max_qps: f64,
    /// The search ends when the rate that held and the rate that did not differ by less than this share.
    pub precision: f64,
    /// The highest number of tries of a rate. It is odd.
    pub repeats: u32,
}

/// The search ends when this number of rates was decided, whatever the results.
const RATES_MAX: usize = 200;

/// The number of standard deviations by which one loss must exceed another to count as greater: chance alone does so
/// once in 700 comparisons.
const DEVIATIONS: f64 = 3.0;

/// The losses of rates are compared if they are apart by this factor, a little less than two: between neighbours the
/// loss of a server that is overloaded grows by less than chance does.
const APART: f64 = 1.9;

/// One try of a rate.
#[derive(Clone, Copy, Debug)]
pub struct TryOutcome {
    /// Whether it was within all limits.
    pub holds: bool,
    /// Whether it was within all limits but the limit of lost queries.
    pub holds_but_for_loss: bool,
    pub loss: Loss,
}

/// The number of queries that were lost, and of those that were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Loss {
    pub lost: u64,
    pub sent: u64,
}

impl Loss {
    fn add(&mut self, other: Loss) {
        self.lost += other.lost;
        self.sent += other.sent;
    }

    /// The share of queries that were lost.
    pub fn share(self) -> f64 {
        self.lost as f64 / self.sent.max(1) as f64
    }

    /// Whether a greater share is lost than of `other`, beyond what chance does: all lost queries would fall on the two
    /// in proportion to what was sent, with the variance of the hypergeometric distribution.
    fn exceeds(self, other: Loss) -> bool {
        let [lost, sent, all_lost, all_sent] =
            [self.lost, self.sent, self.lost + other.lost, self.sent + other.sent].map(|count| count as f64);
        let expected = all_lost * sent / all_sent.max(1.0);
        let variance = expected * (1.0 - sent / all_sent.max(1.0)) * (1.0 - all_lost / all_sent.max(1.0));
        // Half a query is the correction for a count that is compared with a continuous distribution.
        lost - 0.5 - expected > DEVIATIONS * variance.sqrt()
    }
}

/// The result of all tries of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Holds,
    /// Only too many queries are lost.
    Loses,
    Fails,
    /// The instrument could not send at this rate.
    Unsent,
}

#[derive(Clone, Copy, Debug)]
struct Rate {
    qps: f64,
    loss: Loss,
    verdict: Verdict,
}

/// What is known about the capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Bounds {
    held_qps: Option<f64>,
    failed_qps: Option<f64>,
    /// The instrument could not send at the rate that failed.
    is_unsent: bool,
    /// The loss up to the rate that held, if it is greater than asked for.
    base: Option<Loss>,
}

/// A search in progress.
#[derive(Clone, Debug)]
pub struct Search {
    settings: RampSettings,
    /// The rates that were decided, in ascending order.
    rates: Vec<Rate>,
    bounds: Bounds,
    rate_qps: f64,
    tries: Vec<TryOutcome>,
    /// Whether the first try of all has failed and does not count, and its rate is not decided yet.
    began_cold: bool,
}

impl Search {
    /// A search that has tried nothing yet.
    pub fn new(settings: RampSettings) -> Self {
        let rate_qps = settings.start_qps.min(settings.max_qps);
        let (rates, tries) = (Vec::new(), Vec::new());
        Search { settings, rates, bounds: Bounds::default(), rate_qps, tries, began_cold: false }
    }

    /// The rate to try now, and the number of the try. `None` when the search is over.
    pub fn next(&self) -> Option<(f64, u32)> {
        (!self.is_over()).then_some((self.rate_qps, self.tries.len() as u32 + u32::from(self.began_cold)))
    }

    /// Takes in the result of the rate that [`Search::next`] named. Returns whether it counts.
    pub fn tried(&mut self, tried: TryOutcome) -> bool {
        let counts = tried.holds || !self.begins_cold();
        if counts {
            self.add(tried);
        }
        counts
    }

    fn add(&mut self, tried: TryOutcome) {
        self.tries.push(tried);
        let majority = self.settings.repeats as usize / 2 + 1;
        let count = |is: fn(&TryOutcome) -> bool| self.tries.iter().filter(|tried| is(tried)).count();
        let held = count(|tried| tried.holds);
        let verdict = if held >= majority {
            Verdict::Holds
        } else if self.tries.len() - held < majority {
            return;
        } else if count(|tried| tried.holds || tried.holds_but_for_loss) >= majority {
            Verdict::Loses
        } else {
            Verdict::Fails
        };
        self.decide(verdict);
    }

    /// Takes in that the instrument could not send at that rate: no higher rate is tried, and the highest rate that
    /// held is only a lower bound. Returns whether it counts.
    pub fn instrument_failed(&mut self) -> bool {
        let counts = !self.begins_cold();
        if counts {
            self.decide(Verdict::Unsent);
        }
        counts
    }

    /// Whether the try that failed is the first of all. It can be so once.
    fn begins_cold(&mut self) -> bool {
        let is_first = self.rates.is_empty() && self.tries.is_empty() && !self.began_cold;
        self.began_cold |= is_first;
        is_first
    }

    /// The highest rate that held.
    pub fn capacity_qps(&self) -> Option<f64> {
        self.bounds.held_qps
    }

    /// Whether the instrument, or the highest rate allowed, ended the search rather than the server.
    pub fn is_lower_bound(&self) -> bool {
        self.bounds.is_unsent || self.bounds.failed_qps.is_none()
    }

    /// The share of queries that is lost at every rate up to the highest that held, if that is more than asked for.
    pub fn base_loss_share(&self) -> Option<f64> {
        self.bounds.base.map(Loss::share)
    }

    fn decide(&mut self, verdict: Verdict) {
        let mut loss = Loss::default();
        self.tries.drain(..).for_each(|tried| loss.add(tried.loss));
        self.began_cold = false;
        let place = self.rates.partition_point(|rate| rate.qps < self.rate_qps);
        self.rates.insert(place, Rate { qps: self.rate_qps, loss, verdict });
        self.bounds = bounds(&self.rates);
        self.rate_qps = match (self.bounds.held_qps, self.bounds.failed_qps) {
            (Some(held), None) => (held * 2.0).min(self.settings.max_qps),
            (Some(held), Some(failed)) => (held * failed).sqrt(),
            (None, Some(failed)) => failed / 2.0,
            (None, None) => self.rate_qps,
        };
    }

    fn is_over(&self) -> bool {
        match (self.bounds.held_qps, self.bounds.failed_qps) {
            _ if self.rates.len() >= RATES_MAX => true,
            (Some(held), Some(failed)) => failed / held <= 1.0 + self.settings.precision,
            (Some(held), None) => held >= self.settings.max_qps,
            // Below one query a second there is nothing to search.
            (None, Some(failed)) => failed < 2.0,
            (None, None) => false,
        }
    }
}

/// The bounds that follow from rates in ascending order: all hold up to the first that does not.
fn bounds(rates: &[Rate]) -> Bounds {
    let (mut bounds, mut held, mut loses) = (Bounds::default(), Loss::default(), false);
    for rate in rates {
        let is_held = match rate.verdict {
            Verdict::Holds => true,
            Verdict::Loses => loses_at_every_rate(rate, rates),
            Verdict::Fails | Verdict::Unsent => false,
        };
        if !is_held {
            (bounds.failed_qps, bounds.is_unsent) = (Some(rate.qps), rate.verdict == Verdict::Unsent);
            break;
        }
        bounds.held_qps = Some(rate.qps);
        held.add(rate.loss);
        loses |= rate.verdict == Verdict::Loses;
    }
    bounds.base = loses.then_some(held);
    bounds
}

/// Whether the loss at a rate does not exceed the loss at the rates far below it. If no such rate was tried: whether
/// the loss at the next rate far above does not exceed it.
fn loses_at_every_rate(rate: &Rate, rates: &[Rate]) -> bool {
    let mut below = Loss::default();
    rates.iter().filter(|other| other.qps * APART <= rate.qps).for_each(|other| below.add(other.loss));
    if below.sent > 0 {
        return !rate.loss.exceeds(below);
    }
    let above = rates.iter().find(|other| other.qps >= rate.qps * APART);
    above
        .is_some_and(|above| matches!(above.verdict, Verdict::Holds | Verdict::Loses) && !above.loss.exceeds(rate.loss))
}

/// The share of the due queries that the instrument must send in time for a step to show something about the server.
const SENT_SHARE_MIN: f64 = 0.99;

/// One rate of a ramp.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Step {
    pub repeat: u32,
    pub rate_qps: f64,
    pub sent_qps: f64,
    pub answered_qps: f64,
    pub loss_share: f64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub p99_9_ns: u64,
    pub lag_p99_ns: u64,
    pub busy_share: f64,
    pub holds: bool,
    /// Whether it is within all limits but the limit of lost queries.
    pub holds_but_for_loss: bool,
    /// The instrument did not send at this rate: the step shows nothing about the server.
    pub instrument_failed: bool,
}

/// What was measured at a rate, as far as it decides whether the rate holds.
#[derive(Clone, Debug)]
pub struct Measured {
    pub due: u64,
    pub sent: u64,
    pub answered: u64,
    pub wrong: u64,
    pub timeouts: u64,
    pub lost: Losses,
    pub sending_ns: i64,
    /// The share of time in which the busiest thread had work.
    pub busy_share: f64,
    /// Times from the due time to the answer, and from the due time to the sending.
    pub due_times: Times,
    pub lag_times: Times,
}

impl Measured {
    /// The queries that had no answer, or a wrong one.
    pub fn loss(&self) -> Loss {
        let lost = self.timeouts.saturating_add(self.lost.total()).saturating_add(self.wrong);
        Loss { lost, sent: self.sent }
    }

    /// Adds what another generator measured.
    pub fn add(&mut self, other: &Measured) {
        for (mine, other) in [
            (&mut self.due, other.due),
            (&mut self.sent, other.sent),
            (&mut self.answered, other.answered),
            (&mut self.wrong, other.wrong),
            (&mut self.timeouts, other.timeouts),
        ] {
            *mine = mine.saturating_add(other);
        }
        self.lost.add(&other.lost);
        self.sending_ns = self.sending_ns.max(other.sending_ns);
        self.busy_share = self.busy_share.max(other.busy_share);
        self.due_times.add(&other.due_times).expect("all histograms have the same bounds");
        self.lag_times.add(&other.lag_times).expect("all histograms have the same bounds");
    }
}

/// Judges one try of a rate that was asked for during `duration_ns`. `base` is the share of the queries that is lost at
/// every rate.
pub fn judge(
    measured: &Measured,
    duration_ns: i64,
    limits: RampLimits,
    Try { rate_qps, repeat }: Try,
    base: f64,
) -> Step {
    let Measured { sent, answered, .. } = *measured;
    let sending_s = measured.sending_ns.max(duration_ns) as f64 / 1e9;
    let latency = Distribution::from(&measured.due_times);
    let loss_share = measured.loss().share();
    // Queries without an answer have the longest latencies: the end of the distribution is left out.
    let in_time = |lost: f64| percentile(&measured.due_times, limits.percentile * (1.0 - lost)) <= limits.latency_ns;
    let lost_too_many = loss_share > base + limits.loss_share;
    let sent_qps = sent as f64 / sending_s;
    let lag_ns = percentile(&measured.lag_times, 99.0);
    // A full table of ids makes queries late, too: if answers are missing for a whole timeout, the server caused it.
    let late = sent_qps < SENT_SHARE_MIN * rate_qps || lag_ns > limits.latency_ns;
    Step {
        repeat,
        rate_qps,
        sent_qps,
        answered_qps: answered as f64 / sending_s,
        loss_share,
        p50_ns: latency.p50,
        p99_ns: latency.p99,
        p99_9_ns: latency.p99_9,
        lag_p99_ns: lag_ns,
        busy_share: measured.busy_share,
        holds: !late && !lost_too_many && in_time(base),
        holds_but_for_loss: !late && answered > 0 && in_time(loss_share),
        instrument_failed: late && !lost_too_many,
    }
}

#[cfg(test)]
#[path = "ramp_tests.rs"]
mod tests;
