//! Pages, from visits of clients that come so rarely that two visits are hardly ever taken for one.

use super::{descend, normal_below};
use crate::generate::clients::like::measure::VISIT_NS;

/// With fewer visits, pages are not fitted.
const VISITS_MIN: f64 = 100.0;

/// No larger share of the visits is taken for two.
const MET_MAX: f64 = 0.2;

/// A deviation of the logarithms of pages is no less, so that every page has a probability.
const DEVIATION_MIN: f64 = 0.02;
const DEVIATION_MAX: f64 = 3.0;

/// A page has no more queries (`--page-max`).
const QUERIES_MAX: usize = 10_000;

/// Visits that were seen.
#[derive(Clone, Debug, Default)]
pub struct Visits {
    /// The number of visits by their number of queries.
    pub sizes: Vec<f64>,
    /// Times between two queries of a visit: how many, and their sum.
    pub gaps: f64,
    pub gaps_ns: f64,
    /// How many visits of the same client follow one within a nanosecond, on average.
    pub met_a_ns: f64,
}

/// What pages are like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pages {
    /// The share of the queries that belong to pages.
    pub share: f64,
    /// None if there are too few pages.
    pub page: Option<Page>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Page {
    pub median: f64,
    pub mean: f64,
    pub gap_ms: f64,
}

impl Visits {
    pub fn push(&mut self, queries: usize) {
        let queries = queries.min(QUERIES_MAX);
        if queries >= self.sizes.len() {
            self.sizes.resize(queries + 1, 0.0);
        }
        self.sizes[queries] += 1.0;
    }

    /// Fits pages to the visits; None if there are too few visits.
    pub fn fit(&self) -> Option<Pages> {
        let visits: f64 = self.sizes.iter().sum();
        if visits < VISITS_MIN {
            return None;
        }
        Some(self.apart(visits).pages())
    }

    /// Without the visits that met the one before: each was two, and looks like one of the queries of both.
    fn apart(&self, visits: f64) -> Self {
        let window_ns = VISIT_NS as f64 + self.gaps_ns / visits;
        let met = (self.met_a_ns * window_ns).min(MET_MAX * visits);
        let mut sizes = self.sizes.clone();
        let seen: Vec<_> = self.sizes.iter().enumerate().filter(|(_, count)| **count > 0.0).collect();
        for (a, count_a) in &seen {
            for (b, count_b) in &seen {
                if let Some(size) = sizes.get_mut(a + b) {
                    *size -= met * **count_a / visits * **count_b / visits;
                }
            }
        }
        sizes.iter_mut().for_each(|count| *count = count.max(0.0));
        // A time between two visits is anywhere below the pause.
        let (gaps, gaps_ns) = (self.gaps - met, self.gaps_ns - met * VISIT_NS as f64 / 2.0);
        Visits { sizes, gaps: gaps.max(1.0), gaps_ns: gaps_ns.max(1.0), met_a_ns: 0.0 }
    }

    fn pages(&self) -> Pages {
        let visits: f64 = self.sizes.iter().sum();
        let several: f64 = self.sizes.iter().skip(2).sum();
        if several < VISITS_MIN {
            let queries = |from: usize| -> f64 {
                self.sizes.iter().enumerate().skip(from).map(|(queries, count)| queries as f64 * count).sum()
            };
            return Pages { share: queries(2) / queries(1), page: None };
        }
        let ([median_ln, deviation], _) = descend([8_f64.ln(), 0.6], [0.5, 0.2], |at| self.unlikely(at));
        let seen = 1.0 - normal_below((1.5_f64.ln() - median_ln) / deviation);
        let probability = (several / visits / seen).min(1.0);
        let (median, mean) = (median_ln.exp(), (median_ln + deviation.powi(2) / 2.0).exp());
        let share = probability * mean / (probability * mean + 1.0 - probability);
        Pages { share, page: Some(Page { median, mean, gap_ms: self.gap_ns() / 1e6 }) }
    }

    /// The logarithm of how unlikely the visits of several queries are, if the queries of pages are log-normal and
    /// rounded, as they are made.
    fn unlikely(&self, [median_ln, deviation]: [f64; 2]) -> f64 {
        if !(DEVIATION_MIN..=DEVIATION_MAX).contains(&deviation) || !(0.0..=1000_f64.ln()).contains(&median_ln) {
            return f64::INFINITY;
        }
        let below = |queries: f64| normal_below((queries.ln() - median_ln) / deviation);
        let all = (1.0 - below(1.5)).max(1e-300);
        let sizes = self.sizes.iter().enumerate().skip(2).filter(|(_, count)| **count > 0.0);
        sizes
            .map(|(queries, count)| {
                let probability = (below(queries as f64 + 0.5) - below(queries as f64 - 0.5)) / all;
                -count * probability.max(1e-12).ln()
            })
            .sum()
    }

