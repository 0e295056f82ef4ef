//! What a manager reports: counters on the statistics page, and events to the one listener of the control contract.

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use heaptoll_assertions::assert_internal;
use heaptoll_stats_page::{AbandonCause, Slot, UnreadPlaces, Writer, WriterKind};

use crate::Search;
use crate::contract::{
    COLLECTION_END, COLLECTION_START, EventFunction, HEAP_GROWN, HEAP_SHRUNK, PHASE, Phase, RawEvent, Reason,
};

/// A manager's reporter of statistics and events; a static of it, or a part of one.
pub struct StatsReporter {
    writer: Writer,
    listener: AtomicPtr<c_void>,
    context: AtomicPtr<c_void>,
    /// The heap's size as last reported, bytes.
    mapped: AtomicUsize,
}

/// The figures of a finished collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collected {
    /// Its number, from 1.
    pub number: u64,
    /// Bytes in live blocks.
    pub live_bytes: usize,
    /// Bytes in blocks that it reclaimed.
    pub collected_bytes: usize,
    /// How long the program was stopped, ns.
    pub pause_ns: u64,
}

impl StatsReporter {
    /// The reporter of the manager of this name.
    pub const fn new(name: &'static str) -> StatsReporter {
        StatsReporter::of(WriterKind::Manager, name)
    }

    /// The reporter of the layer of this name.
    pub const fn layer(name: &'static str) -> StatsReporter {
        StatsReporter::of(WriterKind::Layer, name)
    }

    const fn of(kind: WriterKind, name: &'static str) -> StatsReporter {
        StatsReporter {
            writer: Writer::new(kind, name),
            listener: AtomicPtr::new(ptr::null_mut()),
            context: AtomicPtr::new(ptr::null_mut()),
            mapped: AtomicUsize::new(0),
        }
    }

    /// The process's counters.
    #[inline(always)]
    pub fn slot(&self) -> &Slot {
        self.writer.slot()
    }

    /// The control contract's `listen`. The caller holds the locks under which events are reported, so that no function
    /// receives an event with another's context.
    pub fn listen(&self, function: Option<EventFunction>, context: *mut c_void) -> c_int {
        match function {
            None => self.listener.store(ptr::null_mut(), Ordering::Relaxed),
            Some(_) if !self.listener.load(Ordering::Relaxed).is_null() => return libc::EBUSY,
            Some(function) => {
                self.context.store(context, Ordering::Relaxed);
                self.listener.store(function as *mut c_void, Ordering::Release);
            }
        }
        0
    }

    /// Calls the listener, if there is one, with an event of the given kind (see `include/heaptoll.h`). The caller
    /// holds a lock that [`StatsReporter::listen`]'s caller holds too.
    pub fn event(&self, kind: u32, collection: u64, value: u64) {
        let listener = self.listener.load(Ordering::Acquire);
        assert_internal!((COLLECTION_START..=HEAP_SHRUNK).contains(&kind), "an event is of a known kind");
        if listener.is_null() {
            return;
        }
        let event = RawEvent {
            size: size_of::<RawEvent>() as u32,
            kind,
            time_ns: now_ns(),
            collection,
            value,
            mapped_bytes: self.mapped.load(Ordering::Relaxed) as u64,
        };
        // SAFETY: `listen` stored it from a function of that type, with its context; the caller holds a lock that the
        // caller of `listen` held, so the two belong together.
        unsafe {
            let function = core::mem::transmute::<*mut c_void, EventFunction>(listener);
            function(&event, self.context.load(Ordering::Relaxed));
        }
    }

    /// The heap has this size: a count, and no event.
    pub fn mapped(&self, mapped_bytes: usize) {
        self.mapped.store(mapped_bytes, Ordering::Relaxed);
        let slot = self.slot();
        slot.mapped_bytes.store(mapped_bytes as u64, Ordering::Relaxed);
        slot.mapped_high_bytes.fetch_max(mapped_bytes as u64, Ordering::Relaxed);
        assert_internal!(
            slot.mapped_high_bytes.load(Ordering::Relaxed) >= mapped_bytes as u64,
            "the high-water mark of the heap is no smaller than the heap"
        );
    }

    /// In the child of a fork: it has a slot of its own, and a heap of the size reported last from the start.
    pub fn after_fork_in_child(&self) {
        self.mapped(self.mapped.load(Ordering::Relaxed));
    }

