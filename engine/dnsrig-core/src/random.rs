//! Random numbers that stay the same in every version: xoshiro256** 1.0, seeded through SplitMix64.
//!
//! Both are public domain algorithms, by Blackman and Vigna ("Scrambled linear pseudorandom number generators", ACM
//! TOMS 47, 2021) and by Steele, Lea and Flood ("Fast splittable pseudorandom number generators", OOPSLA 2014).

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random([u64; 4]);

impl Random {
    /// The stream of a seed. `purpose` tells streams of the same seed apart.
    pub fn new(seed: u64, purpose: u64) -> Self {
        let mut state = seed ^ purpose.wrapping_mul(0xd134_2543_de82_ef95);
        Random(std::array::from_fn(|_| split_mix(&mut state)))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let Random([a, b, c, d]) = self;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// A number below `bound`, by multiplication; the bias, below `bound` / 2^64, does not matter for test data.
    pub fn below(&mut self, bound: u64) -> u64 {
        scale(self.bits(), bound)
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// `fraction` of 2^64, as a part of `bound`.
pub fn scale(fraction: u64, bound: u64) -> u64 {
    ((u128::from(fraction) * u128::from(bound)) >> 64) as u64
}

/// The next number of SplitMix64, for a hash as well: the first of a state depends on all of its bits.
pub fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_mix_gives_the_published_numbers() {
        // The first outputs for the seed 1234567, as the reference implementation prints them.
        let mut state = 1_234_567;
        assert_eq!(split_mix(&mut state), 6_457_827_717_110_365_317);
        assert_eq!(split_mix(&mut state), 3_203_168_211_198_807_973);
    }

    #[test]
    fn xoshiro_gives_the_published_numbers() {
        // The first outputs for the state 1, 2, 3, 4.
        let mut random = Random([1, 2, 3, 4]);
        assert_eq!([(); 4].map(|()| random.bits()), [11_520, 0, 1_509_978_240, 1_215_971_899_390_074_240]);
    }

    #[test]
    fn purposes_have_different_streams() {
        assert_ne!(Random::new(1, 1).bits(), Random::new(1, 2).bits());
    }

    #[test]
    fn numbers_stay_below_their_bound_and_reach_everything() {
        let mut random = Random::new(1, 0);
        let mut seen = [false; 7];
        (0..1000).for_each(|_| seen[random.below(7) as usize] = true);
        assert_eq!(seen, [true; 7]);
    }
}
