//! A fingerprint of a set of blocks: whether a free list holds exactly the blocks that a walk finds free, found without
//! memory for either set.

use super::block::Block;

/// A count and a sum of mixed addresses, the same for the same blocks in any order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fingerprint {
    blocks: usize,
    sum: usize,
}

impl Fingerprint {
    /// Of no blocks.
    pub const EMPTY: Fingerprint = Fingerprint { blocks: 0, sum: 0 };

    /// Adds a block.
    pub fn add(&mut self, block: Block) {
        // An odd multiplier and its folded upper half: sums of addresses alone agree for many sets.
        let mixed = block.address().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.blocks += 1;
        self.sum = self.sum.wrapping_add(mixed ^ mixed >> 32);
    }

    /// How many blocks were added.
    pub const fn blocks(self) -> usize {
        self.blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(addresses: &[usize]) -> Fingerprint {
        let mut fingerprint = Fingerprint::EMPTY;
        addresses.iter().for_each(|&address| fingerprint.add(Block::at(address)));
        fingerprint
    }

    #[test]
    fn order_does_not_matter_and_members_do() {
        assert_eq!(of(&[8, 24, 40]), of(&[40, 8, 24]));
        assert_ne!(of(&[8, 24, 40]), of(&[8, 24]));
        // The same count and the same sum.
        assert_ne!(of(&[8, 40]), of(&[24, 24]));
        assert_ne!(of(&[8, 56]), of(&[24, 40]));
    }
}
