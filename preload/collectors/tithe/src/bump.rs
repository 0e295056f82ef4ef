//! Bump allocation: the blocks that a thread has reserved of a span class, handed out in order of address.
//!
//! A reservation is of free blocks of some words of a span's bits. A cursor goes through those that are adjacent, then on
//! to the next adjacent ones. Reserved blocks below the cursor are the program's. The others are free and the thread's: a
//! stop neither takes them nor moves the cursor. One store of the cursor makes a block the program's, so that this holds
//! at every instruction; a reservation is replaced under the lock of the span class, which a stop holds.

use core::ptr;

use heaptoll_assertions::assert_internal;

use crate::span::UnitIndex;

/// Words of a span's bits that a reservation may have.
pub const WORDS: usize = 4;

/// Blocks reserved from adjacent words of a span's bits.
#[derive(Debug, Clone, Copy)]
pub struct Reserved {
    /// Address of the block of the first word's first bit.
    pub start: usize,
    pub masks: [u64; WORDS],
    pub unit: UnitIndex,
    pub word: u16,
    /// The bit from which on the next adjacent blocks are searched, counted from the first word's first.
    pub next: u16,
    /// The blocks are cleared before they are handed out: the program may leave parts of them unwritten, and their old
    /// contents would keep garbage alive.
    pub clears: bool,
}

/// The next block of a reservation: what the fast path of malloc reads.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Bump {
    cursor: usize,
    /// The low half of the address where adjacent blocks end: the cursor's when none is left.
    limit: u32,
    /// Bytes of a block.
    size: u32,
}

impl Reserved {
    /// No block.
    pub const NONE: Reserved =
        Reserved { start: 0, masks: [0; WORDS], unit: 0, word: 0, next: 0, clears: false };

    /// Whether a block of its span, by its number and address, is one of those from the cursor on.
    #[inline(always)]
    pub fn holds(&self, bump: &Bump, block: usize, address: usize) -> bool {
        let word = (block / 64).wrapping_sub(self.word.into());
        address >= bump.cursor && self.masks.get(word).is_some_and(|mask| mask >> (block % 64) & 1 != 0)
    }

    /// The bits of the blocks from the cursor on. Another thread may read them while they change, for a census.
    pub fn free(&self, bump: &Bump) -> [u64; WORDS] {
        let used = bump.cursor.wrapping_sub(self.start) as u32;
        let Some(used) = used.checked_div(bump.size) else { return [0; WORDS] };
        let mut free = self.masks;
        for (word, mask) in free.iter_mut().enumerate() {
            *mask &= u64::MAX.checked_shl(used.saturating_sub(word as u32 * 64)).unwrap_or(0);
        }
        free
    }
}

impl Bump {
    /// At the end of no reservation.
    pub const NONE: Bump = Bump { cursor: 0, limit: 0, size: 0 };

    /// Before the first block of a reservation of blocks of `size` bytes.
    pub const fn before(reserved: &Reserved, size: u32) -> Bump {
        Bump { cursor: reserved.start, limit: reserved.start as u32, size }
    }

    /// Takes the next block; null after adjacent ones. By a pointer, since those of the static empty cache, which have no
    /// block, are only read.
    ///
    /// # Safety
    /// It is readable, and writable where it has a block; no other thread changes it.
    #[inline(always)]
    pub unsafe fn take(bump: *mut Bump) -> *mut u8 {
        // SAFETY: this function's contract; blocks between cursor and limit are free, this thread's, and of at least 16
        // bytes.
        unsafe {
            let block = (*bump).cursor;
            if block as u32 == (*bump).limit {
                return ptr::null_mut();
            }
            assert_internal!(block.is_multiple_of(16), "reserved blocks are aligned");
            (*bump).cursor = block + (*bump).size as usize;
            // The links that a list has left would keep a block alive, and its key would make the next free a double one.
            (block as *mut [usize; 2]).write([0; 2]);
            block as *mut u8
        }
    }

