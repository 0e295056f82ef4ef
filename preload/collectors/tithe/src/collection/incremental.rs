//! Incremental collections, for `TITHE_PAUSE`: marking in increments between which the program runs on. When there is one
//! and how long its increments are is decided by [`crate::increments`].
//!
//! Between two increments a mark states that a word which was read points to the place, or did. Where a block is taken
//! there it is marked, and so is one that will be: what it holds was not read, so that its units are read again (as the
//! blocks that are born old; [`crate::ages`]). Blocks on the mark stack may be freed meanwhile: what is there then is read
//! all the same, which finds too much at most. Whatever becomes reachable in a marked block was written there, to a page
//! whose writes are recorded, or that lies in memory which the heap has grown into and that counts as written.

use core::ops::Range;
use core::sync::atomic::Ordering;

use heaptoll_assertions::{assert_expensive, assert_internal};
use heaptoll_roots::{RootsError, StoppedWorld, Untracked, WriteScan};
use heaptoll_runtime::{Phase, now_ns};

use super::phases::wipe_stack;
use super::young::MARKS_OF_UNIT;
use crate::abandoned::cause;
use crate::class::{FREE, is_atomic};
use crate::collector::Collector;
use crate::generations::Generation;
use crate::heap::{Heap, HeapGuards};
use crate::increments::{Increments, Stage};
use crate::log::{Cause, Reason};
use crate::mark::{Marker, Marks, Trace};
use crate::markers::Roots;
use crate::progress::{Found, NotCollected, Progress};
use crate::remembered::gather_written;
use crate::reservation::AHEAD;
use crate::span::UnitIndex;

/// Bytes that are marked or read between two looks at the clock.
const CHUNK: usize = 64 << 10;
/// Units to which writes are recorded between two looks at the clock.
const RECORDED: usize = 256;

/// Why an increment cannot be finished.
enum Interrupted {
    /// It is not known what was written.
    Untracked(Untracked),
    /// Roots could not be read.
    Roots,
    /// There is no memory for the mark stack.
    Memory,
}

impl From<Untracked> for Interrupted {
    fn from(cause: Untracked) -> Interrupted {
        Interrupted::Untracked(cause)
    }
}

impl From<RootsError> for Interrupted {
    fn from(_: RootsError) -> Interrupted {
        Interrupted::Roots
    }
}

