//! The malloc family of C, counted and forwarded.

use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::Relaxed;

use heaptoll_next::forward;

use crate::WRITER;

/// Counts a call for a new block.
#[inline(always)]
pub fn asked(size: usize, got: bool) {
    let slot = WRITER.slot();
    slot.malloc_calls.fetch_add(1, Relaxed);
    slot.requested_bytes.fetch_add(size as u64, Relaxed);
    if !got {
        slot.failed_calls.fetch_add(1, Relaxed);
    }
}

/// Counts a call that gives a block back.
#[inline(always)]
pub fn gave_back(block: *mut c_void) {
    if !block.is_null() {
        WRITER.slot().free_calls.fetch_add(1, Relaxed);
    }
}

#[inline(always)]
fn resized(old: *mut c_void, size: usize, new: *mut c_void) {
    if old.is_null() {
        return asked(size, !new.is_null());
    }
    let slot = WRITER.slot();
    slot.realloc_calls.fetch_add(1, Relaxed);
    slot.requested_bytes.fetch_add(size as u64, Relaxed);
    if new.is_null() && size != 0 {
        slot.failed_calls.fetch_add(1, Relaxed);
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    let block = forward::malloc(size);
    asked(size, !block.is_null());
    block
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    gave_back(block);
    // SAFETY: the caller's promise is the same.
    unsafe { forward::free(block) }
}

#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let block = forward::calloc(count, size);
    asked(count.saturating_mul(size), !block.is_null());
    block
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's promise is the same.
    let new = unsafe { forward::realloc(block, size) };
    resized(block, size, new);
    new
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller's promise is the same.
    let new = unsafe { forward::reallocarray(block, count, size) };
    resized(block, count.saturating_mul(size), new);
    new
}

#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    let block = forward::memalign(align, size);
    asked(size, !block.is_null());
    block
}

#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    let block = forward::aligned_alloc(align, size);
    asked(size, !block.is_null());
    block
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(place: *mut *mut c_void, align: usize, size: usize) -> c_int {
    // SAFETY: the caller's promise is the same.
    let code = unsafe { forward::posix_memalign(place, align, size) };
    asked(size, code == 0);
    code
}

#[unsafe(no_mangle)]
pub extern "C" fn valloc(size: usize) -> *mut c_void {
    let block = forward::valloc(size);
    asked(size, !block.is_null());
    block
}

#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(size: usize) -> *mut c_void {
    let block = forward::pvalloc(size);
    asked(size, !block.is_null());
    block
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    // SAFETY: the caller's promise is the same.
    unsafe { forward::usable_size(block) }
}
