//! The malloc family as a layer calls it: complete whatever the next object exports, right for blocks of the
//! bootstrap arena, and within the C and POSIX rules where a function has to be made up.
//!
//! A function is made up only from others of the same object. When that cannot be done (no aligned allocation at
//! all) the call fails with `ENOMEM`: a block from another heap would crash in `free` later.

use core::ffi::{c_int, c_void};
use core::ptr;

use crate::arena;
use crate::family::{Family, next, ready};

fn set_errno(code: c_int) {
    // SAFETY: errno's address is valid for the calling thread.
    unsafe { *libc::__errno_location() = code };
}

fn refused(code: c_int) -> *mut c_void {
    set_errno(code);
    ptr::null_mut()
}

/// Gives a block of the arena, for the time before there is a family.
#[cold]
fn early(align: usize, size: usize) -> *mut c_void {
    let block = arena::allocate(align, size);
    if block.is_null() { refused(libc::ENOMEM) } else { block }
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

/// # Safety
/// As C's `free`.
#[inline(always)]
pub unsafe fn free(block: *mut c_void) {
    if arena::owns(block) {
        return;
    }
    match ready() {
        // SAFETY: the block is not the arena's, so it is the family's or null.
        Some(family) => unsafe { (family.free)(block) },
        // Nothing but arena blocks and null exist before there is a family.
        None => debug_assert!(block.is_null()),
    }
}

#[inline(always)]
pub fn calloc(count: usize, size: usize) -> *mut c_void {
    if let Some(Family { calloc: Some(calloc), .. }) = ready() {
        // SAFETY: calloc takes any sizes.
        return unsafe { calloc(count, size) };
    }
    make_up_calloc(count, size)
}

/// `calloc` before there is a family, or where it has none.
#[cold]
#[inline(never)]
fn make_up_calloc(count: usize, size: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(size) else { return refused(libc::ENOMEM) };
    let Some(family) = next() else { return early(16, bytes) };
    if let Some(calloc) = family.calloc {
        // SAFETY: calloc takes any sizes.
        return unsafe { calloc(count, size) };
    }
    // SAFETY: malloc takes any size and gives at least that many bytes.
    unsafe {
        let block = (family.malloc)(bytes);
        if !block.is_null() {
            ptr::write_bytes(block.cast::<u8>(), 0, bytes);
        }
        block
    }
}

/// # Safety
/// As C's `realloc`.
#[inline(always)]
pub unsafe fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if !arena::owns(block)
        && let Some(Family { realloc: Some(realloc), .. }) = ready()
    {
        // SAFETY: the block is the family's or null.
        return unsafe { realloc(block, size) };
    }
    // SAFETY: the caller's promise is the same.
    unsafe { make_up_realloc(block, size) }
}

/// `realloc` of the arena's blocks, before there is a family, or where it has none.
#[cold]
#[inline(never)]
unsafe fn make_up_realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if arena::owns(block) {
        // SAFETY: the block is the arena's.
        return unsafe { leave_arena(block, size) };
    }
    let Some(family) = next() else { return early(16, size) };
    if let Some(realloc) = family.realloc {
        // SAFETY: the block is the family's or null.
        return unsafe { realloc(block, size) };
    }
    // SAFETY: the block is the family's or null.
    unsafe { move_block(family, block, size) }
}

/// `realloc` where the next object has none: needs to know how much to copy.
unsafe fn move_block(family: &Family, block: *mut c_void, size: usize) -> *mut c_void {
    if block.is_null() {
        return malloc(size);
    }
    let Some(usable_size) = family.usable_size else { return refused(libc::ENOMEM) };
    // SAFETY: the block is the family's; the copy stays within both blocks.
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
        // SAFETY: the copy stays within both blocks, which are distinct.
        unsafe {
            ptr::copy_nonoverlapping(block.cast::<u8>(), moved.cast(), arena::usable_size(block).min(size));
        }
    }
    moved
}

