//! The quarantine layer: delays every free.
//!
//! Preloaded in front of a manager it puts what the program frees into a buffer of the calling thread, and gives it to
//! the manager when the volume of all buffers passes the bound that `HEAPTOLL_QUARANTINE` sets (see [`heaptoll_layer_core::quarantine`]).
//! Allocations pass it unchanged. `realloc` returns the same block where that suffices; otherwise it is an allocation,
//! a copy, and a free that is delayed like any other.
#![no_std]

mod check;
mod start;
mod word;

use core::ffi::c_void;
use core::ptr;

use heaptoll_layer_core::quarantine::delay::Quarantine;
use heaptoll_next::watched::Watch;
use heaptoll_next::{arena, forward, inside};

static QUARANTINE: Quarantine = Quarantine::new();

/// A thread's first free.
#[cold]
#[inline(never)]
unsafe fn first_free(block: *mut c_void) {
    // SAFETY: `block` is the manager's, as C requires of the caller of `free`.
    unsafe {
        match start::enter() {
            Some(thread) => QUARANTINE.hold(thread, block),
            None => forward::free(block),
        }
    }
}

struct Delay;

impl Watch for Delay {
    type Before = ();

    /// It queries usable sizes.
    const QUERIES: bool = true;

    #[inline(always)]
    fn before_resize(_block: *mut c_void) {}

    #[inline(always)]
    unsafe fn free(block: *mut c_void, _operator: bool) {
        if block.is_null() || arena::owns(block) {
            return;
        }
        if inside::is_inside() {
            // The manager's own.
            // SAFETY: the block is the manager's, as C requires of the caller of `free`.
            return unsafe { forward::free(block) };
        }
        // SAFETY: null, or a record, which stays; the block is the manager's, as C requires of the caller of `free`.
        inside::call(|| unsafe {
            match word::get().as_ref() {
                Some(thread) => QUARANTINE.hold(thread, block),
                None => first_free(block),
            }
        });
    }

    unsafe fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
        if block.is_null() || arena::owns(block) || !start::delays_realloc() || inside::is_inside() {
            // SAFETY: `block` is null or live, as C requires of the caller of `realloc`.
            return unsafe { forward::realloc(block, size) };
        }
        // SAFETY: the block is the manager's, as C requires of the caller of `realloc`; the copy stays within both
        // blocks.
        unsafe {
            if size == 0 {
                Self::free(block, false);
                return ptr::null_mut();
            }
            let usable = inside::call(|| forward::usable_size(block));
            if size <= usable && size > usable / 2 {
                return block;
            }
            let moved = inside::call(|| forward::malloc(size));
            if !moved.is_null() {
                ptr::copy_nonoverlapping(block.cast::<u8>(), moved.cast(), usable.min(size));
                Self::free(block, false);
            }
            moved
        }
    }
}

heaptoll_next::export_family!(Delay);
heaptoll_next::export_operators!(Delay);

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    heaptoll_next::family::fatal(c"heaptoll: a defect in the quarantine layer; please report it\n")
}
