//! The stopped heap: all its locks are held and the world is stopped, for a collection or for the tracer of chains. Both
//! mark the blocks in caches, clear marks, and leave the heap's own memory out of the roots.

use core::ops::Range;
use core::sync::atomic::Ordering;

use heaptoll_assertions::assert_internal;
use heaptoll_roots::{StopError, StoppedWorld, World};
use heaptoll_runtime::Region;

use crate::ages::words_of;
use crate::class::{CLASS, SPAN_CLASSES, UNIT_SHIFT};
use crate::collector::Collector;
use crate::heap::{Heap, HeapGuards};
use crate::span::{Span, UnitIndex};

/// How long a thread may take to stop before the locks are released briefly, ms; doubles each time.
const FIRST_PATIENCE_MS: u32 = 10;

impl Heap {
    /// Takes all locks and stops the world. A thread that ends frees its C library data with all signals blocked: if it
    /// waits for a lock there, the locks are released for it, and it is signalled again.
    pub(crate) fn stop_world(
        &self,
        world: Option<&'static World>,
    ) -> Result<(HeapGuards<'_>, Option<StoppedWorld<'static>>), StopError> {
        let Some(world) = world else { return Ok((self.lock_all(), None)) };
        let mut left_ms = world.patience_ms();
        let mut patience_ms = FIRST_PATIENCE_MS;
        loop {
            let guards = self.lock_all();
            match world.stop_within(patience_ms.min(left_ms)) {
                Ok(stopped) => return Ok((guards, Some(stopped))),
                Err(error) if error.may_pass() && patience_ms < left_ms => {
                    left_ms -= patience_ms;
                    patience_ms *= 2;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Marks the blocks in caches without scanning them, so that they stay there. Returns the bytes of those that it marks:
    /// where marking came before, `late`, some may be marked.
    pub(crate) fn mark_cached(&self, guards: &HeapGuards<'_>, late: bool) -> usize {
        let mut bytes = 0;
        guards.caches.each(|cache| {
            // SAFETY: caches are never unmapped; their threads are stopped, and lists are consistent at every
            // instruction.
            let cache = unsafe { &*cache };
            for list in &cache.lists[1..] {
                let mut block = list.head;
                while !block.is_null() {
                    bytes += self.mark_block(block as usize, late);
                    // SAFETY: a block in a list is free and linked.
                    block = unsafe { (*block).next };
                }
            }
            for (first, word, mask) in cache.all_reserved() {
                // SAFETY: reserved blocks lie in a span of the heap, whose bits have their word.
                let span = unsafe { &*self.reservation.span(first) };
                let bits = &span.bits[word];
                assert_internal!(mask & !bits.taken == 0, "blocks that a cache has reserved are taken");
                let unmarked = mask & !bits.marked.fetch_or(mask, Ordering::Relaxed);
                bytes += unmarked.count_ones() as usize * span.block_bytes();
            }
        });
        bytes
    }

    /// Marks a block; returns its size, bytes, or 0 if it is marked.
    fn mark_block(&self, address: usize, late: bool) -> usize {
        let unit = self.reservation.first((address - self.reservation.base()) >> UNIT_SHIFT);
        let span_class = self.reservation.span_class(unit as usize) as usize;
        assert_internal!(
            span_class < SPAN_CLASSES && CLASS[span_class].is_block(address - self.reservation.address(unit)),
            "what is in a list is a block of a span"
        );
        let block = CLASS[span_class].index(address - self.reservation.address(unit));
        // SAFETY: `unit` is the first of the block's span, and the span has a bit for each block.
        let bits = unsafe { &(*self.reservation.span(unit)).bits[block / 64] };
        assert_internal!(bits.taken >> (block % 64) & 1 != 0, "blocks in caches are taken");
        let was_marked = bits.marked.fetch_or(1 << (block % 64), Ordering::Relaxed) >> (block % 64) & 1 != 0;
        assert_internal!(late || !was_marked, "a block is in one list once");
        if was_marked { 0 } else { CLASS[span_class].size as usize }
    }

    /// Before all marks are needed: forgets a collection that was incremental and has not ended. The world is stopped.
    pub(crate) fn forget_increments(&self, collector: &mut Collector) {
        if collector.increments.is_active() {
            collector.increments.forget();
            collector.stack.clear();
            self.end_marking();
            self.clear_marks();
        }
    }

    /// No mark states any more where a word may point to that is not taken.
    pub(crate) fn end_marking(&self) {
        self.reservation.set_marking(false);
        self.reservation.keep_flags(0);
    }

    pub(crate) fn clear_marks(&self) {
        self.each_span(&mut |_, span| {
            let words = words_of(span.span_class);
            span.bits[..words].iter().for_each(|bits| bits.marked.store(0, Ordering::Relaxed));
        });
    }

    /// Visits the descriptors of all spans and large blocks. All locks are held.
    pub(crate) fn each_span(&self, visit: &mut dyn FnMut(UnitIndex, &mut Span)) {
        // SAFETY: the descriptor of a span or large block; all locks are held.
        self.reservation.each_span(|first, span| visit(first, unsafe { &mut *span }));
    }

    /// Clears the marks of places where no block is taken; returns the bytes of the blocks that are marked. All locks are
    /// held.
    pub(crate) fn keep_marks_of_taken(&self) -> usize {
        let mut bytes = 0;
        self.each_span(&mut |_, span| {
            for bits in &span.bits[..words_of(span.span_class)] {
                let marked = bits.marked.load(Ordering::Relaxed) & bits.taken;
                bits.marked.store(marked, Ordering::Relaxed);
                bytes += marked.count_ones() as usize * span.block_bytes();
            }
        });
        bytes
    }

    /// Bytes in spans and large blocks that are marked: for assertions. All locks are held.
    pub(crate) fn marked_bytes(&self) -> usize {
        let mut bytes = 0;
        self.each_span(&mut |_, span| {
            bytes += match CLASS.get(span.span_class as usize) {
                Some(class) => {
                    let marked = (0..class.blocks.into()).filter(|&block| span.is_marked(block));
                    marked.count() * class.size as usize
                }
                None => usize::from(span.is_marked(0)) * span.bytes,
            };
        });
        bytes
    }

    /// Whether no block is marked: for assertions. All locks are held.
    pub(crate) fn is_unmarked(&self) -> bool {
        self.marked_bytes() == 0
    }

    /// The heap's own ranges: they are read block by block, or not at all.
    pub(crate) fn excluded_ranges(
        &self,
        collector: &Collector,
        guards: &HeapGuards<'_>,
    ) -> [Range<usize>; OWN_RANGES] {
        let [spans, span_classes, firsts, blacklist, ages, flags, freed] =
            guards.units.memory.tables().map(Region::mapped);
        let [text, regions, samples, words, marks] = collector.generations.ranges();
        let own = core::ptr::from_ref(self) as usize;
        let heap = &guards.units.memory.heap;
        assert_internal!(
            heap.start() == self.reservation.base()
                && heap.end() - heap.start() >= self.reservation.units() << UNIT_SHIFT,
            "all blocks lie in the heap's region"
        );
        [
            heap.mapped(),
            spans,
            span_classes,
            firsts,
            blacklist,
            ages,
            flags,
            freed,
            text,
            regions,
            samples,
            words,
            marks,
            guards.caches.range(),
            collector.stack.range(),
            collector.spare.range(),
            collector.markers.range(),
            own..own + size_of::<Heap>(),
        ]
    }
}

/// How many ranges of its own a heap has.
pub(crate) const OWN_RANGES: usize = 18;

const _: () = assert!(SPAN_CLASSES < 200, "the span classes of large blocks have no size class");
