//! The header of a chunk, with its mark bits.

use heaptoll_runtime::WORD;

/// The unit of the heap, bytes.
pub const CHUNK: usize = 4096;

/// Words of mark bits: one bit for each word of a chunk, of which those at objects' beginnings are used.
pub const MARK_WORDS: usize = CHUNK / WORD / 64;

/// A chunk's header: that of a chunk of small objects, or of the first chunk of a large object or of a free run.
#[repr(C)]
#[derive(Debug)]
pub struct Header {
    /// Bytes of each object; of a large one those from its address on; of a free run 0.
    pub size: usize,
    /// Bytes of the whole run of chunks.
    pub extent: usize,
    /// The next free run, or the next chunk that waits to be swept; 0 for none.
    pub next: usize,
    /// Where the objects begin, bytes from the chunk's start.
    pub offset: u32,
    /// Of small objects the number of their free list.
    pub class: u8,
    /// Waits to be swept: what is not marked is garbage.
    pub pending: bool,
    /// Of a free run: not known to be zero after its first header.
    pub dirty: bool,
    /// Bit i is that of word i of the chunk, the header included.
    pub marks: [u64; MARK_WORDS],
}

/// Bytes of a header: 96, so that objects after one are aligned.
pub const HEADER: usize = size_of::<Header>();

const _: () = assert!(HEADER == 96);

/// A set of bits, one for each word of a chunk.
pub type Bits = [u64; MARK_WORDS];

/// Whether a bit is set.
#[inline(always)]
pub const fn has(bits: &Bits, bit: usize) -> bool {
    (bits[bit / 64] >> (bit % 64)) & 1 != 0
}

/// Sets a bit; returns whether it was set.
#[inline(always)]
pub const fn set(bits: &mut Bits, bit: usize) -> bool {
    let (word, mask) = (&mut bits[bit / 64], 1 << (bit % 64));
    let was = *word & mask != 0;
    *word |= mask;
    was
}

/// Clears a bit.
#[inline(always)]
pub const fn clear(bits: &mut Bits, bit: usize) {
    bits[bit / 64] &= !(1 << (bit % 64));
}
