//! The heap: how malloc chooses, how free does not, and resizing.

use core::ptr::NonNull;

use heaptoll_runtime::{
    ALIGNMENT, Damage, Heap, Message, Misuse, Piece, Region, Search, WORD, aligned_after_block,
};

use crate::lea::bins::{LARGEST, List, SMALL, bin_of};
use crate::lea::{Bins, Block, SMALLEST, TAGS};

/// When a block is split for the same size as the last time, at most so many more of that size are made of the rest.
const PREALLOCATED: usize = 5;

/// Lea's heap.
///
/// Blocks of the returned list are live by their tags. Where they must be distinguished from the program's
/// ([`Heap::walk`], [`Heap::check`]), each is marked in its header first, and the walk takes the mark away as it
/// passes: a walk takes time in the heap's size, and no memory.
#[derive(Debug)]
pub struct Lea {
    /// What its messages begin with: it may be a part of another manager.
    name: &'static str,
    pub(crate) region: Region,
    pub(crate) bins: Bins,
    /// What was freed and not examined since, and what was allocated in advance: singly linked, the last first.
    pub(crate) returned: Block,
    /// What the last split left over: clean, and in no bin.
    pub(crate) remainder: Block,
    /// For what size a block was split last, bytes.
    previous_request: usize,
    /// The bin whose dirty blocks are to be coalesced next.
    pub(crate) rover: usize,
    pub(crate) search: Search,
}

impl Lea {
    /// An empty heap.
    pub const fn new() -> Lea {
        Lea::within(<Lea as Heap>::NAME)
    }

    /// An empty heap that is a part of the manager of that name.
    pub const fn within(name: &'static str) -> Lea {
        Lea {
            name,
            region: Region::new(),
            bins: Bins::new(),
            returned: Block::NONE,
            remainder: Block::NONE,
            previous_request: 0,
            rover: crate::lea::bins::LAST,
            search: Search::new(),
        }
    }

    /// A live block of at least `size` bytes, tags included.
    #[inline(always)]
    fn take(&mut self, size: usize) -> Option<Block> {
        let last = self.returned;
        // SAFETY: what is in the returned list was the program's block, and what is in a bin is free.
        unsafe {
            if !last.is_none() && last.is_live_of(size) {
                self.returned = last.next();
                return Some(last);
            }
            if size < SMALL {
                let (dirty, clean) = (List::dirty(bin_of(size)), List::clean(bin_of(size)));
                if let Some(block) = self.bins.first(dirty).or(self.bins.last(clean)) {
                    self.bins.remove(block);
                    block.revive();
                    return Some(block);
                }
            }
        }
        self.take_further(size)
    }

    /// The same where neither the last returned block nor an exact bin has one.
    #[cold]
    #[inline(never)]
    fn take_further(&mut self, size: usize) -> Option<Block> {
        if size > LARGEST {
            return None;
        }
        let mut steps = 0;
        let block = self.choose(size, &mut steps);
        self.search.record(steps);
        block
    }

    /// The phases of malloc, in the original's order. Counts the blocks it visits.
    fn choose(&mut self, size: usize, steps: &mut u64) -> Option<Block> {
        let bin = bin_of(size);
        // SAFETY: bins hold free blocks; the remainder is one.
        unsafe {
            if size >= SMALL
                && let Some(block) = self.dirty_of(bin, size, steps)
            {
                return Some(block);
            }
            if let Some(block) = self.settle_until(size, steps) {
                return Some(block);
            }
            let remainder = self.remainder;
            if !remainder.is_none() && remainder.size() >= size {
                *steps += 1;
                self.remainder = Block::NONE;
                return Some(self.split(remainder, size));
            }
            let found = match self.clean_of(bin, size, steps) {
                Some(block) => Some(block),
                None => (bin + 1..=self.bins.top()).find_map(|bin| self.bins.last(List::clean(bin))),
            };
            if let Some(block) = found {
                *steps += 1;
                self.bins.remove(block);
                return Some(self.split(block, size));
            }
            let block = self.find_space(size, steps)?;
            Some(self.split(block, size))
        }
    }

    /// Takes the last block off the returned list; only here is a block checked that the program freed.
    #[inline(always)]
    pub(crate) fn next_returned(&mut self) -> Option<Block> {
        let block = self.returned;
        if block.is_none() {
            return None;
        }
        // SAFETY: `judge` has found the block to be sound and live before its link is read.
        unsafe {
            if let Err(misuse) = self.judge(block) {
                self.misused(block, misuse);
            }
            self.returned = block.next();
        }
        Some(block)
    }

    /// Makes a free block live and gives back what it has beyond `size`, if that is worth a block: as the remainder,
    /// after blocks in advance if the same size was wanted the last time.
    ///
    /// # Safety
    /// The block is large enough, clean and in no list.
    unsafe fn split(&mut self, block: Block, size: usize) -> Block {
        // SAFETY: the block has `size` bytes, as this function requires: both parts stay within it.
        unsafe {
            let mut rest = block.size() - size;
            if rest >= SMALLEST {
                block.write(size);
                let mut last = block;
                if self.previous_request == size {
                    for _ in 0..PREALLOCATED {
                        if rest < size + SMALLEST {
                            break;
                        }
                        rest -= size;
                        last = last.after();
                        last.write(size);
                        last.revive();
                        last.link(self.returned);
                        self.returned = last;
                    }
                }
                self.previous_request = size;
                let remainder = Block::at(last.address() + size);
                remainder.write(rest);
                self.bin_remainder();
                self.remainder = remainder;
            }
            block.revive();
            block
        }
    }

