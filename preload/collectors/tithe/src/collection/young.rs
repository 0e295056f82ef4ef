//! What generations add to a collection: the scan for pages that were written, the marks of old blocks before marking, and
//! the ages after it. [`generation`](super::generation) chooses.

use core::convert::Infallible;
use core::mem::offset_of;
use core::ops::Range;
use core::sync::atomic::Ordering;

use heaptoll_marking::prefetch;
use heaptoll_roots::Untracked;

use crate::age::Age;
use crate::ages::{ALL_WRITTEN, REREAD, WRITTEN, words_of};
use crate::class::{CLASS, FREE, UNIT, UNIT_SHIFT, is_atomic};
use crate::collector::Collector;
use crate::generations::Generation;
use crate::heap::{Heap, HeapGuards};
use crate::span::{Span, UnitIndex};
use crate::spans::is_dense;

/// Descriptors are prefetched this number of units before they are used.
const FETCHED_AHEAD: usize = 16;
/// Bytes of a page as the flags of units count them.
const PAGE: usize = heaptoll_runtime::PAGE;

impl Heap {
    /// No span is dense any more: all free places are allocated again.
    pub(super) fn clear_dense(&self) {
        if self.reservation.has_ages() {
            let Ok(()) = self.each_aged::<Infallible>(&mut |_, span, _| {
                span.dense = false;
                Ok(())
            });
        }
    }

    /// Finds the pages of dense spans that were written, and has writes to them recorded again. All others are read: new
    /// blocks are written there, and the first write to a page whose writes are recorded costs more than to read the little
    /// that is old. All old blocks are marked, so that marking does not read them, and the places where blocks will be born
    /// old. Returns the bytes of old blocks, and of the pages that were written.
    pub(super) fn scan_writes(
        &self,
        collector: &mut Collector,
        guards: &HeapGuards<'_>,
    ) -> Result<(usize, usize), Untracked> {
        let mut scan = collector.generations.tracker.scan(self.all_units(guards))?;
        let (mut old, mut written) = (0, 0);
        self.each_dense_run(
            &mut |first, span, age| {
                old += mark_old(span, age);
                if !span.dense && !is_atomic(span.span_class) {
                    self.reservation.set_flags(first, span.units, ALL_WRITTEN);
                }
                span.dense
            },
            &mut |run| {
                scan.written(self.addresses(run), &mut |pages| {
                    written += pages.len();
                    self.set_written(pages);
                })
            },
        )?;
        Ok((old, written))
    }

    /// What is marked is old from now on. Finds which spans are dense by the marks, and has writes to them recorded. A young
    /// collection has done so for those that were dense before.
    pub(super) fn record_writes(
        &self,
        collector: &mut Collector,
        guards: &HeapGuards<'_>,
        generation: Generation,
    ) -> Result<(), Untracked> {
        let is_young = generation == Generation::Young;
        let tracker = &mut collector.generations.tracker;
        let mut scan = if is_young { tracker.resume() } else { tracker.scan(self.all_units(guards)) };
        let recorded = self.each_dense_run(
            &mut |_, span, age| {
                let was = span.dense;
                make_old(span, age);
                span.dense = is_dense_by_marks(span);
                span.dense && !(was && is_young)
            },
            &mut |run| match &mut scan {
                Ok(scan) => scan.written(self.addresses(run), &mut |_| {}),
                Err(cause) => Err(*cause),
            },
        );
        recorded.and(scan.map(drop))
    }

    /// Whether at least half of what is live and may hold pointers lies in spans that are dense by the marks.
    pub(super) fn is_mostly_dense(&self) -> bool {
        let (mut dense, mut live) = (0, 0);
        let Ok(()) = self.each_aged::<Infallible>(&mut |_, span, _| {
            live += live_by_marks(span);
            if is_dense_by_marks(span) {
                dense += span.units as usize * UNIT;
            }
            Ok(())
        });
        dense >= live / 2
    }

    /// The addresses of the whole heap.
    pub(super) fn all_units(&self, guards: &HeapGuards<'_>) -> Range<usize> {
        let start = guards.units.memory.heap.start();
        start..start + (self.reservation.units() << UNIT_SHIFT)
    }

    /// The addresses of some units.
    pub(super) fn addresses(&self, units: Range<UnitIndex>) -> Range<usize> {
        let base = self.reservation.base();
        base + ((units.start as usize) << UNIT_SHIFT)..base + ((units.end as usize) << UNIT_SHIFT)
    }

    /// Visits the units of all spans and large blocks that are selected, those of neighbours at once. After an error it goes
    /// on to select.
    fn each_dense_run(
        &self,
        select: &mut dyn FnMut(UnitIndex, &mut Span, &mut Age) -> bool,
        visit: &mut dyn FnMut(Range<UnitIndex>) -> Result<(), Untracked>,
    ) -> Result<(), Untracked> {
        let (mut run, mut outcome) = (0..0, Ok(()));
        let Ok(()) = self.each_aged::<Infallible>(&mut |first, span, age| {
            if select(first, span, age) {
                if run.end != first {
                    if outcome.is_ok() && !run.is_empty() {
                        outcome = visit(run.clone());
                    }
                    run = first..first;
                }
                run.end = first + span.units;
            }
            Ok(())
        });
        outcome?;
        if run.is_empty() { Ok(()) } else { visit(run) }
    }

