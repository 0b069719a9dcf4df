//! The offset between two clocks, from an exchange of four times, and the line through the offsets of many bursts. No
//! clock, no socket.
//!
//! A question leaves at t1 and its answer arrives at t4, both by our clock; it was received at t2 and answered at t3,
//! both by the peer's clock (RFC 5905 §8). Neither way takes less than no time, so the offset lies between t3 − t4 and
//! t2 − t1: the middle is the estimate, and half of the width, which is the round trip time, its error. However unequal
//! the two ways are, the error covers that.

use serde::Serialize;

use super::message::{Answer, Wall};

/// Two clocks run apart by at most so much, in parts of a million: the kernel corrects a clock by up to 500, and one
/// that needs more than some tens is broken.
const DRIFT_PPM_MAX: i64 = 200;

/// Times of a peer beyond this are invalid: 73 years. Below it, no sum of some of them overflows.
const TIME_NS_MAX: i64 = i64::MAX / 4;

/// An anchor takes less than this ([`dnsrig_core::clock`]).
const ANCHOR_ERROR_NS_MAX: i64 = 1_000_000_000;

/// An offset, theirs − ours, and what it is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Our clock in the middle of the exchange.
    pub at_ns: i64,
    pub offset_ns: i64,
    /// The true offset at `at_ns` is no further away, if the clocks run apart by at most [`DRIFT_PPM_MAX`]: half of
    /// the round trip time, what the clocks may have run apart meanwhile, and a nanosecond, as clocks are read in
    /// whole ones.
    pub error_ns: i64,
    pub rtt_ns: i64,
    /// The wall clock of the peer.
    pub wall: Wall,
}

impl Exchange {
    /// Computes an exchange from an answer that came at `now_ns`. None if the times of the peer are impossible.
    pub fn of(answer: Answer, now_ns: i64) -> Option<Self> {
        let Answer { question, received_ns, answered_ns, wall } = answer;
        let asked_ns = question.sent_ns;
        let are_times = (0..=TIME_NS_MAX).contains(&received_ns) && (received_ns..=TIME_NS_MAX).contains(&answered_ns);
        let is_wall = wall.ahead_ns.unsigned_abs() <= TIME_NS_MAX.unsigned_abs()
            && (0..=ANCHOR_ERROR_NS_MAX).contains(&wall.error_ns);
        if !are_times || !is_wall {
            return None;
        }
        let elapsed_ns = now_ns - asked_ns;
        let (lowest_ns, highest_ns) = (answered_ns - now_ns, received_ns - asked_ns);
        // Either end is at most half of it away from the middle.
        let apart_ns = elapsed_ns * DRIFT_PPM_MAX / 2_000_000 + 1;
        let rtt_ns = highest_ns - lowest_ns;
        // Negative where their clock is the faster and the ways take no time; by more, it stepped.
        if rtt_ns < -2 * apart_ns {
            return None;
        }
        Some(Exchange {
            at_ns: asked_ns + elapsed_ns / 2,
            offset_ns: lowest_ns + rtt_ns.div_euclid(2),
            error_ns: (rtt_ns.max(0) + 1) / 2 + apart_ns + 1,
            rtt_ns,
            wall,
        })
    }

    /// How far their CLOCK_REALTIME is ahead of ours, and the error of that; `ours` is how far ours is ahead of our
    /// CLOCK_MONOTONIC.
    pub fn realtime(&self, ours: Wall) -> (i64, i64) {
        (self.offset_ns + self.wall.ahead_ns - ours.ahead_ns, self.error_ns + self.wall.error_ns + ours.error_ns)
    }
}

/// The exchange of a burst that says most: that with the shortest round trip.
pub fn best(burst: &[Exchange]) -> Option<Exchange> {
    burst.iter().copied().min_by_key(|exchange| exchange.rtt_ns)
}

/// An offset that changes evenly: at a moment t of our clock it is `offset_ns` + `drift_ppb` × (t − `at_ns`) / 10⁹.
///
/// At the middle of the best exchange of each burst that it was fitted to, the true offset is at most `error_ns` away
/// from the line, always: `error_ns` is the largest sum of a burst's distance from the line and its own error. Between
/// two bursts this holds where the drift is steady, that is, where the line is as near there as at the bursts; where
/// the kernel corrects a clock meanwhile, the distances show what that makes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Line {
    pub at_ns: i64,
    pub offset_ns: i64,
    pub drift_ppb: f64,
    pub error_ns: i64,
}

impl Line {
    /// On the line, to the nearest nanosecond.
    pub fn offset_ns(&self, at_ns: i64) -> i64 {
        let drift_ns = self.drift_ppb * (at_ns - self.at_ns) as f64 / 1e9;
        self.offset_ns.saturating_add(drift_ns.round() as i64)
    }
}

