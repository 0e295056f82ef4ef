//! The heap of size classes: malloc and free are a few instructions each where a list has a block, without a loop
//! or a call; the rest is left to a [`Refill`].

use core::marker::PhantomData;
use core::ptr::NonNull;

use heaptoll_runtime::{ALIGNMENT, Damage, Heap, Misuse, Piece, Region, WORD};

use crate::blocks::header::{Block, Fingerprint, Mark};
use crate::kingsley::lists::Lists;
use crate::kingsley::{CLASSES, Refill, UNATTAINABLE, class_for, size_of_class};

/// A heap whose blocks are powers of two, a header word included, with one free list for each.
#[derive(Debug)]
pub struct ClassHeap<R> {
    lists: Lists,
    region: Region,
    /// Address of the first block, 0 before there is one.
    first: usize,
    refill: PhantomData<R>,
}

impl<R: Refill> ClassHeap<R> {
    /// An empty heap.
    pub const fn new() -> ClassHeap<R> {
        ClassHeap { lists: Lists::new(), region: Region::new(), first: 0, refill: PhantomData }
    }

    /// Whether it has had nothing from the system yet.
    pub const fn is_fresh(&self) -> bool {
        self.first == 0
    }

    /// Extends the region by `bytes`, a multiple of the page, and returns where: the new bytes are the heap's from one
    /// word before the old end, where the next header goes, to one word before the new end. A fresh heap has no such
    /// word: its blocks begin `lost` bytes later.
    pub fn extend(&mut self, bytes: usize, lost: usize) -> Option<usize> {
        let at = self.region.grow(bytes)?.as_ptr() as usize - WORD;
        if self.is_fresh() {
            self.first = at + lost;
        }
        Some(at)
    }

    /// Makes a block free and the first in the list of its class.
    ///
    /// # Safety
    /// The bytes are the heap's, as many as the class has, and in no other block.
    #[inline(always)]
    pub unsafe fn put(&mut self, block: Block, class: usize) {
        // SAFETY: the bytes are the heap's, as many as the class has, and in no other block, as this function requires.
        unsafe { self.lists.push(block, class) };
    }

    /// Takes the first block from the list of a class.
    #[inline(always)]
    pub fn take(&mut self, class: usize) -> Option<Block> {
        // SAFETY: the lists are this heap's.
        unsafe { self.lists.pop(class) }
    }

    #[inline(always)]
    fn hand_out(block: Block, class: usize) -> NonNull<u8> {
        // SAFETY: the block was taken from its list, and an address in the region is not null.
        unsafe {
            block.set(Mark::Live, class);
            NonNull::new_unchecked(block.user() as *mut u8)
        }
    }

    #[cold]
    #[inline(never)]
    fn refilled(&mut self, class: usize) -> Option<NonNull<u8>> {
        if class >= UNATTAINABLE {
            return None;
        }
        R::refill(self, class)?;
        self.take(class).map(|block| Self::hand_out(block, class))
    }

    /// Frees a block under an aligned address, or returns what is wrong with the address.
    #[cold]
    #[inline(never)]
    unsafe fn free_around(&mut self, user: usize) -> Result<(), Misuse> {
        // SAFETY: the word in front is readable, as it was for the caller.
        unsafe {
            let block = Block::around(user, CLASSES, &self.region)?;
            Block::forget(user);
            self.put(block, block.number(Mark::Outer));
        }
        Ok(())
    }

    /// The live block that holds an address and its class, or what is wrong with the address.
    ///
    /// # Safety
    /// The word in front of it is readable.
    unsafe fn holding(&self, user: usize) -> Result<(Block, usize), Misuse> {
        let block = Block::of_user(user);
        // SAFETY: the word in front of it is readable, as this function requires.
        unsafe {
            let class = block.number(Mark::Live);
            if class < CLASSES {
                return Ok((block, class));
            }
            let block = Block::around(user, CLASSES, &self.region)?;
            Ok((block, block.number(Mark::Outer)))
        }
    }

    /// The word at the region's end that is the next header to be.
    fn last(&self) -> usize {
        self.region.end() - WORD
    }

