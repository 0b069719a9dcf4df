//! How parameters of a population are found from what was measured: no I/O.

pub mod pages;
pub mod popularity;
pub mod rates;

use super::measure::Spectrum;

/// A curve ends where so few draws are left.
const DRAWS_MIN: f64 = 8.0;

/// How many different ones are met among a share of the draws.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    pub share: f64,
    pub distinct: f64,
}

/// How many draws a spectrum is of.
pub fn draws(spectrum: &Spectrum) -> f64 {
    spectrum.iter().map(|(times, count)| *times as f64 * *count as f64).sum()
}

/// The rarefaction of a spectrum (Hurlbert, Ecology 52, 1971), each draw kept by itself: at all of them, and at shares
/// that become smaller by a factor.
fn curve(spectrum: &Spectrum, factor: f64) -> Vec<Point> {
    let draws = draws(spectrum);
    let shares =
        std::iter::successors(Some(1.0), |share| Some(share * factor)).take_while(|share| share * draws >= DRAWS_MIN);
    let met = |share: f64, times: u64| -((times as f64) * (-share).ln_1p()).exp_m1();
    shares
        .map(|share| {
            let distinct = spectrum.iter().map(|(times, count)| *count as f64 * met(share, *times)).sum();
            Point { share, distinct }
        })
        .collect()
}

/// The mean of the squares of the relative errors.
pub fn loss(curve: &[Point], model: impl Fn(usize, f64) -> f64) -> f64 {
    let error = |(at, point): (usize, &Point)| (model(at, point.share) / point.distinct).max(1e-9).ln().powi(2);
    curve.iter().enumerate().map(error).sum::<f64>() / curve.len().max(1) as f64
}

/// The one of some points that has the least value.
fn least<const N: usize>(points: impl Iterator<Item = [f64; N]>, value: impl Fn([f64; N]) -> f64) -> Option<[f64; N]> {
    let valued = points.map(|point| (point, value(point)));
    valued.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(point, _)| point)
}

/// Looks for the least value from a point on, in steps along each axis that become smaller (Hooke and Jeeves, Journal
/// of the ACM 8, 1961). `value` is infinite outside what is allowed.
pub fn descend<const N: usize>(
    mut at: [f64; N],
    mut steps: [f64; N],
    value: impl Fn([f64; N]) -> f64,
) -> ([f64; N], f64) {
    const HALVINGS: usize = 14;
    const STEPS_MAX: usize = 100;
    let mut least = value(at);
    for _ in 0..HALVINGS {
        for _ in 0..STEPS_MAX {
            let before = least;
            for axis in 0..N {
                for step in [steps[axis], -steps[axis]] {
                    let mut tried = at;
                    tried[axis] += step;
                    let found = value(tried);
                    if found < least {
                        (at, least) = (tried, found);
                    }
                }
            }
            if least == before {
                break;
            }
        }
        steps = steps.map(|step| step / 2.0);
    }
    (at, least)
}

/// The normal distribution up to a point.
fn normal_below(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_what_shares_of_the_draws_have() {
        // One name asked for 64 times, and 64 asked for once.
        let curve = curve(&[(1, 64), (64, 1)].into(), 0.5);
        assert_eq!(curve.len(), 5);
        assert!((curve[0].distinct - 65.0).abs() < 1e-9);
        assert!((curve[1].distinct - (32.0 + 1.0)).abs() < 1e-9);
    }

    #[test]
    fn the_least_value_is_found() {
        let (at, _) = descend([0.0, 0.0], [1.0, 1.0], |[x, y]| (x - 3.3).powi(2) + 10.0 * (y + x).powi(2));
        assert!((at[0] - 3.3).abs() < 0.01 && (at[1] + 3.3).abs() < 0.01, "{at:?}");
    }
}
