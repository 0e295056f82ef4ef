//! Pseudo-random numbers, the same for the same seed.

/// A generator (Steele, Lea & Flood's splitmix64).
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Of a seed.
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`; 0 when that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.number() % (end.max(1) as u64)) as usize
    }

    /// Any byte.
    pub fn byte(&mut self) -> u8 {
        self.number() as u8
    }

    /// A range within `bytes` bytes (at least one): its start, and a length of at most `most`.
    pub fn range(&mut self, bytes: usize, most: usize) -> (usize, usize) {
        let at = self.below(bytes);
        (at, 1 + self.below(most.min(bytes - at)))
    }
}
