//! How large blocks really are.

use core::ffi::c_void;

use heaptoll_next::Family;

/// What the next manager says of a block of its own, which is not null; 0 when it says nothing.
#[inline(always)]
pub fn of(block: *mut c_void) -> usize {
    match heaptoll_next::next() {
        // SAFETY: the block is the family's: it has just been given.
        Some(Family { usable_size: Some(usable_size), .. }) => unsafe { usable_size(block) },
        _ => 0,
    }
}
