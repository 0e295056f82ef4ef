//! Small blocks: an empty list of a cache is filled with a batch, from swept spans, from spans that wait to be swept, from
//! fresh units, and after a collection.

use core::ptr;
use core::sync::atomic::{Ordering, compiler_fence};

use heaptoll_assertions::{assert_expensive, assert_internal};
use heaptoll_runtime::PAGE;

use super::Heap;
use crate::cache::{Cache, FreeBlock};
use crate::class::{
    CACHE_LIMITS, CLASS, LARGE, LARGE_ATOMIC, LAST_PLAIN, SPAN_CLASSES, SpanClass, UNIT, is_atomic, is_small,
};
use crate::log::Reason;
use crate::mode::Mode;
use crate::spans::SweepOutcome;

/// Mode `collect`: blocks up to this size are cleared before they are reused, bytes.
const CLEARED_MAX: usize = 8 << 10;

impl Heap {
    /// Allocates a block of the span class: from the cache, or from the spans.
    #[inline]
    pub fn allocate_small(&self, cache: &mut Cache, span_class: SpanClass) -> *mut u8 {
        let block = cache.pop(span_class.into());
        if block.is_null() { self.refill(cache, span_class) } else { block.cast() }
    }

    /// Fills an empty list with a batch, and pops its first block. Null when there is no memory.
    #[inline(never)]
    pub fn refill(&self, cache: &mut Cache, span_class: SpanClass) -> *mut u8 {
        assert_internal!(is_small(span_class), "a cache has lists of span classes that have a size class");
        assert_internal!(
            cache.lists[span_class as usize].head.is_null(),
            "a list is filled again when it is empty"
        );
        if self.is_due() && self.collects() {
            let _ = self.collect(Reason::Budget);
        }
        let most = self.batch_bytes.load(Ordering::Relaxed) / CLASS[span_class as usize].size as usize;
        let wanted = usize::from(CACHE_LIMITS[span_class as usize].batch).min(most).max(1) as u32;
        let Some(got) = self.reserve_blocks(cache, span_class, wanted) else { return ptr::null_mut() };
        assert_internal!((1..=wanted).contains(&got), "a batch is of one block to as many as wanted");
        self.count_allocated(got as usize * CLASS[span_class as usize].size as usize);
        self.link_reserved(cache, span_class);
        cache.pop(span_class.into()).cast()
    }

    /// Reserves up to `wanted` blocks: from swept spans, from spans that wait to be swept, from fresh units, and after
    /// a collection. `None` when there is no memory.
    pub(super) fn reserve_blocks(
        &self,
        cache: &mut Cache,
        span_class: SpanClass,
        wanted: u32,
    ) -> Option<u32> {
        let class = &CLASS[span_class as usize];
        let poison = self.poison.load(Ordering::Relaxed);
        let (mut swept, mut collected) = (false, false);
        loop {
            {
                let mut spans = self.spans_by_class[span_class as usize].lock();
                loop {
                    let got = spans.reserve(&self.reservation, cache, class, wanted);
                    if got > 0 {
                        assert_internal!(
                            cache.reserved_blocks() == got,
                            "as many blocks are pending as were reserved"
                        );
                        assert_internal!(
                            cache.pending[..cache.pending_count].iter().all(|reserved| {
                                self.reservation.span_class(reserved.unit as usize) == span_class
                            }),
                            "blocks are reserved from spans of their span class"
                        );
                        if collected {
                            self.note_effective_collection();
                        }
                        return Some(got);
                    }
                    let Some(unit) = spans.next_unswept(&self.reservation, span_class) else { break };
                    if spans.sweep(&self.reservation, unit, self.epoch(), poison) == SweepOutcome::Empty {
                        // The span is used at once.
                        spans.list(&self.reservation, unit);
                    }
                }
                if swept || self.swept.load(Ordering::Relaxed) {
                    let mut units = self.units.lock();
                    let taken = units.take(&self.reservation, class.units.into(), 1, !is_atomic(span_class));
                    if let Some(taken) = taken {
                        spans.initialise(&self.reservation, taken, span_class, self.epoch());
                        self.on_growth(&mut units);
                        continue;
                    }
                }
            }
            if !swept {
                self.sweep_all();
                swept = true;
            } else if !collected && self.collect_for_memory(cache, class.units.into()) {
                // Units of other span classes may be free now: sweep again before giving up.
                (collected, swept) = (true, false);
            } else {
                return None;
            }
        }
    }

