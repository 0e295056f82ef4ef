//! What a request does when it finds no memory or its budget is used up: when a collection is due, and how often one is
//! tried on memory pressure.

use core::sync::atomic::Ordering;

use super::Heap;
use crate::cache::Cache;
use crate::class::{CLASS, is_small};
use crate::log::Reason;

/// Ineffective collections on memory pressure, one after the other, before requests skip them.
const INEFFECTIVE_MAX: u32 = 8;

impl Heap {
    /// Before a large block is allocated: goes on with an incremental collection, increment by increment, as long as the
    /// program has allocated more than it was to until the end of it. An increment for each block would let it grow by a
    /// block for each.
    pub(super) fn collect_overdrawn(&self) {
        let is_overdrawn = || {
            let allocated = self.allocated_since_gc.load(Ordering::Relaxed);
            let is_overdrawn = self.collector.lock().increments.is_overdrawn(allocated);
            if is_overdrawn {
                self.budget.store(allocated, Ordering::Relaxed);
            }
            is_overdrawn
        };
        while is_overdrawn() && self.collect(Reason::Budget).is_ok() {}
    }

    pub(super) fn is_limited(&self) -> bool {
        self.units.lock().limit != usize::MAX
    }

    /// Collects because the system gives no more memory, or the heap's limit is reached; returns whether to try again.
    /// A program that requests memory again and again would do nothing but collect: after some ineffective collections,
    /// ever more requests skip theirs, unless as much as they want waits in mode `guard`. Within a limit of the heap none does: the limit must measure the program's need.
    pub(super) fn collect_for_memory(&self, cache: &mut Cache, units: u32) -> bool {
        let limited = {
            let taken = self.units.lock();
            taken.exceeds_limit(&self.reservation, units)
        };
        if limited {
            self.flush_all(cache);
        }
        if !self.collects() {
            return limited;
        }
        if limited {
            return self.collect(Reason::Memory).is_ok();
        }
        let skipped = self.skipped_collections.load(Ordering::Relaxed);
        if skipped > 0 && !self.waits_for(units) {
            self.skipped_collections.store(skipped - 1, Ordering::Relaxed);
            return self.thin_dense();
        }
        let ineffective_collections = self.ineffective_collections.fetch_add(1, Ordering::Relaxed) + 1;
        if ineffective_collections > INEFFECTIVE_MAX {
            self.skipped_collections
                .store(1 << (ineffective_collections - INEFFECTIVE_MAX).min(10), Ordering::Relaxed);
        }
        self.collect(Reason::Memory).is_ok() || self.thin_dense()
    }

    /// Makes the free places of dense spans available where no collection does so; returns whether there were some. The
    /// next young collection reads these spans whole.
    fn thin_dense(&self) -> bool {
        let mut found = false;
        let mut unit = 0;
        while self.reservation.has_ages() && unit < self.reservation.units() {
            let span_class = self.reservation.span_class(unit);
            if is_small(span_class) {
                let mut spans = self.spans_by_class[span_class as usize].lock();
                // The span class is valid only if it is unchanged under the lock.
                if self.reservation.span_class(unit) == span_class {
                    let first = self.reservation.first(unit);
                    found |= spans.thin(&self.reservation, first, self.epoch());
                    unit = first as usize + usize::from(CLASS[span_class as usize].units);
                    continue;
                }
            }
            unit += 1;
        }
        found
    }

    /// Counts a failed request for units if the heap's limit is the cause.
    pub(super) fn count_limit_failure(&self, units: u32) {
        let taken = self.units.lock();
        if taken.exceeds_limit(&self.reservation, units) {
            self.reporter.refused();
        }
    }

    /// Called after a collection on memory pressure freed enough for the request: resets the count unless it reclaimed
    /// little, in which case the next one will come soon.
    pub(super) fn note_effective_collection(&self) {
        if self.reclaimed_by_gc.load(Ordering::Relaxed) >= self.live_after_gc.load(Ordering::Relaxed) / 16 {
            self.ineffective_collections.store(0, Ordering::Relaxed);
        }
    }
}