    /// The heap has grown to this size.
    pub fn grown(&self, mapped_bytes: usize) {
        self.mapped(mapped_bytes);
        self.event(HEAP_GROWN, 0, mapped_bytes as u64);
    }

    /// The heap has shrunk to this size.
    pub fn shrunk(&self, mapped_bytes: usize) {
        self.mapped(mapped_bytes);
        self.event(HEAP_SHRUNK, 0, mapped_bytes as u64);
    }

    /// Collections cannot read these places, which the program uses.
    pub fn unread(&self, places: UnreadPlaces) {
        if places != UnreadPlaces::NONE {
            self.slot().unread_places.fetch_or(places.bits(), Ordering::Relaxed);
        }
    }

    /// A collection was abandoned.
    pub fn abandoned(&self, cause: AbandonCause) {
        self.slot().abandon_causes.fetch_or(cause.bit(), Ordering::Relaxed);
    }

    /// A call returned null.
    pub fn failed(&self) {
        self.slot().failed_calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Of the calls that returned null, one more that a limit of the heap refused.
    pub fn refused(&self) {
        self.slot().refused_calls.fetch_add(1, Ordering::Relaxed);
    }

    /// So much of the heap holds blocks, bytes. The caller holds a lock: one thread reports at a time.
    pub fn used(&self, used_bytes: usize) {
        let slot = self.slot();
        slot.used_bytes.store(used_bytes as u64, Ordering::Relaxed);
        if used_bytes as u64 > slot.used_high_bytes.load(Ordering::Relaxed) {
            slot.used_high_bytes.store(used_bytes as u64, Ordering::Relaxed);
        }
        assert_internal!(
            slot.used_high_bytes.load(Ordering::Relaxed) >= used_bytes as u64,
            "the high-water mark of used bytes is no smaller than these"
        );
    }

    /// A collection has taken so much processor time, on all threads that took part, ns.
    pub fn collector_cpu(&self, ns: u64) {
        self.slot().collector_cpu_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// A collection begins.
    pub fn collection_starts(&self, number: u64, reason: Reason) {
        self.event(COLLECTION_START, number, reason as u64);
    }

    /// A phase of a collection begins.
    pub fn phase(&self, number: u64, phase: Phase) {
        self.event(PHASE, number, phase as u64);
    }

    /// An increment of a collection is finished, which has stopped the program for so long, ns, and goes on later.
    pub fn increment_ends(&self, number: u64, live_bytes: usize, pause_ns: u64) {
        self.paused(pause_ns);
        self.event(COLLECTION_END, number, live_bytes as u64);
    }

    fn paused(&self, pause_ns: u64) {
        let slot = self.slot();
        slot.pause_total_ns.fetch_add(pause_ns, Ordering::Relaxed);
        slot.pause_max_ns.fetch_max(pause_ns, Ordering::Relaxed);
    }

    /// A collection is finished, whose last pause is given.
    pub fn collection_ends(&self, collected: Collected) {
        let slot = self.slot();
        slot.collections.fetch_add(1, Ordering::Relaxed);
        self.paused(collected.pause_ns);
        slot.collected_bytes.fetch_add(collected.collected_bytes as u64, Ordering::Relaxed);
        slot.live_bytes.store(collected.live_bytes as u64, Ordering::Relaxed);
        slot.live_high_bytes.fetch_max(collected.live_bytes as u64, Ordering::Relaxed);
        assert_internal!(
            slot.pause_max_ns.load(Ordering::Relaxed) <= slot.pause_total_ns.load(Ordering::Relaxed),
            "the longest pause is one of those that are added up"
        );
        self.event(COLLECTION_END, collected.number, collected.live_bytes as u64);
    }

    /// Bytes of freed blocks that waited for a collection, and those that it keeps. Since the start: how often kept blocks
    /// were released, and how many blocks were written after their free.
    pub fn held(&self, waiting: usize, kept: usize, released: u64, written: u64) {
        let slot = self.slot();
        slot.held_bytes.store(kept as u64, Ordering::Relaxed);
        slot.held_high_bytes.fetch_max(waiting as u64, Ordering::Relaxed);
        slot.held_releases.store(released, Ordering::Relaxed);
        slot.written_after_free.store(written, Ordering::Relaxed);
    }

    /// How far the manager searched in all: reported at process end.
    pub fn searched(&self, search: Search) {
        let slot = self.slot();
        slot.searches.store(search.searches, Ordering::Relaxed);
        slot.search_steps.store(search.steps, Ordering::Relaxed);
        slot.search_longest.store(search.longest, Ordering::Relaxed);
    }
}

impl core::fmt::Debug for StatsReporter {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("StatsReporter").field("mapped", &self.mapped).finish_non_exhaustive()
    }
}

/// `CLOCK_MONOTONIC`, ns: the clock of events and pauses.
pub fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to `now` alone; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// `CLOCK_THREAD_CPUTIME_ID`, ns: processor time of the calling thread.
pub fn thread_cpu_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to `now` alone; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;