impl Heap {
    /// Whether the next collection that is due is incremental.
    pub(super) fn is_incremental(&self, collector: &Collector, reason: Reason) -> bool {
        let increments = &collector.increments;
        reason == Reason::Budget
            && collector.generations.tracker.is_available()
            && (increments.is_active() || increments.is_needed(self.live_bytes(), increments.roots))
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

    /// An increment: begins a collection, goes on with it, or ends it.
    pub(super) fn increment(&self, collector: &mut Collector) -> Result<(), NotCollected> {
        let mut progress = self.begin(collector, Reason::Budget);
        self.reporter.phase(progress.number, Phase::Stop);
        let (mut guards, stopped) = match self.stop_world(collector.world) {
            Ok(locked_and_stopped) => locked_and_stopped,
            Err(error) => return self.abandon(collector, &progress, cause(&error)),
        };
        progress.times.stopped = now_ns();
        progress.threads = stopped.as_ref().map_or(1, |stopped| stopped.threads());
        self.reporter.phase(progress.number, Phase::Mark);
        if collector.generations.check && self.reservation.units() > collector.increments.units + AHEAD {
            // A word that points to where there was no heap is no address, but the comparison takes it for one.
            self.forget_increments(collector);
        }
        let before = collector.increments.done();
        match self.advance(collector, &mut guards, stopped.as_ref(), &progress) {
            Ok(Some(found)) => {
                progress.times.marked = now_ns();
                self.finish(collector, guards, stopped, progress, &found);
                collector.increments.end(collector.ended_ns - progress.times.started);
                Ok(())
            }
            Ok(None) => {
                progress.times.marked = now_ns();
                self.reporter.phase(progress.number, Phase::Resume);
                drop(stopped);
                let now = now_ns();
                let increments = &mut collector.increments;
                let bytes = increments.done() - before;
                let marking_ns = progress.times.marked - progress.times.stopped;
                let pause_ns = now - progress.times.started;
                let allocated = self.allocated_since_gc.load(Ordering::Relaxed);
                let since = usize::try_from(allocated).unwrap_or(0);
                let step = increments.end_increment(bytes, marking_ns, pause_ns, since);
                self.count_pause(collector, pause_ns);
                self.set_budget(collector, step, allocated);
                drop(guards);
                Ok(())
            }
            Err(interrupted) => {
                self.forget_increments(collector);
                drop(stopped);
                drop(guards);
                self.count_pause(collector, now_ns() - progress.times.started);
                match interrupted {
                    Interrupted::Untracked(cause) => {
                        collector.generations.on_untracked(cause);
                        self.collect_stopped(collector, Reason::Budget)
                    }
                    Interrupted::Roots => self.abandon(collector, &progress, Cause::Roots),
                    Interrupted::Memory => self.abandon(collector, &progress, Cause::Memory),
                }
            }
        }
    }

    /// No mark states any more where a word may point to that is not taken.
    fn end_marking(&self) {
        self.reservation.set_marking(false);
        self.keep_flags(0);
    }

    /// Marks and reads until the pause is over, or all is found: then returns it.
    fn advance(
        &self,
        collector: &mut Collector,
        guards: &mut HeapGuards<'_>,
        stopped: Option<&StoppedWorld<'static>>,
        progress: &Progress,
    ) -> Result<Option<Found>, Interrupted> {
        let began = progress.times.started;
        let (mut deadline, pass_deadline) =
            (collector.increments.deadline(began), collector.increments.pass_deadline(began));
        let mut is_fresh = false;
        // At the end of an increment there may be no time for a pass; an increment that begins with nothing else begins one.
        let mut is_late = collector.increments.stage != Stage::Marking || !collector.stack.is_empty();
        if !collector.increments.is_active() {
            assert_expensive!(self.is_unmarked(), "no block is marked when marking begins");
            if !collector.stack.prepare() {
                return Err(Interrupted::Memory);
            }
            let since = usize::try_from(progress.allocated).unwrap_or(0);
            let work = self.live_bytes() + collector.increments.roots;
            let units = self.reservation.units();
            collector.increments.begin(units, work, collector.last_budget.max(since));
            self.keep_flags(0);
            self.reservation.set_marking(true);
        }
        if let Stage::Recording { unit } = collector.increments.stage {
            // Also where it goes on: the process may be the child of a fork by now, of whose memory nothing is recorded.
            let first = self.addresses(0..self.recorded_to(collector, unit) as UnitIndex);
            collector.generations.tracker.scan(first)?;
        } else {
            collector.generations.tracker.extend(self.all_units(guards).end)?;
        }
        loop {
            let stage = collector.increments.stage;
            match stage {
                Stage::Idle => return Ok(None),
                Stage::Recording { unit } => {
                    let (units, end) = (collector.increments.units, self.recorded_to(collector, unit));
                    let tracker = &mut collector.generations.tracker;
                    tracker.extend(self.addresses(0..end as UnitIndex).end)?;
                    let mut scan = tracker.resume()?;
                    self.scan_in_use(&mut scan, unit..end, &mut |_| {})?;
                    drop(scan);
                    collector.increments.stage = Stage::Recording { unit: end };
                    if end == units {
                        collector.increments.begin_pass();
                        self.gather_roots(collector, guards, stopped)?;
                        is_fresh = true;
                        deadline = collector.increments.deadline_after_roots(deadline, now_ns());
                    }
                }
                Stage::Marking => {
                    let is_drained = self.with_marker(collector, |marker, _| marker.drain_within(CHUNK));
                    if is_drained && is_fresh {
                        return self.end_increments(collector, guards).map(Some);
                    }
                    if is_drained {
                        if is_late && now_ns() > pass_deadline {
                            return Ok(None);
                        }
                        self.begin_pass(collector, guards, stopped)?;
                        (is_fresh, is_late) = (true, true);
                        deadline = collector.increments.deadline_after_roots(deadline, now_ns());
                    }
                }
                Stage::Rereading { unit } => self.with_marker(collector, |marker, increments| {
                    let (next, bytes) = gather_written(marker, unit, CHUNK);
                    increments.reread += bytes;
                    increments.stage = if next < self.reservation.units() {
                        Stage::Rereading { unit: next }
                    } else {
                        Stage::Marking
                    };
                }),
            }
            if collector.increments.is_interrupted() && now_ns() > deadline {
                return Ok(None);
            }
        }
    }

    /// Up to which unit writes are recorded next: a heap is registered in parts, as it takes time. What it has grown into since
    /// the collection began counts as written.
    fn recorded_to(&self, collector: &Collector, unit: usize) -> usize {
        collector.increments.units.min(unit + RECORDED)
    }

    /// A marker that goes on with what is on the mark stack.
    fn with_marker<R>(
        &self,
        collector: &mut Collector,
        action: impl FnOnce(&mut Marker<'_, false>, &mut Increments) -> R,
    ) -> R {
        let Collector { increments, stack, .. } = collector;
        let marks = Marks::new(&self.reservation, self.epoch().wrapping_add(1), Trace::Ages);
        // SAFETY: the world is stopped, or only added roots are read, in tests; the caller holds all locks.
        let mut marker = unsafe { Marker::<false>::new(marks, stack, None) };
        marker.overflowed = increments.overflowed;
        let result = action(&mut marker, increments);
        increments.overflowed = marker.overflowed;
        increments.marked += marker.marked;
        result
    }

    /// A pass begins: finds the pages that were written since the last one began, and reads the roots.
    fn begin_pass(
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
    fn gather_roots(
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
        let marks = Marks::new(&self.reservation, self.epoch().wrapping_add(1), Trace::Ages);
        // SAFETY: the world is stopped, or only added roots are read, in tests; the caller holds all locks.
        let mut marker = unsafe { Marker::<false>::new(marks, stack, None) };
        marker.overflowed = increments.overflowed;
        increments.roots = roots.gather_on(&mut marker)?;
        increments.overflowed = marker.overflowed;
        increments.marked += marker.marked;
        increments.stage = Stage::Rereading { unit: 0 };
        Ok(())
    }

    /// All is marked.
    fn end_increments(
        &self,
        collector: &mut Collector,
        guards: &mut HeapGuards<'_>,
    ) -> Result<Found, Interrupted> {
        self.with_marker(collector, |marker, _| marker.drain());
        self.mark_cached(guards, true);
        assert_internal!(collector.stack.is_empty(), "marking ends with an empty mark stack");
        if collector.generations.check {
            collector
                .generations
                .marks
                .reserve(self.reservation.units() * MARKS_OF_UNIT)
                .map_err(RootsError::from)?;
            self.check_young(collector, self.epoch().wrapping_add(1));
        }
        wipe_stack();
        guards.units.epoch = self.epoch().wrapping_add(1);
        self.end_marking();
        let live = self.keep_marks_of_taken();
        assert_internal!(
            live <= guards.units.used_bytes(&self.reservation),
            "no more is live than the units of spans and large blocks hold"
        );
        collector.increments.stage = Stage::Idle;
        let Increments { roots, reread, .. } = collector.increments;
        Ok(Found { live, roots, markers: 1, generation: Generation::Incremental, old: 0, reread })
    }
}
