//! When the next collection is due: the settings, the policy's budget, and the postponement of a collection whose blocks
//! are hardly touched.

use core::sync::atomic::Ordering;

use heaptoll_assertions::assert_internal;
use heaptoll_marking::cores;
use heaptoll_roots::World;
use heaptoll_runtime::{Message, now_ns, thread_cpu_ns};

use crate::class::UNIT;
use crate::collector::{ADDRESS_PERCENT_MIN, Collector, SPARE};
use crate::heap::Heap;
use crate::misuse;
use crate::mode::Mode;
use crate::progress::Guarded;
use crate::reservation::HUGE_FROM;
use crate::resident::resident_bytes;
use crate::settings::Settings;

/// Fewest batches between two collections by `TITHE_EVERY`, so that collections start when they are due.
const BATCHES: usize = 16;
/// Most bytes of addresses that blocks may have for a hundred bytes of memory.
const ADDRESS_PERCENT_MAX: usize = 800;

/// Most bytes that all caches together count ahead, and of a budget the part.
const COUNTED_AHEAD: usize = 64 << 10;
const AHEAD_PART: usize = 16;

/// Full collections that would take longer, ns, are incremental where there are generations.
const FULL_PAUSE_NS: u64 = 100_000_000;

impl Heap {
    /// Applies the settings. Without a world only added roots are read: for tests.
    pub fn configure(&self, settings: &Settings, world: Option<&'static World>) {
        let mut collector = self.collector.lock();
        collector.policy.configure(settings);
        collector.markers.configure(settings.markers);
        collector.world = world;
        collector.log = settings.log;
        collector.why = settings.why;
        collector.guard = settings.guard;
        collector.ended_ns = now_ns();
        collector.ended_cpu_ns = thread_cpu_ns();
        collector.cores = cores();
        self.mode.store(settings.mode as u32, Ordering::Relaxed);
        let rounding = if settings.mode == Mode::Explicit { 15 } else { 16 };
        self.rounding.store(rounding, Ordering::Relaxed);
        self.poison.store(settings.poison, Ordering::Relaxed);
        misuse::abort(settings.abort);
        collector.every = settings.every;
        collector.reclaim = settings.reclaim;
        collector.eager = settings.eager;
        self.enable_write_records(&mut collector, settings);
        self.units.lock().limit = settings.heap.map_or(usize::MAX, |bytes| bytes / UNIT);
        self.batch_bytes.store(settings.every.map_or(usize::MAX, |every| every / BATCHES), Ordering::Relaxed);
        let first = collector.policy.first();
        collector.last_budget = self.within_bound(&mut collector, first, &Guarded::NONE);
        self.set_budget(&collector, collector.last_budget, 0);
        if settings.every.is_some() && self.collects() {
            self.due_at_allocated.store(collector.last_budget as u64, Ordering::Relaxed);
        }
        if self.collects() {
            let _ = collector.spare.reserve(SPARE);
        }
        if settings.mode == Mode::Guard && !self.enable_guard(&settings.guard) {
            Message::new().text("tithe: there is no memory for the table of freed blocks").abort();
        }
        self.fast_free_units.store(0, Ordering::Relaxed);
        self.enable_fast_path();
    }

    /// Gives blocks ages and opens the records of writes, where the settings have generations or short pauses. Collections
    /// that reclaim nothing keep no ages, and a heap with a limit needs the free places between old blocks.
    fn enable_write_records(&self, collector: &mut Collector, settings: &Settings) {
        let possible = self.collects() && settings.reclaim == 1 && settings.heap.is_none();
        let pause_ns = settings.pause_ns.filter(|_| possible && settings.every.is_none());
        let wanted = settings.generations && possible;
        let generations = &mut collector.generations;
        generations.check = settings.check_young;
        generations.enabled = wanted;
        collector.increments.pause_ns = None;
        collector.increments.of_full = wanted;
        if !wanted && pause_ns.is_none() {
            return;
        }
        if let Err(cause) = generations.tracker.open() {
            generations.on_untracked(cause);
            return;
        }
        let mut units = self.units.lock();
        if !self.reservation.enable_ages(&mut units.memory) {
            generations.enabled = false;
        } else if wanted {
            let most = settings.pause_ns.unwrap_or(FULL_PAUSE_NS);
            collector.increments.pause_ns = (!settings.needs_whole()).then_some(most);
        } else {
            collector.increments.pause_ns = pause_ns;
            // The first write to a huge page would make all of it count as written.
            units.memory.use_small_pages(true);
        }
    }

