//! Blocks of any size: what malloc, calloc, memalign and free do where a thread's cache does not suffice.

use core::ptr;
use core::sync::atomic::Ordering;

use heaptoll_assertions::assert_expensive;
use heaptoll_runtime::{LARGEST, Misuse, PAGE};

use super::Heap;
use crate::cache::Cache;
use crate::class::{
    CACHE_LIMITS, CLASS, CLASSES, FREE, LARGE, LARGE_ATOMIC, SMALL_MAX, SpanClass, UNIT, UNIT_SHIFT,
    aligned_class_of, class_of, is_small,
};
use crate::mode::Mode;
use crate::resident::clear_resident;

impl Heap {
    /// The size of a request with the byte after its end where collections need it.
    pub(super) fn with_end_byte(&self, bytes: usize) -> usize {
        bytes.saturating_add(self.rounding.load(Ordering::Relaxed) - 15)
    }

    /// Allocates a block of at least `bytes`. Null when there is no memory.
    pub fn allocate(&self, cache: &mut Cache, bytes: usize, atomic: bool) -> *mut u8 {
        let bytes = self.with_end_byte(bytes);
        if bytes <= SMALL_MAX {
            let span_class = (class_of(bytes.max(1)) + if atomic { CLASSES } else { 0 }) as SpanClass;
            let block = self.allocate_small(cache, span_class);
            return if block.is_null() {
                self.allocate_from_larger_class(cache, span_class, bytes, 1)
            } else {
                block
            };
        }
        if bytes > LARGEST {
            return ptr::null_mut();
        }
        self.allocate_large(cache, bytes, UNIT, if atomic { LARGE_ATOMIC } else { LARGE }, 0)
    }

    /// As [`Heap::allocate`], zeroed.
    pub fn allocate_zeroed(&self, cache: &mut Cache, bytes: usize) -> *mut u8 {
        let block = self.allocate(cache, bytes, false);
        if block.is_null() {
            return block;
        }
        // SAFETY: the block is large and was just allocated: only its owner's calls change its descriptor.
        let clean = self.with_end_byte(bytes) > SMALL_MAX
            && unsafe {
                (*self.reservation.span(((block as usize - self.reservation.base()) >> UNIT_SHIFT) as u32))
                    .clean
            };
        let start = block as usize;
        // SAFETY: the block was just allocated with that many bytes; a large one has whole pages.
        unsafe {
            let is_large = self.with_end_byte(bytes) > SMALL_MAX;
            let cleared = clean || is_large && clear_resident(start..(start + bytes).next_multiple_of(PAGE));
            if !cleared {
                block.write_bytes(0, bytes);
            }
        }
        block
    }

    /// As [`Heap::allocate`], at a multiple of `alignment`, a power of two.
    pub fn allocate_aligned(&self, cache: &mut Cache, alignment: usize, bytes: usize) -> *mut u8 {
        let bytes = self.with_end_byte(bytes);
        if alignment <= UNIT
            && let Some(class) = aligned_class_of(alignment, bytes)
        {
            let block = self.allocate_small(cache, class as SpanClass);
            return if block.is_null() {
                self.allocate_from_larger_class(cache, class as SpanClass, bytes, alignment)
            } else {
                block
            };
        }
        if bytes > LARGEST || alignment > LARGEST {
            return ptr::null_mut();
        }
        self.allocate_large(cache, bytes.max(1), alignment, LARGE, 0)
    }

    /// Frees a block: at once, or in mode `guard` after it has waited.
    ///
    /// # Errors
    /// The address is not a live block's, as far as the heap can determine; nothing has changed then.
    ///
    /// # Safety
    /// The program does not use the block after the call.
    pub unsafe fn free(&self, cache: &mut Cache, block: *mut u8) -> Result<(), Misuse> {
        let address = block as usize;
        let Some(unit) = self.reservation.unit_of(address) else { return Err(Misuse::Foreign) };
        let span_class = self.reservation.span_class(unit);
        if is_small(span_class) {
            if self.is_mode(Mode::Guard) {
                // SAFETY: the program does not use the block after the call (this function's contract).
                return unsafe { self.hold_small(cache, unit, span_class, address) };
            }
            self.verify(unit, span_class, address)?;
            let list = &cache.lists[span_class as usize];
            if list.free_slots == 0 {
                self.flush(
                    cache,
                    span_class,
                    u32::from(CACHE_LIMITS[span_class as usize].capacity).div_ceil(2),
                );
                assert_expensive!(
                    cache.is_counted(span_class.into()),
                    "a list has as many blocks as it counts"
                );
            }
            if self.poison.load(Ordering::Relaxed) {
                // SAFETY: `verify` has found a block of this size, which the caller no longer uses.
                unsafe { block.write_bytes(crate::spans::POISON, CLASS[span_class as usize].size as usize) };
            }
            // SAFETY: `verify` has found a block of this span class, which the caller no longer uses and no list holds.
            unsafe { cache.push(span_class.into(), block.cast(), self.key.load(Ordering::Relaxed)) };
            return Ok(());
        }
        if span_class == FREE {
            return Err(Misuse::DoubleFree);
        }
        self.free_large(unit, span_class, block)
    }

    /// Bytes of a block that the program may use, such that the address one past them still lies in it; 0 if it is no
    /// block, or freed and waits. `realloc` to as many leaves the block where it is.
    pub fn usable_by_program(&self, block: *const u8) -> usize {
        if self.is_mode(Mode::Guard) && self.is_waiting(block as usize) {
            return 0;
        }
        self.usable(block).saturating_sub(self.with_end_byte(0))
    }

    /// Bytes of a block; 0 if it is no block.
    pub fn usable(&self, block: *const u8) -> usize {
        let Some(unit) = self.reservation.unit_of(block as usize) else { return 0 };
        match self.reservation.span_class(unit) {
            FREE => 0,
            span_class if is_small(span_class) => CLASS[span_class as usize].size as usize,
            _ => self.large_bytes(unit),
        }
    }
}
