//! The bootstrap arena: memory for allocations made before the next malloc is known, by `dlsym` itself or by other
//! threads meanwhile.
//!
//! A bump allocator over static memory. Blocks are never reused: a process makes only a handful of them. Each is
//! preceded by its size, for `realloc` and `malloc_usable_size`.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Zeroed pages of the object's `.bss`: they cost memory only when touched.
const BYTES: usize = 1 << 20;
const WORD: usize = 16;

#[repr(C, align(4096))]
struct Pages(UnsafeCell<[u8; BYTES]>);

// SAFETY: the atomic `USED` hands out every byte range once; the arena itself writes only the size in front of a block,
// before the block is handed out.
unsafe impl Sync for Pages {}

static PAGES: Pages = Pages(UnsafeCell::new([0; BYTES]));
static USED: AtomicUsize = AtomicUsize::new(0);

fn base() -> usize {
    PAGES.0.get() as usize
}

/// Whether the block lies in the arena.
#[inline(always)]
pub fn owns(block: *const c_void) -> bool {
    (block as usize).wrapping_sub(base()) < BYTES
}

/// The addresses of the blocks that there are now.
pub fn used() -> core::ops::Range<usize> {
    base()..base() + USED.load(Ordering::Relaxed)
}

/// Allocates a zeroed block; null when the arena is exhausted. `align` is a power of two.
pub fn allocate(align: usize, size: usize) -> *mut c_void {
    let align = align.max(WORD);
    if align > 4096 || size > BYTES {
        return ptr::null_mut();
    }
    let mut used = USED.load(Ordering::Relaxed);
    loop {
        let start = (used + WORD).next_multiple_of(align);
        let end = (start + size.max(1)).next_multiple_of(WORD);
        if end > BYTES {
            return ptr::null_mut();
        }
        match USED.compare_exchange_weak(used, end, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => {
                let block = (base() + start) as *mut u8;
                // SAFETY: start - WORD >= used, and the exchange above gave used..end to this call alone.
                unsafe { block.sub(WORD).cast::<usize>().write(end - start) };
                return block.cast();
            }
            Err(now) => used = now,
        }
    }
}

/// The usable size of a block, bytes.
///
/// # Safety
/// `allocate` returned `block`.
pub unsafe fn usable_size(block: *const c_void) -> usize {
    // SAFETY: by this function's contract `allocate` returned the block, and wrote its size in front of it.
    unsafe { block.cast::<u8>().sub(WORD).cast::<usize>().read() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_disjoint_zeroed_and_recognised() {
        let mut last_end = 0;
        for (align, size) in [(1, 0), (16, 1), (64, 100), (4096, 5000), (16, 16)] {
            let block = allocate(align, size);
            assert!(!block.is_null() && owns(block));
            assert_eq!(block as usize % align.max(16), 0);
            assert!(block as usize > last_end);
            // SAFETY: `allocate` returned the block, and its usable size is that of the range handed out.
            unsafe {
                assert!(usable_size(block) >= size.max(1));
                for i in 0..usable_size(block) {
                    assert_eq!(block.cast::<u8>().add(i).read(), 0);
                    block.cast::<u8>().add(i).write(0xa5);
                }
                last_end = block as usize + usable_size(block);
            }
        }
        assert!(used().start == base() && used().end >= last_end);
        assert!(allocate(16, BYTES).is_null());
        assert!(allocate(8192, 1).is_null());
        let mut local = 0u8;
        assert!(!owns(ptr::from_mut(&mut local).cast()));
        assert!(!owns(ptr::null()));
    }
}