    /// Sets how many bytes may be allocated before the next collection, in addition to those counted already.
    pub(crate) fn set_budget(&self, collector: &Collector, bytes: usize, counted: isize) {
        if collector.every.is_none() || !self.collects() {
            self.counted_ahead.store((bytes / AHEAD_PART).min(COUNTED_AHEAD), Ordering::Relaxed);
            let budget = isize::try_from(bytes).unwrap_or(isize::MAX);
            self.budget.store(counted.saturating_add(budget), Ordering::Relaxed);
            return;
        }
        // A late collection does not postpone the next: their number is that of the bytes divided by `every`.
        let (allocated, was_due) =
            (self.allocated_total.load(Ordering::Relaxed), self.due_at_allocated.load(Ordering::Relaxed));
        let bytes = bytes as u64;
        let next = was_due.saturating_add(bytes);
        let on_time = allocated >= was_due && next > allocated;
        self.due_at_allocated
            .store(if on_time { next } else { allocated.saturating_add(bytes) }, Ordering::Relaxed);
        self.counted_ahead.store(0, Ordering::Relaxed);
        self.budget.store(isize::MAX, Ordering::Relaxed);
    }

    /// Whether the next collection is due.
    pub(crate) fn is_due(&self) -> bool {
        self.counted() >= self.budget.load(Ordering::Relaxed)
            || self.allocated_total.load(Ordering::Relaxed) >= self.due_at_allocated.load(Ordering::Relaxed)
    }

    /// A program may allocate large blocks and touch little of them: these cost addresses, not memory. When they are a
    /// good part of what was allocated, blocks may take more addresses than the budget, as long as the resident pages
    /// do not exceed it. Returns whether the collection can wait.
    pub(crate) fn postpone(&self, collector: &mut Collector) -> bool {
        let live = self.live_after_gc.load(Ordering::Relaxed);
        let allowed = live.saturating_add(collector.increments.trigger(collector.last_budget));
        self.choose_page_size(collector);
        let is_small = self.large_since_gc.load(Ordering::Relaxed) < collector.last_budget / 4;
        // What is free will be taken again. Large blocks that are touched in part leave some of it resident, which counts as
        // theirs.
        let is_partly_touched = !is_small && collector.address_percent > ADDRESS_PERCENT_MIN;
        let spare = if is_partly_touched { allowed / 4 } else { crate::runs::RESIDENT_MIN.max(allowed / 2) };
        let (mapped, most) = (self.reservation.units() * UNIT, allowed.saturating_add(spare));
        // The kernel need not be asked where no more can be resident.
        let resident = if is_small && mapped <= most { mapped } else { self.resident_bytes() };
        // Free resident memory will be reused, unless it is more than that.
        self.purge_due.store(resident > most, Ordering::Relaxed);
        if is_small {
            collector.address_percent = ADDRESS_PERCENT_MIN;
            return false;
        }
        let address_percent = (self.live_bytes() / (allowed / ADDRESS_PERCENT_MIN).max(1))
            .clamp(ADDRESS_PERCENT_MIN, ADDRESS_PERCENT_MAX);
        if resident < allowed - allowed / 8 && address_percent < ADDRESS_PERCENT_MAX {
            let left = allowed - resident;
            let extended = self.allocated_since_gc.load(Ordering::Relaxed).saturating_add_unsigned(left);
            self.budget.store(extended, Ordering::Relaxed);
            return true;
        }
        collector.address_percent = if resident > allowed + allowed / 8 {
            (address_percent - address_percent / 8).max(ADDRESS_PERCENT_MIN)
        } else {
            address_percent
        };
        assert_internal!(
            (ADDRESS_PERCENT_MIN..=ADDRESS_PERCENT_MAX).contains(&collector.address_percent),
            "blocks have addresses for their memory, and not for more than eight times of it"
        );
        false
    }

    /// Chooses the size of pages by what was allocated since the last collection. Large blocks that are touched in part, and
    /// dropped when they are dead, get small pages.
    fn choose_page_size(&self, collector: &Collector) {
        let large = self.large_since_gc.load(Ordering::Relaxed);
        let budget = collector.last_budget;
        let is_known = large >= budget / 4 || large < budget / 16;
        let may_change = collector.increments.of_full || collector.increments.pause_ns.is_none();
        if self.is_mode(Mode::Collect) && may_change && is_known {
            let small = large >= budget / 4 && self.reservation.units() * UNIT >= HUGE_FROM;
            self.units.lock().memory.use_small_pages(small);
        }
    }

    /// Resident bytes of the heap.
    fn resident_bytes(&self) -> usize {
        let (base, bytes) = (self.reservation.base(), self.reservation.units() * UNIT);
        let resident = resident_bytes(base..base + bytes);
        assert_internal!(resident <= bytes, "no more of the heap is resident than is mapped");
        resident
    }
}
