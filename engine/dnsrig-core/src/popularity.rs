//! Which of many names are asked for how often.
//!
//! Requests for names follow Zipf's law, more or less: the one of rank k is asked for in proportion to 1 / k^S, with S
//! somewhat below 1 (Breslau et al., "Web Caching and Zipf-like Distributions", INFOCOM 1999; Jung et al., "DNS
//! Performance and the Effectiveness of Caching", IEEE/ACM ToN 2002). Ranks are drawn by inversion: a uniform number is
//! looked up by binary search in the cumulative weights, which is exact but for rounding (Devroye, "Non-Uniform Random
//! Variate Generation", 1986, §III.2).

use std::str::FromStr;

use crate::random::{Random, scale};

/// The exponent beyond which all but the first few names would be asked for never.
const EXPONENT_MAX: f64 = 5.0;

/// 2^64 / φ: multiples of it spread as evenly as multiples can (Knuth, TAOCP 3, §6.4).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// How unequal names are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Popularity {
    /// All are asked for equally often.
    Uniform,
    /// The one of rank k in proportion to 1 / k^exponent.
    Zipf { exponent: f64 },
}

impl FromStr for Popularity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let exponent = match text {
            "uniform" => return Ok(Popularity::Uniform),
            "zipf" => Some(1.0),
            _ => text.strip_prefix("zipf:").and_then(|exponent| exponent.parse().ok()),
        };
        exponent
            .filter(|exponent| (0.0..=EXPONENT_MAX).contains(exponent))
            .map(|exponent| Popularity::Zipf { exponent })
            .ok_or_else(|| {
                format!("expected uniform, zipf or zipf:S with S from 0 to {EXPONENT_MAX}, such as zipf:0.9")
            })
    }
}

/// Draws names, given by their number below a count.
pub struct Sampler {
    count: u32,
    /// For each rank the sum of weights up to it, 8 bytes each, 400 MB at most; none if all are equal.
    cumulative: Vec<f64>,
    stride: u32,
    offset: u32,
}

impl Sampler {
    /// Draws from `count` names, at least one. `ranks` decides which are the popular ones; they are spread evenly over
    /// all, for neighbours in a list are often neighbours in a server's memory.
    pub fn new(popularity: Popularity, count: u32, mut ranks: Random) -> Self {
        let cumulative = match popularity {
            Popularity::Uniform => Vec::new(),
            Popularity::Zipf { exponent } => cumulative(count, exponent),
        };
        let offset = ranks.below(count.into()) as u32;
        Sampler { count, cumulative, stride: stride(count), offset }
    }

    /// Draws one.
    pub fn sample(&self, random: &mut Random) -> u32 {
        let Some(total) = self.cumulative.last() else { return random.below(self.count.into()) as u32 };
        // The 53 bits that a double holds: a number from 0 to below 1, then to below the total.
        let target = (random.bits() >> 11) as f64 / (1_u64 << 53) as f64 * total;
        let rank = self.cumulative.partition_point(|weight| *weight <= target);
        self.at_rank((rank as u32).min(self.count - 1))
    }

    /// The name of a rank, from 0 on: each has one.
    fn at_rank(&self, rank: u32) -> u32 {
        let place = u64::from(rank) * u64::from(self.stride) + u64::from(self.offset);
        (place % u64::from(self.count)) as u32
    }
}

fn cumulative(count: u32, exponent: f64) -> Vec<f64> {
    let weight = |rank: u32| {
        let rank = f64::from(rank);
        // A division is the same on every machine; a power may differ in its last bit.
        if exponent == 1.0 { 1.0 / rank } else { rank.powf(-exponent) }
    };
    let sums = (1..=count).scan(0.0, |sum, rank| {
        *sum += weight(rank);
        Some(*sum)
    });
    sums.collect()
}

