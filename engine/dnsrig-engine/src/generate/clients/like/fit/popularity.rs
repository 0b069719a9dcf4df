//! Popularity: how many different names there are among all queries, a quarter of them, a sixteenth and so on.
//!
//! A cache that keeps an answer for a while meets so many different names in that while; so a population that has the
//! same curve has the same hit ratios, whatever the TTLs are.

use super::{Point, curve, descend, draws, least, loss};
use crate::generate::clients::like::measure::Spectrum;

const FACTOR: f64 = 0.25;

/// Exponents that are looked at, before the best is made finer.
const EXPONENTS: usize = 13;
const EXPONENT_STEP: f64 = 0.2;
const EXPONENT_MAX: f64 = 5.0;

/// Numbers of names that are looked at: 1,000 times a power of 4.
const NAMES_MIN: f64 = 1000.0;
const NAMES_STEPS: i32 = 7;
pub const NAMES_MAX: u32 = 9_000_000;

/// A number of names other than the default has to lower the error by more than this.
const ERROR_MIN: f64 = 0.001;

/// Ranks above this are put together in groups, each so much larger than the one before.
const RANKS_ALONE: f64 = 64.0;
const GROUP: f64 = 1.05;

/// What is known of the names before they are fitted.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The number of names: as it is to be, or as it is rather to be.
    pub names: u32,
    pub is_names_given: bool,
    pub exponent: Option<f64>,
    pub once: Option<f64>,
    /// Shares of the queries, and a number of names, for others than those that are fitted.
    pub missing: f64,
    pub missing_once: f64,
    pub missing_names: u32,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fitted {
    pub exponent: f64,
    /// The share of the queries that is for names asked once.
    pub once: f64,
    pub names: u32,
    /// The root of the mean of the squares of the relative errors.
    pub error: f64,
}

/// None where too few names were asked for.
pub fn fit(spectrum: &Spectrum, known: &Known) -> Option<Fitted> {
    let curve = curve(spectrum, FACTOR);
    if curve.len() < 3 || known.missing >= 1.0 {
        return None;
    }
    let of_names = |names: u32| Names { curve: &curve, draws: draws(spectrum), known, ranks: Ranks::new(names) }.fit();
    let preferred = of_names(known.names);
    if known.is_names_given {
        return Some(preferred);
    }
    let numbers = (0..NAMES_STEPS).map(|power| (NAMES_MIN * 4_f64.powi(power)) as u32);
    let best = numbers.map(of_names).min_by(|a, b| a.error.total_cmp(&b.error))?;
    if preferred.error <= best.error + ERROR_MIN {
        return Some(preferred);
    }
    // Finer: the number of names with the least error lies within a factor of 4.
    let error = |[names_ln]: [f64; 1]| {
        let names = names_ln.exp();
        if (1.0..=f64::from(NAMES_MAX)).contains(&names) { of_names(names as u32).error } else { f64::INFINITY }
    };
    let ([names_ln], _) = coarse(f64::from(best.names).ln(), error);
    Some(of_names(names_ln.exp() as u32))
}

/// A few halvings: each step fits all the rest anew.
fn coarse(at: f64, value: impl Fn([f64; 1]) -> f64) -> ([f64; 1], f64) {
    let (mut at, mut least) = (at, value([at]));
    let mut step = 0.7;
    for _ in 0..5 {
        for tried in [at - step, at + step] {
            let found = value([tried]);
            if found < least {
                (at, least) = (tried, found);
            }
        }
        step /= 2.0;
    }
    ([at], least)
}

/// The fit for one number of names.
struct Names<'a> {
    curve: &'a [Point],
    draws: f64,
    known: &'a Known,
    ranks: Ranks,
}

