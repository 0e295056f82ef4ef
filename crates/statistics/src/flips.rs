//! Sign vectors over the repetitions of a table, eight at a time: what is computed under each of eight flips is computed
//! in eight lanes of a vector, which the compiler makes of the plain loops over [`LANES`].

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Flips of a block.
pub const LANES: usize = 8;
/// A figure under each flip of a block.
pub type Lanes = [f64; LANES];

/// Up to this many repetitions all flips are enumerated; beyond, this many random ones are drawn.
const ENUMERATED: usize = 13;
const DRAWN: usize = 1 << 13;

/// Flips in blocks. Of each block a byte a repetition, whose bits are the signs under its flips: one is negative.
pub struct Flips {
    repetitions: usize,
    /// How many there are; the last block may have fewer than [`LANES`].
    count: usize,
    negative: Vec<u8>,
}

impl Flips {
    /// All that differ up to a common sign, or a random sample with the identity first (so that the test keeps its
    /// level).
    pub fn new(repetitions: usize, seed: u64) -> Flips {
        if repetitions <= ENUMERATED {
            let count = 1 << repetitions.saturating_sub(1);
            return Flips::fill(repetitions, count, |flip, at| flip >> at & 1 == 1);
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        Flips::fill(repetitions, DRAWN, |flip, _| flip > 0 && !rng.random::<bool>())
    }

    /// Signs are needed flip by flip, and of a flip by repetition.
    fn fill(repetitions: usize, count: usize, mut is_negative: impl FnMut(usize, usize) -> bool) -> Flips {
        let mut negative = vec![0; count.div_ceil(LANES) * repetitions];
        for flip in 0..count {
            let block = &mut negative[flip / LANES * repetitions..][..repetitions];
            for (at, signs) in block.iter_mut().enumerate() {
                *signs |= u8::from(is_negative(flip, at)) << (flip % LANES);
            }
        }
        Flips { repetitions, count, negative }
    }

    /// How many flips there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Gives the signs of each block to `use_block`, one [`Lanes`] a repetition: 1 or -1.
    pub fn for_each_block(&self, mut use_block: impl FnMut(&[Lanes])) {
        let mut signs = vec![[1.0; LANES]; self.repetitions];
        for block in 0..self.count.div_ceil(LANES) {
            let bits = &self.negative[block * self.repetitions..][..self.repetitions];
            for (signs, bits) in signs.iter_mut().zip(bits) {
                *signs = std::array::from_fn(|index| if bits >> index & 1 == 1 { -1.0 } else { 1.0 });
            }
            use_block(&signs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The signs of every flip, as text.
    fn all(flips: &Flips) -> Vec<String> {
        let mut found = Vec::new();
        flips.for_each_block(|signs| {
            let sign = |lanes: &Lanes, index: usize| if lanes[index] < 0.0 { '-' } else { '+' };
            found.extend(
                (0..LANES).map(|index| signs.iter().map(|lanes| sign(lanes, index)).collect::<String>()),
            );
        });
        found.truncate(flips.count());
        found
    }

    #[test]
    fn of_few_repetitions_each_flip_is_there_once() {
        for repetitions in 1..=ENUMERATED {
            let found = all(&Flips::new(repetitions, 1));
            let distinct: BTreeSet<&String> = found.iter().collect();
            assert_eq!((found.len(), distinct.len()), (1 << (repetitions - 1), 1 << (repetitions - 1)));
            assert!(found.iter().all(|flip| flip.ends_with('+')), "none is the opposite of another");
        }
    }

    #[test]
    fn of_many_repetitions_the_identity_is_first_and_half_of_the_signs_are_negative() {
        let found = all(&Flips::new(50, 1));
        assert_eq!((found.len(), found[0].as_str()), (DRAWN, "+".repeat(50).as_str()));
        let negative = found.iter().flat_map(|flip| flip.chars()).filter(|sign| *sign == '-').count();
        let share = negative as f64 / (50 * DRAWN) as f64;
        assert!((share - 0.5).abs() < 0.005, "{share}");
        assert_eq!(found, all(&Flips::new(50, 1)), "a seed gives the same");
        assert_ne!(found, all(&Flips::new(50, 2)));
    }
}