    /// Puts the remainder into its bin: before anything is coalesced, it must be found there.
    pub(crate) fn bin_remainder(&mut self) {
        if !self.remainder.is_none() {
            // SAFETY: the remainder is free, clean and in no bin.
            unsafe { self.bins.insert_clean(self.remainder) };
            self.remainder = Block::NONE;
        }
    }

    /// The live block that the program knows by an address, as far as tags show. One in the returned list passes for
    /// live.
    ///
    /// # Errors
    /// What tags show to be wrong.
    #[inline(always)]
    pub fn live(&self, user: NonNull<u8>) -> Result<Block, Misuse> {
        let block = Block::of_user(user.as_ptr() as usize);
        self.judge(block)?;
        Ok(block)
    }

    /// Whether that is a live block.
    #[inline(always)]
    pub(crate) fn judge(&self, block: Block) -> Result<(), Misuse> {
        let at = block.address();
        if !self.region.contains(at) || at % ALIGNMENT != WORD {
            return Err(Misuse::Foreign);
        }
        // SAFETY: the region contains the header's word, as was checked above.
        unsafe {
            if !block.is_sound(self.region.end()) {
                return Err(Misuse::Damaged);
            }
            if !block.is_live() {
                return Err(Misuse::DoubleFree);
            }
        }
        Ok(())
    }

    /// The program's mistake was made in a free, but is met here.
    #[cold]
    #[inline(never)]
    fn misused(&self, block: Block, misuse: Misuse) -> ! {
        let line = Message::new().text(self.name).text(": malloc found among the freed blocks ");
        line.address(block.user()).text(": ").text(misuse.text()).abort()
    }

    /// The returned list as it is.
    pub fn returned(&self) -> impl Iterator<Item = Block> + '_ {
        let mut next = self.returned;
        core::iter::from_fn(move || {
            let block = next;
            if block.is_none() {
                return None;
            }
            // SAFETY: the links of a sound heap's list.
            next = unsafe { block.next() };
            Some(block)
        })
    }
}

impl Default for Lea {
    fn default() -> Lea {
        Lea::new()
    }
}

impl Heap for Lea {
    const NAME: &'static str = "lea";

    heaptoll_runtime::region_of_heap!(region);

    #[inline(always)]
    fn allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        NonNull::new(self.take(Block::size_for(bytes))?.user() as *mut u8)
    }

    fn allocate_aligned(&mut self, alignment: usize, bytes: usize) -> Option<NonNull<u8>> {
        // So much that, wherever it begins, an aligned block fits in with space for a block before it.
        let size = Block::size_for(bytes);
        let whole = self.take(size.checked_add(alignment)?.checked_add(SMALLEST)?)?;
        // SAFETY: the block is live and the caller's; its parts stay within it.
        unsafe {
            let length = whole.size();
            let user = aligned_after_block(whole.user(), alignment, SMALLEST);
            let block = Block::of_user(user);
            let lead = block.address() - whole.address();
            if lead != 0 {
                whole.write(lead);
                self.bins.insert_dirty(whole);
            }
            let rest = length - lead - size;
            if rest >= SMALLEST {
                let spare = Block::at(block.address() + size);
                spare.write(rest);
                self.bins.insert_dirty(spare);
                block.write(size);
            } else {
                block.write(length - lead);
            }
            block.revive();
            NonNull::new(user as *mut u8)
        }
    }

    /// Links the block, and nothing else.
    #[inline(always)]
    unsafe fn free(&mut self, block: NonNull<u8>) -> Result<(), Misuse> {
        let block = Block::of_user(block.as_ptr() as usize);
        // SAFETY: `block` came from this heap and is live, as `Heap::free` requires.
        unsafe { block.link(self.returned) };
        self.returned = block;
        Ok(())
    }

    unsafe fn resize(&mut self, block: NonNull<u8>, bytes: usize) -> Result<bool, Misuse> {
        let size = Block::size_for(bytes);
        let block = self.live(block)?;
        // What was returned becomes free, so that the block can grow over it.
        self.bin_remainder();
        while let Some(returned) = self.next_returned() {
            // SAFETY: `next_returned` has found it to be a block that is live by its tags.
            unsafe {
                returned.retire();
                self.bins.insert_dirty(returned);
            }
        }
        // SAFETY: the neighbours up to the first live one are free, and in bins.
        unsafe {
            // It was among the returned ones.
            if !block.is_live() {
                return Err(Misuse::DoubleFree);
            }
            let mut after = block.after();
            while !after.is_live() {
                after = after.after();
            }
            let whole = after.address() - block.address();
            if whole < size {
                return Ok(false);
            }
            let mut next = block.after();
            while next != after {
                self.bins.remove(next);
                next = next.after();
            }
            let rest = whole - size;
            if rest >= SMALLEST {
                block.write(size);
                let spare = Block::at(block.address() + size);
                spare.write(rest);
                self.bins.insert_clean(spare);
            } else {
                block.write(whole);
            }
            block.revive();
        }
        Ok(true)
    }

    #[inline(always)]
    unsafe fn usable(&self, block: NonNull<u8>) -> usize {
        // SAFETY: `block` is a live block of this heap, as `Heap::usable` requires.
        unsafe { Block::of_user(block.as_ptr() as usize).size() - TAGS }
    }

    fn walk(&self, visit: &mut dyn FnMut(Piece)) {
        self.show(visit);
    }

    fn check(&self) -> Result<(), Damage> {
        self.audit()
    }

    fn search(&self) -> Option<Search> {
        Some(self.search)
    }
}
