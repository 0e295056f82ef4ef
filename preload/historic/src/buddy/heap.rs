//! The heap: reservation by splitting, liberation by uniting buddies, and growth.

use core::ptr::NonNull;

use heaptoll_runtime::{ALIGNMENT, Damage, Heap, Misuse, PAGE, Piece, Region, WORD};

use crate::blocks::header::{Block, Fingerprint, Mark};
use crate::buddy::lists::Lists;
use crate::buddy::{ORDERS, SMALLEST, order_for};

/// The offset of the first block: what lies before it has no space for a header.
const FIRST: usize = 1 << SMALLEST;

/// A heap of binary buddies.
#[derive(Debug)]
pub struct Buddy {
    lists: Lists,
    region: Region,
}

impl Buddy {
    /// An empty heap.
    pub const fn new() -> Buddy {
        Buddy { lists: Lists::new(), region: Region::new() }
    }

    /// The block at an offset from the base, one word before the region's start.
    fn block(&self, offset: usize) -> Block {
        Block::at(self.region.start() - WORD + offset)
    }

    fn offset(&self, block: Block) -> usize {
        block.user() - self.region.start()
    }

    /// The heap's length: where the next block to be would begin.
    fn length(&self) -> usize {
        self.region.end() - self.region.start()
    }

    /// A block's buddy if it is free and whole.
    ///
    /// # Safety
    /// The block is the heap's and of this order.
    unsafe fn free_buddy(&self, block: Block, order: usize) -> Option<Block> {
        let buddy = self.block(self.offset(block) ^ 1 << order);
        // The base's header lies outside. That of a buddy beyond the end may be the region's last word, which is 0
        // until the heap has grown over it.
        // SAFETY: within the heap a block begins at a buddy's offset: its pair was split, or never was one.
        let free = self.region.contains(buddy.address()) && unsafe { buddy.number(Mark::Free) } == order;
        free.then_some(buddy)
    }

    /// Algorithm S: unites a block with its buddies and makes it free.
    ///
    /// # Safety
    /// The block is the heap's, of this order, and in no list.
    unsafe fn release(&mut self, mut block: Block, mut order: usize) {
        // SAFETY: the block is the heap's, of this order, and in no list, as this function requires; buddies that are
        // free are in the list of their order.
        unsafe {
            // Also where the lower buddy's header is that of both from now on: a second free sees that it is one.
            block.set(Mark::Free, order);
            while let Some(buddy) = self.free_buddy(block, order) {
                self.lists.remove(buddy, order);
                block = block.min(buddy);
                order += 1;
            }
            self.lists.insert(block, order);
        }
    }

    /// Algorithm R: a block of this order, in no list; its header is not written yet.
    fn reserve(&mut self, order: usize) -> Option<Block> {
        if order >= ORDERS {
            return None;
        }
        let (block, has) = match self.lists.smallest(order) {
            Some(found) => found,
            None => {
                self.grow(order)?;
                self.lists.smallest(order)?
            }
        };
        // SAFETY: the block is the first in its list, and its upper halves are in none.
        unsafe {
            self.lists.remove(block, has);
            self.split(block, has, order);
        }
        Some(block)
    }

    /// Makes the upper halves of a block free until it has the order wanted.
    ///
    /// # Safety
    /// The block is the heap's, of order `has`, and in no list.
    unsafe fn split(&mut self, block: Block, has: usize, order: usize) {
        for half in (order..has).rev() {
            // SAFETY: the upper half of the caller's block. Its buddy is the lower one, which is not free.
            unsafe { self.lists.insert(Block::at(block.address() + (1 << half)), half) };
        }
    }

