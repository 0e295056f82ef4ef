//! Spans: the descriptor of each unit of the heap, in a table outside it.
//!
//! A span is one or several units of blocks of one size class. Its descriptor is that of its first unit, to which the
//! reservation's table points from the others. Large blocks and free runs of units use the same descriptors.

use core::sync::atomic::{AtomicU64, Ordering};

use heaptoll_assertions::assert_internal;

use crate::class::{BLOCKS_MAX, CLASS, SpanClass};

/// The number of a unit, counted from the heap's start.
pub type UnitIndex = u32;
/// No unit: the end of a list.
pub const NONE: UnitIndex = UnitIndex::MAX;

/// 64 blocks of a span: both words adjacent, as a marker needs both.
#[derive(Debug)]
#[repr(C)]
pub struct Bits {
    /// The block is the program's or in a thread's cache. Meaningless while the span waits to be swept: then `marked`
    /// holds what will be taken.
    pub taken: u64,
    /// The collection reached it. All clear once swept. Atomic, for concurrent markers.
    pub marked: AtomicU64,
}

/// The descriptor of a unit.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Span {
    /// How many units it has.
    pub units: u32,
    /// Links of the list this span or run is in.
    pub next: UnitIndex,
    pub previous: UnitIndex,
    /// The collection after which it was swept last.
    pub epoch: u32,
    /// Blocks that are not taken; of spans that were swept.
    pub free: u16,
    /// Whether it is in its class's list of spans with free blocks.
    pub listed: bool,
    /// Of a free run: no page of it was touched since the system mapped or remapped it: it reads as zeros. Of a span:
    /// this held when it was initialised, and no block of it has been freed yet. Of a large block: this held when it
    /// was allocated.
    pub clean: bool,
    /// Of a large block: its usable bytes, whole pages.
    pub bytes: usize,
    /// The word of `bits` where a search for a free block begins: all before it are taken.
    pub hint: u32,
    pub span_class: SpanClass,
    /// Old blocks take most of it: writes to it are recorded, and no block is allocated there, which would be a write.
    pub dense: bool,
    /// Of a free run: a dead large block whose pages stay resident for the next block of its length.
    pub kept: bool,
    /// Of a span: the caches that take its blocks are those of this home.
    pub home: u8,
    /// Of a span in mode `guard`: how many collections in a row have found all its blocks freed, and kept some.
    pub held: u8,
    /// Of a large block in mode `guard`: it was freed, and cannot be read or written.
    pub inaccessible: bool,
    _reserved: [u8; 18],
    pub bits: [Bits; BLOCKS_MAX / 64],
}

const _: () = {
    assert!(size_of::<Span>() == 64 + BLOCKS_MAX / 64 * 16);
    // A marker's bits of 64 blocks are in one line of the cache, and no descriptor shares one with another.
    assert!(size_of::<Bits>() == 16 && core::mem::offset_of!(Span, bits) == 64);
    assert!(size_of::<Span>().is_multiple_of(64));
};

impl Span {
    /// Bytes of each block of the span, or of the large block.
    pub fn block_bytes(&self) -> usize {
        CLASS.get(self.span_class as usize).map_or(self.bytes, |class| class.size as usize)
    }

    /// Clears the bits: no block is taken or marked.
    pub fn clear_bits(&mut self, blocks: usize) {
        assert_internal!(
            blocks > 0 && blocks <= BLOCKS_MAX,
            "a descriptor has bits for all blocks of its span"
        );
        for bits in &mut self.bits[..blocks.div_ceil(64)] {
            bits.taken = 0;
            bits.marked = AtomicU64::new(0);
        }
    }

    /// Whether as many blocks are free as it counts; of a span that was swept. For assertions: some words.
    pub fn is_counted(&self, blocks: usize) -> bool {
        let taken: u32 = self.bits[..blocks.div_ceil(64)].iter().map(|bits| bits.taken.count_ones()).sum();
        taken as usize + usize::from(self.free) == blocks
    }

    /// Whether all blocks in words before the hint are taken; of a span that was swept. For assertions.
    pub fn is_full_before_hint(&self, blocks: usize) -> bool {
        (0..blocks.div_ceil(64).min(self.hint as usize))
            .all(|word| self.bits[word].taken == Span::present(blocks, word))
    }

    /// Whether a block is marked. For assertions.
    pub fn has_marks(&self, blocks: usize) -> bool {
        self.bits[..blocks.div_ceil(64)].iter().any(|bits| bits.marked.load(Ordering::Relaxed) != 0)
    }

    /// The bits of word `word` that stand for blocks, in a span of `blocks`.
    #[inline(always)]
    pub const fn present(blocks: usize, word: usize) -> u64 {
        assert_internal!(word * 64 < blocks, "each word of a span's bits has a block");
        let rest = blocks - word * 64;
        if rest >= 64 { u64::MAX } else { (1 << rest) - 1 }
    }

    /// Whether the block is taken; of a span that was swept.
    #[inline(always)]
    pub const fn is_taken(&self, block: usize) -> bool {
        assert_internal!(block < BLOCKS_MAX, "a block has a bit");
        self.bits[block / 64].taken >> (block % 64) & 1 != 0
    }

    /// Whether the block was marked.
    #[inline(always)]
    pub fn is_marked(&self, block: usize) -> bool {
        assert_internal!(block < BLOCKS_MAX, "a block has a bit");
        self.bits[block / 64].marked.load(Ordering::Relaxed) >> (block % 64) & 1 != 0
    }
}
