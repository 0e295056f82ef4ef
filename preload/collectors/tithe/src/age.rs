//! The ages of the blocks of a span: a bit each, in a table of its own, which only generations and short pauses need.

use crate::class::BLOCKS_MAX;

/// The ages of the blocks of a span, of a large block in the first bit. In the row of its first unit.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Age {
    /// Bits of blocks that are old, and of places where a block will be born old; as [`crate::span::Span::bits`].
    pub old: [u64; BLOCKS_MAX / 64],
}

const _: () = assert!(size_of::<Age>() == BLOCKS_MAX / 8);
