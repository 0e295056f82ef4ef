//! What generations add to a collection: the scan for pages that were written, the marks of old blocks before marking, and
//! the ages after it.

use core::convert::Infallible;
use core::ops::Range;
use core::sync::atomic::Ordering;

use heaptoll_assertions::assert_internal;
use heaptoll_roots::{Untracked, WriteScan};

use crate::age::Age;
use crate::ages::{ALL_WRITTEN, REREAD, TAINTED, WRITTEN, words_of};
use crate::class::{CLASS, FREE, UNIT, UNIT_SHIFT, is_atomic};
use crate::collector::Collector;
use crate::generations::{Facts, Generation};
use crate::heap::{Heap, HeapGuards};
use crate::log::Reason;
use crate::progress::{Found, Progress};
use crate::reservation::AHEAD;
use crate::span::{Span, UnitIndex};

/// Bytes of a page as the flags of units count them.
const PAGE: usize = heaptoll_runtime::PAGE;

impl Heap {
    /// Chooses what the collection reads, and finds what was written where it is young. What is chosen is what can be done:
    /// where it is not known what was written, nothing relies on it.
    pub(super) fn begin_generation(
        &self,
        collector: &mut Collector,
        guards: &HeapGuards<'_>,
        progress: &Progress,
    ) -> Generation {
        let facts = Facts {
            due: progress.reason == Reason::Budget,
            live: self.live_after_gc.load(Ordering::Relaxed),
            units: self.reservation.units(),
        };
        let chosen = collector.generations.choose(&facts);
        collector.generations.begin();
        if chosen == Generation::Unaged || facts.units == 0 {
            return Generation::Unaged;
        }
        assert_internal!(self.reservation.has_ages(), "blocks have ages where generations are on");
        assert_internal!(progress.reclaims, "where generations are on every collection reclaims");
        if chosen == Generation::Full {
            self.keep_flags(0);
        }
        if collector.generations.check
            && collector.generations.marks.reserve(facts.units * MARKS_OF_UNIT).is_err()
        {
            collector.generations.on_untracked(Untracked::NoMemory);
            return Generation::Unaged;
        }
        match self.scan_writes(collector, guards, chosen) {
            Ok(()) => chosen,
            Err(cause) => {
                collector.generations.on_untracked(cause);
                Generation::Unaged
            }
        }
    }

    /// After marking: what was marked becomes old, and the next collection may be young.
    pub(super) fn end_generation(&self, collector: &mut Collector, guards: &HeapGuards<'_>, found: &Found) {
        match found.generation {
            Generation::Unaged => return collector.generations.on_unaged(),
            Generation::Full => {
                let before = self.live_after_gc.load(Ordering::Relaxed);
                collector.generations.on_full(before, found.live, self.reservation.units());
            }
            Generation::Young => collector.generations.on_young(found.old, found.reread),
        }
        self.age_marked();
        self.show_cached(guards);
    }

    /// Keeps of the flags of all units only some.
    fn keep_flags(&self, kept: u8) {
        for unit in 0..self.reservation.units() + AHEAD {
            let flags = self.reservation.unit_flags(unit);
            flags.store(flags.load(Ordering::Relaxed) & kept, Ordering::Relaxed);
        }
    }

    /// Finds the pages of old blocks that were written, and has writes recorded from now on. A young collection leaves out
    /// spans of which less than half is old: new blocks will be written there, and the first write to a page whose writes
    /// are recorded costs more than reading the little that is old.
    fn scan_writes(
        &self,
        collector: &mut Collector,
        guards: &HeapGuards<'_>,
        generation: Generation,
    ) -> Result<(), Untracked> {
        let start = guards.units.memory.heap.start();
        let units = self.reservation.units();
        let mut scan = collector.generations.tracker.scan(start..start + (units << UNIT_SHIFT))?;
        let mut run = 0..0;
        self.each_aged::<Untracked>(&mut |first, span, age| {
            let units = first..first + span.units;
            if is_atomic(span.span_class) {
                return Ok(());
            }
            if generation == Generation::Young && !is_mostly_old(span, age) {
                self.reservation.set_flags(first, span.units, ALL_WRITTEN);
                return Ok(());
            }
            if run.end != units.start {
                self.scan_units(&mut scan, run.clone())?;
                run = units.start..units.start;
            }
            run.end = units.end;
            Ok(())
        })?;
        self.scan_units(&mut scan, run)
    }

    /// Finds the pages of some units that were written.
    fn scan_units(&self, scan: &mut WriteScan<'_>, units: Range<UnitIndex>) -> Result<(), Untracked> {
        if units.is_empty() {
            return Ok(());
        }
        let base = self.reservation.base();
        let range =
            base + ((units.start as usize) << UNIT_SHIFT)..base + ((units.end as usize) << UNIT_SHIFT);
        scan.written(range, &mut |pages| {
            for page in (pages.start - base) / PAGE..(pages.end - base) / PAGE {
                let unit = page / (UNIT / PAGE);
                let flag = WRITTEN << (page % (UNIT / PAGE));
                self.reservation.unit_flags(unit).fetch_or(flag, Ordering::Relaxed);
            }
        })
    }

