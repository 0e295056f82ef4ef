//! What a collection leaves: when the next one is due, the counters, and its line of the log.

use core::sync::atomic::Ordering;

use heaptoll_assertions::assert_internal;
use heaptoll_runtime::{Collected, single_threaded, thread_cpu_ns};

use crate::class::UNIT;
use crate::collector::{ADDRESS_PERCENT_MIN, Collector};
use crate::generations::Generation;
use crate::heap::{Heap, HeapGuards};
use crate::increments::Increments;
use crate::log::{HeldTotals, IncrementTotals, Report};
use crate::mode::Mode;
use crate::policy::Cycle;
use crate::progress::{Found, Guarded, Progress, Times};

/// Of a time, ns, what the process had a processor for: what others do meanwhile must not change how often it collects. Of
/// several threads only this one's processor time is known, so their time counts as it is.
pub(super) fn own_time(elapsed_ns: u64, from_cpu_ns: u64, to_cpu_ns: u64, is_alone: bool) -> u64 {
    match to_cpu_ns.checked_sub(from_cpu_ns) {
        // A clock that cannot be read is 0.
        Some(cpu_ns) if is_alone && to_cpu_ns > 0 => elapsed_ns.min(cpu_ns),
        _ => elapsed_ns,
    }
}

impl Heap {
    /// Sets when the next collection is due; returns the budget, bytes.
    pub(super) fn plan_next(
        &self,
        collector: &mut Collector,
        guards: &mut HeapGuards<'_>,
        progress: &Progress,
        found: &Found,
        reclaimed: usize,
    ) -> usize {
        let live = found.live;
        let cycle = self.cycle(collector, progress, found, reclaimed);
        let budget = collector.policy.next(&cycle);
        self.allocated_since_gc.store(0, Ordering::Relaxed);
        self.waiting.store(0, Ordering::Relaxed);
        let guarded = found.guarded.unwrap_or(Guarded::NONE);
        let kept = if progress.reclaims { guarded.kept } else { guarded.waiting };
        self.kept.store(kept, Ordering::Relaxed);
        let budget = self.within_bound(collector, budget, &guarded);
        self.released.fetch_add(u64::from(guarded.released > 0), Ordering::Relaxed);
        self.report_held(guarded.waiting);
        self.large_since_gc.store(0, Ordering::Relaxed);
        collector.last_budget = budget;
        if self.is_mode(Mode::Collect) {
            guards.units.keep = budget;
        }
        let allowed = live.saturating_add(budget);
        let scaled =
            (allowed / ADDRESS_PERCENT_MIN).saturating_mul(collector.address_percent).max(allowed) - live;
        assert_internal!(scaled >= budget.min(usize::MAX - live), "a budget in addresses is no smaller");
        let scaled_budget = if collector.every.is_some() { budget } else { scaled };
        self.set_budget(collector, collector.increments.trigger(scaled_budget), 0);
        let auxiliary_bytes = guards.caches.mapped_bytes() + collector.mapped_bytes();
        if self.auxiliary_bytes.swap(auxiliary_bytes, Ordering::Relaxed) != auxiliary_bytes {
            self.report_size(&guards.units);
        }
        budget
    }

    /// The outcome of a collection, as the policy needs it.
    fn cycle(&self, collector: &Collector, progress: &Progress, found: &Found, reclaimed: usize) -> Cycle {
        let Times { started, stopped, marked, .. } = progress.times;
        let is_incremental = found.generation == Generation::Incremental;
        let Increments { own_ns, stop_ns, .. } = collector.increments;
        let (earlier_ns, earlier_stop_ns) = if is_incremental { (own_ns, stop_ns) } else { (0, 0) };
        let mark_ns = own_time(marked - started, collector.began_cpu_ns, thread_cpu_ns(), single_threaded());
        Cycle {
            live: found.live,
            allocated: usize::try_from(progress.allocated).unwrap_or(0),
            roots: found.roots,
            mark_ns: mark_ns + earlier_ns,
            stop_ns: stopped - started + earlier_stop_ns,
            mutator_ns: progress.mutator_ns.saturating_sub(earlier_ns),
            reclaimed,
            processors: progress.threads.min(collector.cores),
            mode: self.run_mode(),
        }
    }

    /// Counts a collection, whose world is resumed.
    pub(super) fn count(
        &self,
        collector: &mut Collector,
        progress: &Progress,
        found: &Found,
        reclaimed: usize,
    ) {
        let Times { started, stopped, marked, swept, resumed } = progress.times;
        assert_internal!(
            started <= stopped && stopped <= marked && marked <= swept && swept <= resumed,
            "the times of a collection are in order"
        );
        let pause_ns = resumed - started;
        let statistics = &mut collector.statistics;
        statistics.collections = progress.number;
        statistics.add_pause(pause_ns);
        statistics.collected_bytes += reclaimed as u64;
        self.reporter.collection_ends(Collected {
            number: progress.number,
            live_bytes: found.live,
            collected_bytes: reclaimed,
            pause_ns,
        });
        collector.ended_ns = resumed;
    }

    /// Counts the processor time of what has begun, and has it begin anew where a collection has ended since `ended_ns`.
    pub(super) fn count_cpu(&self, collector: &mut Collector, ended_ns: u64) {
        let cpu_ns = thread_cpu_ns();
        self.reporter.collector_cpu(cpu_ns.saturating_sub(collector.began_cpu_ns));
        if collector.ended_ns != ended_ns {
            collector.ended_cpu_ns = cpu_ns;
        }
    }

    /// Counts a pause of a collection that goes on.
    pub(super) fn count_pause(&self, collector: &mut Collector, pause_ns: u64) {
        collector.statistics.add_pause(pause_ns);
        self.reporter.increment_ends(collector.statistics.collections + 1, self.live_bytes(), pause_ns);
    }

    /// What the log has of a collection.
    pub(super) fn line(
        &self,
        collector: &Collector,
        progress: &Progress,
        found: &Found,
        reclaimed: usize,
        ambiguous: Option<usize>,
        budget: usize,
    ) -> Report {
        let generations = self.reservation.has_ages();
        let Times { started, stopped, marked, swept, resumed } = progress.times;
        Report {
            number: progress.number,
            reason: progress.reason,
            heap_before: progress.before,
            heap_after: self.reservation.units() * UNIT,
            live: found.live,
            reclaimed,
            ambiguous,
            generation: generations.then_some(found.generation),
            increments: (found.generation == Generation::Incremental).then(|| IncrementTotals {
                count: collector.increments.count + 1,
                longest_ns: collector.increments.longest_ns.max(resumed - started),
                total_ns: collector.increments.total_ns + (resumed - started),
            }),
            held: found.guarded.map(|found| HeldTotals {
                waiting: found.waiting,
                kept: found.kept,
                kept_blocks: found.kept_blocks,
                late_writes: self.reservation.freed_table.late(),
                double_frees: self.double_frees.load(Ordering::Relaxed),
            }),
            old: found.old,
            reread: found.reread,
            roots_bytes: found.roots,
            budget,
            threads: progress.threads,
            markers: found.markers,
            stop_ns: stopped - started,
            roots_ns: 0,
            mark_ns: marked - stopped,
            sweep_ns: swept - marked,
            pause_ns: resumed - started,
        }
    }
}

#[cfg(test)]
mod tests;
