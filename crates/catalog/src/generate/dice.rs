//! The random stream of a generator.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// A stream of random choices that is the same for the same seed, everywhere and for ever.
pub(crate) struct Dice(ChaCha8Rng);

impl Dice {
    /// The seed is put into ChaCha's key as it is: the helper that expands small seeds is not promised to stay.
    pub(crate) fn new(seed: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Dice(ChaCha8Rng::from_seed(key))
    }

    /// A number from 0 to `bound - 1`. The bias of the multiplication is below `bound` / 2^64.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True once in `n` times.
    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of the items.
    pub(crate) fn pick<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.below(items.len() as u64) as usize]
    }

    /// A number below `bound` where n is drawn about as often as 1/n (Zipf's law), as words and page visits are: the
    /// number of bits is uniform.
    pub(crate) fn zipf(&mut self, bound: u64) -> u64 {
        let bits = self.below(u64::from(64 - bound.leading_zeros()) + 1);
        self.below((1u64 << bits.min(63)).min(bound))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn draws_stay_in_range(seed: u64, bound in 1..u64::MAX, low in 0..1000u64, span in 0..1000u64) {
            let mut dice = Dice::new(seed);
            prop_assert!(dice.below(bound) < bound);
            prop_assert!(dice.zipf(bound) < bound);
            prop_assert!((low..=low + span).contains(&dice.between(low, low + span)));
        }
    }

    #[test]
    fn small_numbers_are_frequent_in_a_zipf_draw() {
        let mut dice = Dice::new(7);
        let draws: Vec<u64> = (0..10_000).map(|_| dice.zipf(1000)).collect();
        let zeros = draws.iter().filter(|&&n| n == 0).count();
        assert!((1000..3000).contains(&zeros), "{zeros}");
        assert!(draws.iter().any(|&n| n > 900));
    }
}