    /// Extends the heap so that there is a free block of this order: see the module's head.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, order: usize) -> Option<()> {
        let length = self.length();
        let size = (1 << order).max(PAGE);
        let below = length & !(size - 1);
        let end = if length == 0 {
            if order < PAGE.ilog2() as usize { PAGE } else { 2 * size }
        } else if self.is_free_from(below) {
            below + size
        } else {
            below + 2 * size
        };
        self.region.grow(end - length)?;
        let mut at = length.max(FIRST);
        while at < end {
            let order = at.trailing_zeros().min((end - at).ilog2());
            // SAFETY: the bytes are new, and in no other block.
            unsafe { self.release(self.block(at), order as usize) };
            at += 1 << order;
        }
        Some(())
    }

    /// Whether nothing but free blocks lies between an offset where a block begins and the heap's end.
    fn is_free_from(&self, offset: usize) -> bool {
        let mut at = offset;
        while at < self.length() {
            if at == 0 {
                return false;
            }
            // SAFETY: blocks follow each other to the end.
            let order = unsafe { self.block(at).number(Mark::Free) };
            if order >= ORDERS {
                return false;
            }
            at += 1 << order;
        }
        true
    }

    /// The live block that holds an address and its order, or what is wrong with the address.
    ///
    /// # Safety
    /// The word in front of it is readable.
    unsafe fn holding(&self, user: usize) -> Result<(Block, usize), Misuse> {
        let block = Block::of_user(user);
        // SAFETY: the word in front of it is readable, as this function requires.
        unsafe {
            let order = block.number(Mark::Live);
            if order < ORDERS {
                return Ok((block, order));
            }
            let block = Block::around(user, ORDERS, &self.region)?;
            Ok((block, block.number(Mark::Outer)))
        }
    }

    /// Hands out a block under an aligned address; nothing if there is no such address in it with `bytes` behind.
    ///
    /// # Safety
    /// The block was reserved with this order.
    unsafe fn make_live(block: Block, order: usize, alignment: usize, bytes: usize) -> Option<NonNull<u8>> {
        let user = block.aligned(alignment);
        if user + bytes > block.address() + (1 << order) {
            return None;
        }
        // SAFETY: the block was reserved with this order, as this function requires; `user` lies in the block.
        unsafe { block.make_live(user, order) };
        NonNull::new(user as *mut u8)
    }

    /// The order up to which a block can grow by free upper buddies, if that is `wanted`.
    ///
    /// # Safety
    /// The block is the heap's and of order `has`.
    unsafe fn can_grow(&self, block: Block, has: usize, wanted: usize) -> bool {
        let offset = self.offset(block);
        wanted < ORDERS
            && (has..wanted).all(|order| {
                // SAFETY: the block is the heap's and of order `has`, as this function requires; the pair below is
                // taken for united.
                offset & 1 << order == 0 && unsafe { self.free_buddy(block, order) }.is_some()
            })
    }

    /// Verifies one block and adds it to the free ones if it is; returns its order.
    fn check_block(&self, offset: usize, free: &mut [Fingerprint; ORDERS]) -> Result<usize, Damage> {
        let block = self.block(offset);
        let at = block.address();
        // SAFETY: the header lies in the region.
        let (order, held) = unsafe {
            match (block.number(Mark::Free), block.held(ORDERS)) {
                (order, _) if order < ORDERS => (order, None),
                (_, Some((order, user))) => (order, Some(user)),
                _ => return Damage::unless(false, at, "a tag has a state and an order").map(|()| 0),
            }
        };
        let size = 1 << order;
        Damage::unless(order >= SMALLEST, at, "a block has space for its tag and links")?;
        Damage::unless(size <= self.length() - offset, at, "blocks end within the region")?;
        Damage::unless(offset.is_multiple_of(size), at, "blocks lie at multiples of their size")?;
        match held {
            None => {
                free[order].add(block);
                // SAFETY: the block is sound as far as is known, and the tag at its buddy's place can be read.
                let alone = unsafe { self.free_buddy(block, order) }.is_none();
                Damage::unless(alone, at, "free buddies are united")?;
            }
            Some(user) if user != block.user() => {
                let inside = user.is_multiple_of(ALIGNMENT) && user > block.user() && user - at < size;
                Damage::unless(inside, at, "an aligned address lies in its block")?;
                // SAFETY: the word in front of it lies in the block.
                let back = unsafe { Block::of_user(user).number(Mark::Inner) };
                Damage::unless(back == user - block.user(), user, "an aligned address leads back")?;
            }
            Some(_) => {}
        }
        Ok(order)
    }
}

