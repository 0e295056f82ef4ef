//! The heap: the slow paths of malloc and free, where a thread's cache does not suffice. Blocks move in batches between
//! caches and spans, large blocks are runs of units of their own, and a collection is started when it is due.
//!
//! The state and its locks are here; what happens to blocks is in the modules of this folder. From the top down:
//! [`realloc`] and [`blocks`] serve requests of any size by [`small`] and [`large`]; these call [`pressure`] where there
//! is no memory, which collects. [`flush`] and [`sweep`] return blocks to their spans; [`check`] verifies all of it.

use core::array;
use core::sync::atomic::{AtomicBool, AtomicIsize, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use heaptoll_assertions::assert_internal;
use heaptoll_runtime::{Guard, Lock, StatsReporter};

use crate::cache::Cache;
use crate::caches::Caches;
use crate::class::SPAN_CLASSES;
use crate::collector::Collector;
use crate::mode::Mode;
use crate::reservation::HeapReservation;
use crate::runs::Units;
use crate::spans::Spans;

mod blocks;
mod check;
mod flush;
pub(crate) mod guard;
mod large;
mod pressure;
mod realloc;
mod small;
mod sweep;

/// The heap of a process. Locks are taken in this order: the collector's, a span class's, the units', the caches'.
pub struct Heap {
    pub(crate) reservation: HeapReservation,
    /// Below this unit a free may take the fast path: all units, or none in modes `collect` and `guard` and with `TITHE_POISON`.
    pub(crate) fast_free_units: AtomicUsize,
    /// The second word of a cached block that the program freed.
    pub(crate) key: AtomicU64,
    /// The bytes added to a request before its class is looked up in steps of 16: 15 to round up; where collections
    /// happen one more, so that the address one past the end of the request lies in the block. C allows a program to
    /// keep only that address.
    pub(crate) rounding: AtomicUsize,
    pub(crate) mode: AtomicU32,
    pub(crate) poison: AtomicBool,
    /// The epoch, by which swept spans are known: each collection that reclaims advances it.
    pub(crate) epoch: AtomicU32,
    /// No span or large block waits to be swept.
    pub(crate) swept: AtomicBool,
    /// Too much free memory is resident: it is released to the system when all is swept.
    pub(crate) purge_due: AtomicBool,
    /// Live bytes the last collection found, and bytes allocated less those freed since.
    pub(crate) live_after_gc: AtomicUsize,
    pub(crate) allocated_since_gc: AtomicIsize,
    /// Bytes of small blocks that all caches together count ahead. Each cache has an equal share.
    pub(crate) counted_ahead: AtomicUsize,
    pub(crate) cache_count: AtomicUsize,
    /// A collection is due when `allocated_since_gc` reaches this, bytes.
    pub(crate) budget: AtomicIsize,
    /// Bytes allocated since the start; a collection is also due when it reaches `due_at_allocated`, which
    /// `TITHE_EVERY` sets.
    pub(crate) allocated_total: AtomicU64,
    pub(crate) due_at_allocated: AtomicU64,
    /// Most bytes of a batch, but one block at least: a fraction of `TITHE_EVERY`.
    pub(crate) batch_bytes: AtomicUsize,
    /// Of `allocated_since_gc`, bytes in large blocks, as allocated.
    pub(crate) large_since_gc: AtomicUsize,
    /// Mode `guard`: bytes of blocks that were freed since the last collection, and of those that it has kept.
    pub(crate) waiting: AtomicUsize,
    pub(crate) kept: AtomicUsize,
    /// Collections that have released blocks that they kept.
    pub(crate) released: AtomicU64,
    /// Frees of blocks that were freed already, and could be told.
    pub(crate) double_frees: AtomicU64,
    /// Bytes of caches, mark stack and markers; `Memory::metadata_bytes` counts the tables.
    pub(crate) auxiliary_bytes: AtomicUsize,
    /// Bytes the last collection reclaimed.
    pub(crate) reclaimed_by_gc: AtomicUsize,
    /// Consecutive ineffective collections on memory pressure, and requests that will skip theirs.
    ineffective_collections: AtomicU32,
    skipped_collections: AtomicU32,
    pub(crate) reporter: StatsReporter,
    pub(crate) collector: Lock<Collector>,
    pub(crate) spans_by_class: [Lock<Spans>; SPAN_CLASSES],
    pub(crate) units: Lock<Units>,
    pub(crate) caches: Lock<Caches>,
}

/// All locks of the heap but the collector's.
pub(crate) struct HeapGuards<'a> {
    pub spans_by_class: [Guard<'a, Spans>; SPAN_CLASSES],
    pub units: Guard<'a, Units>,
    pub caches: Guard<'a, Caches>,
}

impl Heap {
    /// A heap without memory, in mode `explicit` until it is configured.
    pub const fn new() -> Heap {
        Heap {
            reservation: HeapReservation::new(),
            fast_free_units: AtomicUsize::new(0),
            // An arbitrary number: no double free must be reported to a program that stores a well-known one.
            key: AtomicU64::new(0xd1b5_8c0e_6f27_a94d),
            rounding: AtomicUsize::new(15),
            mode: AtomicU32::new(Mode::Explicit as u32),
            poison: AtomicBool::new(false),
            epoch: AtomicU32::new(1),
            swept: AtomicBool::new(true),
            purge_due: AtomicBool::new(false),
            live_after_gc: AtomicUsize::new(0),
            allocated_since_gc: AtomicIsize::new(0),
            counted_ahead: AtomicUsize::new(0),
            cache_count: AtomicUsize::new(0),
            budget: AtomicIsize::new(isize::MAX),
            allocated_total: AtomicU64::new(0),
            due_at_allocated: AtomicU64::new(u64::MAX),
            batch_bytes: AtomicUsize::new(usize::MAX),
            large_since_gc: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            kept: AtomicUsize::new(0),
            released: AtomicU64::new(0),
            double_frees: AtomicU64::new(0),
            auxiliary_bytes: AtomicUsize::new(0),
            reclaimed_by_gc: AtomicUsize::new(0),
            ineffective_collections: AtomicU32::new(0),
            skipped_collections: AtomicU32::new(0),
            reporter: StatsReporter::new("tithe"),
            collector: Lock::new(Collector::new()),
            spans_by_class: [const { Lock::new(Spans::new()) }; SPAN_CLASSES],
            units: Lock::new(Units::new()),
            caches: Lock::new(Caches::new()),
        }
    }

    /// As [`Heap::new`], for a process whose mode is not known yet: blocks it allocates before already have the byte
    /// after their end.
    pub const fn unconfigured() -> Heap {
        let mut heap = Heap::new();
        heap.rounding = AtomicUsize::new(16);
        heap
    }

    pub(crate) fn is_mode(&self, mode: Mode) -> bool {
        self.mode.load(Ordering::Relaxed) == mode as u32
    }

    /// The mode, of those that collect.
    pub(crate) fn run_mode(&self) -> Mode {
        let modes = [Mode::Collect, Mode::Guard];
        modes.into_iter().find(|&mode| self.is_mode(mode)).unwrap_or(Mode::Hybrid)
    }

    pub(crate) fn collects(&self) -> bool {
        !self.is_mode(Mode::Explicit)
    }

    pub(crate) fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Bytes in blocks that are allocated or in caches, as far as is known without a collection.
    pub fn live_bytes(&self) -> usize {
        self.live_after_gc
            .load(Ordering::Relaxed)
            .saturating_add_signed(self.allocated_since_gc.load(Ordering::Relaxed))
    }

    pub(crate) fn lock_all(&self) -> HeapGuards<'_> {
        HeapGuards {
            spans_by_class: array::from_fn(|span_class| self.spans_by_class[span_class].lock()),
            units: self.units.lock(),
            caches: self.caches.lock(),
        }
    }

    /// Called after units were taken: reports the growth of the heap, and enables the fast path of free in new units.
    fn on_growth(&self, units: &mut Units) {
        self.report_used(units);
        assert_internal!(units.reported_units <= self.reservation.units(), "the heap never shrinks");
        if units.reported_units == self.reservation.units() {
            return;
        }
        units.reported_units = self.reservation.units();
        self.report_size(units);
        self.enable_fast_path();
    }

    /// Reports how much of the heap holds blocks. Called with the units' lock held.
    pub(crate) fn report_used(&self, units: &Units) {
        self.reporter.used(units.used_bytes(&self.reservation));
    }

    /// Reports the mapped address space, the tables included. Called with the units' lock held.
    pub(crate) fn report_size(&self, units: &Units) {
        self.reporter.grown(units.memory.mapped_bytes() + self.auxiliary_bytes.load(Ordering::Relaxed));
    }

    /// Sets which frees may take the fast path.
    pub(crate) fn enable_fast_path(&self) {
        if !self.is_mode(Mode::Collect) && !self.is_mode(Mode::Guard) && !self.poison.load(Ordering::Relaxed)
        {
            self.fast_free_units.store(self.reservation.units(), Ordering::Relaxed);
        }
    }

    /// Counts allocated bytes.
    fn count_allocated(&self, bytes: usize) {
        self.allocated_since_gc.fetch_add(bytes as isize, Ordering::Relaxed);
        self.allocated_total.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts bytes that a cache reserves, ahead of them where counting each time would move the line of the counters from
    /// one processor's cache to the other's.
    fn count_reserved(&self, cache: &mut Cache, bytes: usize) {
        if cache.counted < bytes {
            let caches = self.cache_count.load(Ordering::Relaxed);
            let ahead = if caches > 1 { self.counted_ahead.load(Ordering::Relaxed) / caches } else { 0 };
            let step = bytes.max(ahead);
            self.count_allocated(step);
            cache.counted += step;
        }
        cache.counted -= bytes;
    }

    /// Takes back what a cache has counted ahead. Its thread is stopped, or calls this under the lock of all caches.
    pub(crate) fn uncount_ahead(&self, counted: &mut usize) {
        let ahead = core::mem::take(counted);
        self.allocated_since_gc.fetch_sub(ahead as isize, Ordering::Relaxed);
        self.allocated_total.fetch_sub(ahead as u64, Ordering::Relaxed);
    }

    fn count_freed(&self, bytes: usize) {
        self.allocated_since_gc.fetch_sub(bytes as isize, Ordering::Relaxed);
    }
}

impl Default for Heap {
    fn default() -> Heap {
        Heap::new()
    }
}

#[cfg(test)]
mod tests;
