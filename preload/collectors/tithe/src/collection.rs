//! A collection: all locks are taken, the world is stopped, what is reachable is marked, the world is resumed. Sweeping
//! happens later, when blocks are needed.

use core::sync::atomic::Ordering;

use heaptoll_assertions::assert_internal;
use heaptoll_marking::KEPT;
use heaptoll_roots::StoppedWorld;
use heaptoll_runtime::{Phase, Reason as EventReason, SignalMaskGuard, now_ns, thread_cpu_ns};

use crate::abandoned::cause;
use crate::collector::Collector;
use crate::heap::{Heap, HeapGuards};
use crate::log::{self, Reason};
use crate::mode::Mode;
use crate::progress::{Found, NotCollected, Progress, Times};
use crate::signal::UNBLOCKED;

mod accounts;
mod check;
mod incremental;
mod phases;
mod young;

impl Heap {
    /// Collects, unless another thread collected meanwhile.
    ///
    /// # Errors
    /// Why there was none; the heap grows instead.
    #[cold]
    #[inline(never)]
    pub fn collect(&self, reason: Reason) -> Result<(), NotCollected> {
        if self.is_mode(Mode::Explicit) {
            return Err(NotCollected::Mode);
        }
        // SAFETY: errno's address is valid for the calling thread.
        let errno = unsafe { *libc::__errno_location() };
        let done = self.collect_once(reason);
        // SAFETY: errno's address is valid for the calling thread.
        unsafe { *libc::__errno_location() = errno };
        done
    }

    fn collect_once(&self, reason: Reason) -> Result<(), NotCollected> {
        let before = self.epoch();
        let mut collector = self.collector.lock();
        if collector.busy {
            return Err(NotCollected::Abandoned);
        }
        let is_late = self.epoch() != before;
        // Another thread collected while this one waited for the lock; a request without memory needs all that is dead, and
        // the free places of dense spans.
        if is_late
            && (reason == Reason::Budget || reason == Reason::Memory && !collector.generations.is_aged())
        {
            return Ok(());
        }
        if collector.increments.is_active() {
            if reason == Reason::Budget && !self.is_due() {
                // Another thread has made an increment while this one waited for the lock.
                return Ok(());
            }
        } else if reason == Reason::Budget && collector.every.is_none() && self.postpone(&mut collector) {
            return Ok(());
        }
        collector.busy = true;
        let signal_mask = SignalMaskGuard::all_but(&UNBLOCKED);
        let cpu_ns = thread_cpu_ns();
        self.sweep_all();
        assert_internal!(self.swept.load(Ordering::Relaxed), "all is swept before the next collection");
        if reason == Reason::Called {
            // The caller wants the collection finished, and free memory released.
            self.purge_due.store(true, Ordering::Relaxed);
        }
        let outcome = if self.is_incremental(&collector, reason) {
            self.increment(&mut collector)
        } else {
            self.collect_stopped(&mut collector, reason)
        };
        assert_internal!(
            self.epoch() == before || self.epoch() == before.wrapping_add(1) || reason == Reason::Called,
            "a collection advances the epoch by one"
        );
        if reason == Reason::Called {
            self.sweep_all();
            assert_internal!(
                self.swept.load(Ordering::Relaxed),
                "a collection that the program calls for is finished on return"
            );
        }
        assert_internal!(collector.busy, "one collection runs at a time");
        self.reporter.collector_cpu(thread_cpu_ns().saturating_sub(cpu_ns));
        collector.busy = false;
        let warnings = [collector.policy.warning(), collector.increments.warning()];
        drop(collector);
        drop(signal_mask);
        for warning in warnings.into_iter().flatten() {
            warning.write();
        }
        outcome
    }

    /// A collection from the stop to the resumption, phase by phase.
    fn collect_stopped(&self, collector: &mut Collector, reason: Reason) -> Result<(), NotCollected> {
        let mut progress = self.begin(collector, reason);
        self.reporter.phase(progress.number, Phase::Stop);
        let (mut guards, stopped) = match self.stop_world(collector.world) {
            Ok(locked_and_stopped) => locked_and_stopped,
            Err(error) => return self.abandon(collector, &progress, cause(&error)),
        };
        progress.times.stopped = now_ns();
        progress.threads = stopped.as_ref().map_or(1, |stopped| stopped.threads());
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
        collector.increments.measure(found.live + found.roots, marking_ns);
        collector.increments.roots = found.roots;
        self.finish(collector, guards, stopped, progress, &found);
        Ok(())
    }

    /// After marking: reclaims, plans the next collection, and has the program go on.
    fn finish(
        &self,
        collector: &mut Collector,
        mut guards: HeapGuards<'_>,
        stopped: Option<StoppedWorld<'static>>,
        mut progress: Progress,
        found: &Found,
    ) {
        let reclaimed = self.reclaim(collector, &mut guards, &progress, found);
        self.sweep_stopped(collector, &mut guards, &mut progress);
        let budget = self.plan_next(collector, &mut guards, &progress, found, reclaimed);
        self.reporter.phase(progress.number, Phase::Resume);
        drop(stopped);
        progress.times.resumed = now_ns();
        collector.stack.shrink(KEPT);
        self.count(collector, &progress, found, reclaimed);
        drop(guards);
        let ambiguous = self.explain(collector);
        if let Some(sink) = &collector.log {
            log::write(sink, &self.line(collector, &progress, found, reclaimed, ambiguous, budget));
            if let Some(cause) = collector.generations.take_unreported() {
                log::write_untracked(sink, cause);
            }
        }
    }

    /// The program still runs.
    fn begin(&self, collector: &Collector, reason: Reason) -> Progress {
        let started = now_ns();
        let number = collector.statistics.collections + 1;
        let progress = Progress {
            number,
            reason,
            times: Times { started, ..Times::default() },
            mutator_ns: started.saturating_sub(collector.ended_ns),
            allocated: self.allocated_since_gc.load(Ordering::Relaxed),
            before: self.live_bytes(),
            threads: 1,
            // A collection that was requested, or that runs on memory pressure, reclaims in any case.
            reclaims: reason != Reason::Budget || number.is_multiple_of(collector.reclaim),
        };
        if !collector.increments.is_active() {
            self.reporter.collection_starts(number, event_reason(reason));
        }
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