    /// Fallback within a limit that leaves no span for the span class: a block of a larger class, or units of its own
    /// where these are fewer than a span's.
    #[cold]
    pub(super) fn allocate_from_larger_class(
        &self,
        cache: &mut Cache,
        span_class: SpanClass,
        bytes: usize,
        alignment: usize,
    ) -> *mut u8 {
        if !self.is_limited() {
            return ptr::null_mut();
        }
        let last = if is_atomic(span_class) { SPAN_CLASSES as SpanClass - 1 } else { LAST_PLAIN };
        for wider in span_class + 1..=last {
            let class = &CLASS[wider as usize];
            if (class.size as usize).is_multiple_of(alignment)
                && self.spans_by_class[wider as usize].lock().reserve(&self.reservation, cache, class, 1) > 0
            {
                self.count_allocated(class.size as usize);
                self.link_reserved(cache, wider);
                return cache.pop(wider.into()).cast();
            }
        }
        let units = bytes.div_ceil(UNIT).max(1) as u32;
        let span_class = if is_atomic(span_class) { LARGE_ATOMIC } else { LARGE };
        let bytes = bytes.max(1).next_multiple_of(PAGE);
        match self.take_large(bytes, units, 1, span_class) {
            Some(address) => {
                self.count_allocated(bytes);
                self.large_since_gc.fetch_add(bytes, Ordering::Relaxed);
                address as *mut u8
            }
            None => {
                self.count_limit_failure(units);
                ptr::null_mut()
            }
        }
    }

    /// Links the pending blocks in front of the list, in order of address.
    pub(super) fn link_reserved(&self, cache: &mut Cache, span_class: SpanClass) {
        let size = CLASS[span_class as usize].size as usize;
        let mut head = cache.lists[span_class as usize].head;
        let mut count = 0;
        // The program may leave parts of a block unwritten, and their old contents would keep garbage alive.
        let clear = size <= CLEARED_MAX && !is_atomic(span_class) && self.is_mode(Mode::Collect);
        for reserved in cache.pending[..cache.pending_count].iter().rev() {
            assert_internal!(reserved.mask != 0, "what is pending is of one block at least");
            assert_internal!(
                self.reservation.span_class(reserved.unit as usize) == span_class,
                "reserved blocks are linked into the list of their span class"
            );
            assert_internal!(
                reserved.word as usize * 64 + 63 - (reserved.mask.leading_zeros() as usize)
                    < CLASS[span_class as usize].blocks.into(),
                "reserved blocks lie in their span"
            );
            let start = self.reservation.address(reserved.unit) + reserved.word as usize * 64 * size;
            let mut mask = reserved.mask;
            count += mask.count_ones();
            if clear && !reserved.clean {
                // SAFETY: this thread has reserved the blocks, and no other thread uses them.
                unsafe { clear_blocks(start, size, mask) };
            }
            while mask != 0 {
                let bit = 63 - mask.leading_zeros();
                mask ^= 1 << bit;
                let block = (start + bit as usize * size) as *mut FreeBlock;
                // SAFETY: this thread has reserved the block, which has at least 16 bytes.
                unsafe { (*block).next = head };
                head = block;
            }
        }
        compiler_fence(Ordering::SeqCst);
        let list = &mut cache.lists[span_class as usize];
        list.head = head;
        list.free_slots = list.free_slots.wrapping_sub(count);
        compiler_fence(Ordering::SeqCst);
        cache.pending_count = 0;
        assert_expensive!(cache.is_counted(span_class.into()), "a list has as many blocks as it counts");
    }
}

/// Clears the blocks of a word that are in the mask, adjacent ones at once.
///
/// # Safety
/// The caller has reserved the blocks, of `size` bytes each.
unsafe fn clear_blocks(start: usize, size: usize, mut mask: u64) {
    while mask != 0 {
        let first = mask.trailing_zeros();
        let count = (!(mask >> first)).trailing_zeros();
        assert_internal!(
            count > 0 && first + count <= 64,
            "the blocks that are cleared are those of one word"
        );
        // SAFETY: the blocks are reserved for the caller (this function's contract), and `mask` selects adjacent ones.
        unsafe { ((start + first as usize * size) as *mut u8).write_bytes(0, count as usize * size) };
        mask &= !(u64::MAX >> (64 - count) << first);
    }
}
