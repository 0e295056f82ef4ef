//! Random distances between sample points.
//!
//! The generator is SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014): one word
//! of state, which is all that a thread keeps, passes the usual batteries of tests, and any word is a good seed.

/// A thread's generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Random(u64);

/// The step of the sequence, 2^64 over the golden ratio.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

impl Random {
    /// Begins a sequence.
    pub const fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The sequence of a thread of a process whose threads share a seed. Threads count from 0.
    pub fn of_thread(seed: u64, thread: u64) -> Random {
        // A number of another sequence, rather than a position in the same one, which two threads would share.
        Random(Random(seed).number() ^ Random(thread.wrapping_mul(STEP)).number())
    }

    /// The state, from which [`Random::new`] goes on.
    pub const fn state(self) -> u64 {
        self.0
    }

    /// The next number, of 64 random bits.
    #[inline]
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// Bytes until the next sample point, that byte included: at least 1, `mean` on average but for rounding up. With a
    /// mean of 1 or 0 each byte is one.
    pub fn gap(&mut self, mean: u64) -> u64 {
        if mean <= 1 {
            return 1;
        }
        // Of the numbers of 53 bits in (0, 1], which has a logarithm.
        let uniform = ((self.number() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        // P(gap > n) = exp(-n / mean) for whole n: rounded up it is the exponential distribution in bytes.
        (libm::ceil(-(mean as f64) * libm::log(uniform)) as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_exponential() {
        let mut random = Random::new(7);
        let (mean, count) = (1000_u64, 200_000_u64);
        let mut sum = 0.0;
        let mut beyond = [0_u64; 4];
        for _ in 0..count {
            let gap = random.gap(mean);
            sum += gap as f64;
            for (times, beyond) in beyond.iter_mut().enumerate() {
                *beyond += u64::from(gap > times as u64 * mean);
            }
        }
        // Five standard errors of a mean, and of shares.
        let error = 5.0 * 1000.0 / (count as f64).sqrt();
        assert!((sum / count as f64 - 1000.5).abs() < error, "{}", sum / count as f64);
        for (times, beyond) in beyond.into_iter().enumerate() {
            let expected = (-(times as f64)).exp();
            let error = 5.0 * (expected * (1.0 - expected) / count as f64).sqrt();
            assert!((beyond as f64 / count as f64 - expected).abs() <= error, "{times}: {beyond}");
        }
    }

    #[test]
    fn a_mean_of_one_samples_each_byte() {
        let mut random = Random::new(1);
        assert!((0..1000).all(|_| random.gap(1) == 1 && random.gap(0) == 1));
        assert_eq!(random, Random::new(1), "no number is taken");
    }

    #[test]
    fn threads_have_sequences_of_their_own() {
        let first = |thread| Random::of_thread(5, thread).number();
        let numbers: std::collections::HashSet<u64> = (0..1000).map(first).collect();
        assert_eq!(numbers.len(), 1000);
        assert_eq!(first(3), first(3));
        assert_ne!(Random::of_thread(6, 3).number(), first(3));
    }
}
