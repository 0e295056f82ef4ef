//! The bins: for each range of sizes a list of dirty blocks and one of clean blocks.

use heaptoll_runtime::{ALIGNMENT, Damage, WORD};

use crate::lea::{Block, SMALLEST};

/// Bins for blocks of one size each: below this size, bytes. 144 in the original, in units half as large.
pub const SMALL: usize = EXACT * ALIGNMENT;
const EXACT: usize = 18;

/// The largest block, bytes. More than an address space has.
pub const LARGEST: usize = (1 << 47) - ALIGNMENT;

/// The bin of the smallest block.
pub const FIRST: usize = bin_of(SMALLEST);
/// The bin of the largest block.
pub const LAST: usize = bin_of(LARGEST);

/// The bin for blocks of a size in bytes: its units of alignment for a small one; else four for each power of two.
#[inline(always)]
pub const fn bin_of(size: usize) -> usize {
    let units = size / ALIGNMENT;
    if units < EXACT {
        return units;
    }
    // With 16 to 31 left, the first bit is the power's and the next two are the quarter's.
    let shift = units.ilog2() as usize - 4;
    EXACT + 4 * shift + (((units >> shift) - 16) >> 2)
}

/// A list of a bin, by its head's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct List(usize);

impl List {
    /// The bin's blocks that were freed and not coalesced since.
    #[inline(always)]
    pub const fn dirty(bin: usize) -> List {
        List(2 * bin)
    }

    /// The bin's blocks that were split off or coalesced.
    #[inline(always)]
    pub const fn clean(bin: usize) -> List {
        List(2 * bin + 1)
    }

    const fn is_clean(self) -> bool {
        self.0 & 1 != 0
    }
}

const LISTS: usize = 2 * (LAST + 1);

/// The target of a link: a block, by its address; or a list's head, by its index, with the lowest bit set. So heads
/// take part in the circle like blocks, as in the original, and the heap may still be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Link(usize);

impl Link {
    #[inline(always)]
    const fn head(list: List) -> Link {
        Link(list.0 << 1 | 1)
    }

    #[inline(always)]
    const fn block(self) -> Option<Block> {
        if self.0 & 1 != 0 { None } else { Some(Block::at(self.0)) }
    }
}

/// Both links of a block or of a head.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Ends {
    next: Link,
    previous: Link,
}

/// Doubly linked, circular lists of free blocks, two for each range of sizes.
#[derive(Debug)]
pub struct Bins {
    heads: [Ends; LISTS],
    /// No bin above this one has clean blocks.
    top: usize,
}

impl Bins {
    /// All empty.
    pub const fn new() -> Bins {
        let mut heads = [Ends { next: Link(0), previous: Link(0) }; LISTS];
        let mut at = 0;
        while at < LISTS {
            heads[at] = Ends { next: Link::head(List(at)), previous: Link::head(List(at)) };
            at += 1;
        }
        Bins { heads, top: FIRST }
    }

    /// Where a link's own links are.
    ///
    /// # Safety
    /// Here and below: links lead to free blocks of a sound heap, or to heads.
    #[inline(always)]
    unsafe fn ends(&mut self, link: Link) -> *mut Ends {
        match link.block() {
            Some(block) => block.user() as *mut Ends,
            // SAFETY: heads' links are made by `Link::head` alone.
            None => unsafe { self.heads.as_mut_ptr().add(link.0 >> 1) },
        }
    }

    /// The list's first block: the last that was put in.
    #[inline(always)]
    pub fn first(&self, list: List) -> Option<Block> {
        self.heads[list.0].next.block()
    }

    /// The list's last block: the oldest.
    #[inline(always)]
    pub fn last(&self, list: List) -> Option<Block> {
        self.heads[list.0].previous.block()
    }

    /// The block that follows in its list.
    ///
    /// # Safety
    /// It is in a list.
    #[inline(always)]
    pub unsafe fn next(block: Block) -> Option<Block> {
        // SAFETY: it is in a list, as this function requires.
        unsafe { (*(block.user() as *const Ends)).next.block() }
    }

    /// The block before it in its list.
    ///
    /// # Safety
    /// It is in a list.
    #[inline(always)]
    pub unsafe fn previous(block: Block) -> Option<Block> {
        // SAFETY: it is in a list, as this function requires.
        unsafe { (*(block.user() as *const Ends)).previous.block() }
    }

    /// Puts a block in front of a list.
    ///
    /// # Safety
    /// It is a free block of the heap, of the bin's size, and in no list.
    #[inline(always)]
    unsafe fn insert(&mut self, list: List, block: Block) {
        let head = Link::head(list);
        let next = self.heads[list.0].next;
        // SAFETY: it is a free block of the heap, of the bin's size, and in no list, as this function requires.
        unsafe {
            (block.user() as *mut Ends).write(Ends { next, previous: head });
            (*self.ends(next)).previous = Link(block.address());
        }
        self.heads[list.0].next = Link(block.address());
    }

    /// Puts a block among the dirty ones of its size.
    ///
    /// # Safety
    /// It is a free block of the heap and in no list.
    #[inline(always)]
    pub unsafe fn insert_dirty(&mut self, block: Block) {
        // SAFETY: it is a free block of the heap and in no list, as this function requires.
        unsafe { self.insert(List::dirty(bin_of(block.size())), block) }
    }