/// # Safety
/// As glibc's `reallocarray`.
#[inline(always)]
pub unsafe fn reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // Never the next object's own: glibc's comes back through the program's `realloc`, which is the layer's, and one
    // call would be seen as two. The product and `realloc` are all there is to it.
    match count.checked_mul(size) {
        // SAFETY: the caller's promise about the block is the same.
        Some(bytes) => unsafe { realloc(block, bytes) },
        None => refused(libc::ENOMEM),
    }
}

/// An aligned block by whichever aligned function the object has; `align` is a power of two of at least 8. Does not
/// look at `skip`'s own function, which the caller has found missing.
unsafe fn aligned(family: &Family, align: usize, size: usize) -> *mut c_void {
    // SAFETY: all three take any power of two of at least a word and any size; `aligned_alloc` may insist on a size
    // that is a multiple of the alignment, which more bytes satisfy.
    unsafe {
        if let Some(memalign) = family.memalign {
            return memalign(align, size);
        }
        if let Some(posix_memalign) = family.posix_memalign {
            let mut block = ptr::null_mut();
            return match posix_memalign(&mut block, align, size) {
                0 => block,
                code => refused(code),
            };
        }
        if let Some(aligned_alloc) = family.aligned_alloc {
            return match size.checked_next_multiple_of(align) {
                Some(bytes) => aligned_alloc(align, bytes),
                None => refused(libc::ENOMEM),
            };
        }
    }
    refused(libc::ENOMEM)
}

#[inline(always)]
pub fn memalign(align: usize, size: usize) -> *mut c_void {
    let Some(family) = next() else { return early(align.next_power_of_two(), size) };
    if let Some(memalign) = family.memalign {
        // SAFETY: memalign judges its arguments itself.
        return unsafe { memalign(align, size) };
    }
    // glibc's memalign rounds an odd alignment up.
    let Some(align) = align.max(16).checked_next_power_of_two() else { return refused(libc::EINVAL) };
    // SAFETY: a power of two of at least a word.
    unsafe { aligned(family, align, size) }
}

#[inline(always)]
pub fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    let Some(family) = next() else { return early(align.next_power_of_two(), size) };
    if let Some(aligned_alloc) = family.aligned_alloc {
        // SAFETY: aligned_alloc judges its arguments itself.
        return unsafe { aligned_alloc(align, size) };
    }
    if !align.is_power_of_two() {
        return refused(libc::EINVAL);
    }
    // SAFETY: a power of two of at least a word.
    unsafe { aligned(family, align.max(16), size) }
}

/// # Safety
/// `place` is a valid place for a pointer.
#[inline(always)]
pub unsafe fn posix_memalign(place: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if let Some(Family { posix_memalign: Some(posix_memalign), .. }) = next() {
        // SAFETY: the caller's promise about `place`; the rest it judges itself.
        return unsafe { posix_memalign(place, align, size) };
    }
    if !align.is_power_of_two() || align < size_of::<usize>() {
        return libc::EINVAL;
    }
    // SAFETY: errno is the thread's own, and posix_memalign must not change it; `place` as promised; a power of two of
    // at least a word.
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
        *place = block;
    }
    0
}

/// Bytes in a page.
pub fn page() -> usize {
    // SAFETY: sysconf has no conditions.
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
            None => refused(libc::ENOMEM),
        },
    }
}

/// # Safety
/// As glibc's `malloc_usable_size`.
#[inline(always)]
pub unsafe fn usable_size(block: *mut c_void) -> usize {
    if block.is_null() {
        return 0;
    }
    if arena::owns(block) {
        // SAFETY: the block is the arena's.
        return unsafe { arena::usable_size(block) };
    }
    match next() {
        // SAFETY: the block is the family's.
        Some(Family { usable_size: Some(usable_size), .. }) => unsafe { usable_size(block) },
        // "At least zero bytes" is true of any block; another heap's answer would not be.
        _ => 0,
    }
}
