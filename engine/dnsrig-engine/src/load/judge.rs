//! Whether a server holds a rate, by what all generators measured at it. No clock, no socket.

use super::{arrivals::Period, interval_stats::Losses, ramp::Limits, summary::Step, team::Outcome};
use crate::stats::histogram::{Distribution, Times, percentile};

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

/// Judges one rate, asked for during so long.
pub fn step(measured: &Measured, duration_ns: i64, limits: Limits, rate_qps: f64, repeat: u32) -> Step {
    let Measured { sent, answered, .. } = *measured;
    let sending_s = measured.sending_ns.max(duration_ns) as f64 / 1e9;
    let latency = Distribution::from(&measured.due_times);
    let unanswered = measured.timeouts.saturating_add(measured.lost.total());
    let loss_share = unanswered as f64 / sent.max(1) as f64;
    let in_time = percentile(&measured.due_times, limits.percentile) <= limits.latency_ns;
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
        holds: !late && loss_share <= limits.loss_share && in_time,
        instrument_failed: late && loss_share <= limits.loss_share,
    }
}
