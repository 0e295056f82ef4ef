//! The next object's `malloc` and `free`, by addresses that can always be called: that saves a test a call.

use core::ffi::c_void;
use core::mem::transmute;
use core::sync::atomic::{AtomicPtr, Ordering};

use heaptoll_next::family::{Allocate, Free};
use heaptoll_next::{Family, forward};

static MALLOC: AtomicPtr<()> = AtomicPtr::new(first_malloc as *mut ());
static FREE: AtomicPtr<()> = AtomicPtr::new(first_free as *mut ());

unsafe extern "C" fn first_malloc(size: usize) -> *mut c_void {
    forward::malloc(size)
}

unsafe extern "C" fn first_free(block: *mut c_void) {
    // SAFETY: the only caller, `free`, passes what C requires of the program's call.
    unsafe { forward::free(block) }
}

/// Calls go straight to the family from now on. Blocks of the arena pass the filter by then.
pub fn set(family: &Family) {
    MALLOC.store(family.malloc as *mut (), Ordering::Release);
    FREE.store(family.free as *mut (), Ordering::Release);
}

/// The next `malloc`.
#[inline(always)]
pub fn malloc(size: usize) -> *mut c_void {
    // SAFETY: `MALLOC` is `first_malloc` or the family's function, both of this type, which take any size.
    unsafe { transmute::<*mut (), Allocate>(MALLOC.load(Ordering::Relaxed))(size) }
}

/// The next `free`.
///
/// # Safety
/// `block` is null, or a live block of this malloc family that is not the arena's.
#[inline(always)]
pub unsafe fn free(block: *mut c_void) {
    // SAFETY: `FREE` is `first_free` or the family's function, both of this type; by this function's contract the block
    // is live or null.
    unsafe { transmute::<*mut (), Free>(FREE.load(Ordering::Relaxed))(block) }
}