    /// Visits all spans and large blocks with their ages.
    pub(super) fn each_aged<E>(
        &self,
        visit: &mut dyn FnMut(UnitIndex, &Span, &mut Age) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut unit = 0;
        while unit < self.reservation.units() {
            if self.reservation.span_class(unit) == FREE {
                unit += 1;
                continue;
            }
            let first = self.reservation.first(unit);
            // SAFETY: the first unit of a span or large block; the world is stopped and all locks are held.
            let (span, age) = unsafe { (&*self.reservation.span(first), &mut *self.reservation.age(first)) };
            visit(first, span, age)?;
            unit = (first + span.units) as usize;
        }
        Ok(())
    }

    /// Makes the places of blocks in caches look free while the collection marks: what is there is not the program's, so
    /// that it is not read, and a word that points there is recorded as one that points to a free place. Returns the bytes
    /// of these blocks.
    pub(super) fn hide_cached(&self, guards: &HeapGuards<'_>) -> usize {
        let mut bytes = 0;
        self.each_cached(guards, &mut |first, word, mask| {
            // SAFETY: the first unit of a span, whose bits have the word; the world is stopped and all locks are held.
            let bits = unsafe { &mut (*self.reservation.span(first)).bits[word] };
            assert_internal!(mask & !bits.taken == 0, "blocks in caches are taken");
            bits.taken &= !mask;
            let class = &CLASS[self.reservation.span_class(first as usize) as usize];
            bytes += mask.count_ones() as usize * class.size as usize;
        });
        bytes
    }

    /// Ends [`Heap::hide_cached`]: the blocks in caches are taken again and stay there. One that a word points to is old,
    /// and is read by the next collection if the program has it by then.
    pub(super) fn show_cached(&self, guards: &HeapGuards<'_>) {
        self.each_cached(guards, &mut |first, word, mask| {
            // SAFETY: the first unit of a span and its row of ages; the world is stopped and all locks are held.
            let (span, age) = unsafe { (&mut *self.reservation.span(first), &*self.reservation.age(first)) };
            span.bits[word].taken |= mask;
            span.bits[word].marked.fetch_or(mask, Ordering::Relaxed);
            if age.old[word] & mask != 0 {
                self.reservation.set_flags(first, span.units, REREAD);
            }
        });
    }

    /// Visits the blocks in caches: the first unit of their span, a word of its bits, and theirs in it.
    fn each_cached(&self, guards: &HeapGuards<'_>, visit: &mut dyn FnMut(UnitIndex, usize, u64)) {
        guards.caches.each(|cache| {
            // SAFETY: caches are never unmapped; their threads are stopped, and lists are consistent at every
            // instruction.
            let cache = unsafe { &*cache };
            for (span_class, class) in CLASS.iter().enumerate().skip(1) {
                for block in cache.blocks(span_class) {
                    let offset = block as usize - self.reservation.base();
                    let first = self.reservation.first(offset >> UNIT_SHIFT);
                    let block = class.index(offset - ((first as usize) << UNIT_SHIFT));
                    visit(first, block / 64, 1 << (block % 64));
                }
            }
            for reserved in &cache.pending[..cache.pending_count] {
                visit(reserved.unit, reserved.word as usize, reserved.mask);
            }
        });
    }

    /// Marks all old blocks, so that marking does not read them, and the places where blocks will be born old. Returns the
    /// bytes of old blocks.
    pub(super) fn mark_old(&self) -> usize {
        let mut bytes = 0;
        let Ok(()) = self.each_aged::<Infallible>(&mut |_, span, age| {
            let size = size_of_blocks(span);
            for (old, bits) in age.old.iter().zip(&span.bits).take(words_of(span.span_class)) {
                bits.marked.store(*old, Ordering::Relaxed);
                bytes += (*old & bits.taken).count_ones() as usize * size;
            }
            Ok(())
        });
        bytes
    }

    /// What is marked is old from now on.
    pub(super) fn age_marked(&self) {
        let Ok(()) = self.each_aged::<Infallible>(&mut |_, span, age| {
            for (old, bits) in age.old.iter_mut().zip(&span.bits).take(words_of(span.span_class)) {
                let marked = bits.marked.load(Ordering::Relaxed);
                *old = marked;
                bits.marked.store(marked & bits.taken, Ordering::Relaxed);
            }
            Ok(())
        });
        self.keep_flags(TAINTED);
    }
}

/// Words of marks that a unit has.
pub(super) const MARKS_OF_UNIT: usize = size_of::<Age>() / size_of::<u64>();

/// Bytes of each block of a span, or of a large block.
pub(super) fn size_of_blocks(span: &Span) -> usize {
    CLASS.get(span.span_class as usize).map_or(span.bytes, |class| class.size as usize)
}

/// Whether at least half of a span is old, or a large block is.
fn is_mostly_old(span: &Span, age: &Age) -> bool {
    let Some(class) = CLASS.get(span.span_class as usize) else { return age.old[0] & 1 != 0 };
    let words = age.old.iter().zip(&span.bits).take(words_of(span.span_class));
    let old: usize = words.map(|(old, bits)| (old & bits.taken).count_ones() as usize).sum();
    old * class.size as usize * 2 >= span.units as usize * UNIT
}
