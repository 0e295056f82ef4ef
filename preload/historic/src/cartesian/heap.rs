//! The heap: blocks without tags at their ends, whose free neighbours are found in the tree.

use core::ptr::NonNull;

use heaptoll_runtime::{ALIGNMENT, Damage, Heap, Misuse, Piece, Region, Search, WORD, aligned_after_block};

use crate::cartesian::{Block, HEADER, InOrder, Link, SMALLEST, Tree};

/// A heap with better fit on a Cartesian tree.
///
/// The region's first word is left out, which puts all headers at 8 mod 16, where they leave the block aligned, and
/// leaves a word over at the end.
#[derive(Debug)]
pub struct Cartesian {
    region: Region,
    tree: Tree,
    by_size: Search,
    by_address: Search,
}

impl Cartesian {
    /// An empty heap.
    pub const fn new() -> Cartesian {
        let (by_size, by_address) = (Search::new(), Search::new());
        Cartesian { region: Region::new(), tree: Tree::new(), by_size, by_address }
    }

    /// Descents by size, to allocate, in nodes visited.
    pub const fn searches_by_size(&self) -> Search {
        self.by_size
    }

    /// Descents by address, to free, to resize and to grow, in nodes visited.
    pub const fn searches_by_address(&self) -> Search {
        self.by_address
    }

    /// Free blocks from the root of the tree to the deepest, both counted.
    ///
    /// # Errors
    /// What is wrong with the tree, if it is damaged.
    pub fn depth(&self) -> Result<u64, Damage> {
        let mut order = self.in_order();
        while order.step()?.is_some() {}
        Ok(order.deepest())
    }

    fn is_empty(&self) -> bool {
        self.region.start() == self.region.end()
    }

    /// The first block's header.
    fn first(&self) -> Block {
        Block::at(self.region.start() + WORD)
    }

    /// Where the last block ends.
    #[inline(always)]
    fn end(&self) -> usize {
        self.region.end() - WORD
    }

    fn in_order(&self) -> InOrder {
        let (start, end) = if self.is_empty() { (0, 0) } else { (self.first().address(), self.end()) };
        // SAFETY: that range is this heap's blocks, and they stay as they are while it is borrowed.
        unsafe { InOrder::new(self.tree.root(), start, end) }
    }

