//! Quick Fit: an array of free lists of one size each in front of a general heap (Weinstock and Wulf, SIGPLAN Notices
//! 23(10), 1988), with G++ as the general heap, as Detlefs, Dosser and Zorn 1994 measured it (QF, Table III).
//!
//! - A small request takes the first block of its size's list. Where the list is empty, the general heap gives one.
//! - A free reads the block's size and links a small block into its list. A small block never goes back to the general
//!   heap and is never coalesced: it stays of its size for ever.
//! - Other requests are the general heap's: [`crate::lea::Lea`].
//!
//! The lists are for sizes up to eight words. Grunwald, Zorn and Henderson 1993, cited by Detlefs for this manager,
//! have lists for 4 to 32 bytes, in words of four bytes (cited from memory). With words of eight bytes that is 64
//! bytes, and as sizes are multiples of 16 here, four lists where there were eight.
//!
//! Decided here, where the papers are silent:
//! - A small block has the general heap's two tags, and `free` reads the size from its header.
//! - Weinstock and Wulf carve new small blocks from the tail of working storage. What Lea's last split left over is
//!   that tail here, and his blocks in advance make the carving rare.
//! - Nothing empties the lists, also when the system gives no more. Detlefs' figures speak for it: Sis ends with 4.56
//!   times its live bytes, where G++ alone has 1.47 (Table X).

use core::ptr::NonNull;

use crate::lea::{Block, Lea, TAGS};
use heaptoll_runtime::{ALIGNMENT, Damage, Heap, Misuse, Piece, Region, Search, WORD};

/// The largest request that has a list, bytes: eight words.
pub const QUICK: usize = 8 * WORD;

/// The largest block in a list, in units of alignment.
const LARGEST: usize = (QUICK + TAGS) / ALIGNMENT;

/// A block whose header gives a size from this on, in units of alignment, is not live.
const UNITS: usize = (1 << 48) / ALIGNMENT;

/// The quick lists and the heap behind them.
///
/// Blocks in a quick list are live to the general heap. Before a walk each is marked, as Lea's returned list is.
#[derive(Debug)]
pub struct QuickFit {
    /// By size in units of alignment. No block is so small as the first two.
    lists: [Block; LARGEST + 1],
    lea: Lea,
}

impl QuickFit {
    /// An empty heap.
    pub const fn new() -> QuickFit {
        QuickFit { lists: [Block::NONE; LARGEST + 1], lea: Lea::within(<QuickFit as Heap>::NAME) }
    }

    #[cold]
    #[inline(never)]
    fn allocate_generally(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        self.lea.allocate(bytes)
    }

    /// # Safety
    /// As [`Heap::free`]; `units` is the size by the header.
    #[cold]
    #[inline(never)]
    unsafe fn free_generally(&mut self, block: NonNull<u8>, units: usize) -> Result<(), Misuse> {
        if units >= UNITS {
            // What is wrong, the general heap knows.
            return Err(self.lea.live(block).err().unwrap_or(Misuse::Damaged));
        }
        // SAFETY: `block` is live, as this function requires.
        unsafe { self.lea.free(block) }
    }

    /// Marks all blocks in lists.
    ///
    /// # Errors
    /// A block that is not as its list wants it, or marked already: so this ends in any case.
    ///
    /// # Safety
    /// The general heap's tags are sound. The marks are taken away by its walk.
    unsafe fn mark(&self) -> Result<(), Damage> {
        for (units, &first) in self.lists.iter().enumerate() {
            let mut next = first;
            while !next.is_none() {
                let (block, at) = (next, next.address());
                let inside = self.lea.region().contains(at) && at % ALIGNMENT == WORD;
                Damage::unless(inside, at, "what is in a quick list is in the heap")?;
                // SAFETY: the header's word is in the heap.
                unsafe {
                    Damage::unless(!block.is_marked(), at, "a block is in one quick list, once")?;
                    let sound = block.is_sound(self.lea.region().end()) && block.is_live();
                    Damage::unless(sound, at, "what is in a quick list is a block")?;
                    Damage::unless(
                        block.size() == units * ALIGNMENT,
                        at,
                        "a quick list has blocks of its size",
                    )?;
                    block.mark(false);
                    next = block.next();
                }
            }
        }
        Ok(())
    }
}

impl Default for QuickFit {
    fn default() -> QuickFit {
        QuickFit::new()
    }
}

impl Heap for QuickFit {
    const NAME: &'static str = "quickfit";

    fn region(&self) -> &Region {
        self.lea.region()
    }

    fn region_mut(&mut self) -> &mut Region {
        self.lea.region_mut()
    }

    #[inline(always)]
    fn allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        if bytes <= QUICK {
            let list = &mut self.lists[Block::size_for(bytes) / ALIGNMENT];
            let first = *list;
            if !first.is_none() {
                // SAFETY: the quick lists have free blocks only, and `first` is not none.
                *list = unsafe { first.next() };
                return NonNull::new(first.user() as *mut u8);
            }
        }
        self.allocate_generally(bytes)
    }

    fn allocate_aligned(&mut self, alignment: usize, bytes: usize) -> Option<NonNull<u8>> {
        self.lea.allocate_aligned(alignment, bytes)
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: NonNull<u8>) -> Result<(), Misuse> {
        let header = Block::of_user(block.as_ptr() as usize);
        // SAFETY: `block` came from this heap and is live, as `Heap::free` requires. One comparison proves that the tag
        // is valid, live and small.
        unsafe {
            let units = header.live_units();
            if units > LARGEST {
                return self.free_generally(block, units);
            }
            let list = &mut self.lists[units];
            header.link(*list);
            *list = header;
        }
        Ok(())
    }

    unsafe fn resize(&mut self, block: NonNull<u8>, bytes: usize) -> Result<bool, Misuse> {
        // SAFETY: `block` came from this heap and is live, as `Heap::resize` requires.
        unsafe { self.lea.resize(block, bytes) }
    }

    #[inline(always)]
    unsafe fn usable(&self, block: NonNull<u8>) -> usize {
        // SAFETY: `block` is a live block of this heap, as `Heap::usable` requires.
        unsafe { self.lea.usable(block) }
    }

    fn walk(&self, visit: &mut dyn FnMut(Piece)) {
        // SAFETY: the heap is sound; the walk takes the marks away.
        let marked = unsafe { self.mark() };
        debug_assert_eq!(marked, Ok(()));
        self.lea.walk(visit);
    }

    fn check(&self) -> Result<(), Damage> {
        self.lea.check()?;
        // SAFETY: tags are sound; the walk takes the marks away.
        unsafe {
            let mut lists = self.mark();
            for block in self.lea.returned() {
                let apart = !block.is_marked();
                lists = lists.and(Damage::unless(apart, block.address(), "a block is in one list, once"));
            }
            self.lea.walk(&mut |_| {});
            lists
        }
    }

    fn search(&self) -> Option<Search> {
        self.lea.search()
    }
}
