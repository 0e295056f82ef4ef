//! What a collection reads, and what is known of writes when it ends: all that its kind depends on is found out here, by the
//! rules of [`crate::generations`].

use core::sync::atomic::Ordering;

use heaptoll_assertions::assert_internal;
use heaptoll_roots::Untracked;
use heaptoll_runtime::PAGE;

use super::young::{MARKS_OF_UNIT, is_dense_by_marks, live_by_marks};
use crate::ages::TAINTED;
use crate::class::UNIT;
use crate::collector::Collector;
use crate::generations::{Facts, Generation, Generations};
use crate::heap::{Heap, HeapGuards};
use crate::log::Reason;
use crate::progress::{Found, Progress};

impl Heap {
    /// What the choice of a collection depends on.
    pub(crate) fn facts(&self, reason: Reason) -> Facts {
        Facts {
            due: reason == Reason::Budget,
            pressure: reason == Reason::Memory,
            live: self.live_after_gc.load(Ordering::Relaxed),
            units: self.reservation.units(),
        }
    }

    /// Chooses what the collection reads, and finds what was written where it is young. What is chosen is what can be done:
    /// where it is not known what was written, nothing relies on it. Also returns the bytes of old blocks, which are marked,
    /// and of their pages that were written.
    pub(super) fn begin_generation(
        &self,
        collector: &mut Collector,
        guards: &HeapGuards<'_>,
        progress: &Progress,
    ) -> (Generation, usize, usize) {
        let facts = self.facts(progress.reason);
        if facts.due && collector.generations.is_sampling() {
            match self.count_samples(collector, guards) {
                Ok(written) => collector.generations.on_samples(written),
                Err(cause) => collector.generations.on_untracked(cause),
            }
        }
        let chosen = collector.generations.choose(&facts);
        collector.generations.begin();
        if chosen == Generation::Unaged || facts.units == 0 {
            return (Generation::Unaged, 0, 0);
        }
        assert_internal!(self.reservation.has_ages(), "blocks have ages where generations are on");
        assert_internal!(progress.reclaims, "where generations are on every collection reclaims");
        if chosen == Generation::Full {
            self.reservation.keep_flags(0);
            return (chosen, 0, 0);
        }
        if collector.generations.check
            && collector.generations.marks.reserve(facts.units * MARKS_OF_UNIT).is_err()
        {
            collector.generations.on_untracked(Untracked::NoMemory);
            return (Generation::Unaged, 0, 0);
        }
        match self.scan_writes(collector, guards) {
            Ok((old, written)) => (chosen, old, written),
            Err(cause) => {
                self.clear_marks();
                collector.generations.on_untracked(cause);
                (Generation::Unaged, 0, 0)
            }
        }
    }

    /// After marking: what was marked becomes old, and the next collection may be young if writes are recorded from now on.
    pub(super) fn end_generation(&self, collector: &mut Collector, guards: &HeapGuards<'_>, found: &Found) {
        let Collector { generations, increments, .. } = &mut *collector;
        let before = self.live_after_gc.load(Ordering::Relaxed);
        match found.generation {
            Generation::Unaged => generations.on_unaged(),
            Generation::Full => {
                // What an increment has read may point to where the heap has grown since.
                let units = if increments.is_active() { increments.units } else { self.reservation.units() };
                generations.on_full(before, found.live, units);
            }
            _ => generations.on_young(found.old, found.reread, found.written),
        }
        let is_full = found.generation == Generation::Full;
        if (is_full || generations.is_sampling_due(found.live)) && !self.is_mostly_dense() {
            generations.on_sparse();
        }
        let recorded = if generations.is_aged() {
            self.record_writes(collector, guards, found.generation)
        } else {
            if found.generation == Generation::Unaged {
                self.clear_dense()
            } else {
                self.age_marked()
            }
            generations.tracker.release();
            let is_due = generations.is_sampling_due(found.live);
            if is_due { self.sample_writes(collector, guards, found.live) } else { Ok(()) }
        };
        if let Err(cause) = recorded {
            self.clear_dense();
            collector.generations.on_untracked(cause);
        }
        if found.generation != Generation::Unaged {
            self.reservation.keep_flags(TAINTED);
            self.show_cached(guards);
        }
    }

    /// Has writes to a few pages recorded of those that would be if blocks had ages. Nothing is allocated in their spans, as
    /// then.
    fn sample_writes(
        &self,
        collector: &mut Collector,
        guards: &HeapGuards<'_>,
        live: usize,
    ) -> Result<(), Untracked> {
        let Generations { tracker, samples, .. } = &mut collector.generations;
        let mut scan = tracker.scan(self.all_units(guards))?;
        samples.clear();
        // Counted in pages of dense spans.
        let (mut passed, mut next, mut with_pointers) = (0, 0, 0);
        self.each_aged::<Untracked>(&mut |first, span, _| {
            with_pointers += live_by_marks(span);
            if !is_dense_by_marks(span) {
                return Ok(());
            }
            let start = self.reservation.address(first);
            let end = passed + span.units as usize * (UNIT / PAGE);
            while next < end {
                let page = start + (next - passed) * PAGE;
                scan.written(page..page + PAGE, &mut |_| {})?;
                samples.push(page)?;
                span.dense = true;
                next += Generations::sampling_step(live);
            }
            passed = end;
            Ok(())
        })?;
        drop(scan);
        assert_internal!(
            passed * PAGE >= with_pointers / 2,
            "writes are recorded where most of what is live can be left unread"
        );
        collector.generations.on_sampling();
        Ok(())
    }

    /// How many of the pages were written to which [`Heap::sample_writes`] has writes recorded.
    fn count_samples(&self, collector: &mut Collector, guards: &HeapGuards<'_>) -> Result<usize, Untracked> {
        let Generations { tracker, samples, .. } = &mut collector.generations;
        let mut scan = tracker.scan(self.all_units(guards))?;
        let mut written = 0;
        for &page in samples.as_slice() {
            scan.written(page..page + PAGE, &mut |_| written += 1)?;
        }
        Ok(written)
    }
}
