//! What the increments of a collection do: record writes to the heap, then pass over roots and over what was written of
//! marked blocks, and mark from there.

use core::ops::Range;
use core::sync::atomic::Ordering;

use heaptoll_assertions::{assert_expensive, assert_internal};
use heaptoll_marking::MarkStack;
use heaptoll_roots::{RootsError, StoppedWorld, Untracked, WriteScan};

use super::young::MARKS_OF_UNIT;
use crate::class::{FREE, is_atomic};
use crate::collector::Collector;
use crate::generations::Generation;
use crate::heap::{Heap, HeapGuards};
use crate::increments::{Increments, Stage};
use crate::mark::{Marker, Marks, Trace};
use crate::markers::Roots;
use crate::progress::{Found, Progress};
use crate::remembered::gather_written;
use crate::span::UnitIndex;

/// Bytes that are marked or read between two looks at the clock.
const CHUNK: usize = 64 << 10;
/// Units to which writes are recorded between two looks at the clock.
const RECORDED: usize = if cfg!(test) { 16 } else { 256 };

/// Why an increment cannot be finished.
pub(super) enum Interrupted {
    /// It is not known what was written.
    Untracked(Untracked),
    /// Roots could not be read.
    Roots(RootsError),
    /// There is no memory for the mark stack.
    Memory,
}

impl From<Untracked> for Interrupted {
    fn from(cause: Untracked) -> Interrupted {
        Interrupted::Untracked(cause)
    }
}

impl From<RootsError> for Interrupted {
    fn from(error: RootsError) -> Interrupted {
        Interrupted::Roots(error)
    }
}

impl Heap {
    /// Begins a collection: nothing is marked, and no unit is known to be pointed to.
    pub(super) fn begin_marking(
        &self,
        collector: &mut Collector,
        progress: &Progress,
    ) -> Result<(), Interrupted> {
        assert_internal!(self.swept.load(Ordering::Relaxed), "all is swept before the next collection");
        assert_expensive!(self.is_unmarked(), "no block is marked when marking begins");
        if !collector.stack.prepare() {
            return Err(Interrupted::Memory);
        }
        assert_internal!(collector.stack.is_empty(), "marking begins with an empty mark stack");
        let since = usize::try_from(progress.allocated).unwrap_or(0);
        let work = self.live_bytes() + collector.increments.roots;
        // It begins when half of what may be allocated is, or all.
        let allowance = if collector.increments.of_full { since + since / 4 } else { 2 * since };
        collector.increments.begin(self.reservation.units(), work, allowance);
        collector.generations.begin();
        self.reservation.keep_flags(0);
        self.reservation.set_marking(true);
        Ok(())
    }

    /// Has writes to some more units recorded; returns whether they are recorded of the whole heap.
    pub(super) fn record_some(&self, collector: &mut Collector, unit: usize) -> Result<bool, Interrupted> {
        let (units, end) = (collector.increments.units, self.recorded_to(collector, unit));
        let tracker = &mut collector.generations.tracker;
        tracker.extend(self.addresses(0..end as UnitIndex).end)?;
        let mut scan = tracker.resume()?;
        self.scan_in_use(&mut scan, unit..end, &mut |_| {})?;
        drop(scan);
        collector.increments.stage = Stage::Recording { unit: end };
        Ok(end == units)
    }

    /// Up to which unit writes are recorded next: a heap is registered in parts, as it takes time. What it has grown into since
    /// the collection began counts as written.
    pub(super) fn recorded_to(&self, collector: &Collector, unit: usize) -> usize {
        collector.increments.units.min(unit + RECORDED)
    }

    /// A pass begins: finds the pages that were written since the last one began, and reads the roots.
    pub(super) fn begin_pass(
        &self,
        collector: &mut Collector,
        guards: &HeapGuards<'_>,
        stopped: Option<&StoppedWorld<'static>>,
    ) -> Result<(), Interrupted> {
        collector.increments.begin_pass();
        let mut scan = collector.generations.tracker.scan(self.all_units(guards))?;
        self.scan_in_use(&mut scan, 0..self.reservation.units(), &mut |pages| self.set_written(pages))?;
        drop(scan);
        self.gather_roots(collector, guards, stopped)
    }

