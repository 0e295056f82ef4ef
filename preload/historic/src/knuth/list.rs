//! The circular, doubly linked list of free blocks, with the roving pointer as its only handle.

use heaptoll_runtime::Damage;

use crate::knuth::Block;

/// The list. The rover is where the next search begins.
#[derive(Debug)]
pub struct FreeList {
    rover: Block,
}

impl FreeList {
    /// An empty list.
    pub const fn new() -> FreeList {
        FreeList { rover: Block::NONE }
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.rover.is_none()
    }

    /// Where a search begins; [`Block::NONE`] in an empty list.
    #[inline(always)]
    pub const fn rover(&self) -> Block {
        self.rover
    }

    /// Makes the next search begin at `block`, a block of the list.
    #[inline(always)]
    pub fn rove(&mut self, block: Block) {
        self.rover = block;
    }

    /// The blocks from the rover on, once around.
    ///
    /// # Safety
    /// They are free blocks of a sound heap, and the list is not changed meanwhile.
    #[inline(always)]
    pub unsafe fn blocks(&self) -> impl Iterator<Item = Block> + '_ {
        let first = self.rover;
        let mut next = first;
        core::iter::from_fn(move || {
            let block = next;
            if block.is_none() {
                return None;
            }
            // SAFETY: they are free blocks of a sound heap, and the list is not changed meanwhile, as this function
            // requires.
            next = unsafe { block.next() };
            if next == first {
                next = Block::NONE;
            }
            Some(block)
        })
    }

    /// Puts a block in before the rover: the last place a search comes to.
    ///
    /// # Safety
    /// It is a free block of the heap and in no list.
    #[inline(always)]
    pub unsafe fn insert(&mut self, block: Block) {
        // SAFETY: it is a free block of the heap and in no list, as this function requires; the rover's neighbours are
        // in the list.
        unsafe {
            if self.rover.is_none() {
                block.link(block);
                self.rover = block;
            } else {
                self.rover.previous().link(block);
                block.link(self.rover);
            }
        }
    }

    /// Takes a block out; the rover moves on if it was there.
    ///
    /// # Safety
    /// It is in the list.
    #[inline(always)]
    pub unsafe fn remove(&mut self, block: Block) {
        // SAFETY: it is in the list, as this function requires.
        unsafe {
            let next = block.next();
            if next == block {
                self.rover = Block::NONE;
            } else {
                block.previous().link(next);
                if self.rover == block {
                    self.rover = next;
                }
            }
        }
    }

    /// Puts `block` in the place of `old`, which it has swallowed.
    ///
    /// # Safety
    /// `old` is in the list, its links are still readable; `block` is in no list.
    #[inline(always)]
    pub unsafe fn replace(&mut self, old: Block, block: Block) {
        // SAFETY: `old` is in the list, its links are still readable; `block` is in no list, as this function requires.
        unsafe {
            let (previous, next) = (old.previous(), old.next());
            if next == old {
                block.link(block);
            } else {
                previous.link(block);
                block.link(next);
            }
        }
        if self.rover == old {
            self.rover = block;
        }
    }

    /// That every link has its counterpart, all blocks are free, and there are `length` of them.
    ///
    /// # Errors
    /// The first that does not hold.
    ///
    /// # Safety
    /// The links lead to mapped memory.
    pub unsafe fn check(&self, length: u64) -> Result<(), Damage> {
        let mut count = 0;
        // SAFETY: the links lead to mapped memory, as this function requires.
        for block in unsafe { self.blocks() } {
            count += 1;
            Damage::unless(count <= length, block.address(), "the free list comes round")?;
            // SAFETY: the links lead to mapped memory, as this function requires.
            let (free, mutual) = unsafe { (!block.is_live(), block.next().previous() == block) };
            Damage::unless(free, block.address(), "what is in the free list is free")?;
            Damage::unless(mutual, block.address(), "the next block's previous one is this")?;
        }
        Damage::unless(count == length, self.rover.address(), "every free block is in the free list")
    }
}

impl Default for FreeList {
    fn default() -> FreeList {
        FreeList::new()
    }
}
