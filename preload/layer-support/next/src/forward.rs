//! The malloc family as a layer calls it: complete whatever the next object exports, correct for blocks of the
//! bootstrap arena, and conforming to C and POSIX where a function has to be emulated.
//!
//! A function is emulated only by others of the same object. When that is impossible (no aligned allocation at all) the
//! call fails with `ENOMEM`: a block from another heap would crash in `free` later.

use core::ffi::{c_int, c_void};
use core::ptr;

use crate::arena;
use crate::family::{Family, is_resolving, next, pointer_free, ready};

fn set_errno(code: c_int) {
    // SAFETY: `__errno_location` returns the address of the calling thread's errno.
    unsafe { *libc::__errno_location() = code };
}

fn fail(code: c_int) -> *mut c_void {
    set_errno(code);
    ptr::null_mut()
}

/// Allocates from the arena, before there is a family.
#[cold]
fn early(align: usize, size: usize) -> *mut c_void {
    let block = arena::allocate(align, size, !is_resolving());
    if block.is_null() { fail(libc::ENOMEM) } else { block }
}

#[inline(always)]
pub fn malloc(size: usize) -> *mut c_void {
    match ready() {
        // SAFETY: malloc takes any size.
        Some(family) => unsafe { (family.malloc)(size) },
        None => first_malloc(size),
    }
}

#[cold]
#[inline(never)]
fn first_malloc(size: usize) -> *mut c_void {
    match next() {
        // SAFETY: malloc takes any size.
        Some(family) => unsafe { (family.malloc)(size) },
        None => early(16, size),
    }
}

/// `heaptoll_malloc_pointer_free` of `include/heaptoll.h`; `malloc` where the next object has none.
pub fn malloc_pointer_free(size: usize) -> *mut c_void {
    match ready() {
        // SAFETY: it takes any size, as malloc does.
        Some(family) => unsafe { pointer_free(family)(size) },
        None => first_malloc(size),
    }
}

/// # Safety
/// `block` is null or a live block of this malloc family, as for C's `free`.
#[inline(always)]
pub unsafe fn free(block: *mut c_void) {
    if arena::owns(block) {
        // SAFETY: by this function's contract the block is live, and it lies in the arena, so the arena allocated it.
        return unsafe { arena::note_free(block) };
    }
    match ready() {
        // SAFETY: by this function's contract the block is live or null, and it is not the arena's, so it is the
        // family's.
        Some(family) => unsafe { (family.free)(block) },
        // Before there is a family, all blocks are the arena's or null.
        None => debug_assert!(block.is_null()),
    }
}

#[inline(always)]
pub fn calloc(count: usize, size: usize) -> *mut c_void {
    if let Some(Family { calloc: Some(calloc), .. }) = ready() {
        // SAFETY: calloc takes any sizes.
        return unsafe { calloc(count, size) };
    }
    emulate_calloc(count, size)
}

/// `calloc` before there is a family, or if it has none.
#[cold]
#[inline(never)]
fn emulate_calloc(count: usize, size: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(size) else { return fail(libc::ENOMEM) };
    let Some(family) = next() else { return early(16, bytes) };
    if let Some(calloc) = family.calloc {
        // SAFETY: calloc takes any sizes.
        return unsafe { calloc(count, size) };
    }
    // SAFETY: malloc takes any size and returns null, which is checked, or a block of at least that many bytes.
    unsafe {
        let block = (family.malloc)(bytes);
        if !block.is_null() {
            ptr::write_bytes(block.cast::<u8>(), 0, bytes);
        }
        block
    }
}

/// # Safety
/// `block` is null or a live block of this malloc family, as for C's `realloc`.
#[inline(always)]
pub unsafe fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if !arena::owns(block)
        && let Some(Family { realloc: Some(realloc), .. }) = ready()
    {
        // SAFETY: by this function's contract the block is live or null, and it is not the arena's, so it is the
        // family's.
        return unsafe { realloc(block, size) };
    }
    // SAFETY: the contract of `emulate_realloc` is that of this function.
    unsafe { emulate_realloc(block, size) }
}

/// `realloc` of the arena's blocks, before there is a family, or if it has none.
#[cold]
#[inline(never)]
unsafe fn emulate_realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if arena::owns(block) {
        // SAFETY: the block is the arena's, as checked above.
        return unsafe { leave_arena(block, size) };
    }
    let Some(family) = next() else { return early(16, size) };
    if let Some(realloc) = family.realloc {
        // SAFETY: `realloc` passed a live block or null, and it is not the arena's, so it is the family's.
        return unsafe { realloc(block, size) };
    }
    // SAFETY: `realloc` passed a live block or null, and it is not the arena's, so it is the family's.
    unsafe { move_block(family, block, size) }
}

/// `realloc` if the next object has none; needs the usable size, to know how much to copy.
unsafe fn move_block(family: &Family, block: *mut c_void, size: usize) -> *mut c_void {
    if block.is_null() {
        return malloc(size);
    }
    let Some(usable_size) = family.usable_size else { return fail(libc::ENOMEM) };
    // SAFETY: `emulate_realloc` passes a live block of the family; the copy stays within the smaller of both blocks,
    // which are distinct.
    unsafe {
        let moved = (family.malloc)(size);
        if !moved.is_null() {
            ptr::copy_nonoverlapping(block.cast::<u8>(), moved.cast(), usable_size(block).min(size));
            (family.free)(block);
        }
        moved
    }
}