    /// Verifies one block and adds it to the free ones if it is; returns its size.
    fn check_block(&self, block: Block, free: &mut [Fingerprint; CLASSES]) -> Result<usize, Damage> {
        let (at, space) = (block.address(), self.last() - block.address());
        // SAFETY: the header lies in the region.
        let (class, held) = unsafe {
            match (block.number(Mark::Free), block.held(CLASSES)) {
                (class, _) if class < UNATTAINABLE => (class, None),
                (_, Some((class, user))) if class < UNATTAINABLE => (class, Some(user)),
                _ => return Damage::unless(false, at, "a header has a state and a class").map(|()| 0),
            }
        };
        let size = size_of_class(class);
        Damage::unless(size <= space, at, "blocks end within the region")?;
        match held {
            None => free[class].add(block),
            Some(user) if user != block.user() => {
                let inside = user.is_multiple_of(ALIGNMENT) && user > block.user() && user - at < size;
                Damage::unless(inside, at, "an aligned address lies in its block")?;
                // SAFETY: the word in front of it lies in the block.
                let back = unsafe { Block::of_user(user).number(Mark::Inner) };
                Damage::unless(back == user - block.user(), user, "an aligned address leads back")?;
            }
            Some(_) => {}
        }
        Ok(size)
    }
}

impl<R: Refill> Default for ClassHeap<R> {
    fn default() -> ClassHeap<R> {
        ClassHeap::new()
    }
}

impl<R: Refill> Heap for ClassHeap<R> {
    const NAME: &'static str = R::NAME;

    heaptoll_runtime::region_of_heap!(region);

    #[inline(always)]
    fn allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let class = class_for(bytes);
        match self.take(class) {
            Some(block) => Some(Self::hand_out(block, class)),
            None => self.refilled(class),
        }
    }

    fn allocate_aligned(&mut self, alignment: usize, bytes: usize) -> Option<NonNull<u8>> {
        // Wherever the block lies, an aligned address with `bytes` after it fits in.
        let plain = self.allocate(bytes + (alignment - ALIGNMENT))?;
        let block = Block::of_user(plain.as_ptr() as usize);
        let user = block.aligned(alignment);
        // SAFETY: the block has just been handed out, and `user` lies in it.
        unsafe { block.make_live(user, block.number(Mark::Live)) };
        NonNull::new(user as *mut u8)
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: NonNull<u8>) -> Result<(), Misuse> {
        let user = block.as_ptr() as usize;
        let block = Block::of_user(user);
        // SAFETY: `block` came from this heap and is live, as `Heap::free` requires. As in the original an address is
        // believed if its header has the magic number.
        unsafe {
            let class = block.number(Mark::Live);
            if class >= CLASSES {
                return self.free_around(user);
            }
            self.put(block, class);
        }
        Ok(())
    }

    unsafe fn resize(&mut self, block: NonNull<u8>, bytes: usize) -> Result<bool, Misuse> {
        let user = block.as_ptr() as usize;
        // SAFETY: `block` came from this heap and is live, as `Heap::resize` requires.
        let (block, class) = unsafe { self.holding(user)? };
        // What lies before an aligned address is a part of what the block must hold.
        Ok(bytes.checked_add(user - block.user()).is_some_and(|whole| class_for(whole) == class))
    }

    unsafe fn usable(&self, block: NonNull<u8>) -> usize {
        let user = block.as_ptr() as usize;
        // SAFETY: `block` is a live block of this heap, as `Heap::usable` requires.
        match unsafe { self.holding(user) } {
            Ok((block, class)) => block.address() + size_of_class(class) - user,
            Err(_) => 0,
        }
    }

    fn walk(&self, visit: &mut dyn FnMut(Piece)) {
        if self.is_fresh() {
            return;
        }
        let (start, last) = (self.region.start(), self.last());
        visit(Piece::metadata(start, WORD));
        if self.first > start + WORD {
            visit(Piece::unused(start + WORD, self.first - start - WORD));
        }
        let mut block = Block::at(self.first);
        while block.address() < last {
            // SAFETY: blocks follow each other up to the last word.
            let held = unsafe { block.held(CLASSES) };
            let piece = match held {
                Some((class, user)) => {
                    Piece::live(block.address(), size_of_class(class), user, user - block.address())
                }
                None => {
                    // SAFETY: blocks follow each other up to the end.
                    let class = unsafe { block.number(Mark::Free) };
                    Piece::free(block.address(), size_of_class(class), WORD)
                }
            };
            visit(piece);
            block = Block::at(block.address() + piece.bytes);
        }
        visit(Piece::metadata(last, WORD));
    }

    fn check(&self) -> Result<(), Damage> {
        let mut free = [Fingerprint::EMPTY; CLASSES];
        if !self.is_fresh() {
            let mut block = Block::at(self.first);
            while block.address() != self.last() {
                let size = self.check_block(block, &mut free)?;
                block = Block::at(block.address() + size);
            }
        }
        (0..CLASSES).try_for_each(|class| self.lists.check(class, free[class], &self.region))
    }
}