/// Weighted least squares through the best exchanges of bursts, each with the weight 1 / error². Through one, or
/// through several of one moment, goes the line without drift. None without any.
pub fn fit(bursts: &[Exchange]) -> Option<Line> {
    let first = bursts.first()?;
    // Relative to the first burst, where a double has digits enough: 2^53 ns are 104 days.
    let x = |burst: &Exchange| (burst.at_ns - first.at_ns) as f64;
    let y = |burst: &Exchange| (burst.offset_ns - first.offset_ns) as f64;
    let weight = |burst: &Exchange| (burst.error_ns as f64).powi(-2);
    let sum = |term: &dyn Fn(&Exchange) -> f64| bursts.iter().map(|burst| weight(burst) * term(burst)).sum::<f64>();
    let total = sum(&|_| 1.0);
    let (x_mean, y_mean) = (sum(&x) / total, sum(&y) / total);
    let spread = sum(&|burst| (x(burst) - x_mean).powi(2));
    let drift = if spread > 0.0 { sum(&|burst| (x(burst) - x_mean) * (y(burst) - y_mean)) / spread } else { 0.0 };
    let at_ns = first.at_ns + x_mean.round() as i64;
    let y_at = y_mean + drift * (x_mean.round() - x_mean);
    let offset_ns = first.offset_ns.saturating_add(y_at.round() as i64);
    let line = Line { at_ns, offset_ns, drift_ppb: drift * 1e9, error_ns: 0 };
    // Computed from the rounded line, so that the error includes the rounding.
    let reach_ns = |burst: &Exchange| {
        let away_ns = burst.offset_ns.saturating_sub(line.offset_ns(burst.at_ns)).saturating_abs();
        away_ns.saturating_add(burst.error_ns)
    };
    Some(Line { error_ns: bursts.iter().map(reach_ns).max()?, ..line })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::clock::{
        exchange::{Line, fit},
        message::{Question, Wall},
    };

    /// A clock that is `offset_ns` ahead of ours at 0, and gains `drift_ppb` on it.
    #[derive(Clone, Copy, Debug)]
    struct Clock {
        offset_ns: i64,
        drift_ppb: i64,
    }

    impl Clock {
        /// Its offset at a moment of ours, in nanoseconds and a billionth part of one: exact.
        fn offset(self, at_ns: i64) -> i128 {
            i128::from(self.offset_ns) * 1_000_000_000 + i128::from(self.drift_ppb) * i128::from(at_ns)
        }

        fn read(self, at_ns: i64) -> i64 {
            at_ns + self.offset(at_ns).div_euclid(1_000_000_000) as i64
        }

        fn is_within(self, at_ns: i64, offset_ns: i64, error_ns: i64) -> bool {
            let off = self.offset(at_ns) - i128::from(offset_ns) * 1_000_000_000;
            off.abs() <= i128::from(error_ns) * 1_000_000_000
        }
    }

    const WALL: Wall = Wall { ahead_ns: 0, error_ns: 0 };

    fn exchange(clock: Clock, sent_ns: i64, ways_ns: [i64; 3]) -> Exchange {
        let [there, answering, back] = ways_ns;
        let answer = Answer {
            question: Question { number: 0, sent_ns },
            received_ns: clock.read(sent_ns + there),
            answered_ns: clock.read(sent_ns + there + answering),
            wall: WALL,
        };
        Exchange::of(answer, sent_ns + there + answering + back).unwrap()
    }

    fn clock() -> impl Strategy<Value = Clock> {
        let offset_ns = prop_oneof![-1_000_000_000_000_000..=1_000_000_000_000_000_i64, -1000..1000_i64];
        let drift_ppb = prop_oneof![Just(0), Just(200_000), Just(-200_000), -200_000..=200_000_i64];
        (offset_ns, drift_ppb).prop_map(|(offset_ns, drift_ppb)| Clock { offset_ns, drift_ppb })
    }

    /// There, answering, back: from none to a second, either way.
    fn ways() -> impl Strategy<Value = [i64; 3]> {
        let way = || prop_oneof![Just(0), 0..1_000_i64, 0..1_000_000_000_i64];
        (way(), 0..1_000_000_i64, way()).prop_map(|(there, answering, back)| [there, answering, back])
    }

    proptest! {
        #[test]
        fn the_true_offset_lies_within_the_error_of_each_best_exchange_and_of_the_line(
            clock in clock(),
            bursts in prop::collection::vec((0..60_000_000_000_i64, prop::collection::vec(ways(), 1..8)), 1..20),
        ) {
            // A year after our boot, so that no clock of theirs is before its own.
            let mut at_ns = 2_000_000_000_000_000;
            let mut found = Vec::new();
            for (pause_ns, burst) in bursts {
                at_ns += pause_ns + 8_000_000_000;
                let burst: Vec<_> = burst.into_iter().map(|ways_ns| exchange(clock, at_ns, ways_ns)).collect();
                let best = best(&burst).unwrap();
                prop_assert!(clock.is_within(best.at_ns, best.offset_ns, best.error_ns), "{best:?}");
                prop_assert!(burst.iter().all(|other| best.rtt_ns <= other.rtt_ns));
                found.push(best);
            }
            let line = fit(&found).unwrap();
            for best in &found {
                prop_assert!(clock.is_within(best.at_ns, line.offset_ns(best.at_ns), line.error_ns), "{line:?}");
            }
        }

        #[test]
        fn a_line_through_equally_long_ways_has_the_drift(clock in clock(), bursts in 2..50_i64) {
            let at = |burst: i64| 2_000_000_000_000_000 + burst * 10_000_000_000;
            let found: Vec<_> = (0..bursts).map(|burst| exchange(clock, at(burst), [50_000, 1_000, 50_000])).collect();
            let Line { drift_ppb, error_ns, .. } = fit(&found).unwrap();
            prop_assert!((drift_ppb - clock.drift_ppb as f64).abs() < 1.0, "{drift_ppb}");
            prop_assert!(error_ns < 51_000 + 100, "{error_ns}");
        }

        #[test]
        fn whatever_a_peer_says_is_an_exchange_or_none(times: [i64; 4], elapsed_ns in 0..60_000_000_000_i64) {
            let [received_ns, answered_ns, ahead_ns, error_ns] = times;
            let question = Question { number: 0, sent_ns: 1_000_000_000 };
            let answer = Answer { question, received_ns, answered_ns, wall: Wall { ahead_ns, error_ns } };
            if let Some(exchange) = Exchange::of(answer, question.sent_ns + elapsed_ns) {
                prop_assert!(exchange.error_ns > 0);
                exchange.realtime(WALL);
                let later = Exchange { at_ns: exchange.at_ns + 1, offset_ns: 0, ..exchange };
                prop_assert!(fit(&[exchange, later]).is_some_and(|line| line.error_ns > 0));
            }
        }
    }

    #[test]
    fn the_offset_is_the_middle_and_the_error_half_of_the_round_trip() {
        let found = exchange(Clock { offset_ns: 3_700_000_000, drift_ppb: 0 }, 1_000_000, [400, 50, 200]);
        assert_eq!((found.rtt_ns, found.offset_ns, found.at_ns), (600, 3_700_000_100, 1_000_325));
        assert_eq!(found.error_ns, 302, "half, a nanosecond of drift, and one of reading");
    }

    #[test]
    fn a_peer_whose_clock_steps_within_an_exchange_says_nothing() {
        let question = Question { number: 0, sent_ns: 1_000 };
        let answer = Answer { question, received_ns: 5_000, answered_ns: 9_000, wall: WALL };
        assert_eq!(Exchange::of(answer, 2_000), None);
        assert_eq!(Exchange::of(Answer { answered_ns: 4_999, ..answer }, 2_000), None, "answered before received");
    }

    #[test]
    fn wall_clocks_are_compared_with_the_errors_of_both_anchors() {
        let found = exchange(Clock { offset_ns: 1_000, drift_ppb: 0 }, 1_000_000, [10, 0, 10]);
        let theirs = Exchange { wall: Wall { ahead_ns: 5_000, error_ns: 3 }, ..found };
        let ours = Wall { ahead_ns: 6_000, error_ns: 4 };
        assert_eq!(theirs.realtime(ours), (0, found.error_ns + 7));
    }

    fn burst(at_ns: i64, offset_ns: i64, error_ns: i64) -> Exchange {
        Exchange { at_ns, offset_ns, error_ns, rtt_ns: 2 * error_ns, wall: Wall { ahead_ns: 0, error_ns: 0 } }
    }

    #[test]
    fn one_burst_has_no_drift_and_none_no_line() {
        assert_eq!(fit(&[]), None);
        let line = fit(&[burst(1_000, 70, 5)]).unwrap();
        assert_eq!(line, Line { at_ns: 1_000, offset_ns: 70, drift_ppb: 0.0, error_ns: 5 });
        assert_eq!(line.offset_ns(i64::MAX), 70);
    }

    #[test]
    fn a_burst_of_large_error_bends_the_line_little_and_its_distance_is_told() {
        let second = 1_000_000_000;
        let bursts = [burst(0, 0, 10), burst(second, 1_000, 10), burst(2 * second, 12_000, 10_000)];
        let line = fit(&bursts).unwrap();
        assert!((line.drift_ppb - 1_000.0).abs() < 1.0, "{line:?}");
        let away_ns = 12_000 - line.offset_ns(2 * second);
        assert_eq!(line.error_ns, away_ns + 10_000);
    }
}