/// Moves a block out of the arena, or within it while there is no family.
#[cold]
unsafe fn leave_arena(block: *mut c_void, size: usize) -> *mut c_void {
    let moved = malloc(size);
    if !moved.is_null() {
        // SAFETY: `emulate_realloc` has found that the block is the arena's; the copy stays within the smaller of both
        // blocks, which are distinct.
        unsafe {
            // Not memcpy, which is another object's: this one may not be relocated yet.
            core::arch::asm!(
                "rep movsb",
                inout("rcx") arena::usable_size(block).min(size) => _,
                inout("rsi") block => _,
                inout("rdi") moved => _,
                options(nostack, preserves_flags),
            );
            arena::note_free(block);
        }
    }
    moved
}

/// # Safety
/// `block` is null or a live block of this malloc family, as for glibc's `reallocarray`.
#[inline(always)]
pub unsafe fn reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // Never the next object's own: glibc's calls the program's `realloc`, which is the layer's, so one call would be
    // counted as two.
    match count.checked_mul(size) {
        // SAFETY: the contract of `realloc` is that of this function.
        Some(bytes) => unsafe { realloc(block, bytes) },
        None => fail(libc::ENOMEM),
    }
}

/// Allocates an aligned block by any aligned function that the object has.
///
/// # Safety
/// `align` is a power of two of at least 8.
unsafe fn aligned(family: &Family, align: usize, size: usize) -> *mut c_void {
    // SAFETY: all three take any size and any power of two of at least a word, which `align` is by this function's
    // contract; `aligned_alloc` may require a size that is a multiple of the alignment, to which it is rounded up.
    unsafe {
        if let Some(memalign) = family.memalign {
            return memalign(align, size);
        }
        if let Some(posix_memalign) = family.posix_memalign {
            let mut block = ptr::null_mut();
            return match posix_memalign(&mut block, align, size) {
                0 => block,
                code => fail(code),
            };
        }
        if let Some(aligned_alloc) = family.aligned_alloc {
            return match size.checked_next_multiple_of(align) {
                Some(bytes) => aligned_alloc(align, bytes),
                None => fail(libc::ENOMEM),
            };
        }
    }
    fail(libc::ENOMEM)
}

#[inline(always)]
pub fn memalign(align: usize, size: usize) -> *mut c_void {
    let Some(family) = next() else { return early(align.next_power_of_two(), size) };
    if let Some(memalign) = family.memalign {
        // SAFETY: memalign takes any arguments and checks them itself.
        return unsafe { memalign(align, size) };
    }
    // glibc's memalign rounds an odd alignment up.
    let Some(align) = align.max(16).checked_next_power_of_two() else { return fail(libc::EINVAL) };
    // SAFETY: `align` was rounded up to a power of two of at least 16.
    unsafe { aligned(family, align, size) }
}

#[inline(always)]
pub fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    let Some(family) = next() else { return early(align.next_power_of_two(), size) };
    if let Some(aligned_alloc) = family.aligned_alloc {
        // SAFETY: aligned_alloc takes any arguments and checks them itself.
        return unsafe { aligned_alloc(align, size) };
    }
    if !align.is_power_of_two() {
        return fail(libc::EINVAL);
    }
    // SAFETY: `align` is a power of two, as checked above, and is raised to at least 16.
    unsafe { aligned(family, align.max(16), size) }
}

/// # Safety
/// `result` may be written to.
#[inline(always)]
pub unsafe fn posix_memalign(result: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if let Some(Family { posix_memalign: Some(posix_memalign), .. }) = next() {
        // SAFETY: by this function's contract `result` may be written to; the function checks its other arguments
        // itself.
        return unsafe { posix_memalign(result, align, size) };
    }
    if !align.is_power_of_two() || align < size_of::<usize>() {
        return libc::EINVAL;
    }
    // SAFETY: `__errno_location` returns the address of the thread's errno, which posix_memalign must not change; by
    // this function's contract `result` may be written to; `align` is a power of two of at least a word, as checked
    // above.
    unsafe {
        let errno = *libc::__errno_location();
        let block = match next() {
            Some(family) => aligned(family, align, size),
            None => early(align, size),
        };
        *libc::__errno_location() = errno;
        if block.is_null() {
            return libc::ENOMEM;
        }
        *result = block;
    }
    0
}

/// Bytes in a page.
pub fn page() -> usize {
    // SAFETY: sysconf takes no pointers.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

pub fn valloc(size: usize) -> *mut c_void {
    match next() {
        // SAFETY: valloc takes any size.
        Some(Family { valloc: Some(valloc), .. }) => unsafe { valloc(size) },
        _ => memalign(page(), size),
    }
}

pub fn pvalloc(size: usize) -> *mut c_void {
    match next() {
        // SAFETY: pvalloc takes any size.
        Some(Family { pvalloc: Some(pvalloc), .. }) => unsafe { pvalloc(size) },
        _ => match size.max(1).checked_next_multiple_of(page()) {
            Some(bytes) => memalign(page(), bytes),
            None => fail(libc::ENOMEM),
        },
    }
}

/// # Safety
/// `block` is null or a live block of this malloc family, as for glibc's `malloc_usable_size`.
#[inline(always)]
pub unsafe fn usable_size(block: *mut c_void) -> usize {
    if block.is_null() {
        return 0;
    }
    if arena::owns(block) {
        // SAFETY: by this function's contract the block is live, and it lies in the arena, so the arena allocated it.
        return unsafe { arena::usable_size(block) };
    }
    match next() {
        // SAFETY: by this function's contract the block is live, and it is not the arena's, so it is the family's.
        Some(Family { usable_size: Some(usable_size), .. }) => unsafe { usable_size(block) },
        // 0 is a valid lower bound for any block; another heap's result would not be.
        _ => 0,
    }
}
