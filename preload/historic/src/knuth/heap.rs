//! The heap of blocks with boundary tags: allocation by a [`Fit`], freeing with coalescing in constant time.

use core::marker::PhantomData;
use core::ptr::NonNull;

use heaptoll_runtime::{ALIGNMENT, Damage, Heap, Misuse, Piece, Region, Search, WORD, aligned_after_block};

use crate::knuth::{Block, Fit, FreeList, SMALLEST, TAGS};

/// A heap whose blocks carry their size and state at both ends.
///
/// The region begins with one word and ends with one that have the form of live blocks' tags, so that no block is ever
/// coalesced beyond them. The first also puts all headers at 8 mod 16, where they leave the block aligned: tags cost
/// two words and alignment none, but for the rounding of sizes to 16 bytes.
#[derive(Debug)]
pub struct TaggedHeap<F> {
    region: Region,
    list: FreeList,
    search: Search,
    fit: PhantomData<F>,
}

impl<F: Fit> TaggedHeap<F> {
    /// An empty heap.
    pub const fn new() -> TaggedHeap<F> {
        TaggedHeap { region: Region::new(), list: FreeList::new(), search: Search::new(), fit: PhantomData }
    }

    /// The first block's header; the end's sentinel follows the last block.
    fn first(&self) -> Block {
        Block::at(self.region.start() + WORD)
    }

    fn sentinel(&self) -> Block {
        Block::at(self.region.end() - WORD)
    }