    /// Adds `size` bytes in whole pages to the heap, coalesced with a free block at its end. As SunOS did, it requests
    /// all of `size`, whatever is free at the end.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, size: usize) -> Option<()> {
        let ends = if self.is_empty() { 2 * WORD } else { 0 };
        let (at, bytes) = self.region.grow_to_page(size.checked_add(ends)?)?;
        let at = at.as_ptr() as usize;
        let block = Block::at(if ends == 0 { at - WORD } else { at + WORD });
        // SAFETY: the bytes are new, but for the word left over at the old end; the last word is left over again.
        let released = unsafe {
            block.write(bytes - ends);
            self.release(block)
        };
        debug_assert_eq!(released, Ok(()), "new memory overlaps no free block");
        Some(())
    }

    /// A free block of at least `size` bytes, the heap grown if there is none, and the nodes visited.
    #[inline(always)]
    fn find(&mut self, size: usize) -> Option<(Link, u64)> {
        // SAFETY: the tree is this heap's: its nodes are free blocks of the heap.
        match unsafe { self.tree.better_fit(size) } {
            (Some(link), steps) => Some((link, steps)),
            (None, _) => self.find_in_grown(size),
        }
    }

    #[cold]
    #[inline(never)]
    fn find_in_grown(&mut self, size: usize) -> Option<(Link, u64)> {
        self.grow(size)?;
        // SAFETY: the tree is this heap's: its nodes are free blocks of the heap.
        let (found, steps) = unsafe { self.tree.better_fit(size) };
        // The root, which was too small, was visited before.
        Some((found?, steps + 1))
    }

    /// Gives out `size` bytes of a free block: its lower part if the rest is worth a node, else all of it. SunOS
    /// wanted more than the four words of its smallest block to be left. Also the nodes visited.
    ///
    /// # Safety
    /// The link is of the tree, its node has at least `size` bytes.
    #[inline(always)]
    unsafe fn take(&mut self, link: Link, size: usize) -> (Block, u64) {
        // SAFETY: the link is of the tree, its node has at least `size` bytes, as this function requires. The rest lies
        // where the node was, and is at least a smallest block away.
        unsafe {
            let block = link.node();
            let rest = block.size() - size;
            if rest <= SMALLEST {
                return (block, self.tree.delete(link));
            }
            let upper = Block::at(block.address() + size);
            upper.write(rest);
            block.write(size);
            (block, self.tree.demote(link, upper))
        }
    }

    /// Makes a block free, coalesced with free neighbours.
    ///
    /// # Errors
    /// When the tree shows that its bytes are free already, in part or as a whole; nothing has changed then.
    ///
    /// # Safety
    /// The bytes are the heap's, and the program's no longer; the header is written.
    #[inline(always)]
    unsafe fn release(&mut self, block: Block) -> Result<(), Misuse> {
        // SAFETY: the bytes are the heap's, and the program's no longer; the header is written, as this function
        // requires; the links are of the tree, and the deeper one is used first.
        unsafe {
            let found = self.tree.neighbours(block);
            let below = match found.below {
                Some(link) if link.node().after() > block => return Err(Misuse::DoubleFree),
                below => below.filter(|link| link.node().after() == block),
            };
            let after = block.after();
            let above = match found.above {
                Some(link) if link.node() < after => return Err(Misuse::Damaged),
                above => above.filter(|link| link.node() == after),
            };
            let steps = match (below, above) {
                (None, None) => found.steps + self.tree.insert_at(found.place, block),
                _ => found.steps + self.join(block, below, above, found.below_is_deeper),
            };
            self.by_address.record(steps);
        }
        Ok(())
    }

    /// Joins a block with its free neighbours, which leave the tree, the deeper one first. Returns the nodes visited.
    ///
    /// # Safety
    /// The links are of the tree, and lead to what the block touches.
    #[inline(never)]
    unsafe fn join(
        &mut self,
        block: Block,
        below: Option<Link>,
        above: Option<Link>,
        below_is_deeper: bool,
    ) -> u64 {
        // SAFETY: the links are of the tree, and lead to what the block touches, as this function requires.
        unsafe {
            let (mut start, mut size) = (block, block.size());
            if let Some(link) = below {
                start = link.node();
                size += start.size();
            }
            if let Some(link) = above {
                size += link.node().size();
            }
            let mut steps = 0;
            let both = if below_is_deeper { [below, above] } else { [above, below] };
            for link in both.into_iter().flatten() {
                steps += self.tree.delete(link);
            }
            start.write(size);
            steps + self.tree.insert(start)
        }
    }

    /// The live block that the program knows by an address, as far as its header shows.
    ///
    /// # Safety
    /// None: a wrong address is an error.
    #[inline(always)]
    unsafe fn live(&self, user: NonNull<u8>) -> Result<Block, Misuse> {
        let address = user.as_ptr() as usize;
        if !self.region.contains(address)
            || !address.is_multiple_of(ALIGNMENT)
            || address == self.region.start()
        {
            return Err(Misuse::Foreign);
        }
        let block = Block::of_user(address);
        // SAFETY: the header's word is in the heap, as the address is above its start.
        if unsafe { block.is_sound(self.end()) } { Ok(block) } else { Err(self.diagnose(block)) }
    }

    /// What is wrong with a block whose header is not sound: it lies in a free one, or it was written to.
    #[cold]
    #[inline(never)]
    fn diagnose(&self, block: Block) -> Misuse {
        let mut order = self.in_order();
        while let Ok(Some(node)) = order.step() {
            // SAFETY: `order` yields nodes of the tree, which are free blocks of the heap.
            if node <= block && block < unsafe { node.after() } {
                return Misuse::DoubleFree;
            }
        }
        Misuse::Damaged
    }

    /// Gives the upper part of a live block back if it is a block.
    ///
    /// # Safety
    /// The block is live and has at least `size` bytes.
    unsafe fn trim(&mut self, block: Block, size: usize) -> Result<(), Misuse> {
        // SAFETY: the block is live and has at least `size` bytes, as this function requires.
        unsafe {
            let rest = block.size() - size;
            if rest >= SMALLEST {
                let upper = Block::at(block.address() + size);
                upper.write(rest);
                self.release(upper)?;
                block.write(size);
            }
        }
        Ok(())
    }
}

impl Default for Cartesian {
    fn default() -> Cartesian {
        Cartesian::new()
    }
}

impl Heap for Cartesian {
    const NAME: &'static str = "cartesian";

    heaptoll_runtime::region_of_heap!(region);

