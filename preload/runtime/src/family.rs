//! The malloc family over a manager: the C standard's corner cases and `errno`.
//!
//! Where the standard leaves a choice, it is glibc's, which programs on Linux were tested with: `realloc(p, 0)` frees
//! and returns null, `malloc(0)` gives a block. `errno` is touched where a call fails, and nowhere else.

use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};

use heaptoll_assertions::assert_internal;

use crate::{ALIGNMENT, LARGEST, Manager, PAGE, WORD, round_up};

#[cold]
fn set_errno(value: c_int) {
    // SAFETY: errno's address is valid for the calling thread.
    unsafe { *libc::__errno_location() = value };
}

#[cold]
#[inline(never)]
fn failed<M: Manager>(manager: &M, error: c_int) -> *mut c_void {
    if error == libc::ENOMEM {
        manager.failed();
    }
    set_errno(error);
    ptr::null_mut()
}

/// The block, or the failure to get one.
#[inline(always)]
fn or_fail<M: Manager>(manager: &M, block: *mut u8) -> *mut c_void {
    assert_internal!((block as usize).is_multiple_of(ALIGNMENT), "every block is aligned");
    if block.is_null() { failed(manager, libc::ENOMEM) } else { block.cast() }
}

/// `malloc`.
#[inline(always)]
pub fn malloc<M: Manager>(manager: &M, bytes: usize) -> *mut c_void {
    or_fail(manager, manager.allocate(bytes))
}

/// `heaptoll_malloc_pointer_free` of `include/heaptoll.h`.
#[inline(always)]
pub fn malloc_pointer_free<M: Manager>(manager: &M, bytes: usize) -> *mut c_void {
    or_fail(manager, manager.allocate_pointer_free(bytes))
}

/// `free`.
///
/// # Safety
/// As C's `free`.
#[inline(always)]
pub unsafe fn free<M: Manager>(manager: &M, block: *mut c_void) {
    // SAFETY: `block` is null or a live block, which C requires of the caller of `free`.
    unsafe { manager.free(block.cast()) }
}

/// `calloc`.
#[inline(always)]
pub fn calloc<M: Manager>(manager: &M, count: usize, bytes: usize) -> *mut c_void {
    match count.checked_mul(bytes) {
        Some(bytes) => or_fail(manager, manager.allocate_zeroed(bytes)),
        None => failed(manager, libc::ENOMEM),
    }
}

/// `realloc`.
///
/// # Safety
/// As C's `realloc`.
#[inline(always)]
pub unsafe fn realloc<M: Manager>(manager: &M, block: *mut c_void, bytes: usize) -> *mut c_void {
    let Some(old) = NonNull::new(block.cast::<u8>()) else { return malloc(manager, bytes) };
    // Both ends of what is passed on by one comparison.
    if bytes.wrapping_sub(1) >= LARGEST {
        // SAFETY: `old` is a live block, which C requires of the caller of `realloc`.
        return unsafe { realloc_at_the_ends(manager, old, bytes) };
    }
    // SAFETY: `old` is a live block, which C requires of the caller of `realloc`.
    or_fail(manager, unsafe { manager.reallocate(old, bytes) })
}

/// `realloc` to nothing or to too much.
///
/// # Safety
/// As C's `realloc`.
#[cold]
#[inline(never)]
unsafe fn realloc_at_the_ends<M: Manager>(manager: &M, block: NonNull<u8>, bytes: usize) -> *mut c_void {
    if bytes != 0 {
        return failed(manager, libc::ENOMEM);
    }
    // SAFETY: `block` is live, as this function requires.
    unsafe { manager.free(block.as_ptr()) };
    ptr::null_mut()
}

/// `reallocarray`.
///
/// # Safety
/// As `realloc`'s in glibc.
pub unsafe fn reallocarray<M: Manager>(
    manager: &M,
    block: *mut c_void,
    count: usize,
    bytes: usize,
) -> *mut c_void {
    match count.checked_mul(bytes) {
        // SAFETY: `block` is null or a live block, which the caller of `reallocarray` guarantees.
        Some(bytes) => unsafe { realloc(manager, block, bytes) },
        None => failed(manager, libc::ENOMEM),
    }
}

/// `memalign` and `aligned_alloc`: the alignment is a power of two, or EINVAL.
pub fn memalign<M: Manager>(manager: &M, alignment: usize, bytes: usize) -> *mut c_void {
    if !alignment.is_power_of_two() {
        return failed(manager, libc::EINVAL);
    }
    if alignment <= ALIGNMENT {
        return malloc(manager, bytes);
    }
    if bytes.checked_add(alignment).is_none_or(|sum| sum > LARGEST) {
        return failed(manager, libc::ENOMEM);
    }
    let block = manager.allocate_aligned(alignment, bytes);
    assert_internal!((block as usize).is_multiple_of(alignment), "an aligned block is aligned as requested");
    or_fail(manager, block)
}

/// `posix_memalign`: keeps `errno`, and `*place` when it fails.
///
/// # Safety
/// As POSIX's `posix_memalign`.
pub unsafe fn posix_memalign<M: Manager>(
    manager: &M,
    place: *mut *mut c_void,
    alignment: usize,
    bytes: usize,
) -> c_int {
    if !alignment.is_power_of_two() || !alignment.is_multiple_of(WORD) {
        return libc::EINVAL;
    }
    // SAFETY: errno's address is valid for the calling thread.
    let errno = unsafe { *libc::__errno_location() };
    let block = memalign(manager, alignment, bytes);
    if block.is_null() {
        set_errno(errno);
        return libc::ENOMEM;
    }
    // SAFETY: `place` is writable, which POSIX requires of the caller.
    unsafe { *place = block };
    0
}

/// `valloc`.
pub fn valloc<M: Manager>(manager: &M, bytes: usize) -> *mut c_void {
    memalign(manager, PAGE, bytes)
}

/// `pvalloc`: whole pages.
pub fn pvalloc<M: Manager>(manager: &M, bytes: usize) -> *mut c_void {
    if bytes > LARGEST - PAGE {
        return failed(manager, libc::ENOMEM);
    }
    memalign(manager, PAGE, round_up(bytes, PAGE))
}

/// `malloc_usable_size`.
///
/// # Safety
/// As glibc's `malloc_usable_size`.
pub unsafe fn malloc_usable_size<M: Manager>(manager: &M, block: *mut c_void) -> usize {
    match NonNull::new(block.cast::<u8>()) {
        // SAFETY: `block` is live, which the caller of `malloc_usable_size` guarantees.
        Some(block) => unsafe { manager.usable(block) },
        None => 0,
    }
}
