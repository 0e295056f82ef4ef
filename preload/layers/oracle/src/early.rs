//! Blocks that were allocated before `main`: they are no part of the sequence, and the program's own frees reclaim them.

use core::cell::UnsafeCell;
use core::ffi::c_void;

use heaptoll_next::arena;
use heaptoll_next::blocks::Blocks;

/// Invariant: every block of `blocks` is in `lowest..=highest`, which nearly all blocks of the sequence are not.
struct EarlyBlocks {
    blocks: Blocks,
    lowest: usize,
    highest: usize,
}

struct EarlyCell(UnsafeCell<EarlyBlocks>);

// SAFETY: used on the thread that runs `main` only: before that there is one thread, and the sequence is of one thread.
unsafe impl Sync for EarlyCell {}

static EARLY: EarlyCell =
    EarlyCell(UnsafeCell::new(EarlyBlocks { blocks: Blocks::new(), lowest: usize::MAX, highest: 0 }));

/// Keeps the address of a block that was allocated before `main`.
pub fn made(block: *mut c_void) -> *mut c_void {
    if !block.is_null() && !arena::owns(block) {
        // SAFETY: see `EarlyCell`.
        let early = unsafe { &mut *EARLY.0.get() };
        let address = block as usize;
        // Without memory for it the block is freed when the oracle would free it.
        if early.blocks.insert(address, 0).is_ok() {
            early.lowest = early.lowest.min(address);
            early.highest = early.highest.max(address);
        }
    }
    block
}

/// Whether a block that is freed was allocated before `main`; it is forgotten.
#[inline(always)]
pub fn freed(block: *mut c_void) -> bool {
    // SAFETY: see `EarlyCell`.
    let early = unsafe { &mut *EARLY.0.get() };
    let address = block as usize;
    early.lowest <= address && address <= early.highest && early.remove(address)
}

impl EarlyBlocks {
    #[inline(never)]
    fn remove(&mut self, address: usize) -> bool {
        self.blocks.remove(address).is_some()
    }
}
