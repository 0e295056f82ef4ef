//! What a collection leaves: when the next one is due, the counters, and its line of the log.

use core::sync::atomic::Ordering;

use heaptoll_assertions::assert_internal;
use heaptoll_runtime::Collected;

use crate::class::UNIT;
use crate::collector::{ADDRESS_PERCENT_MIN, Collector};
use crate::heap::{Heap, HeapGuards};
use crate::log::Report;
use crate::mode::Mode;
use crate::policy::Cycle;
use crate::progress::{Found, Progress, Times};

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
        let Times { started, stopped, marked, .. } = progress.times;
        let live = found.live;
        let budget = collector.policy.next(&Cycle {
            live,
            allocated: usize::try_from(progress.allocated).unwrap_or(0),
            roots: found.roots,
            mark_ns: marked - started,
            stop_ns: stopped - started,
            mutator_ns: progress.mutator_ns,
            reclaimed,
            mode: if self.is_mode(Mode::Collect) { Mode::Collect } else { Mode::Hybrid },
        });
        self.allocated_since_gc.store(0, Ordering::Relaxed);
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
        self.set_budget(collector, scaled_budget, 0);
        let auxiliary_bytes = guards.caches.mapped_bytes() + collector.mapped_bytes();
        if self.auxiliary_bytes.swap(auxiliary_bytes, Ordering::Relaxed) != auxiliary_bytes {
            self.report_size(&guards.units);
        }
        budget
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
        statistics.pause_total_ns += pause_ns;
        statistics.pause_max_ns = statistics.pause_max_ns.max(pause_ns);
        statistics.collected_bytes += reclaimed as u64;
        assert_internal!(
            statistics.pause_max_ns <= statistics.pause_total_ns,
            "the longest pause is one of those that are added up"
        );
        self.reporter.collection_ends(Collected {
            number: progress.number,
            live_bytes: found.live,
            collected_bytes: reclaimed,
            pause_ns,
        });
        collector.ended_ns = resumed;
    }

    /// What the log has of a collection.
    pub(super) fn line(
        &self,
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