    /// A free block of at least `size` bytes that was not there before, coalesced with a free one at the heap's end.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, size: usize) -> Option<Block> {
        let fresh = self.region.start() == self.region.end();
        // A free block at the end is a part of what is wanted.
        let mut have = 0;
        if !fresh {
            // SAFETY: the heap is not empty: the sentinel follows its last block.
            have = unsafe { self.sentinel().free_before().map_or(0, |last| last.free_size()) };
        }
        let sentinels = if fresh { 2 * WORD } else { 0 };
        let (at, bytes) = self.region.grow_to_page(size.saturating_sub(have).checked_add(sentinels)?)?;
        let mut block = Block::at(at.as_ptr() as usize);
        let mut bytes = bytes;
        // SAFETY: `grow_to_page` returned `bytes` new bytes of the heap's region.
        unsafe {
            if fresh {
                block.write_sentinel();
                block = Block::at(block.address() + WORD);
                bytes -= 2 * WORD;
            } else {
                // The old sentinel becomes the header; a new one takes the last word.
                block = Block::at(block.address() - WORD);
            }
            self.sentinel().write_sentinel();
            Some(self.release(block, bytes))
        }
    }

    /// Makes `size` bytes a free block, coalesced with free neighbours, and returns it. The next search may begin there.
    ///
    /// # Safety
    /// The bytes are the heap's, in no block that is live or free, and neighbours are sound.
    #[inline(always)]
    unsafe fn release(&mut self, block: Block, size: usize) -> Block {
        // SAFETY: the contract of `join` is that of this function.
        let free = unsafe { self.join(block, size) };
        if F::ROVES_TO_FREED {
            self.list.rove(free);
        }
        free
    }

    /// The same, with the rover where it was.
    ///
    /// # Safety
    /// As of [`TaggedHeap::release`].
    #[inline(always)]
    unsafe fn join(&mut self, block: Block, size: usize) -> Block {
        // SAFETY: the bytes are the heap's, in no block that is live or free, and neighbours are sound, as this
        // function requires; neighbours that are free are in the list.
        unsafe {
            let after = Block::at(block.address() + size);
            match (block.free_before(), after.is_live()) {
                (None, true) => {
                    block.write(size, false);
                    self.list.insert(block);
                    block
                }
                (None, false) => {
                    let more = after.free_size();
                    self.list.replace(after, block);
                    block.write(size + more, false);
                    block
                }
                (Some(before), true) => {
                    block.erase();
                    before.write(before.free_size() + size, false);
                    before
                }
                (Some(before), false) => {
                    let more = after.free_size();
                    self.list.remove(after);
                    block.erase();
                    before.write(before.free_size() + size + more, false);
                    before
                }
            }
        }
    }

    /// Gives out `size` bytes of a free block: its upper part if the rest is worth a block, else all of it.
    ///
    /// # Safety
    /// The block is in the list and has at least `size` bytes.
    #[inline(always)]
    unsafe fn take(&mut self, block: Block, size: usize) -> Block {
        // SAFETY: the block is in the list and has at least `size` bytes, as this function requires.
        unsafe {
            let whole = block.free_size();
            let rest = whole - size;
            let begun = if F::ROVES_TO_FREED { self.list.rover().free_size() } else { 0 };
            let next = block.next();
            if rest < F::SPLIT {
                self.list.remove(block);
                block.write(whole, true);
                if next != block {
                    self.rove_after(next, next.free_size(), begun);
                }
                return block;
            }
            block.write(rest, false);
            if F::ROVES_TO_FREED {
                self.rove_after(block, rest, begun);
            } else {
                self.list.rove(next);
            }
            let upper = Block::at(block.address() + rest);
            upper.write(size, true);
            upper
        }
    }

    /// Moves the rover to a block of `size` bytes: where Moraes' rule holds, if that is larger than the one at which the
    /// last search began, `begun`.
    #[inline(always)]
    fn rove_after(&mut self, block: Block, size: usize, begun: usize) {
        if !F::ROVES_TO_FREED || size > begun {
            self.list.rove(block);
        }
    }

    /// A free block of at least `size` bytes, the heap grown if there is none.
    #[inline(always)]
    fn find(&mut self, size: usize) -> Option<Block> {
        // SAFETY: the list is this heap's: all its blocks are free blocks of the heap.
        let (found, steps) = unsafe { F::find(&self.list, size) };
        self.search.record(steps);
        match found {
            Some(block) => Some(block),
            None => self.grow(size),
        }
    }

    /// The live block that the program knows by an address.
    ///
    /// # Safety
    /// None: a wrong address is an error.
    #[inline(always)]
    unsafe fn live(&self, user: NonNull<u8>) -> Result<Block, Misuse> {
        let address = user.as_ptr() as usize;
        // The smallest block after it and the sentinel must have space too.
        if !self.region.contains(address.wrapping_add(SMALLEST - TAGS))
            || !address.is_multiple_of(ALIGNMENT)
            || address <= self.region.start()
        {
            return Err(Misuse::Foreign);
        }
        let block = Block::of_user(address);
        // SAFETY: the header's word is in the heap, as the address is above its start, and a smallest block's bytes
        // are, as the heap ends at a multiple of the alignment.
        unsafe {
            if !block.is_sound(self.region.end()) {
                return Err(Misuse::Damaged);
            }
            if !block.is_live() {
                return Err(Misuse::DoubleFree);
            }
        }
        Ok(block)
    }

    /// Gives the upper part of a live block back if it is worth a block.
    ///
    /// # Safety
    /// The block is live and has at least `size` bytes.
    unsafe fn trim(&mut self, block: Block, size: usize) {
        // SAFETY: the block is live and has at least `size` bytes, as this function requires.
        unsafe {
            let rest = block.size() - size;
            if rest >= F::SPLIT {
                block.write(size, true);
                self.release(Block::at(block.address() + size), rest);
            }
        }
    }
}

impl<F: Fit> Default for TaggedHeap<F> {
    fn default() -> TaggedHeap<F> {
        TaggedHeap::new()
    }
}

impl<F: Fit> Heap for TaggedHeap<F> {
    const NAME: &'static str = F::NAME;

    heaptoll_runtime::region_of_heap!(region);