    /// Sets the flags of pages that were written.
    pub(super) fn set_written(&self, pages: Range<usize>) {
        let base = self.reservation.base();
        for page in (pages.start - base) / PAGE..(pages.end - base) / PAGE {
            let unit = page / (UNIT / PAGE);
            let flag = WRITTEN << (page % (UNIT / PAGE));
            self.reservation.unit_flags(unit).fetch_or(flag, Ordering::Relaxed);
        }
    }

    /// Visits all spans and large blocks with their ages.
    pub(super) fn each_aged<E>(
        &self,
        visit: &mut dyn FnMut(UnitIndex, &mut Span, &mut Age) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut unit = 0;
        while unit < self.reservation.units() {
            if self.reservation.span_class(unit) == FREE {
                unit += 1;
                continue;
            }
            let first = self.reservation.first(unit);
            let (span, age) = (self.reservation.span(first), self.reservation.age(first));
            // Where the next one is depends on this one's length: without a hint each step would wait for memory.
            let ahead = span.wrapping_add(FETCHED_AHEAD);
            prefetch(ahead);
            prefetch(ahead.wrapping_byte_add(offset_of!(Span, bits)));
            prefetch(age.wrapping_add(FETCHED_AHEAD));
            // SAFETY: the first unit of a span or large block; the world is stopped and all locks are held.
            let (span, age) = unsafe { (&mut *span, &mut *age) };
            let units = span.units;
            visit(first, span, age)?;
            unit = (first + units) as usize;
        }
        Ok(())
    }

    /// Makes the places of blocks in caches look free while the collection marks. What is there is not the program's: it is
    /// not read, and a word that points there is recorded as pointing to a free place. Returns the bytes of these blocks
    /// that are not old.
    pub(super) fn hide_cached(&self, guards: &HeapGuards<'_>) -> usize {
        let mut bytes = 0;
        self.each_cached(guards, &mut |first, word, mask| {
            // SAFETY: the first unit of a span, whose bits have the word; the world is stopped and all locks are held.
            let bits = unsafe { &mut (*self.reservation.span(first)).bits[word] };
            bits.taken &= !mask;
            let class = &CLASS[self.reservation.span_class(first as usize) as usize];
            bytes += (mask & !*bits.marked.get_mut()).count_ones() as usize * class.size as usize;
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
    pub(super) fn each_cached(&self, guards: &HeapGuards<'_>, visit: &mut dyn FnMut(UnitIndex, usize, u64)) {
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
            for (first, word, mask) in cache.all_reserved() {
                visit(first, word, mask);
            }
        });
    }

    /// What is marked is old from now on, and no span is dense.
    pub(super) fn age_marked(&self) {
        let Ok(()) = self.each_aged::<Infallible>(&mut |_, span, age| {
            span.dense = false;
            make_old(span, age);
            Ok(())
        });
    }
}

/// Marks the old blocks of a span or large block; returns their bytes.
fn mark_old(span: &Span, age: &Age) -> usize {
    let mut count = 0;
    for (old, bits) in age.old.iter().zip(&span.bits).take(words_of(span.span_class)) {
        bits.marked.store(*old, Ordering::Relaxed);
        count += (*old & bits.taken).count_ones() as usize;
    }
    count * span.block_bytes()
}

/// What is marked of a span or large block is old.
fn make_old(span: &Span, age: &mut Age) {
    for (old, bits) in age.old.iter_mut().zip(&span.bits).take(words_of(span.span_class)) {
        let marked = bits.marked.load(Ordering::Relaxed);
        *old = marked;
        bits.marked.store(marked & bits.taken, Ordering::Relaxed);
    }
}

/// Words of marks that a unit has.
pub(super) const MARKS_OF_UNIT: usize = size_of::<Age>() / size_of::<u64>();

/// Bytes of a span's marked blocks, where they may hold pointers.
pub(super) fn live_by_marks(span: &Span) -> usize {
    if is_atomic(span.span_class) {
        return 0;
    }
    let words = span.bits.iter().take(words_of(span.span_class));
    let live: u32 = words.map(|bits| (bits.marked.load(Ordering::Relaxed) & bits.taken).count_ones()).sum();
    live as usize * span.block_bytes()
}

/// Whether marked blocks take most of a span, or a large block is marked; where they may hold pointers.
pub(super) fn is_dense_by_marks(span: &Span) -> bool {
    let live = live_by_marks(span);
    match CLASS.get(span.span_class as usize) {
        Some(class) => is_dense((live / class.size as usize) as u16, class),
        None => live > 0,
    }
}
