//! What bounds a closed loop whose queries are lost. No clock, no socket.

use super::summary::{LoopBound, Summary};

/// A loss that keeps less than this share of the loop waiting is not worth a word.
const WAITING_SHARE_MIN: f64 = 0.1;

impl LoopBound {
    /// What bounded a closed loop, if lost queries did.
    pub fn of(summary: &Summary) -> Option<Self> {
        let lost = summary.lost.total();
        let [ended, lost, timeouts] =
            [summary.answered + summary.timeouts + lost, lost, summary.timeouts].map(|count| count as f64);
        let timeout_s = summary.timeout_ns as f64 / 1e9;
        if summary.model != "closed" || summary.answered == 0 || summary.duration_s <= 0.0 {
            return None;
        }
        // What was lost with its connection is recorded at the limit, and kept no place until then.
        let all_s = summary.sent_latency_ns.mean * ended / 1e9 - lost * timeout_s;
        let waiting_s = timeouts * timeout_s;
        let waiting_share = waiting_s / all_s;
        let answered_s = (all_s - waiting_s) / summary.answered as f64;
        // If there are several generators, this one has a part of the outstanding queries.
        let outstanding = all_s / summary.duration_s;
        (waiting_share > WAITING_SHARE_MIN && answered_s > 0.0)
            .then(|| LoopBound { waiting_share: waiting_share.min(1.0), qps_without_loss: outstanding / answered_s })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Distribution;

    /// 10 outstanding for 10 s, answers after 0.1 ms, so many without one after a second.
    fn closed(answered: u64, timeouts: u64) -> Summary {
        let mean = (answered as f64 * 1e5 + timeouts as f64 * 1e9) / (answered + timeouts) as f64;
        Summary {
            model: "closed",
            answered,
            timeouts,
            timeout_ns: 1_000_000_000,
            duration_s: 10.0,
            sent_latency_ns: Distribution { mean, ..Distribution::default() },
            ..Summary::default()
        }
    }

    #[test]
    fn a_small_loss_bounds_a_closed_loop_and_the_rate_without_it_is_known() {
        // 3 of 1,000 for a second, 997 for 0.1 ms: 10 outstanding make 3,226 a second instead of 100,000.
        let bound = LoopBound::of(&closed(32_160, 97)).unwrap();
        assert!((bound.waiting_share - 0.968).abs() < 0.001, "{bound:?}");
        assert!((bound.qps_without_loss - 100_000.0).abs() < 2_000.0, "{bound:?}");
        assert_eq!(LoopBound::of(&closed(1_000_000, 1)), None);
        assert_eq!(LoopBound::of(&closed(0, 100)), None);
        assert_eq!(LoopBound::of(&Summary { model: "rate", ..closed(32_160, 97) }), None);
    }
}