    unsafe extern "C" fn log_event(event: *const RawEvent, context: *mut c_void) {
        // SAFETY: the reporter's event, and the vector that the test passed.
        let (event, log) = unsafe { (&*event, &mut *context.cast::<Vec<[u64; 4]>>()) };
        assert_eq!(event.size as usize, size_of::<RawEvent>());
        log.push([u64::from(event.kind), event.collection, event.value, event.mapped_bytes]);
    }

    #[test]
    fn the_one_listener_receives_growth_and_a_collection_in_order() {
        let (reporter, mut log) = (StatsReporter::new("test"), Vec::<[u64; 4]>::new());
        reporter.grown(4096);
        let context = (&raw mut log).cast();
        assert_eq!(reporter.listen(Some(log_event), context), 0);
        assert_eq!(reporter.listen(Some(log_event), context), libc::EBUSY);
        reporter.grown(8192);
        reporter.collection_starts(1, Reason::Allocation);
        reporter.phase(1, Phase::Mark);
        reporter.collection_ends(Collected { number: 1, live_bytes: 77, collected_bytes: 5, pause_ns: 9 });
        reporter.shrunk(4096);
        assert_eq!(reporter.listen(None, ptr::null_mut()), 0);
        reporter.grown(12288);
        let events =
            [[4, 0, 8192, 8192], [1, 1, 1, 8192], [3, 1, 3, 8192], [2, 1, 77, 8192], [5, 0, 4096, 4096]];
        assert_eq!(log, events);
        assert_eq!(reporter.listen(Some(log_event), context), 0, "the place is free again");
    }

    #[test]
    fn counters_sum_and_keep_the_longest_pause() {
        let reporter = StatsReporter::new("test");
        for (number, pause_ns) in [(1, 30), (2, 50), (3, 40)] {
            reporter.collection_ends(Collected { number, live_bytes: 10, collected_bytes: 7, pause_ns });
        }
        let slot = reporter.slot();
        let counters = [&slot.collections, &slot.pause_total_ns, &slot.pause_max_ns, &slot.collected_bytes];
        assert_eq!(counters.map(|counter| counter.load(Ordering::Relaxed)), [3, 120, 50, 21]);
    }

    #[test]
    fn what_is_used_has_a_high_water_mark_and_processor_time_sums() {
        let reporter = StatsReporter::new("test");
        reporter.used(8192);
        reporter.used(4096);
        reporter.collector_cpu(5);
        reporter.collector_cpu(6);
        reporter.refused();
        reporter.unread(UnreadPlaces::IO_URING);
        reporter.unread(UnreadPlaces::NONE);
        reporter.abandoned(AbandonCause::Thread);
        reporter.abandoned(AbandonCause::Process);
        let slot = reporter.slot();
        let counters = [
            &slot.used_bytes,
            &slot.used_high_bytes,
            &slot.collector_cpu_ns,
            &slot.refused_calls,
            &slot.unread_places,
            &slot.abandon_causes,
        ];
        assert_eq!(counters.map(|counter| counter.load(Ordering::Relaxed)), [4096, 8192, 11, 1, 1, 5]);
    }

    #[test]
    fn the_high_water_mark_stays_when_the_heap_shrinks() {
        let reporter = StatsReporter::new("test");
        reporter.grown(8192);
        reporter.shrunk(4096);
        let slot = reporter.slot();
        let sizes = [&slot.mapped_bytes, &slot.mapped_high_bytes].map(|size| size.load(Ordering::Relaxed));
        assert_eq!(sizes, [4096, 8192]);
    }
}
