//! Whether an address is that of a block's first byte, for the fast path of free: by one multiplication, without a
//! division and without the branches that exclude other span classes.
//!
//! An offset is a multiple of a size exactly if its product with ceil(2^64 / size), modulo 2^64, is less than that factor
//! (Lemire, Kaser and Kurz, *Faster remainder by direct computation*, 2019, section 3.2).

use crate::cache::List;
use crate::class::{CLASS, FAST, FAST_MAX};

/// The last span class of spans of one unit whose blocks may hold pointers: the fast path serves these.
const LAST: usize = FAST[FAST_MAX / 16] as usize;

/// The test of a span class. A factor of 0 accepts no offset.
#[derive(Debug, Clone, Copy)]
pub struct BlockTest {
    factor: u64,
    /// Where the blocks of a span end, bytes from its start.
    end: u32,
    _reserved: u32,
}

impl BlockTest {
    /// Whether a block begins so many bytes after a span's start.
    #[inline(always)]
    pub const fn accepts(&self, offset: usize) -> bool {
        (offset as u64).wrapping_mul(self.factor) < self.factor && (offset as u32) < self.end
    }
}

/// By anything that a unit may hold.
pub static BLOCK_TESTS: [BlockTest; 256] = {
    let mut table = [BlockTest { factor: 0, end: 0, _reserved: 0 }; 256];
    let mut class = 1;
    while class <= LAST {
        let row = &CLASS[class];
        assert!(row.units == 1 && row.size as usize <= FAST_MAX);
        table[class] = BlockTest {
            factor: u64::MAX / row.size as u64 + 1,
            end: row.size * row.blocks as u32,
            _reserved: 0,
        };
        class += 1;
    }
    assert!(CLASS[LAST + 1].size as usize > FAST_MAX);
    table
};

// `free` uses one distance for this table and for the lists of a cache.
const _: () = assert!(size_of::<BlockTest>() == size_of::<List>());

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::UNIT;

    #[test]
    fn exactly_the_first_bytes_of_blocks_are_accepted() {
        for (span_class, test) in BLOCK_TESTS.iter().enumerate() {
            let class = CLASS.get(span_class).filter(|_| (1..=LAST).contains(&span_class));
            for offset in 0..UNIT {
                let expected = class.is_some_and(|class| class.is_block(offset));
                assert_eq!(test.accepts(offset), expected, "span class {span_class}, offset {offset}");
            }
        }
    }
}
