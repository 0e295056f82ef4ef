//! A collection from its stop to the resumption, in one go; and what the last increment of an incremental one ends with.

use core::sync::atomic::Ordering;

use heaptoll_marking::KEPT;
use heaptoll_roots::StoppedWorld;
use heaptoll_runtime::{Phase, Reason as EventReason, now_ns, single_threaded};
use heaptoll_stats_page::UnreadPlaces;

use super::accounts::own_time;
use crate::collector::Collector;
use crate::generations::Generation;
use crate::heap::{Heap, HeapGuards};
use crate::log::{self, Reason};
use crate::progress::{Found, NotCollected, Progress, Times};

/// The world stopped, and all locks of the heap held.
pub(super) struct Stop<'a> {
    pub progress: Progress,
    pub guards: HeapGuards<'a>,
    pub stopped: Option<StoppedWorld<'static>>,
}

impl Heap {
    /// A collection from the stop to the resumption, phase by phase.
    pub(super) fn collect_stopped(
        &self,
        collector: &mut Collector,
        reason: Reason,
    ) -> Result<(), NotCollected> {
        let Stop { mut progress, mut guards, stopped } = self.begin_stopped(collector, reason)?;
        self.forget_increments(collector);
        let found = match self.find_live(collector, &mut guards, stopped.as_ref(), &progress) {
            Ok(found) => found,
            Err(cause) => {
                drop(stopped);
                drop(guards);
                return self.abandon(collector, &progress, cause);
            }
        };
        progress.times.marked = now_ns();
        let marking_ns = progress.times.marked - progress.times.stopped;
        if found.generation != Generation::Young {
            collector.increments.measure(found.live + found.roots, marking_ns);
        }
        collector.increments.on_whole(found.roots);
        self.finish(collector, guards, stopped, progress, &found);
        Ok(())
    }

    /// After marking: reclaims, plans the next collection, and has the program go on.
    pub(super) fn finish(
        &self,
        collector: &mut Collector,
        mut guards: HeapGuards<'_>,
        stopped: Option<StoppedWorld<'static>>,
        mut progress: Progress,
        found: &Found,
    ) {
        guards.units.epoch = self.epoch().wrapping_add(1);
        let reclaimed = self.reclaim(collector, &mut guards, &progress, found);
        self.sweep_stopped(collector, &mut guards, &mut progress);
        let budget = self.plan_next(collector, &mut guards, &progress, found, reclaimed);
        self.reporter.phase(progress.number, Phase::Resume);
        let unread = stopped.as_ref().map_or(UnreadPlaces::NONE, StoppedWorld::unread);
        drop(stopped);
        progress.times.resumed = now_ns();
        self.reporter.unread(unread);
        collector.stack.shrink(KEPT);
        self.count(collector, &progress, found, reclaimed);
        drop(guards);
        let ambiguous = self.explain(collector);
        if let Some(sink) = &collector.log {
            log::write(sink, &self.line(collector, &progress, found, reclaimed, ambiguous, budget));
            if let Some(cause) = collector.generations.take_unreported() {
                log::write_untracked(sink, cause);
            }
            for place in unread.without(collector.unread).names() {
                log::write_unread(sink, place);
            }
            collector.unread = unread;
        }
    }

    /// Begins a collection or an increment, and stops the world for it.
    ///
    /// # Errors
    /// The world does not stop: the collection is abandoned.
    pub(super) fn begin_stopped(
        &self,
        collector: &mut Collector,
        reason: Reason,
    ) -> Result<Stop<'_>, NotCollected> {
        let mut progress = self.begin(collector, reason);
        self.reporter.phase(progress.number, Phase::Stop);
        let (guards, stopped) = match self.stop_world(collector.world) {
            Ok(locked_and_stopped) => locked_and_stopped,
            Err(error) => {
                self.abandon(collector, &progress, error.into())?;
                return Err(NotCollected::Abandoned);
            }
        };
        guards.caches.each(|cache| {
            // SAFETY: caches are never unmapped, and their threads are stopped.
            let cache = unsafe { &mut *cache };
            self.uncount_ahead(&mut cache.counted);
            // A thread that is stopped within its addition to this counts a few bytes twice.
            self.waiting.fetch_add(core::mem::take(&mut cache.waiting), Ordering::Relaxed);
        });
        progress.allocated = self.counted();
        progress.before = self.live_bytes();
        progress.times.stopped = now_ns();
        progress.threads = stopped.as_ref().map_or(1, |stopped| stopped.threads());
        Ok(Stop { progress, guards, stopped })
    }

    /// The program still runs.
    pub(super) fn begin(&self, collector: &Collector, reason: Reason) -> Progress {
        let started = now_ns();
        let number = collector.statistics.collections + 1;
        let progress = Progress {
            number,
            reason,
            times: Times { started, ..Times::default() },
            mutator_ns: own_time(
                started.saturating_sub(collector.ended_ns),
                collector.ended_cpu_ns,
                collector.began_cpu_ns,
                single_threaded(),
            ),
            allocated: self.counted(),
            before: self.live_bytes(),
            threads: 1,
            // A collection that was requested, or that runs on memory pressure, reclaims in any case.
            reclaims: reason != Reason::Budget || number.is_multiple_of(collector.reclaim),
        };
        self.reporter.collection_starts(number, event_reason(reason));
        progress
    }
}

const fn event_reason(reason: Reason) -> EventReason {
    match reason {
        Reason::Budget => EventReason::Allocation,
        Reason::Memory => EventReason::Pressure,
        Reason::Called => EventReason::Requested,
    }
}
