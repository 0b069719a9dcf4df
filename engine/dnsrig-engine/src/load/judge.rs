//! Whether a server holds a rate, by what all generators measured at it. No clock, no socket.

use super::{
    arrivals::Period,
    interval_stats::Losses,
    ramp::{Limits, Loss, Try},
    summary::Step,
    team::Outcome,
};
use crate::stats::{Distribution, Times, percentile};

/// Of the queries due, the instrument must send this share in time for a step to say something of the server.
const SENT_SHARE_MIN: f64 = 0.99;

/// What was measured at a rate, as far as it decides.
#[derive(Clone, Debug)]
pub struct Measured {
    pub due: u64,
    pub sent: u64,
    pub answered: u64,
    pub timeouts: u64,
    pub lost: Losses,
    pub sending_ns: i64,
    /// Of the busiest thread.
    pub busy_share: f64,
    /// Times from the due time to the answer, and to the sending.
    pub due_times: Times,
    pub lag_times: Times,
}

impl Measured {
    /// By one generator.
    pub fn of(outcome: &Outcome, period: Period) -> Self {
        let Outcome { counts, series, sending_ns, .. } = outcome;
        Measured {
            due: counts.due,
            sent: counts.sent,
            answered: counts.answered,
            timeouts: counts.timeouts,
            lost: counts.lost,
            sending_ns: *sending_ns,
            busy_share: outcome.busy_share(period),
            due_times: series.due.clone(),
            lag_times: series.lag.clone(),
        }
    }

    /// How many queries had no answer.
    pub fn loss(&self) -> Loss {
        Loss { lost: self.timeouts.saturating_add(self.lost.total()), sent: self.sent }
    }

    /// Adds what another generator measured; nothing is lost of it.
    pub fn add(&mut self, other: &Measured) {
        for (mine, other) in [
            (&mut self.due, other.due),
            (&mut self.sent, other.sent),
            (&mut self.answered, other.answered),
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

/// Judges one try of a rate that was asked for during so long; this share of the queries is lost at every rate.
pub fn step(measured: &Measured, duration_ns: i64, limits: Limits, Try { rate_qps, repeat }: Try, base: f64) -> Step {
    let Measured { sent, answered, .. } = *measured;
    let sending_s = measured.sending_ns.max(duration_ns) as f64 / 1e9;
    let latency = Distribution::from(&measured.due_times);
    let loss_share = measured.loss().share();
    // Queries without an answer have the longest latencies: what is left out is the end of the distribution.
    let in_time = |lost: f64| percentile(&measured.due_times, limits.percentile * (1.0 - lost)) <= limits.latency_ns;
    let lost_too_many = loss_share > base + limits.loss_share;
    let sent_qps = sent as f64 / sending_s;
    let lag_ns = percentile(&measured.lag_times, 99.0);
    // A full table of ids, too: with answers missing for a whole timeout, that is the server's doing.
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
mod tests {
    use super::*;
    use crate::stats::times;

    const MS: u64 = 1_000_000;

    /// A thousand queries in a second, of which so many have no answer within it.
    fn measured(lost: u64) -> Measured {
        let mut due_times = times();
        due_times.record_n(MS, 1_000 - lost).unwrap();
        due_times.record_n(1_000 * MS, lost).unwrap();
        Measured {
            due: 1_000,
            sent: 1_000,
            answered: 1_000 - lost,
            timeouts: lost,
            lost: Losses::default(),
            sending_ns: 1_000_000_000,
            busy_share: 0.0,
            due_times,
            lag_times: times(),
        }
    }

    /// Whether a rate holds, and whether it does but for the loss, if that is a part of what is lost at every rate.
    fn judged(lost: u64, base: f64) -> (bool, bool) {
        let limits = Limits { loss_share: 0.001, percentile: 99.0, latency_ns: 10 * MS };
        let step = step(&measured(lost), 1_000_000_000, limits, Try { rate_qps: 1_000.0, repeat: 0 }, base);
        (step.holds, step.holds_but_for_loss)
    }

    #[test]
    fn a_loss_of_every_rate_counts_neither_as_loss_nor_in_the_percentile() {
        assert_eq!((judged(1, 0.0), judged(3, 0.0), judged(30, 0.0)), ((true, true), (false, true), (false, true)));
        assert_eq!((judged(3, 0.003), judged(30, 0.03), judged(40, 0.03)), ((true, true), (true, true), (false, true)));
        assert_eq!(judged(1_000, 0.0), (false, false), "no answer was in time");
    }
}