impl Names<'_> {
    fn fit(&self) -> Fitted {
        let value = |at: [f64; 2]| self.loss(at);
        let exponents: Vec<f64> = match self.known.exponent {
            Some(exponent) => vec![exponent],
            None => (0..EXPONENTS).map(|step| step as f64 * EXPONENT_STEP).collect(),
        };
        let step = if self.known.exponent.is_some() { 0.0 } else { EXPONENT_STEP / 2.0 };
        // Names that are met once are some at least of the queries for such; where they are all, the rest is popular.
        let once_max = self.curve[0].distinct / self.draws;
        let starts = exponents.iter().flat_map(|exponent| {
            (0..=4).map(move |part| [*exponent, self.known.once.unwrap_or(once_max * f64::from(part) / 4.0)])
        });
        let start = least(starts, value).unwrap_or([1.0, 0.0]);
        let once_step = if self.known.once.is_some() { 0.0 } else { once_max / 8.0 };
        let ([exponent, once], loss) = descend(start, [step, once_step], value);
        Fitted { exponent, once, names: self.ranks.names, error: loss.sqrt() }
    }

    fn loss(&self, [exponent, once]: [f64; 2]) -> f64 {
        let Known { missing, missing_once, missing_names, .. } = *self.known;
        let popular = 1.0 - missing - once;
        if !(0.0..=EXPONENT_MAX).contains(&exponent) || once < 0.0 || popular < 0.0 {
            return f64::INFINITY;
        }
        let law = self.ranks.law(exponent);
        let mistakes = (missing > 0.0).then(|| Ranks::new(missing_names).law(exponent));
        loss(self.curve, |_, share| {
            let draws = self.draws * share;
            let of_mistakes = mistakes.as_ref().map_or(0.0, |law| law.distinct(draws * missing * (1.0 - missing_once)));
            law.distinct(draws * popular) + of_mistakes + draws * (once + missing * missing_once)
        })
    }
}

/// Ranks from 1 on, in groups: a rank in the middle, and how many there are.
struct Ranks {
    names: u32,
    groups: Vec<(f64, f64)>,
}

impl Ranks {
    fn new(names: u32) -> Self {
        let mut groups = Vec::new();
        let mut first = 1.0_f64;
        while first <= f64::from(names) {
            let end = if first <= RANKS_ALONE { first + 1.0 } else { (first * GROUP).ceil() };
            let end = end.min(f64::from(names) + 1.0);
            groups.push(((first * (end - 1.0)).sqrt(), end - first));
            first = end;
        }
        Ranks { names, groups }
    }

    /// Zipf's law: the probability of a rank of each group.
    fn law(&self, exponent: f64) -> Law {
        let weights: Vec<f64> = self.groups.iter().map(|(rank, _)| rank.powf(-exponent)).collect();
        let sum: f64 = weights.iter().zip(&self.groups).map(|(weight, (_, count))| weight * count).sum();
        Law(weights.iter().zip(&self.groups).map(|(weight, (_, count))| (weight / sum, *count)).collect())
    }
}

/// Probabilities, and how many names have each.
struct Law(Vec<(f64, f64)>);

impl Law {
    /// How many different names so many draws meet.
    fn distinct(&self, draws: f64) -> f64 {
        self.0.iter().map(|(probability, count)| -count * (-draws * probability).exp_m1()).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use dnsrig_core::{
        draw::is_share,
        popularity::{Popularity, Sampler},
        random::Random,
    };

    use super::*;

    const KNOWN: Known = Known {
        names: 1_000_000,
        is_names_given: false,
        exponent: None,
        once: None,
        missing: 0.0,
        missing_once: 0.0,
        missing_names: 1000,
    };

    fn spectrum(exponent: f64, once: f64, names: u32) -> Spectrum {
        let sampler = Sampler::new(Popularity::Zipf { exponent }, names, Random::new(1, 1));
        let mut random = Random::new(1, 0);
        let mut asked: HashMap<u64, u64> = HashMap::new();
        for _ in 0..50_000 {
            let is_once = is_share(&mut random, once);
            let name = if is_once { random.bits() | 1 << 63 } else { sampler.sample(&mut random).into() };
            *asked.entry(name).or_default() += 1;
        }
        let mut spectrum = Spectrum::new();
        asked.into_values().for_each(|times| *spectrum.entry(times).or_default() += 1);
        spectrum
    }

    #[test]
    fn exponent_and_share_of_names_asked_once_are_found() {
        for (exponent, once, names) in [(0.9, 0.05, 1_000_000), (1.34, 0.0025, 1_000_000), (1.1, 0.02, 5_000)] {
            let found = fit(&spectrum(exponent, once, names), &KNOWN).unwrap();
            assert!((found.exponent - exponent).abs() < 0.04 && (found.once - once).abs() < 0.01, "{found:?}");
            assert!(found.error < 0.02, "{found:?}");
            assert!(names > 5_000 || (4_000..6_500).contains(&found.names), "{found:?}");
        }
    }

    #[test]
    fn what_is_known_stays() {
        let spectrum = spectrum(0.9, 0.05, 1_000_000);
        let found = fit(&spectrum, &Known { exponent: Some(0.5), once: Some(0.1), ..KNOWN }).unwrap();
        assert_eq!((found.exponent, found.once), (0.5, 0.1));
        let found = fit(&spectrum, &Known { names: 77, is_names_given: true, ..KNOWN }).unwrap();
        assert!(found.names == 77 && found.error > 0.05, "{found:?}");
        assert_eq!(fit(&Spectrum::new(), &KNOWN), None);
    }
}
