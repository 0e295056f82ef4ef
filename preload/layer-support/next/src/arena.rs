//! The bootstrap arena: memory for allocations made before the next malloc is known, by `dlsym` itself, by other threads
//! meanwhile, or by the program while the loader relocates it.
//!
//! A bump allocator over static memory. Blocks are never reused: a process makes only a handful of them. Each is
//! preceded by its size, for `realloc` and `malloc_usable_size`, and by whose it is: layers record those of the program
//! when they start.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ops::Range;
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
pub fn used() -> Range<usize> {
    base()..base() + USED.load(Ordering::Relaxed)
}

/// What precedes a block, in a word.
#[repr(C)]
struct Head {
    /// Usable bytes; never 0.
    usable: usize,
    /// Bytes that were requested, and in the lowest bits whose the block is.
    requested: usize,
}

const _: () = assert!(size_of::<Head>() == WORD);

/// The block is the program's, and no call of this layer's own.
const PROGRAMS: usize = 1;
/// It was freed.
const FREED: usize = 2;
const BITS: u32 = 2;

/// A block of the program's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlyBlock {
    pub block: *mut c_void,
    pub requested: usize,
    pub usable: usize,
    pub is_freed: bool,
}

/// The program's blocks, in the order in which they were allocated. Other threads may allocate meanwhile: of theirs some
/// may be missing.
pub fn of_program() -> impl Iterator<Item = EarlyBlock> {
    let Range { start: mut at, end } = used();
    core::iter::from_fn(move || {
        while at < end {
            // SAFETY: `at` is within the arena, a multiple of a word from its beginning; all of it may be read.
            let head = unsafe { (at as *const Head).read_volatile() };
            at += WORD;
            // A gap before an aligned block is zero.
            let block = at as *mut c_void;
            at += head.usable;
            if head.usable != 0 && head.requested & PROGRAMS != 0 {
                let (requested, is_freed) = (head.requested >> BITS, head.requested & FREED != 0);
                return Some(EarlyBlock { block, requested, usable: head.usable, is_freed });
            }
        }
        None
    })
}

/// The head of a block.
///
/// # Safety
/// `allocate` returned `block`.
unsafe fn head(block: *mut c_void) -> *mut Head {
    // SAFETY: by this function's contract the head is in front of the block.
    unsafe { block.cast::<Head>().sub(1) }
}

/// Whether a block is the arena's and the program's.
pub fn is_programs(block: *const c_void) -> bool {
    let head = (block as usize).wrapping_sub(WORD) as *const Head;
    // SAFETY: the head's words are read where they are, in the arena, which may all be read.
    owns(head.cast()) && owns(block) && unsafe { head.read_unaligned().requested & PROGRAMS != 0 }
}

/// Notes that the program has freed the block. Its memory is not used again.
///
/// # Safety
/// `allocate` returned `block`.
pub unsafe fn note_free(block: *mut c_void) {
    // SAFETY: the contract of `head` is that of this function; the program frees a block once.
    unsafe { (*head(block)).requested |= FREED };
}

/// Allocates a zeroed block; null when the arena is exhausted. `align` is a power of two.
pub fn allocate(align: usize, size: usize, for_program: bool) -> *mut c_void {
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
                let requested = size << BITS | if for_program { PROGRAMS } else { 0 };
                // SAFETY: start - WORD >= used, and the exchange above gave used..end to this call alone.
                unsafe { head(block.cast()).write(Head { usable: end - start, requested }) };
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
    // SAFETY: the contract of `head` is that of this function, and `allocate` wrote it.
    unsafe { (*head(block.cast_mut())).usable }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_disjoint_zeroed_and_recognised() {
        let (mut last_end, mut of_the_program) = (0, std::vec::Vec::new());
        for (align, size) in [(1, 0), (16, 1), (64, 100), (4096, 5000), (16, 16)] {
            let block = allocate(align, size, size % 2 == 0);
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
                if size == 100 {
                    note_free(block);
                }
                assert_eq!(is_programs(block), size % 2 == 0);
            }
            if size % 2 == 0 {
                of_the_program.push((block, size, size == 100));
            }
        }
        let found = of_program().map(|early| (early.block, early.requested, early.is_freed));
        assert_eq!(found.collect::<std::vec::Vec<_>>(), of_the_program);
        assert!(used().start == base() && used().end >= last_end);
        assert!(allocate(16, BYTES, true).is_null());
        assert!(allocate(8192, 1, true).is_null());
        let mut local = 0u8;
        assert!(!owns(ptr::from_mut(&mut local).cast()));
        assert!(!owns(ptr::null()));
    }
}
