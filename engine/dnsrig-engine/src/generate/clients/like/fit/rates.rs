//! The rates of clients: how many different clients there are among all queries, a half of them, a quarter and so on.

use super::{curve, descend, draws, least, loss, normal_below};
use crate::generate::clients::{arguments::Habits, like::measure::Spectrum};

const FACTOR: f64 = 0.5;

/// Deviations that are looked at, before the best is made finer.
const SPREADS: usize = 16;
const SPREAD_STEP: f64 = 0.2;
const SPREAD_MAX: f64 = 5.0;

/// There are at most so many clients for one that asked.
const SILENT: [f64; 8] = [1.0, 1.1, 1.3, 1.7, 2.5, 4.0, 8.0, 16.0];
const SILENT_MAX: f64 = 20.0;

/// The normal distribution is cut into so many parts, from eight deviations below the mean to eight above.
const PARTS: usize = 320;
const DEVIATIONS: f64 = 8.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    pub spread: f64,
    /// The number of clients, with the ones that asked nothing.
    pub clients: f64,
    pub error: f64,
}

/// Fits rates to clients by their numbers of queries, which come in pages; None if too few queries were asked.
pub fn fit(spectrum: &Spectrum, habits: &Habits, spread: Option<f64>) -> Option<Rates> {
    let curve = curve(spectrum, FACTOR);
    if curve.len() < 3 {
        return None;
    }
    let active = curve[0].distinct;
    let (queries_a_visit, missed) = missed(habits, &curve.iter().map(|point| point.share).collect::<Vec<_>>());
    let visits = draws(spectrum) / queries_a_visit;
    let value = |[spread, silent_ln]: [f64; 2]| {
        if !(0.0..=SPREAD_MAX).contains(&spread) || !(0.0..=SILENT_MAX.ln()).contains(&silent_ln) {
            return f64::INFINITY;
        }
        let clients = active * silent_ln.exp();
        let rates = Rates::parts(spread);
        loss(&curve, |at, _| {
            let visits = visits / clients * (1.0 - missed[at]);
            clients * rates.iter().map(|(rate, part)| -part * (-visits * rate).exp_m1()).sum::<f64>()
        })
    };
    let spreads: Vec<f64> =
        spread.map_or_else(|| (0..SPREADS).map(|step| step as f64 * SPREAD_STEP).collect(), |it| vec![it]);
    let starts = spreads.iter().flat_map(|spread| SILENT.map(|silent| [*spread, silent.ln()]));
    let start = least(starts, value)?;
    let step = if spread.is_some() { 0.0 } else { SPREAD_STEP / 2.0 };
    let ([spread, silent_ln], loss) = descend(start, [step, 0.2], value);
    Some(Rates { spread, clients: active * silent_ln.exp(), error: loss.sqrt() })
}

impl Rates {
    /// Rates with mean 1, and the parts of the clients that have them.
    fn parts(spread: f64) -> Vec<(f64, f64)> {
        let step = 2.0 * DEVIATIONS / PARTS as f64;
        let middle = |at: usize| -DEVIATIONS + (at as f64 + 0.5) * step;
        let part = |x: f64| normal_below(x + step / 2.0) - normal_below(x - step / 2.0);
        let rates = (0..PARTS).map(|at| ((spread * middle(at)).exp(), part(middle(at))));
        let mean: f64 = rates.clone().map(|(rate, part)| rate * part).sum();
        rates.map(|(rate, part)| (rate / mean, part)).collect()
    }
}

/// The mean number of queries of a visit, and for each share of the queries the probability that none of a visit's is
/// among them.
fn missed(habits: &Habits, shares: &[f64]) -> (f64, Vec<f64>) {
    let (probability, deviation) = (habits.page_probability(), habits.page_deviation().max(1e-6));
    let below = |queries: f64| normal_below((queries.ln() - habits.page_median.ln()) / deviation);
    let most = f64::from(habits.page_max);
    let mut sizes: Vec<(f64, f64)> = (1..=habits.page_max)
        .map(f64::from)
        .map(|size| {
            let low = if size == 1.0 { 0.0 } else { below(size - 0.5) };
            let high = if size == most { 1.0 } else { below(size + 0.5) };
            (size, probability * (high - low))
        })
        .collect();
    sizes[0].1 += 1.0 - probability;
    let mean = sizes.iter().map(|(size, part)| size * part).sum();
    let none = |share: f64| sizes.iter().map(|(size, part)| part * (1.0 - share).powf(*size)).sum();
    (mean, shares.iter().map(|share| none(*share)).collect())
}
