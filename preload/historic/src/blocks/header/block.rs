//! A block with a header of one word, and the marker in front of an aligned address inside one.
//!
//! ```text
//!   ≡ 8 mod 16   ┌──────────────────┐            ┌──────────────────┐
//!                │ live │ number    │            │ outer │ number   │
//!   given out ─▶ ├──────────────────┤            ├──────────────────┤
//!                │ ...              │            │ distance         │
//!                                                │ (unused)         │
//!                                                │ inner │ distance │
//!                                   given out ─▶ ├──────────────────┤  a multiple of the alignment
//!                                                │ ...              │
//! ```

use heaptoll_runtime::{ALIGNMENT, Misuse, Region, WORD, round_up};

/// What the word in front of an address marks. The upper 16 bits of the word; the rest is a number below 2^48.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Mark {
    /// A block that the program holds and knows by the address after this word.
    Live = 0xa11f,
    /// A free block.
    Free = 0xf4ee,
    /// A block that the program holds and knows by an aligned address further up.
    Outer = 0x0a7e,
    /// The word in front of that aligned address.
    Inner = 0x1a7e,
    /// The same after the block was freed.
    Stale = 0x57a1,
}

impl Mark {
    #[inline(always)]
    const fn word(self) -> usize {
        (self as usize) << 48
    }
}

/// A block, by the address of its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block(usize);

impl Block {
    /// The block whose header is at `address`.
    #[inline(always)]
    pub const fn at(address: usize) -> Block {
        Block(address)
    }

    /// The block, or the marker, in front of an address that the program was given.
    #[inline(always)]
    pub const fn of_user(user: usize) -> Block {
        Block(user.wrapping_sub(WORD))
    }

    /// Address of the header.
    #[inline(always)]
    pub const fn address(self) -> usize {
        self.0
    }

    /// The address after the header.
    #[inline(always)]
    pub const fn user(self) -> usize {
        self.0.wrapping_add(WORD)
    }

    /// Reads a word of the block, by its distance from the header in words.
    ///
    /// # Safety
    /// The memory is readable. It need not be a block: a wrong address, even an odd one, gives a wrong word.
    #[inline(always)]
    pub unsafe fn word(self, at: usize) -> usize {
        // SAFETY: the memory is readable, as this function requires.
        unsafe { (self.0 as *const usize).wrapping_add(at).read_unaligned() }
    }

    /// Writes a word of the block.
    ///
    /// # Safety
    /// The memory is the heap's, and no other code uses it.
    #[inline(always)]
    pub unsafe fn set_word(self, at: usize, value: usize) {
        // SAFETY: the memory is the heap's alone, as this function requires.
        unsafe { (self.0 as *mut usize).add(at).write(value) };
    }

    /// Writes the header.
    ///
    /// # Safety
    /// As [`Block::set_word`]; the number is below 2^48.
    #[inline(always)]
    pub unsafe fn set(self, mark: Mark, number: usize) {
        // SAFETY: the memory is the heap's alone, as this function requires.
        unsafe { self.set_word(0, mark.word() + number) };
    }

    /// The header's number if it has this mark, otherwise at least 2^48: one comparison with a limit proves both.
    ///
    /// # Safety
    /// As [`Block::word`].
    #[inline(always)]
    pub unsafe fn number(self, mark: Mark) -> usize {
        // SAFETY: the memory is readable, as this function requires.
        unsafe { self.word(0) }.wrapping_sub(mark.word())
    }

    /// Makes the block live under an address in it: its own, or an aligned one further up, which then gets a marker.
    /// Both are multiples of 16, so that there is space for two words if they differ.
    ///
    /// # Safety
    /// The block is the heap's, and `user` lies in it.
    pub unsafe fn make_live(self, user: usize, number: usize) {
        let distance = user - self.user();
        // SAFETY: the words lie between the header and `user`, which are a multiple of 16 apart.
        unsafe {
            if distance == 0 {
                self.set(Mark::Live, number);
                return;
            }
            self.set(Mark::Outer, number);
            self.set_word(1, distance);
            Block::of_user(user).set(Mark::Inner, distance);
        }
    }

