//! The line through the offsets of many bursts: how two clocks run apart. No clock, no socket.

use serde::Serialize;

use super::exchange::Exchange;

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
    // Of the line as it is told, so that what rounding takes away is in it.
    let reach_ns = |burst: &Exchange| {
        let away_ns = burst.offset_ns.saturating_sub(line.offset_ns(burst.at_ns)).saturating_abs();
        away_ns.saturating_add(burst.error_ns)
    };
    Some(Line { error_ns: bursts.iter().map(reach_ns).max()?, ..line })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::message::Wall;

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