    #[inline(always)]
    fn allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let size = Block::size_for(bytes);
        let (link, steps) = self.find(size)?;
        // SAFETY: `find` returned the link to a node of at least `size` bytes.
        let (block, more) = unsafe { self.take(link, size) };
        self.by_size.record(steps + more);
        NonNull::new(block.user() as *mut u8)
    }

    fn allocate_aligned(&mut self, alignment: usize, bytes: usize) -> Option<NonNull<u8>> {
        // A block so large that, wherever it lies, an aligned one fits in with space for a free block before it.
        let size = Block::size_for(bytes);
        let (link, mut steps) = self.find(size.checked_add(alignment)?.checked_add(SMALLEST)?)?;
        // SAFETY: the block is in the tree, and its parts stay within it. Its neighbours are live, so that the parts
        // given back are coalesced with nothing.
        unsafe {
            let whole = link.node();
            let length = whole.size();
            let user = aligned_after_block(whole.user(), alignment, SMALLEST);
            let block = Block::of_user(user);
            let lead = block.address() - whole.address();
            block.write(length - lead);
            steps += self.tree.delete(link);
            if lead != 0 {
                whole.write(lead);
                steps += self.tree.insert(whole);
            }
            self.by_size.record(steps);
            let trimmed = self.trim(block, size);
            debug_assert_eq!(trimmed, Ok(()), "the parts of a free block do not overlap");
            NonNull::new(user as *mut u8)
        }
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: NonNull<u8>) -> Result<(), Misuse> {
        // SAFETY: `live` and `release` prove what they can; `block` is live, as `Heap::free` requires.
        unsafe {
            let block = self.live(block)?;
            self.release(block)
        }
    }

    unsafe fn resize(&mut self, block: NonNull<u8>, bytes: usize) -> Result<bool, Misuse> {
        let size = Block::size_for(bytes);
        // SAFETY: `block` came from this heap and is live, as `Heap::resize` requires.
        unsafe {
            let block = self.live(block)?;
            let (has, after) = (block.size(), block.after());
            // SunOS searched for the block itself in the tree too, at each realloc.
            let found = self.tree.neighbours(block);
            if found.below.is_some_and(|link| link.node().after() > block) {
                return Err(Misuse::DoubleFree);
            }
            let above = found.above.filter(|link| link.node() <= after);
            if above.is_some_and(|link| link.node() < after) {
                return Err(Misuse::Damaged);
            }
            let mut steps = found.steps;
            if has < size {
                let Some(link) = above.filter(|_| has + after.size() >= size) else {
                    self.by_address.record(steps);
                    return Ok(false);
                };
                let whole = has + after.size();
                steps += self.tree.delete(link);
                block.write(whole);
            }
            self.by_address.record(steps);
            self.trim(block, size)?;
        }
        Ok(true)
    }

    unsafe fn usable(&self, block: NonNull<u8>) -> usize {
        // SAFETY: `block` is a live block of this heap, as `Heap::usable` requires.
        unsafe { Block::of_user(block.as_ptr() as usize).size() - HEADER }
    }

    fn walk(&self, visit: &mut dyn FnMut(Piece)) {
        if self.is_empty() {
            return;
        }
        visit(Piece::metadata(self.region.start(), WORD));
        let (mut block, end) = (self.first(), Block::at(self.end()));
        let mut order = self.in_order();
        while block != end {
            // The heap is sound: an error does not come.
            let free = order.step().ok().flatten().unwrap_or(end);
            // SAFETY: blocks follow each other up to the end, and those before the next free one are live.
            unsafe {
                while block != free {
                    visit(Piece::live(block.address(), block.size(), block.user(), HEADER));
                    block = block.after();
                }
                if free != end {
                    visit(Piece::free(free.address(), free.size(), HEADER));
                    block = free.after();
                }
            }
        }
        visit(Piece::metadata(end.address(), WORD));
    }

    fn check(&self) -> Result<(), Damage> {
        if self.is_empty() {
            return Damage::unless(self.tree.root().is_none(), 0, "an empty heap has no free blocks");
        }
        let (mut block, end) = (self.first(), Block::at(self.end()));
        let mut order = self.in_order();
        loop {
            let free = order.step()?;
            let until = free.unwrap_or(end);
            while block < until {
                // SAFETY: `block` lies before `until`, which is not after the heap's end: its header is in the heap.
                unsafe {
                    Damage::unless(
                        block.is_sound(end.address()),
                        block.address(),
                        "a block has a valid header",
                    )?;
                    block = block.after();
                }
            }
            Damage::unless(block == until, until.address(), "what is in the tree is a block of the heap")?;
            match free {
                // SAFETY: `free` is a node of the tree, and the walk has found it to be a block of the heap.
                Some(free) => block = unsafe { free.after() },
                None => return Ok(()),
            }
        }
    }

    fn search(&self) -> Option<Search> {
        Some(Search {
            searches: self.by_size.searches + self.by_address.searches,
            steps: self.by_size.steps + self.by_address.steps,
            longest: self.by_size.longest.max(self.by_address.longest),
        })
    }
}
