//! Random numbers of other distributions than the uniform one.
//!
//! They are the same on every machine whose C library rounds logarithms and powers alike.

use super::random::Random;

/// From 0 to below 1, of the 53 bits that a double holds.
pub fn uniform(random: &mut Random) -> f64 {
    (random.bits() >> 11) as f64 / (1_u64 << 53) as f64
}

/// True in a share of all cases.
pub fn is_share(random: &mut Random, share: f64) -> bool {
    uniform(random) < share
}

/// Exponentially distributed with mean 1, by inversion.
pub fn exponential(random: &mut Random) -> f64 {
    // 53 random bits as a number above 0, and up to 1.
    let uniform = ((random.bits() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    -uniform.ln()
}

/// Normally distributed with mean 0 and deviation 1 (Box and Muller, Annals of Mathematical Statistics 29, 1958).
pub fn normal(random: &mut Random) -> f64 {
    let radius = (2.0 * exponential(random)).sqrt();
    radius * (std::f64::consts::TAU * uniform(random)).cos()
}

/// A number below `count`, low ones much more often: `count` · u³, so that one in eight has half of all.
pub fn cubed(random: &mut Random, count: u32) -> u32 {
    let uniform = random.bits() >> 32;
    let square = (uniform * uniform) >> 32;
    ((((square * uniform) >> 32) * u64::from(count)) >> 32) as u32
}

/// Which of several, each in proportion to its weight.
pub struct Weighted(Vec<f64>);

impl Weighted {
    /// The weights are not negative, and one at least is above 0.
    pub fn new(weights: impl IntoIterator<Item = f64>) -> Self {
        let sums = weights.into_iter().scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        });
        Weighted(sums.collect())
    }

    /// Draws one, by its number.
    pub fn draw(&self, random: &mut Random) -> usize {
        let target = uniform(random) * self.0.last().copied().unwrap_or(0.0);
        self.0.partition_point(|sum| *sum <= target).min(self.0.len().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 100_000;

    /// Mean and variance of many draws.
    fn moments(draw: impl Fn(&mut Random) -> f64) -> (f64, f64) {
        let mut random = Random::new(1, 0);
        let drawn: Vec<f64> = (0..DRAWS).map(|_| draw(&mut random)).collect();
        let mean = drawn.iter().sum::<f64>() / DRAWS as f64;
        (mean, drawn.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / DRAWS as f64)
    }

    #[test]
    fn means_and_variances_are_those_of_the_distribution() {
        // The mean of 100,000 draws with deviation 1 is off by 0.003, the variance by 0.009 at most (exponential).
        for (draw, mean, variance) in [(exponential as fn(&mut Random) -> f64, 1.0, 1.0), (normal, 0.0, 1.0)] {
            let found = moments(draw);
            assert!((found.0 - mean).abs() < 0.02 && (found.1 - variance).abs() < 0.05, "{found:?}");
        }
        let found = moments(uniform);
        assert!((found.0 - 0.5).abs() < 0.01 && (found.1 - 1.0 / 12.0).abs() < 0.005, "{found:?}");
    }

    #[test]
    fn weights_are_shares() {
        let weighted = Weighted::new([1.0, 0.0, 3.0]);
        let mut random = Random::new(1, 0);
        let mut drawn = [0; 3];
        (0..DRAWS).for_each(|_| drawn[weighted.draw(&mut random)] += 1);
        assert_eq!(drawn[1], 0);
        assert!((24_000..26_000).contains(&drawn[0]), "{drawn:?}");
    }
}