    /// Has writes to units recorded that may hold pointers, and shows the pages that were written.
    fn scan_in_use(
        &self,
        scan: &mut WriteScan<'_>,
        units: Range<usize>,
        each: &mut dyn FnMut(Range<usize>),
    ) -> Result<(), Untracked> {
        let is_in_use = |&unit: &usize| {
            let span_class = self.reservation.span_class(unit);
            span_class != FREE && !is_atomic(span_class)
        };
        let mut unit = units.start;
        while unit < units.end {
            let length = (unit..units.end).take_while(is_in_use).count();
            if length > 0 {
                scan.written(self.addresses(unit as UnitIndex..(unit + length) as UnitIndex), each)?;
            }
            unit += length.max(1);
        }
        Ok(())
    }

    /// Marks what the roots point to.
    pub(super) fn gather_roots(
        &self,
        collector: &mut Collector,
        guards: &HeapGuards<'_>,
        stopped: Option<&StoppedWorld<'static>>,
    ) -> Result<(), Interrupted> {
        let excluded_ranges = self.excluded_ranges(collector, guards);
        let Collector { added, increments, stack, generations, .. } = &mut *collector;
        let mut roots = Roots {
            added,
            stopped,
            excluded_ranges: &excluded_ranges,
            gathered: None,
            young: false,
            trace: Trace::Ages,
        };
        if generations.check {
            roots.gather(&self.reservation, &mut generations.words)?;
            roots.gathered = Some(generations.words.as_slice());
        }
        increments.roots =
            self.with_marker(increments, stack, guards, |marker, _| roots.gather_on(marker))?;
        increments.stage = Stage::Rereading { unit: 0 };
        Ok(())
    }

    /// Reads some of what was written of marked blocks.
    pub(super) fn reread_some(&self, collector: &mut Collector, guards: &HeapGuards<'_>, unit: usize) {
        let Collector { increments, stack, .. } = collector;
        self.with_marker(increments, stack, guards, |marker, increments| {
            let (next, bytes) = gather_written(marker, unit, CHUNK);
            increments.reread += bytes;
            let is_read = next >= self.reservation.units();
            increments.stage = if is_read { Stage::Marking } else { Stage::Rereading { unit: next } };
        });
    }

    /// Marks some of what is on the mark stack; returns whether nothing is left.
    pub(super) fn mark_some(&self, collector: &mut Collector, guards: &HeapGuards<'_>) -> bool {
        let Collector { increments, stack, .. } = collector;
        self.with_marker(increments, stack, guards, |marker, _| marker.drain_within(CHUNK))
    }

    /// A marker that goes on with what is on the mark stack. `_guards` are all locks of the heap.
    fn with_marker<R>(
        &self,
        increments: &mut Increments,
        stack: &mut MarkStack,
        _guards: &HeapGuards<'_>,
        action: impl FnOnce(&mut Marker<'_, false>, &mut Increments) -> R,
    ) -> R {
        let marks = Marks::new(&self.reservation, self.epoch().wrapping_add(1), Trace::Ages);
        // SAFETY: the world is stopped, or only added roots are read, in tests; all locks are held.
        let mut marker = unsafe { Marker::<false>::new(marks, stack, None) };
        marker.overflowed = increments.overflowed;
        let result = action(&mut marker, increments);
        increments.overflowed = marker.overflowed;
        increments.marked += marker.marked;
        result
    }

    /// All is marked.
    pub(super) fn end_increments(
        &self,
        collector: &mut Collector,
        guards: &HeapGuards<'_>,
    ) -> Result<Found, Interrupted> {
        // The mark stack may have overflowed.
        let Collector { increments, stack, .. } = &mut *collector;
        self.with_marker(increments, stack, guards, |marker, _| marker.drain());
        let Increments { roots, reread, marked, of_full, .. } = collector.increments;
        if !of_full {
            self.mark_cached(guards, true);
        }
        assert_internal!(collector.stack.is_empty(), "marking ends with an empty mark stack");
        if collector.generations.check {
            let words = self.reservation.units() * MARKS_OF_UNIT;
            collector.generations.marks.reserve(words).map_err(RootsError::from)?;
            self.check_young(collector, self.epoch().wrapping_add(1));
        }
        let found = Found {
            live: marked,
            roots,
            markers: 1,
            generation: Generation::Full,
            old: 0,
            reread,
            guarded: None,
            written: 0,
        };
        if of_full {
            self.reservation.set_marking(false);
            self.end_generation(collector, guards, &found);
        } else {
            self.end_marking();
        }
        let live = self.keep_marks_of_taken();
        assert_internal!(
            live <= guards.units.used_bytes(&self.reservation),
            "no more is live than the units of spans and large blocks hold"
        );
        collector.increments.stage = Stage::Idle;
        Ok(Found { live, generation: Generation::Incremental, ..found })
    }
}