    /// Takes the first of the next adjacent blocks of the reservation; null when there are none.
    ///
    /// # Safety
    /// As [`Bump::take`], which has returned null, and the same for the reservation, which is the cursor's.
    pub unsafe fn next(bump: *mut Bump, reserved: *mut Reserved) -> *mut u8 {
        // SAFETY: this function's contract; the blocks are reserved for this thread, and not the program's yet.
        unsafe {
            let mut bit = usize::from((*reserved).next);
            while bit < WORDS * 64 {
                let rest = (*reserved).masks[bit / 64] >> (bit % 64);
                if rest == 0 {
                    bit = (bit / 64 + 1) * 64;
                    continue;
                }
                bit += rest.trailing_zeros() as usize;
                let count = (rest >> rest.trailing_zeros()).trailing_ones() as usize;
                let size = (*bump).size as usize;
                let first = (*reserved).start + bit * size;
                if (*reserved).clears {
                    (first as *mut u8).write_bytes(0, count * size);
                }
                assert_internal!(first >= (*bump).cursor, "a cursor never goes back");
                (*reserved).next = (bit + count) as u16;
                (*bump).limit = (first + count * size) as u32;
                (*bump).cursor = first;
                return Bump::take(bump);
            }
            ptr::null_mut()
        }
    }

    /// Passes over the next block of the reservation without touching it; null when none is left.
    pub fn pass(&mut self, reserved: &mut Reserved) -> *mut u8 {
        let free = reserved.free(self);
        let Some(word) = free.iter().position(|&mask| mask != 0) else { return ptr::null_mut() };
        let bit = word * 64 + free[word].trailing_zeros() as usize;
        let block = reserved.start + bit * self.size as usize;
        self.cursor = block + self.size as usize;
        self.limit = self.cursor as u32;
        reserved.next = bit as u16 + 1;
        block as *mut u8
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use proptest::prelude::*;

    use super::*;

    /// Words of single blocks, of adjacent ones, and without any.
    fn masks() -> impl Strategy<Value = [u64; WORDS]> {
        let mask = (any::<u64>(), any::<u64>(), 0..4_u8).prop_map(|(one, other, kind)| match kind {
            0 => one & other,
            1 => one | other,
            2 => u64::MAX << (one % 64),
            _ => 0,
        });
        prop::array::uniform4(mask)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn reserved_blocks_come_once_each_in_order_and_cleared(
            masks in masks(), words in 1..10_usize, clears in any::<bool>(), passes in masks(),
        ) {
            let size = words * 16;
            let mut memory = std::vec![7_u128; 64 * WORDS * words];
            let start = memory.as_mut_ptr() as usize;
            let mut reserved = Reserved { start, masks, clears, ..Reserved::NONE };
            let mut bump = Bump::before(&reserved, size as u32);
            let is_set = |masks: [u64; WORDS], bit: usize| masks[bit / 64] >> (bit % 64) & 1 != 0;
            for bit in (0..64 * WORDS).filter(|&bit| is_set(masks, bit)) {
                let free = reserved.free(&bump);
                prop_assert!((0..64 * WORDS).all(|other| is_set(free, other) == (other >= bit && is_set(masks, other))));
                let expected = (start + bit * size) as *mut u8;
                if is_set(passes, bit) {
                    prop_assert_eq!(bump.pass(&mut reserved), expected);
                    continue;
                }
                // SAFETY: the blocks are of `memory`, and the test is the only thread.
                let mut block = unsafe { Bump::take(&mut bump) };
                if block.is_null() {
                    // SAFETY: as above.
                    block = unsafe { Bump::next(&mut bump, &mut reserved) };
                }
                prop_assert_eq!(block, expected);
                // SAFETY: a block of `memory`.
                let bytes = unsafe { core::slice::from_raw_parts_mut(block, size) };
                let cleared = if clears { size } else { 16 };
                prop_assert!(bytes[..cleared].iter().all(|&byte| byte == 0));
                bytes.fill(9);
            }
            prop_assert_eq!(reserved.free(&bump), [0; WORDS]);
            prop_assert!(bump.pass(&mut reserved).is_null());
        }
    }
}