    /// The mean of an exponential distribution of which no time beyond a pause is seen.
    fn gap_ns(&self) -> f64 {
        let seen_ns = self.gaps_ns / self.gaps;
        let pause_ns = VISIT_NS as f64;
        let better = |mean_ns: f64| seen_ns + pause_ns / (pause_ns / mean_ns).exp_m1();
        (0..100).fold(seen_ns.max(1.0), |mean_ns, _| better(mean_ns).min(10.0 * pause_ns))
    }
}

#[cfg(test)]
mod tests {
    use dnsrig_core::{
        draw::{exponential, is_share, normal},
        random::Random,
    };

    use super::*;

    #[test]
    fn pages_are_found_among_single_questions() {
        let mut random = Random::new(1, 0);
        let mut visits = Visits::default();
        for _ in 0..5000 {
            let is_page = is_share(&mut random, 0.3);
            let queries = if is_page { (4.0 * (0.8 * normal(&mut random)).exp()).round().max(1.0) } else { 1.0 };
            visits.push(queries as usize);
            for _ in 1..queries as usize {
                let gap_ns = 250e6 * exponential(&mut random);
                if gap_ns < VISIT_NS as f64 {
                    visits.gaps += 1.0;
                    visits.gaps_ns += gap_ns;
                }
            }
        }
        let Pages { share, page } = visits.fit().unwrap();
        let page = page.unwrap();
        // The mean is 4 e^0.32 = 5.5; of 1,500 pages it is off by 0.13.
        assert!((page.median - 4.0).abs() < 0.4 && (page.mean - 5.5).abs() < 0.5, "{page:?}");
        assert!((page.gap_ms - 250.0).abs() < 15.0, "{page:?}");
        assert!((share - 0.3 * 5.5 / (0.3 * 5.5 + 0.7)).abs() < 0.03, "{share}");
    }

    #[test]
    fn without_pages_there_are_single_questions_and_of_few_visits_nothing_is_said() {
        let mut visits = Visits::default();
        (0..99).for_each(|_| visits.push(1));
        assert_eq!(visits.fit(), None);
        visits.push(1);
        assert_eq!(visits.fit(), Some(Pages { share: 0.0, page: None }));
    }

    #[test]
    fn pages_have_two_queries_at_least_and_numbers_that_are_rounded() {
        let visits = Visits { sizes: vec![0.0, 5.0, 2.0], ..Visits::default() };
        let unlikely = |median: f64, deviation: f64| visits.unlikely([median.ln(), deviation]);
        // With ln 2 and 0.5, 38.98 % lie from ln 1.5 to ln 2.5, and 71.75 % above ln 1.5: twice -ln(0.5433).
        assert!((unlikely(2.0, 0.5) - 1.2203).abs() < 0.001, "{}", unlikely(2.0, 0.5));
        for (median, deviation) in [(1.0, DEVIATION_MIN), (1_000.0, DEVIATION_MAX)] {
            assert!(unlikely(median, deviation).is_finite(), "{median} {deviation}");
        }
        for (median, deviation) in [(0.99, 0.5), (1_001.0, 0.5), (2.0, 0.019), (2.0, 3.01)] {
            assert!(unlikely(median, deviation).is_infinite(), "{median} {deviation}");
        }
        let few = Visits { sizes: vec![0.0, 8.0, 1.0, 2.0], ..Visits::default() };
        assert_eq!(few.pages(), Pages { share: 0.5, page: None }, "8 of 16 queries are alone");
    }

    #[test]
    fn visits_that_met_are_taken_apart() {
        // Each of ten visits has a window of a second and the mean of its pauses, 0.2 s.
        let visits =
            |met_a_s: f64| Visits { sizes: vec![0.0, 8.0, 2.0], gaps: 4.0, gaps_ns: 2e9, met_a_ns: met_a_s / 1e9 };
        let near = |found: &Visits, expected: [f64; 5]| {
            let found = [found.sizes[0], found.sizes[1], found.sizes[2], found.gaps, found.gaps_ns / 1e9];
            assert!(found.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-9), "{found:?}");
        };
        near(&visits(0.0).apart(10.0), [0.0, 8.0, 2.0, 4.0, 2.0]);
        // 1.2 met another, 0.8² of them two of one query each; half a second lies between them.
        near(&visits(1.0).apart(10.0), [0.0, 8.0, 2.0 - 1.2 * 0.64, 4.0 - 1.2, 2.0 - 1.2 * 0.5]);
        // A fifth of the visits at most.
        near(&visits(100.0).apart(10.0), [0.0, 8.0, 2.0 - 2.0 * 0.64, 4.0 - 2.0, 2.0 - 2.0 * 0.5]);
    }
}