    /// Puts a block among the clean ones of its size.
    ///
    /// # Safety
    /// It is a free block of the heap, in no list, and no neighbour is clean.
    #[inline(always)]
    pub unsafe fn insert_clean(&mut self, block: Block) {
        // SAFETY: it is a free block of the heap, in no list, and no neighbour is clean, as this function requires.
        unsafe {
            let bin = bin_of(block.size());
            self.top = self.top.max(bin);
            self.insert(List::clean(bin), block);
        }
    }

    /// Takes a block out of whatever list it is in.
    ///
    /// # Safety
    /// It is in one.
    #[inline(always)]
    pub unsafe fn remove(&mut self, block: Block) {
        // SAFETY: it is in one, as this function requires.
        unsafe {
            let Ends { next, previous } = (block.user() as *const Ends).read();
            (*self.ends(next)).previous = previous;
            (*self.ends(previous)).next = next;
        }
    }

    /// The highest bin that may have clean blocks.
    #[inline(always)]
    pub const fn top(&self) -> usize {
        self.top
    }

    /// Finds out which bin that is now.
    pub fn lower_top(&mut self) {
        while self.top > FIRST && self.first(List::clean(self.top)).is_none() {
            self.top -= 1;
        }
    }

    /// That all lists hold free blocks of their sizes with mutual links, each in one list. Marks each of them.
    ///
    /// # Errors
    /// The first that does not hold.
    ///
    /// # Safety
    /// The heap's tags are sound; it lies from `start` to `end`. Marks are taken away afterwards.
    pub unsafe fn check(&self, start: usize, end: usize) -> Result<(), Damage> {
        for list in (0..LISTS).map(List) {
            let (mut link, mut from) = (self.heads[list.0].next, Link::head(list));
            // Ends, since no block is passed twice.
            while let Some(block) = link.block() {
                // SAFETY: the address is checked before the block is read.
                unsafe {
                    Bins::check_block(block, list, start, end)?;
                    let ends = (block.user() as *const Ends).read();
                    Damage::unless(ends.previous == from, block.address(), "links of a bin are mutual")?;
                    block.mark(list.is_clean());
                    (link, from) = (ends.next, link);
                }
            }
            Damage::unless(link == Link::head(list), link.0, "a bin's list comes back to its own head")?;
            Damage::unless(self.heads[list.0].previous == from, from.0, "a bin's head knows its last block")?;
            let high = list.is_clean() && list.0 / 2 > self.top;
            Damage::unless(!high || from == link, from.0, "no bin above the top has clean blocks")?;
        }
        Ok(())
    }

    unsafe fn check_block(block: Block, list: List, start: usize, end: usize) -> Result<(), Damage> {
        let at = block.address();
        let inside = at > start && at < end && at % ALIGNMENT == WORD;
        Damage::unless(inside, at, "what is in a bin is in the heap")?;
        // SAFETY: the header's word is in the heap.
        unsafe {
            Damage::unless(!block.is_marked(), at, "a block is in one list, once")?;
            Damage::unless(block.is_sound(end), at, "what is in a bin is a block")?;
            Damage::unless(!block.is_live(), at, "what is in a bin is free")?;
            Damage::unless(bin_of(block.size()) == list.0 / 2, at, "a bin has blocks of its sizes")
        }
    }
}

impl Default for Bins {
    fn default() -> Bins {
        Bins::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The original's loop, in its units.
    fn bin_of_1993(size: usize) -> usize {
        let (mut units, mut bin) = (size / 16, 18);
        if units < 18 {
            return units;
        }
        while units >= 32 {
            units >>= 1;
            bin += 4;
        }
        bin + ((units - 16) >> 2)
    }

    #[test]
    fn bins_are_the_original_ones() {
        for size in (32..1 << 20).step_by(16).chain((5..47).map(|bits| 1usize << bits)) {
            assert_eq!(bin_of(size), bin_of_1993(size), "{size}");
        }
        assert_eq!((FIRST, bin_of(SMALL - 16), bin_of(SMALL), bin_of(LARGEST)), (2, 17, 18, LAST));
    }

    #[test]
    fn a_bin_never_holds_a_smaller_block_than_the_bin_below() {
        for size in (32..1 << 20).step_by(16) {
            assert!(bin_of(size + 16) == bin_of(size) || bin_of(size + 16) == bin_of(size) + 1, "{size}");
        }
    }

    #[test]
    fn lists_are_the_same_after_a_move() {
        let mut memory = [0usize; 32];
        let start = &raw mut memory as usize;
        let blocks = [8, 72, 136].map(|offset| Block::at(start + offset));
        let mut bins = Bins::new();
        for block in blocks {
            // SAFETY: the blocks lie in `memory`, apart.
            unsafe {
                block.write(64);
                bins.insert_dirty(block);
            }
        }
        let mut moved = bins;
        // SAFETY: the blocks lie in `memory`, apart; the middle one is in the list.
        unsafe {
            moved.remove(blocks[1]);
            let list = List::dirty(4);
            assert_eq!((moved.first(list), moved.last(list)), (Some(blocks[2]), Some(blocks[0])));
            assert_eq!((Bins::next(blocks[2]), Bins::previous(blocks[2])), (Some(blocks[0]), None));
            moved.remove(blocks[2]);
            moved.remove(blocks[0]);
            assert_eq!((moved.first(list), moved.last(list)), (None, None));
        }
    }
}
