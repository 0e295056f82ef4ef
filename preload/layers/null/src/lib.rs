//! The null manager: hands out addresses and does nothing else.
//!
//! A replay's time consists of the manager's and the driver's. Over this object, which does as little as a manager can,
//! it is the driver's alone, to be subtracted. The manager serves no other purpose: no block is ever reused.
//!
//! - Addresses come from a reservation of 16 TiB (less under a limit), of which no byte is touched here: `calloc`'s
//!   blocks are zero already, and a page costs nothing before the caller writes to it.
//! - A block's size is a power of two, and each size has a [`region`] of its own, so that the size follows from the
//!   address: `malloc_usable_size` is a subtraction and a shift, without a header in memory, and every block is aligned
//!   to its size.
//! - `free` does nothing. `realloc` returns the same block while it is large enough. Otherwise it copies, as a real
//!   program needs, at a cost of up to a page fault per page: a driver whose blocks' contents do not matter calls
//!   [`heaptoll_null_forget`].
//! - A region that is exhausted hands out no more blocks (`ENOMEM`, after a message), or starts again at its beginning
//!   when contents do not matter.
//! - Not for calls from signal handlers that interrupt `malloc`.
#![no_std]

mod cursors;
mod region;

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use crate::cursors::{CHUNK_CLASSES, CURSORS};
use crate::region::{CHUNK, FORGETS};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    region::fatal(b"heaptoll: a defect in the null manager; please report it\n")
}

/// The number of the smallest block size that holds `bytes`, which is not 0: the sizes are 16, 32, 64 ...
#[inline(always)]
fn class_of(bytes: usize) -> usize {
    (bytes.wrapping_sub(1) | 15).ilog2() as usize - 3
}

/// Allocates a block of at least `bytes`, aligned to `bytes` rounded down to a power of two.
#[inline(always)]
fn allocate(bytes: usize) -> *mut c_void {
    // A size of 0 gives the largest class.
    let class = class_of(bytes);
    if class < CHUNK_CLASSES {
        // The last block handed out, downward in its chunk. At the chunk's beginning the chunk is exhausted.
        // SAFETY: `class` is below `CHUNK_CLASSES`, as just checked, and there are that many words.
        let last = unsafe { CURSORS::get(class) };
        if last & (CHUNK - 1) != 0 {
            let block = last - (16 << class);
            // SAFETY: `class` is below `CHUNK_CLASSES`, as just checked, and there are that many words.
            unsafe { CURSORS::set(class, block) };
            return block as *mut c_void;
        }
    }
    region::refill(bytes)
}

fn fail(code: c_int) -> *mut c_void {
    // SAFETY: `__errno_location` returns the address of the calling thread's errno.
    unsafe { *libc::__errno_location() = code };
    ptr::null_mut()
}

/// States that (if `yes` is not 0) the contents of blocks do not matter from now on: `realloc` copies nothing, blocks
/// of `calloc` need not be zero, and a region that is exhausted starts again, over blocks that are in use.
#[unsafe(no_mangle)]
pub extern "C" fn heaptoll_null_forget(yes: c_int) {
    FORGETS.store(yes != 0, Relaxed);
}

#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    allocate(size)
}

/// # Safety
/// None: it does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(_block: *mut c_void) {}

heaptoll_runtime::export_sized_frees!(free);

#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        Some(bytes) => allocate(bytes),
        None => fail(libc::ENOMEM),
    }
}

/// A size of 0 gives null, as with glibc.
///
/// # Safety
/// `block` is null or a live block of this manager, as for C's `realloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if block.is_null() {
        return allocate(size);
    }
    if size == 0 {
        return ptr::null_mut();
    }
    let usable = region::usable_size(block);
    if size <= usable {
        return block;
    }
    let moved = allocate(size);
    if !moved.is_null() && !FORGETS.load(Relaxed) {
        // SAFETY: `block` has `usable` bytes, `moved` more, and they are distinct.
        unsafe { ptr::copy_nonoverlapping(block.cast::<u8>(), moved.cast(), usable) };
    }
    moved
}

/// # Safety
/// `block` is null or a live block of this manager, as for glibc's `reallocarray`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the contract of `realloc` is that of this function.
        Some(bytes) => unsafe { realloc(block, bytes) },
        None => fail(libc::ENOMEM),
    }
}

/// An alignment that is not a power of two is rounded up to one, as by glibc.
#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    match align.checked_next_power_of_two() {
        Some(align) => allocate(size.max(align)),
        None => fail(libc::EINVAL),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    if align.is_power_of_two() { allocate(size.max(align)) } else { fail(libc::EINVAL) }
}

/// # Safety
/// `result` may be written to, as for POSIX's `posix_memalign`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(result: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || align < size_of::<usize>() {
        return libc::EINVAL;
    }
    // SAFETY: `__errno_location` returns the address of the thread's errno, which this function must not change; by
    // this function's contract `result` may be written to.
    unsafe {
        let errno = *libc::__errno_location();
        let block = allocate(size.max(align));
        *libc::__errno_location() = errno;
        if block.is_null() {
            return libc::ENOMEM;
        }
        *result = block;
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
        None => fail(libc::ENOMEM),
    }
}

/// Bytes of a page of x86-64, for `valloc` and `pvalloc`.
const PAGE: usize = 4096;

/// The size of the whole block, a power of two.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    if block.is_null() { 0 } else { region::usable_size(block) }
}
