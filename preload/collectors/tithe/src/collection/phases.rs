//! The phases of a collection that find what is live and reclaim the rest.

use core::sync::atomic::Ordering;

use heaptoll_assertions::{assert_expensive, assert_internal, assert_sound};
use heaptoll_roots::StoppedWorld;
use heaptoll_runtime::{AbandonCause, Phase, now_ns};

use crate::collector::Collector;
use crate::generations::Generation;
use crate::heap::{Heap, HeapGuards};
use crate::log::Cause;
use crate::mark::Trace;
use crate::markers::Roots;
use crate::mode::Mode;
use crate::progress::{Found, Guarded, Progress};

impl Heap {
    /// Marks what the roots reach.
    pub(super) fn find_live(
        &self,
        collector: &mut Collector,
        guards: &mut HeapGuards<'_>,
        stopped: Option<&StoppedWorld<'static>>,
        progress: &Progress,
    ) -> Result<Found, Cause> {
        if !collector.stack.prepare() {
            return Err(AbandonCause::Memory.into());
        }
        let epoch = self.epoch().wrapping_add(1);
        self.reporter.phase(progress.number, Phase::Mark);
        assert_expensive!(self.is_unmarked(), "no block is marked when marking begins");
        assert_sound!(self.check_locked(guards));
        let (generation, old, written) = self.begin_generation(collector, guards, progress);
        let is_young = generation == Generation::Young;
        let is_aged = generation != Generation::Unaged;
        let (trace, cached) = self.prepare_blocks(guards, is_aged);
        let markers = collector.markers.prepare(self.live_after_gc.load(Ordering::Relaxed));
        let excluded_ranges = self.excluded_ranges(collector, guards);
        let Collector { added, markers: workers, stack, generations, .. } = &mut *collector;
        let mut roots = Roots {
            added,
            stopped,
            excluded_ranges: &excluded_ranges,
            gathered: None,
            young: is_young,
            trace,
        };
        let is_checked = is_young && generations.check;
        let gathered =
            if is_checked { roots.gather(&self.reservation, &mut generations.words) } else { Ok(()) };
        if is_checked {
            roots.gathered = Some(generations.words.as_slice());
        }
        // SAFETY: the world is stopped, or only added roots are read, in tests; `guards` are the locks, and `prepare` has
        // returned `markers`.
        let marked =
            gathered.and_then(|()| unsafe { workers.mark(markers, &self.reservation, stack, epoch, &roots) });
        let marked = match marked {
            Ok(marked) => marked,
            Err(error) => {
                // Marks are missing: nothing may be reclaimed by them.
                match trace {
                    Trace::Guard => _ = self.mark_held_in_caches(guards),
                    Trace::Ages => self.show_cached(guards),
                    _ => {}
                }
                self.clear_marks();
                return Err(error.into());
            }
        };
        self.reporter.collector_cpu(marked.helpers_cpu_ns);
        let guarded =
            (trace == Trace::Guard).then(|| self.end_guard(guards, &collector.guard, progress.reclaims));
        let Guarded { cached: reserved, released, .. } = guarded.unwrap_or(Guarded::NONE);
        let live = marked.live + cached + old + reserved - released;
        assert_internal!(
            live <= guards.units.used_bytes(&self.reservation),
            "no more is live than the units of spans and large blocks hold"
        );
        let in_caches = if is_aged { cached } else { 0 };
        assert_expensive!(self.marked_bytes() + in_caches >= live, "what is counted as live is marked");
        assert_internal!(collector.stack.is_empty(), "marking ends with an empty mark stack");
        if is_checked {
            self.check_young(collector, epoch);
        }
        let found = Found {
            live,
            roots: marked.roots,
            markers: marked.markers,
            generation,
            old,
            reread: marked.reread,
            guarded,
            written,
        };
        self.end_generation(collector, guards, &found);
        Ok(found)
    }

    /// Before marking: blocks in caches are not the program's. Returns what marking records, and the bytes of blocks that stay
    /// in any case.
    fn prepare_blocks(&self, guards: &HeapGuards<'_>, is_aged: bool) -> (Trace, usize) {
        if self.is_mode(Mode::Guard) {
            (Trace::Guard, self.mark_unfreed(guards))
        } else if is_aged {
            (Trace::Ages, self.hide_cached(guards))
        } else {
            (Trace::Plain, self.mark_cached(guards, false))
        }
    }

    /// Makes what was not marked wait to be swept; returns its bytes. A collection that reclaims nothing leaves all as it
    /// was.
    pub(super) fn reclaim(
        &self,
        collector: &Collector,
        guards: &mut HeapGuards<'_>,
        progress: &Progress,
        found: &Found,
    ) -> usize {
        let (kept, reclaimed) = if progress.reclaims {
            assert_internal!(self.swept.load(Ordering::Relaxed), "all is swept before the next collection");
            self.epoch.store(self.epoch().wrapping_add(1), Ordering::Relaxed);
            self.swept.store(false, Ordering::Release);
            for spans in &mut guards.spans_by_class {
                spans.reset();
            }
            guards.units.begin_period();
            (found.live, progress.before.saturating_sub(found.live))
        } else {
            self.clear_marks();
            assert_expensive!(self.is_unmarked(), "a collection that reclaims nothing leaves no mark");
            (self.live_bytes(), 0)
        };
        assert_internal!(collector.busy, "one collection runs at a time");
        assert_sound!(self.check_locked(guards));
        self.live_after_gc.store(kept, Ordering::Relaxed);
        self.reclaimed_by_gc.store(reclaimed, Ordering::Relaxed);
        reclaimed
    }

    /// Sweeps before the program is resumed, if so set.
    pub(super) fn sweep_stopped(
        &self,
        collector: &Collector,
        guards: &mut HeapGuards<'_>,
        progress: &mut Progress,
    ) {
        progress.times.swept = progress.times.marked;
        if collector.eager && progress.reclaims {
            self.reporter.phase(progress.number, Phase::Sweep);
            self.sweep_all_locked(guards);
            self.report_used(&guards.units);
            assert_sound!(self.check_locked(guards));
            progress.times.swept = now_ns();
        }
    }
}
