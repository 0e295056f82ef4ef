//! The census: what the bytes of the heap are used for.

use core::sync::atomic::Ordering;

use heaptoll_assertions::assert_internal;
use heaptoll_runtime::{RawCensus, RawClass};

use crate::ages::words_of;
use crate::class::{CLASS, CLASSES, FREE, SPAN_CLASSES, UNIT, is_small};
use crate::heap::{Heap, HeapGuards};
use crate::span::{Span, UnitIndex};

/// What the units of the heap are used for.
struct UnitCensus {
    /// Blocks of each size class.
    classes: [RawClass; CLASSES + 1],
    /// Large blocks.
    large: RawClass,
    /// Bytes in no block.
    unused: u64,
}

impl Heap {
    /// Fills a census. Blocks in caches count as free; the lengths of other threads' caches are read while they change.
    ///
    /// # Safety
    /// `census.classes` is null or points to `class_capacity` elements.
    pub unsafe fn census(&self, census: &mut RawCensus, alone: bool) {
        self.sweep_all();
        let collector = self.collector.lock();
        let guards = self.lock_all();
        let UnitCensus { mut classes, large, unused } = self.count_units();
        discount_cached(&guards, &mut classes);
        let metadata =
            guards.units.memory.metadata_bytes() + guards.caches.mapped_bytes() + collector.mapped_bytes();
        assert_internal!(
            self.auxiliary_bytes.load(Ordering::Relaxed)
                == guards.caches.mapped_bytes() + collector.mapped_bytes(),
            "the memory of caches and marking is counted as it is mapped"
        );
        census.class_count = 0;
        (census.live_bytes, census.free_bytes) = (large.live_bytes, 0);
        census.quarantined_bytes = large.quarantined_bytes;
        let is_used =
            |class: &&mut RawClass| class.live_blocks + class.free_blocks + class.quarantined_blocks > 0;
        for class in classes.iter_mut().filter(is_used) {
            class.live_bytes = class.live_blocks * class.block_bytes;
            class.free_bytes = class.free_blocks * class.block_bytes;
            class.quarantined_bytes = class.quarantined_blocks * class.block_bytes;
            census.live_bytes += class.live_bytes;
            census.quarantined_bytes += class.quarantined_bytes;
            census.free_bytes += class.free_bytes;
            // SAFETY: `census.classes` has its capacity (this function's contract).
            unsafe { census.push(*class) };
        }
        if large.live_blocks + large.quarantined_blocks > 0 {
            // SAFETY: `census.classes` has its capacity (this function's contract).
            unsafe { census.push(large) };
        }
        census.exact = u32::from(alone);
        census.metadata_bytes = metadata as u64;
        census.unused_bytes = unused;
        census.requested_bytes = u64::MAX;
        assert_internal!(
            census.live_bytes + census.quarantined_bytes + census.free_bytes + unused
                == (self.reservation.units() * UNIT) as u64,
            "the census accounts for every byte of the heap's units"
        );
        census.mapped_bytes =
            census.live_bytes + census.quarantined_bytes + census.free_bytes + unused + metadata as u64;
        census.mapped_high_bytes = census.mapped_bytes;
    }

    /// Counts the blocks of all spans, those in caches as live, and large blocks. The caller holds all locks.
    fn count_units(&self) -> UnitCensus {
        let mut classes = [RawClass::default(); CLASSES + 1];
        for (class, row) in classes.iter_mut().zip(&CLASS).skip(1) {
            class.block_bytes = row.size.into();
        }
        let mut large = RawClass::default();
        let mut unused = 0;
        let mut unit = 0;
        while unit < self.reservation.units() {
            let span_class = self.reservation.span_class(unit);
            let first = self.reservation.first(unit);
            // SAFETY: the descriptor of a unit below `units`; all locks are held.
            let span = unsafe { &*self.reservation.span(first) };
            if span_class == FREE {
                unused += UNIT as u64;
                unit += 1;
                continue;
            }
            let bytes = span.units as u64 * UNIT as u64;
            assert_internal!(span.units > 0, "a span has units");
            assert_internal!(span.span_class == span_class, "a span's descriptor has its span class");
            unit += span.units as usize;
            if is_small(span_class) {
                let row = &CLASS[span_class as usize];
                let class = &mut classes[(span_class as usize - 1) % CLASSES + 1];
                // A span left unswept by a collection that ran since `sweep_all` counts by its marks.
                assert_internal!(span.free <= row.blocks, "a span has no more free blocks than blocks");
                let taken: u64 = if span.epoch == self.epoch() {
                    u64::from(row.blocks - span.free)
                } else {
                    (0..row.blocks as usize).filter(|&block| span.is_marked(block)).count() as u64
                };
                let waiting = self.waiting_blocks(span, first);
                class.quarantined_blocks += waiting;
                class.live_blocks += taken - waiting;
                class.free_blocks += u64::from(row.blocks) - taken;
                assert_internal!(
                    u64::from(row.blocks) * u64::from(row.size) <= bytes,
                    "the blocks of a span fit its units"
                );
                unused += bytes - u64::from(row.blocks) * u64::from(row.size);
            } else {
                let waiting = self.waiting_blocks(span, first);
                large.quarantined_blocks += waiting;
                large.quarantined_bytes += waiting * span.bytes as u64;
                large.live_blocks += 1 - waiting;
                large.live_bytes += (1 - waiting) * span.bytes as u64;
                unused += bytes - span.bytes as u64;
            }
        }
        assert_internal!(unit == self.reservation.units(), "spans and large blocks end in the heap");
        UnitCensus { classes, large, unused }
    }

    /// Blocks of a span that are freed and wait, in mode `guard`.
    fn waiting_blocks(&self, span: &Span, first: UnitIndex) -> u64 {
        let Some(freed) = self.reservation.freed(first) else { return 0 };
        let is_swept = span.epoch == self.epoch();
        let words = span.bits.iter().enumerate().take(words_of(span.span_class));
        words
            .map(|(word, bits)| {
                let taken = if is_swept { bits.taken } else { bits.marked.load(Ordering::Relaxed) };
                u64::from((taken & freed.word(word)).count_ones())
            })
            .sum()
    }
}

/// Counts blocks in caches as free.
fn discount_cached(guards: &HeapGuards<'_>, classes: &mut [RawClass; CLASSES + 1]) {
    guards.caches.each(|cache| {
        for span_class in 1..SPAN_CLASSES {
            // SAFETY: caches are never unmapped; a length that changes meanwhile is merely outdated.
            let cached = u64::from(unsafe { (*cache).length(span_class) });
            let class = &mut classes[(span_class - 1) % CLASSES + 1];
            let cached = cached.min(class.live_blocks);
            class.live_blocks -= cached;
            class.free_blocks += cached;
        }
    });
}