    /// The number of a block that the program holds, and the address it knows it by; `None` for other blocks.
    ///
    /// # Safety
    /// It is a block of the heap.
    pub unsafe fn held(self, numbers: usize) -> Option<(usize, usize)> {
        // SAFETY: it is a block of the heap, as this function requires.
        unsafe {
            match (self.number(Mark::Live), self.number(Mark::Outer)) {
                (number, _) if number < numbers => Some((number, self.user())),
                (_, number) if number < numbers => Some((number, self.user().wrapping_add(self.word(1)))),
                _ => None,
            }
        }
    }

    /// The block that the program knows by an aligned address inside it, or what is wrong with an address that has
    /// no live header in front of it. `numbers`: valid numbers are below.
    ///
    /// # Errors
    /// What the word in front of the address shows.
    ///
    /// # Safety
    /// The word in front of `user` is readable.
    pub unsafe fn around(user: usize, numbers: usize, region: &Region) -> Result<Block, Misuse> {
        let front = Block::of_user(user);
        // SAFETY: the word in front of `user` is readable, as this function requires; the outer block is read only if
        // its two words lie in the region.
        unsafe {
            let distance = front.number(Mark::Inner);
            let outer = Block(front.0.wrapping_sub(distance));
            if distance.is_multiple_of(ALIGNMENT)
                && (ALIGNMENT..1 << 48).contains(&distance)
                && region.contains(outer.0)
                && outer.number(Mark::Outer) < numbers
                && outer.word(1) == distance
            {
                return Ok(outer);
            }
            if front.number(Mark::Free) < numbers || front.number(Mark::Stale) < 1 << 48 {
                return Err(Misuse::DoubleFree);
            }
        }
        Err(if region.contains(user) { Misuse::Damaged } else { Misuse::Foreign })
    }

    /// Records that the block under an aligned address was freed, so that a second free is seen to be one.
    ///
    /// # Safety
    /// `user` is the address of a live block, with a marker in front.
    pub unsafe fn forget(user: usize) {
        // SAFETY: `user` is the address of a live block, with a marker in front, as this function requires.
        unsafe { Block::of_user(user).set(Mark::Stale, 0) };
    }

    /// The first aligned address in the block.
    pub const fn aligned(self, alignment: usize) -> usize {
        round_up(self.user(), alignment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_under_its_own_mark_only() {
        let mut memory = [0usize; 4];
        let block = Block::at(&raw mut memory as usize);
        // SAFETY: the header lies in `memory`.
        unsafe {
            block.set(Mark::Live, 7);
            assert_eq!(block.number(Mark::Live), 7);
            for other in [Mark::Free, Mark::Outer, Mark::Inner, Mark::Stale] {
                assert!(block.number(other) >= 1 << 48, "{other:?}");
            }
            assert_eq!(block.held(8), Some((7, block.user())));
            assert_eq!(block.held(7), None, "a number out of range is no valid header");
        }
    }

    #[test]
    fn an_aligned_address_leads_back_until_it_is_freed() {
        let mut region = Region::new();
        let start = region.grow(4096).expect("memory").as_ptr() as usize;
        let block = Block::at(start + WORD);
        let user = block.aligned(256);
        // SAFETY: all of it lies in the region.
        unsafe {
            block.make_live(user, 3);
            assert_eq!(Block::around(user, 8, &region), Ok(block));
            assert_eq!(Block::around(user, 3, &region), Err(Misuse::Damaged), "a number out of range");
            assert_eq!(block.held(8), Some((3, user)));
            assert_eq!(
                Block::around(block.user(), 8, &region),
                Err(Misuse::Damaged),
                "the block's own address"
            );
            assert_eq!(Block::around(user + 16, 8, &region), Err(Misuse::Damaged));
            let local = [0usize; 4];
            assert_eq!(Block::around((&raw const local as usize) + 16, 8, &region), Err(Misuse::Foreign));
            Block::forget(user);
            assert_eq!(Block::around(user, 8, &region), Err(Misuse::DoubleFree));
            block.set(Mark::Free, 3);
            assert_eq!(Block::around(block.user(), 8, &region), Err(Misuse::DoubleFree));
        }
    }

    #[test]
    fn a_block_whose_own_address_is_aligned_needs_no_marker() {
        let mut region = Region::new();
        let start = region.grow(4096).expect("memory").as_ptr() as usize;
        let block = Block::at(start + 2048 - WORD);
        // SAFETY: all of it lies in the region.
        unsafe {
            block.make_live(block.aligned(1024), 5);
            assert_eq!(block.held(8), Some((5, start + 2048)));
            assert_eq!(block.number(Mark::Live), 5);
        }
    }
}
