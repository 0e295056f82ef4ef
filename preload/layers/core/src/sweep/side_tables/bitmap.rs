//! A bitmap: four bits for each 16 of 256 bytes of address space, in one word.
//!
//! The four bits record whether a block starts there, whether one ends there, at which half, and whether the block that
//! starts is marked. A block has at least 16 bytes, so that at most one starts and one ends in 16 bytes, and one bit
//! for the half is enough: where a block both starts and ends it is either the same one, which has all 16 bytes, or one
//! ends in the middle and the next starts there.
//!
//! With all four in one word, a small block enters the tables and leaves them by one exchange of a word, and marking it
//! takes one cache line besides its own.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};

/// Bytes of address space, as a power of two.
pub const SHIFT: u32 = 8;
/// What blocks are multiples of, and begin at, bytes.
pub const HALF: usize = 8;
/// The first 16 bytes' bits.
const START: u64 = 1;
const END: u64 = 2;
const MIDDLE: u64 = 4;
const MARK: u64 = 8;
/// Each 16 bytes' bits.
const STARTS: u64 = 0x1111_1111_1111_1111;
const MIDDLES: u64 = STARTS * MIDDLE;
const MARKS: u64 = STARTS * MARK;

/// A bitmap as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bitmap(pub u64);

/// The shift to the bits of an address.
#[inline(always)]
const fn shift(address: usize) -> u32 {
    (address >> 2) as u32 & 60
}

/// The first address of the bitmap that an address lies in.
#[inline(always)]
pub const fn base(address: usize) -> usize {
    address & !((1 << SHIFT) - 1)
}

/// The bits of a block's start.
#[inline(always)]
pub const fn start_bits(start: usize) -> u64 {
    (START | (start as u64 & 8) >> 1) << shift(start)
}

/// The bits of a block's end, by the address of its last eight bytes.
#[inline(always)]
pub const fn end_bits(last: usize) -> u64 {
    (END | (!last as u64 & 8) >> 1) << shift(last)
}

impl Bitmap {
    /// With the block from `start` to its last eight bytes, in the same bitmap; `None` when others are in the way.
    #[inline(always)]
    pub const fn with(self, start: usize, last: usize) -> Option<Bitmap> {
        // All bits are relative to the start's, so that little is shifted.
        let first = shift(start);
        let end = ((last - (start & !15)) >> 2) as u32 & 60;
        let existing = self.0 >> first;
        let span = (16_u64 << end).wrapping_sub(1);
        // A neighbour may end in the middle where this block starts, or start in the middle where it ends.
        let odd = start as u64 >> 3 & 1;
        let short = !last as u64 >> 3 & 1;
        let neighbours = (odd * (END | MIDDLE)) | (short * (START | MIDDLE)) << end;
        let in_the_middle = (existing >> 2 & STARTS) * (START | END | MIDDLE);
        if existing & span & !(neighbours & in_the_middle) != 0 {
            return None;
        }
        let bits = START | (odd * MIDDLE) | (END | (short * MIDDLE)) << end;
        Some(Bitmap(self.0 | bits << first))
    }

    /// Whether a block starts at the address.
    #[inline(always)]
    pub const fn starts(self, start: usize) -> bool {
        let bits = start_bits(start) >> shift(start);
        self.0 >> shift(start) & (START | MIDDLE) == bits
    }

    /// The start of the last block that starts at the address or before it, in the same bitmap.
    #[inline(always)]
    pub const fn start_of(self, address: usize) -> Option<usize> {
        let at = shift(address);
        let mut starts = self.0 & STARTS & ((2 << at) - 1);
        // A block that starts in the middle is not before the first half.
        let middle = self.0 >> 2 & STARTS & (!address as u64 >> 3 & 1) << at;
        starts &= !middle;
        if starts == 0 {
            return None;
        }
        let at = 63 - starts.leading_zeros();
        Some(base(address) + at as usize * 4 + (self.0 >> at & MIDDLE) as usize * 2)
    }