/// The step from one rank to the next: near the golden section, and without a common divisor with `count`.
fn stride(count: u32) -> u32 {
    let mut stride = (scale(GOLDEN, count.into()) as u32).max(1);
    while greatest_common_divisor(stride, count) != 1 {
        stride += 1;
    }
    stride
}

fn greatest_common_divisor(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ZIPF: Popularity = Popularity::Zipf { exponent: 1.0 };

    /// How often each of `count` names is drawn.
    fn draw(popularity: Popularity, count: u32, draws: u32) -> (Sampler, Vec<u32>) {
        let sampler = Sampler::new(popularity, count, Random::new(1, 1));
        let mut random = Random::new(1, 0);
        let mut drawn = vec![0; count as usize];
        (0..draws).for_each(|_| drawn[sampler.sample(&mut random) as usize] += 1);
        (sampler, drawn)
    }

    /// Pearson's statistic of draws against the expected share of each rank, less its expectation, in deviations.
    fn excess(popularity: Popularity, share: impl Fn(u32) -> f64) -> f64 {
        let (count, draws) = (100, 100_000);
        let (sampler, drawn) = draw(popularity, count, draws);
        let total: f64 = (0..count).map(&share).sum();
        let statistic: f64 = (0..count)
            .map(|rank| {
                let expected = f64::from(draws) * share(rank) / total;
                (f64::from(drawn[sampler.at_rank(rank) as usize]) - expected).powi(2) / expected
            })
            .sum();
        let freedom = f64::from(count - 1);
        (statistic - freedom) / (2.0 * freedom).sqrt()
    }

    #[test]
    fn ranks_are_drawn_as_often_as_the_law_says() {
        let zipf = |exponent: f64| move |rank: u32| f64::from(rank + 1).powf(-exponent);
        assert!(excess(Popularity::Uniform, |_| 1.0).abs() < 4.0);
        assert!(excess(ZIPF, zipf(1.0)).abs() < 4.0);
        assert!(excess(Popularity::Zipf { exponent: 0.7 }, zipf(0.7)).abs() < 4.0);
        assert!(excess(Popularity::Zipf { exponent: 0.0 }, |_| 1.0).abs() < 4.0);
        // The test can fail: another law does not fit.
        assert!(excess(ZIPF, zipf(0.9)) > 10.0);
    }

    #[test]
    fn the_popular_ones_are_spread_and_depend_on_the_seed() {
        let top = |seed| {
            let sampler = Sampler::new(ZIPF, 1000, Random::new(seed, 1));
            (0..4).map(|rank| sampler.at_rank(rank)).collect::<Vec<_>>()
        };
        let mut places = top(1);
        assert_ne!(places, top(2));
        places.sort_unstable();
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] > 100), "{places:?}");
    }

    #[test]
    fn a_law_is_uniform_or_zipf() {
        assert_eq!("uniform".parse(), Ok(Popularity::Uniform));
        assert_eq!("zipf".parse(), Ok(ZIPF));
        assert_eq!("zipf:0.9".parse(), Ok(Popularity::Zipf { exponent: 0.9 }));
        for wrong in ["", "Zipf", "zipf:", "zipf:-1", "zipf:6", "zipf:nan", "zipf:inf", "pareto"] {
            assert!(wrong.parse::<Popularity>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn every_name_has_one_rank(count in 1_u32..5000, seed: u64) {
            let sampler = Sampler::new(Popularity::Uniform, count, Random::new(seed, 1));
            let mut names: Vec<u32> = (0..count).map(|rank| sampler.at_rank(rank)).collect();
            names.sort_unstable();
            prop_assert!(names.into_iter().eq(0..count));
        }

        #[test]
        fn what_is_drawn_exists(count in 1_u32..5000, seed: u64, exponent in 0.0..5.0) {
            let sampler = Sampler::new(Popularity::Zipf { exponent }, count, Random::new(seed, 1));
            let mut random = Random::new(seed, 0);
            prop_assert!((0..100).all(|_| sampler.sample(&mut random) < count));
        }
    }
}
