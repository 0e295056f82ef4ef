//! How large blocks really are.

use core::ffi::c_void;
use core::mem::transmute;
use core::sync::atomic::{AtomicPtr, Ordering};

use heaptoll_next::Family;
use heaptoll_next::family::UsableSize;

/// What there is to ask. A pointer that can always be called is one test less for each block.
static ASK: AtomicPtr<()> = AtomicPtr::new(unknown as *mut ());

/// "At least zero bytes" is true of any block.
unsafe extern "C" fn unknown(_: *mut c_void) -> usize {
    0
}

/// Has the next manager asked from here on, if it has an answer.
pub fn prepare(family: &Family) {
    if let Some(usable_size) = family.usable_size {
        ASK.store(usable_size as *mut (), Ordering::Release);
    }
}

/// What the next manager says of a block of its own, which is not null; 0 when it says nothing.
#[inline(always)]
pub fn of(block: *mut c_void) -> usize {
    // SAFETY: a function of this type in each case; the block is the family's: it has just been given.
    unsafe { transmute::<*mut (), UsableSize>(ASK.load(Ordering::Relaxed))(block) }
}
