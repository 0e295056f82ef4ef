//! The null manager: hands out addresses and does nothing else.
//!
//! A replay's time is the manager's and the driver's. Driven over this object, which does as little as a manager can,
//! it is the driver's, to be taken off. It is a manager for that and nothing else: no block is ever used again.
//!
//! - Addresses come from a reservation of 16 TiB (less where a limit forbids), of which no byte is touched here:
//!   `calloc`'s blocks are zero by nature, and a page costs nothing before the caller writes to it.
//! - A block's size is a power of two, and each size has a [`region`] of its own, so that the address says how
//!   large a block is: `malloc_usable_size` is a subtraction and a shift, without a header in memory, and every
//!   alignment comes by itself.
//! - `free` does nothing. `realloc` gives the same block while it is large enough. Otherwise it copies, as a real
//!   program needs, which may be anything up to a page fault a page: whoever drives it with blocks whose contents do
//!   not matter says so by [`heaptoll_null_forget`].
//! - A region that is used up gives no more (`ENOMEM`, after a message), or is begun anew when contents do not matter.
//! - Not for calls from signal handlers that interrupt `malloc`.
#![no_std]

mod region;
mod thread;

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use crate::region::{CHUNK, FORGETS};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    region::fatal(b"heaptoll: a defect in the null manager; please report it\n")
}

/// The number of the smallest size of block that holds `bytes`, which is not 0: they are 16, 32, 64 ...
#[inline(always)]
fn class_of(bytes: usize) -> usize {
    (bytes.wrapping_sub(1) | 15).ilog2() as usize - 3
}

/// A block of at least `bytes`, which is aligned to as many, rounded down to a power of two.
#[inline(always)]
fn allocate(bytes: usize) -> *mut c_void {
    // A size of 0 comes out as the largest class.
    let class = class_of(bytes);
    if class < thread::CURSORS {
        // The last block that was given, downward in its chunk. At the chunk's beginning it is the last one there is.
        let last = thread::cursor(class);
        if last & (CHUNK - 1) != 0 {
            let block = last - (16 << class);
            thread::set_cursor(class, block);
            return block as *mut c_void;
        }
    }
    region::refill(bytes)
}

fn refused(code: c_int) -> *mut c_void {
    // SAFETY: errno's address is valid for the calling thread.
    unsafe { *libc::__errno_location() = code };
    ptr::null_mut()
}

/// From here on (`yes` is not 0) the contents of blocks do not matter: `realloc` copies nothing, blocks of `calloc`
/// need not be zero, and a region that is used up is begun anew, over blocks that are in use.
#[unsafe(no_mangle)]
pub extern "C" fn heaptoll_null_forget(yes: c_int) {
    FORGETS.store(yes != 0, Relaxed);
}

#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    allocate(size)
}

#[unsafe(no_mangle)]
pub extern "C" fn free(_block: *mut c_void) {}

#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        Some(bytes) => allocate(bytes),
        None => refused(libc::ENOMEM),
    }
}

/// # Safety
/// As C's `realloc`. A size of 0 gives null, as glibc's does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if block.is_null() {
        return allocate(size);
    }
    if size == 0 {
        return ptr::null_mut();
    }
    let room = region::usable_size(block);
    if size <= room {
        return block;
    }
    let moved = allocate(size);
    if !moved.is_null() && !FORGETS.load(Relaxed) {
        // SAFETY: `block` has `room` bytes, `moved` more, and they are distinct.
        unsafe { ptr::copy_nonoverlapping(block.cast::<u8>(), moved.cast(), room) };
    }
    moved
}

/// # Safety
/// As glibc's `reallocarray`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller's promise is the same.
        Some(bytes) => unsafe { realloc(block, bytes) },
        None => refused(libc::ENOMEM),
    }
}

/// An alignment that is no power of two is rounded up to one, as glibc does.
#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    match align.checked_next_power_of_two() {
        Some(align) => allocate(size.max(align)),
        None => refused(libc::EINVAL),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    if align.is_power_of_two() { allocate(size.max(align)) } else { refused(libc::EINVAL) }
}

/// # Safety
/// As POSIX's `posix_memalign`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(place: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || align < size_of::<usize>() {
        return libc::EINVAL;
    }
    // SAFETY: errno's address is valid for the calling thread, and this function must not change it; `place` is
    // valid by the caller's promise.
    unsafe {
        let errno = *libc::__errno_location();
        let block = allocate(size.max(align));
        *libc::__errno_location() = errno;
        if block.is_null() {
            return libc::ENOMEM;
        }
        *place = block;
    }
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn valloc(size: usize) -> *mut c_void {
    memalign(PAGE, size)
}

#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(size: usize) -> *mut c_void {
    match size.checked_next_multiple_of(PAGE) {
        Some(bytes) => memalign(PAGE, bytes),
        None => refused(libc::ENOMEM),
    }
}

/// Bytes in a page of x86-64, for `valloc` and `pvalloc`.
const PAGE: usize = 4096;

/// The whole block, a power of two of bytes.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    if block.is_null() { 0 } else { region::usable_size(block) }
}