    #[inline(always)]
    fn allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let size = Block::size_for(bytes);
        let block = self.find(size)?;
        // SAFETY: `find` returned a block of the list that has at least `size` bytes.
        NonNull::new(unsafe { self.take(block, size) }.user() as *mut u8)
    }

    fn allocate_aligned(&mut self, alignment: usize, bytes: usize) -> Option<NonNull<u8>> {
        // A block so large that, wherever it lies, an aligned one fits in with space for a free block before it.
        let size = Block::size_for(bytes);
        let whole = self.find(size.checked_add(alignment)?.checked_add(SMALLEST)?)?;
        // SAFETY: the block is free and in the list, and its parts stay within it.
        unsafe {
            let (start, length) = (whole.address(), whole.free_size());
            if !F::ROVES_TO_FREED {
                self.list.rove(whole.next());
            }
            let user = aligned_after_block(whole.user(), alignment, SMALLEST);
            let block = Block::of_user(user);
            let lead = block.address() - start;
            if lead == 0 {
                self.list.remove(whole);
            } else {
                whole.write(lead, false);
            }
            block.write(length - lead, true);
            self.trim(block, size);
            NonNull::new(user as *mut u8)
        }
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: NonNull<u8>) -> Result<(), Misuse> {
        // SAFETY: `live` proves what it can; `block` is live, as `Heap::free` requires.
        unsafe {
            let block = self.live(block)?;
            self.release(block, block.size());
        }
        Ok(())
    }

    unsafe fn resize(&mut self, block: NonNull<u8>, bytes: usize) -> Result<bool, Misuse> {
        let size = Block::size_for(bytes);
        // SAFETY: `block` came from this heap and is live, as `Heap::resize` requires.
        unsafe {
            let block = self.live(block)?;
            let has = block.size();
            if has < size {
                let after = block.after();
                if after.is_live() || has + after.size() < size {
                    return Ok(false);
                }
                let whole = has + after.size();
                self.list.remove(after);
                block.write(whole, true);
            }
            self.trim(block, size);
        }
        Ok(true)
    }

    unsafe fn usable(&self, block: NonNull<u8>) -> usize {
        // SAFETY: `block` is a live block of this heap, as `Heap::usable` requires.
        unsafe { Block::of_user(block.as_ptr() as usize).size() - TAGS }
    }

    fn walk(&self, visit: &mut dyn FnMut(Piece)) {
        if self.region.start() == self.region.end() {
            return;
        }
        visit(Piece::metadata(self.region.start(), WORD));
        let (mut block, sentinel) = (self.first(), self.sentinel());
        while block != sentinel {
            // SAFETY: blocks follow each other up to the sentinel.
            unsafe {
                let size = block.size();
                visit(match block.is_live() {
                    true => Piece::live(block.address(), size, block.user(), TAGS),
                    false => Piece::free(block.address(), size, TAGS),
                });
                block = block.after();
            }
        }
        visit(Piece::metadata(sentinel.address(), WORD));
    }

    fn check(&self) -> Result<(), Damage> {
        if self.region.start() == self.region.end() {
            return Damage::unless(self.list.is_empty(), 0, "an empty heap has no free blocks");
        }
        let (mut block, sentinel) = (self.first(), self.sentinel());
        let (mut free, mut free_before) = (0, false);
        while block != sentinel {
            let at = block.address();
            // SAFETY: the header lies before the sentinel, and `is_sound` is checked before the size is used.
            unsafe {
                let space = sentinel.address().checked_sub(at).is_some_and(|space| space >= SMALLEST);
                Damage::unless(space, at, "blocks end at the sentinel")?;
                Damage::unless(block.is_sound(self.region.end()), at, "header and footer agree")?;
                Damage::unless(block.size() >= SMALLEST, at, "a block holds its tags and links")?;
                Damage::unless(block.size().is_multiple_of(ALIGNMENT), at, "sizes keep the alignment")?;
                Damage::unless(block.is_live() || !free_before, at, "free neighbours are coalesced")?;
                free_before = !block.is_live();
                free += free_before as u64;
                block = block.after();
            }
        }
        // SAFETY: all links lead to blocks of this heap, or the counts differ.
        unsafe { self.list.check(free) }
    }

    fn search(&self) -> Option<Search> {
        Some(self.search)
    }
}