impl Default for Buddy {
    fn default() -> Buddy {
        Buddy::new()
    }
}

impl Heap for Buddy {
    const NAME: &'static str = "buddy";

    heaptoll_runtime::region_of_heap!(region);

    #[inline(always)]
    fn allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let order = order_for(bytes);
        let block = self.reserve(order)?;
        // SAFETY: the block was just reserved.
        unsafe { block.set(Mark::Live, order) };
        NonNull::new(block.user() as *mut u8)
    }

    fn allocate_aligned(&mut self, alignment: usize, bytes: usize) -> Option<NonNull<u8>> {
        // A block is aligned like its size, as far as the region's start is.
        let order = order_for(bytes).max(alignment.ilog2() as usize);
        let block = self.reserve(order)?;
        // SAFETY: the block was just reserved; so is the other one, which has an aligned address wherever it lies.
        unsafe {
            if let Some(given) = Self::make_live(block, order, alignment, bytes) {
                return Some(given);
            }
            self.release(block, order);
            let order = order_for(bytes + (alignment - ALIGNMENT));
            let block = self.reserve(order)?;
            Self::make_live(block, order, alignment, bytes)
        }
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: NonNull<u8>) -> Result<(), Misuse> {
        let user = block.as_ptr() as usize;
        // SAFETY: `block` came from this heap and is live, as `Heap::free` requires. An address is believed if its tag
        // has the mark.
        unsafe {
            let (block, order) = self.holding(user)?;
            if user != block.user() {
                Block::forget(user);
            }
            self.release(block, order);
        }
        Ok(())
    }

    unsafe fn resize(&mut self, block: NonNull<u8>, bytes: usize) -> Result<bool, Misuse> {
        let user = block.as_ptr() as usize;
        // SAFETY: `block` is live, as `Heap::resize` requires; free upper buddies are in their lists.
        unsafe {
            let (block, has) = self.holding(user)?;
            // What lies before an aligned address is a part of what the block must hold.
            let Some(whole) =
                bytes.checked_add(user - block.user()).filter(|&whole| whole <= isize::MAX as usize)
            else {
                return Ok(false);
            };
            let wanted = order_for(whole);
            if wanted > has {
                if !self.can_grow(block, has, wanted) {
                    return Ok(false);
                }
                for order in has..wanted {
                    self.lists.remove(Block::at(block.address() + (1 << order)), order);
                }
            } else {
                self.split(block, has, wanted);
            }
            block.make_live(user, wanted);
        }
        Ok(true)
    }

    unsafe fn usable(&self, block: NonNull<u8>) -> usize {
        let user = block.as_ptr() as usize;
        // SAFETY: `block` is a live block of this heap, as `Heap::usable` requires.
        match unsafe { self.holding(user) } {
            Ok((block, order)) => block.address() + (1 << order) - user,
            Err(_) => 0,
        }
    }

    fn walk(&self, visit: &mut dyn FnMut(Piece)) {
        if self.length() == 0 {
            return;
        }
        visit(Piece::metadata(self.region.start(), FIRST - WORD));
        let mut offset = FIRST;
        while offset < self.length() {
            let block = self.block(offset);
            // SAFETY: blocks follow each other up to the end.
            let (held, order) = unsafe { (block.held(ORDERS), block.number(Mark::Free)) };
            let piece = match held {
                Some((order, user)) => Piece::live(block.address(), 1 << order, user, user - block.address()),
                None => Piece::free(block.address(), 1 << order, WORD),
            };
            visit(piece);
            offset += piece.bytes;
        }
        visit(Piece::metadata(self.region.end() - WORD, WORD));
    }

    fn check(&self) -> Result<(), Damage> {
        let mut free = [Fingerprint::EMPTY; ORDERS];
        if self.length() != 0 {
            let mut offset = FIRST;
            while offset != self.length() {
                offset += 1 << self.check_block(offset, &mut free)?;
            }
        }
        (0..ORDERS).try_for_each(|order| self.lists.check(order, free[order], &self.region))
    }
}
