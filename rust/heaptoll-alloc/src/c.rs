//! Malloc of the C library as a global allocator.

// Without the feature only tests use it.
#![cfg_attr(not(any(feature = "malloc", test)), allow(dead_code))]

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{c_int, c_void};
use core::ptr;

unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn calloc(count: usize, size: usize) -> *mut c_void;
    fn realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn posix_memalign(place: *mut *mut c_void, alignment: usize, size: usize) -> c_int;
    fn free(block: *mut c_void);
}

/// The alignment of malloc's blocks: that of `max_align_t`.
const OF_MALLOC: usize = if size_of::<usize>() == 8 { 16 } else { 8 };

/// Malloc, whichever object it is bound to.
#[derive(Debug, Clone, Copy)]
pub struct C;

/// Whether malloc's alignment is enough. Some allocators align blocks that are smaller than it only to their size.
const fn is_aligned(layout: Layout) -> bool {
    layout.align() <= OF_MALLOC && layout.align() <= layout.size()
}

fn aligned(layout: Layout) -> *mut u8 {
    let mut block = ptr::null_mut();
    // SAFETY: the alignment is a power of two (`Layout`) and a multiple of a pointer's size, and `block` is a place for
    // one pointer.
    let failed = unsafe { posix_memalign(&mut block, layout.align().max(size_of::<usize>()), layout.size()) };
    if failed == 0 { block.cast() } else { ptr::null_mut() }
}

// SAFETY: malloc gives blocks of at least the size, aligned for every type up to `OF_MALLOC`, and posix_memalign those of
// other alignments; both are freed by free; it does not unwind.
unsafe impl GlobalAlloc for C {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_aligned(layout) {
            // SAFETY: malloc may be called with any size.
            unsafe { malloc(layout.size()) }.cast()
        } else {
            aligned(layout)
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller passes a block of this allocator that is live.
        unsafe { free(block.cast()) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_aligned(layout) {
            // SAFETY: calloc may be called with any sizes.
            return unsafe { calloc(1, layout.size()) }.cast();
        }
        let block = aligned(layout);
        if !block.is_null() {
            // SAFETY: the block has that many bytes, and no other reference exists.
            unsafe { ptr::write_bytes(block, 0, layout.size()) };
        }
        block
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller ensures that `new_size`, rounded up to the alignment, is no more than `isize::MAX`.
        let new = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        if is_aligned(new) {
            // SAFETY: the caller passes a live block of this allocator; realloc takes those of posix_memalign, too.
            return unsafe { realloc(block.cast(), new_size) }.cast();
        }
        let moved = aligned(new);
        if !moved.is_null() {
            // SAFETY: both blocks have the smaller size and do not overlap, for both are live; the old one is freed once.
            unsafe {
                ptr::copy_nonoverlapping(block, moved, layout.size().min(new_size));
                free(block.cast());
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes and alignments around those at which the way changes.
    fn layouts() -> impl Iterator<Item = Layout> {
        let sizes = [1, 7, 8, 15, 16, 17, 100, 4096, 100_000];
        sizes.into_iter().flat_map(|size| {
            [1, 2, 8, 16, 32, 64, 4096].map(|align| Layout::from_size_align(size, align).expect("a layout"))
        })
    }

    #[test]
    fn blocks_are_aligned_and_keep_their_content_when_resized() {
        for layout in layouts() {
            // SAFETY: sizes are not 0, blocks are used within their sizes and freed once.
            unsafe {
                let block = C.alloc(layout);
                assert!(!block.is_null() && block.addr().is_multiple_of(layout.align()), "{layout:?}");
                ptr::write_bytes(block, 0xa5, layout.size());
                for new_size in [3 * layout.size(), layout.size().div_ceil(2)] {
                    let fresh = C.alloc(layout);
                    ptr::copy_nonoverlapping(block, fresh, layout.size());
                    let resized = C.realloc(fresh, layout, new_size);
                    assert!(
                        !resized.is_null() && resized.addr().is_multiple_of(layout.align()),
                        "{layout:?}"
                    );
                    let kept = core::slice::from_raw_parts(resized, layout.size().min(new_size));
                    assert!(kept.iter().all(|&byte| byte == 0xa5), "{layout:?} to {new_size}");
                    C.dealloc(resized, layout);
                }
                C.dealloc(block, layout);
            }
        }
    }

    #[test]
    fn zeroed_blocks_are_zero_where_memory_was_used_before() {
        for layout in layouts() {
            // SAFETY: the block is used within its size and given back once, with its layout.
            unsafe {
                let used = C.alloc(layout);
                ptr::write_bytes(used, 0xff, layout.size());
                C.dealloc(used, layout);
                let block = C.alloc_zeroed(layout);
                let bytes = core::slice::from_raw_parts(block, layout.size());
                assert!(bytes.iter().all(|&byte| byte == 0), "{layout:?}");
                assert!(block.addr().is_multiple_of(layout.align()));
                C.dealloc(block, layout);
            }
        }
    }

    #[test]
    fn what_cannot_be_had_is_null_and_leaves_the_block() {
        let small = Layout::from_size_align(64, 64).expect("a layout");
        let huge = isize::MAX as usize - 63;
        // SAFETY: blocks are used within their size and given back once, with their layout; the size, rounded up to the alignment, is `isize::MAX` at most.
        unsafe {
            let block = C.alloc(small);
            *block = 7;
            assert!(C.realloc(block, small, huge).is_null());
            assert_eq!(*block, 7);
            C.dealloc(block, small);
            let huge = Layout::from_size_align(huge, 64).expect("a layout");
            assert!(C.alloc(huge).is_null() && C.alloc_zeroed(huge).is_null());
        }
    }
}