    /// The end of the block that starts at an address of this bitmap, if it lies in the bitmap.
    #[inline(always)]
    pub const fn end_of(self, start: usize) -> Option<usize> {
        let at = shift(start);
        // An end in the middle, where the block itself starts, is a neighbour's.
        let neighbour = (start as u64 >> 3 & 1) << at;
        self.first_end(start, self.0 >> 1 & STARTS & (u64::MAX << at) & !neighbour)
    }

    /// The first end in a bitmap.
    pub const fn end_before(self, address: usize) -> Option<usize> {
        self.first_end(address, self.0 >> 1 & STARTS)
    }

    #[inline(always)]
    const fn first_end(self, address: usize, ends: u64) -> Option<usize> {
        if ends == 0 {
            return None;
        }
        let at = ends.trailing_zeros();
        Some(base(address) + at as usize * 4 + 16 - (self.0 >> at & MIDDLE) as usize * 2)
    }

    /// Without some starts and ends. Where neither is left, no half is either.
    #[inline(always)]
    pub const fn without(self, bits: u64) -> Bitmap {
        let left = self.0 & !(bits & !MIDDLES);
        let used = (left | left >> 1) & STARTS;
        Bitmap(left & !(MIDDLES & !(used << 2)))
    }

    /// The mark of the block that starts there.
    #[inline(always)]
    pub const fn mark(start: usize) -> u64 {
        MARK << shift(start)
    }

    pub const fn without_marks(self) -> Bitmap {
        Bitmap(self.0 & !MARKS)
    }

    /// Starts of blocks that are not marked.
    #[inline(always)]
    pub const fn unmarked(self) -> Starts {
        Starts { starts: self.0 & STARTS & !(self.0 >> 3), bitmap: self }
    }

    /// Starts of blocks that are marked.
    #[inline(always)]
    pub const fn marked(self) -> Starts {
        Starts { starts: self.0 & STARTS & self.0 >> 3, bitmap: self }
    }

    /// All starts.
    #[inline(always)]
    pub const fn all(self) -> Starts {
        Starts { starts: self.0 & STARTS, bitmap: self }
    }

    /// How many blocks start and how many end here, and whether there are marks or halves of nothing.
    pub const fn counts(self) -> (u32, u32, bool) {
        let (starts, ends) = (self.0 & STARTS, self.0 >> 1 & STARTS);
        let loose = self.0 >> 2 & STARTS & !(starts | ends) | self.0 >> 3 & STARTS & !starts;
        (starts.count_ones(), ends.count_ones(), loose != 0)
    }
}

/// Starts of blocks in a bitmap, lowest first.
#[derive(Debug, Clone, Copy)]
pub struct Starts {
    starts: u64,
    bitmap: Bitmap,
}

impl Starts {
    pub const fn is_empty(self) -> bool {
        self.starts == 0
    }
}

impl Iterator for Starts {
    /// Bytes from the bitmap's first.
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.starts == 0 {
            return None;
        }
        let at = self.starts.trailing_zeros();
        self.starts &= self.starts - 1;
        Some(at as usize * 4 + (self.bitmap.0 >> at & MIDDLE) as usize * 2)
    }
}

/// Replaces `old` by `new`, or returns the value that was there instead. Where there is one thread, it is still one
/// instruction, so that a signal's handler finds either word, but none that waits for the memory.
#[inline(always)]
pub fn exchange(word: &AtomicU64, old: Bitmap, new: Bitmap, single_threaded: bool) -> Result<(), Bitmap> {
    if !single_threaded {
        return match word.compare_exchange(old.0, new.0, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(now) => Err(Bitmap(now)),
        };
    }
    let mut was = old.0;
    // SAFETY: the word is valid and no other thread is there.
    unsafe {
        asm!(
            "cmpxchg qword ptr [{word}], {new}",
            word = in(reg) word.as_ptr(),
            new = in(reg) new.0,
            inout("rax") was,
            options(nostack),
        );
    }
    if was == old.0 { Ok(()) } else { Err(Bitmap(was)) }
}
