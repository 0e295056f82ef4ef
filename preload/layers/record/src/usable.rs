//! Usable sizes of blocks.

use core::ffi::c_void;
use core::mem::transmute;
use core::sync::atomic::{AtomicPtr, Ordering};

use heaptoll_next::family::UsableSize;
use heaptoll_next::{Family, inside};

/// The function that returns usable sizes. A pointer that can always be called saves one test per block.
static USABLE_SIZE: AtomicPtr<()> = AtomicPtr::new(unknown as *mut ());

/// 0 is a valid lower bound for any block.
unsafe extern "C" fn unknown(_: *mut c_void) -> usize {
    0
}

/// Uses the next manager's function from now on, if it has one.
pub fn prepare(family: &Family) {
    if let Some(usable_size) = family.usable_size {
        USABLE_SIZE.store(usable_size as *mut (), Ordering::Release);
    }
}

/// The usable size of a block of the next manager; 0 when the manager has no such function. The thread is outside it but
/// for this call.
#[inline(always)]
pub fn query(block: *mut c_void) -> usize {
    // SAFETY: `USABLE_SIZE` is `unknown` or the family's function, both of this type; callers pass a block that the
    // family has just returned, or null, for which it returns 0.
    unsafe { transmute::<*mut (), UsableSize>(USABLE_SIZE.load(Ordering::Relaxed))(block) }
}

/// The same; 0 from within the manager.
pub fn size_of_block(block: *mut c_void) -> usize {
    if inside::is_inside() { 0 } else { inside::enter(|| query(block)) }
}
