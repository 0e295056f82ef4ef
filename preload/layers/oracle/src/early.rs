//! Blocks that were allocated before `main`: they are no part of the sequence, and the program's own frees reclaim them.

use core::cell::UnsafeCell;
use core::ffi::c_void;

use heaptoll_next::blocks::Blocks;

struct EarlyBlocks(UnsafeCell<Blocks>);

// SAFETY: used on the thread that runs `main` only: before that there is one thread, and the sequence is of one thread.
unsafe impl Sync for EarlyBlocks {}

static EARLY: EarlyBlocks = EarlyBlocks(UnsafeCell::new(Blocks::new()));

/// Keeps the address of a block that was allocated before `main`.
pub fn made(block: *mut c_void) -> *mut c_void {
    if !block.is_null() {
        // SAFETY: see `EarlyBlocks`.
        let kept = unsafe { (*EARLY.0.get()).insert(block as usize, 0) };
        // Without memory for it the block is freed when the oracle would free it.
        let _ = kept;
    }
    block
}

/// Whether a block that is freed was allocated before `main`; it is forgotten.
#[inline(always)]
pub fn freed(block: *mut c_void) -> bool {
    // SAFETY: see `EarlyBlocks`.
    unsafe {
        let early = &mut *EARLY.0.get();
        !early.is_empty() && early.remove(block as usize).is_some()
    }
}
