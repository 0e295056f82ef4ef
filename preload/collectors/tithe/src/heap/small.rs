//! Small blocks: a cache that has none of a class reserves some, of swept spans, of spans that wait to be swept, of fresh
//! units, and after a collection.

use core::ptr;
use core::sync::atomic::Ordering;

use heaptoll_assertions::{assert_expensive, assert_internal};
use heaptoll_runtime::PAGE;

use super::Heap;
use crate::cache::Cache;
use crate::class::{
    CACHE_LIMITS, CLASS, LARGE, LARGE_ATOMIC, LAST_PLAIN, SPAN_CLASSES, SpanClass, UNIT, is_atomic, is_small,
};
use crate::log::Reason;
use crate::mode::Mode;
use crate::spans::{Spans, SweepOutcome};

/// Spans that a thread sweeps for others, one after the other, before it takes one of theirs.
const PASSED_MAX: u32 = 8;

/// Mode `collect`: blocks up to this size are cleared before they are reused, bytes.
const CLEARED_MAX: usize = 8 << 10;

impl Heap {
    /// Allocates a block of the span class: from the cache, or from the spans.
    #[inline]
    pub fn allocate_small(&self, cache: &mut Cache, span_class: SpanClass) -> *mut u8 {
        let block = cache.take(span_class.into());
        if block.is_null() {
            return self.refill(cache, span_class);
        }
        assert_expensive!(self.is_taken(block as usize, span_class), "what a cache hands out is taken");
        block
    }

    /// Reserves a batch for a cache that has no block of the span class, and takes the first. Null when there is no memory.
    #[inline(never)]
    pub fn refill(&self, cache: &mut Cache, span_class: SpanClass) -> *mut u8 {
        assert_internal!(is_small(span_class), "a cache has lists of span classes that have a size class");
        assert_internal!(!cache.has(span_class.into()), "blocks are reserved when none is left");
        if self.is_due() && self.collects() {
            let _ = self.collect(Reason::Budget);
            // Signals that came meanwhile were handled at its end: a handler may have reserved blocks.
            let block = cache.take(span_class.into());
            if !block.is_null() {
                return block;
            }
        }
        let mut wanted = u32::from(CACHE_LIMITS[span_class as usize].batch);
        let most = self.batch_bytes.load(Ordering::Relaxed);
        if most != usize::MAX {
            wanted = (most / CLASS[span_class as usize].size as usize).clamp(1, wanted as usize) as u32;
        }
        if !self.reserve_blocks(cache, span_class, wanted) {
            return ptr::null_mut();
        }
        let block = cache.take(span_class.into());
        assert_internal!(
            self.is_block_of(block as usize, span_class),
            "reserved blocks are of their span class"
        );
        block
    }

    /// Reserves up to `wanted` blocks of swept spans of the cache's home; returns whether there were some.
    fn reserve_swept(
        &self,
        spans: &mut Spans,
        cache: &mut Cache,
        span_class: SpanClass,
        wanted: u32,
    ) -> bool {
        let size = CLASS[span_class as usize].size as usize;
        let clears = self.is_mode(Mode::Collect) && size <= CLEARED_MAX && !is_atomic(span_class);
        let got = spans.reserve(&self.reservation, cache, span_class, wanted, clears);
        self.count_reserved(cache, got as usize * size);
        got > 0
    }

    /// Reserves up to `wanted` blocks of the spans that there are: of swept ones, of those that wait to be swept, and of other
    /// homes; returns whether there were some.
    #[inline(always)]
    fn reserve_present(
        &self,
        spans: &mut Spans,
        cache: &mut Cache,
        span_class: SpanClass,
        wanted: u32,
    ) -> bool {
        let mut passed = 0;
        while !self.reserve_swept(spans, cache, span_class, wanted) {
            let next = (passed < PASSED_MAX).then(|| spans.next_unswept(&self.reservation, span_class));
            let Some(unit) = next.flatten() else {
                if spans.adopt(&self.reservation, cache.home) {
                    continue;
                }
                if passed < PASSED_MAX {
                    return false;
                }
                passed = 0;
                continue;
            };
            passed += 1;
            let poison = self.poison.load(Ordering::Relaxed);
            if spans.sweep(&self.reservation, unit, self.epoch(), poison) == SweepOutcome::Empty {
                // The span is used at once.
                spans.list(&self.reservation, unit, cache.home);
            }
        }
        true
    }

    /// Reserves up to `wanted` blocks of a span of fresh units; returns whether there were units.
    #[inline(always)]
    fn reserve_fresh(
        &self,
        spans: &mut Spans,
        cache: &mut Cache,
        span_class: SpanClass,
        wanted: u32,
    ) -> bool {
        let mut units = self.units.lock();
        let count = CLASS[span_class as usize].units.into();
        let Some(taken) = units.take(&self.reservation, count, 1, !is_atomic(span_class)) else {
            return false;
        };
        spans.initialise(&self.reservation, taken, span_class, self.epoch(), cache.home);
        self.on_growth(&mut units);
        drop(units);
        self.reserve_swept(spans, cache, span_class, wanted)
    }

    /// Reserves up to `wanted` blocks: of the spans that there are, of fresh units, and after a collection. False when there is
    /// no memory.
    pub(super) fn reserve_blocks(&self, cache: &mut Cache, span_class: SpanClass, wanted: u32) -> bool {
        let units = CLASS[span_class as usize].units.into();
        let (mut swept, mut collected) = (false, false);
        loop {
            {
                let mut spans = self.spans_by_class[span_class as usize].lock();
                if self.reserve_present(&mut spans, cache, span_class, wanted)
                    || (swept || self.swept.load(Ordering::Relaxed))
                        && self.reserve_fresh(&mut spans, cache, span_class, wanted)
                {
                    if collected {
                        self.note_effective_collection();
                    }
                    return true;
                }
            }
            if !swept {
                self.sweep_all();
                swept = true;
            } else if !collected && self.collect_for_memory(cache, units) {
                if cache.has(span_class.into()) {
                    // A handler of a signal has reserved them.
                    return true;
                }
                // Units of other span classes may be free now: sweep again before giving up.
                (collected, swept) = (true, false);
            } else {
                return false;
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
            if (CLASS[wider as usize].size as usize).is_multiple_of(alignment)
                && (cache.has(wider.into())
                    || self.reserve_present(&mut self.spans_by_class[wider as usize].lock(), cache, wider, 1))
            {
                return cache.take(wider.into());
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
}
