//! A collection: all locks are taken, the world is stopped, what is reachable is marked, the world is resumed. Sweeping
//! happens later, when blocks are needed.

use core::ffi::c_void;
use core::ops::Range;
use core::sync::atomic::Ordering;

use heaptoll_marking::{KEPT, MarkStack};
use heaptoll_roots::{StopError, StoppedWorld, UnstoppedThread, World};
use heaptoll_runtime::{
    Collected, Damage, Message, PAGE, Phase, Reason as EventReason, now_ns, thread_cpu_ns,
};

use crate::added::AddedRoots;
use crate::class::{CLASS, FREE, SPAN_CLASSES, UNIT, UNIT_SHIFT};
use crate::heap::{Heap, HeapGuards};
use crate::log::{self, Abandoned, Cause, Reason, Report, Sink};
use crate::markers::{Markers, Roots};
use crate::misuse;
use crate::policy::{Cycle, Policy, decimal};
use crate::settings::{Mode, Settings};
use crate::signal_mask::SignalMaskGuard;

/// Fewest batches between two collections by `TITHE_EVERY`, so that collections start when they are due.
const BATCHES: usize = 16;
/// How long a thread may take to stop before the locks are released briefly, ms; doubles each time.
const FIRST_PATIENCE_MS: u32 = 10;
/// Bytes of addresses that blocks may have for a hundred bytes of memory: where every block is touched, and at most.
const ADDRESS_PERCENT_MIN: usize = 100;
const ADDRESS_PERCENT_MAX: usize = 800;

/// The state of the collector, kept from one collection to the next. Its lock lets one thread collect at a time.
pub struct Collection {
    pub(crate) policy: Policy,
    pub(crate) stack: MarkStack,
    pub(crate) markers: Markers,
    pub(crate) added: AddedRoots,
    pub(crate) statistics: Statistics,
    pub(crate) world: Option<&'static World>,
    pub(crate) log: Option<Sink>,
    /// After each collection the chain that keeps the block at this address is written.
    pub(crate) why: Option<usize>,
    /// The last budget of the policy, bytes.
    last_budget: usize,
    /// Bytes of addresses that blocks may have for a hundred bytes of memory.
    address_percent: usize,
    /// Collections are due by allocated bytes, and not by a budget: `TITHE_EVERY`.
    every: Option<usize>,
    /// Every `reclaim`-th of the collections that were due reclaims.
    reclaim: u64,
    /// All is swept before the program is resumed.
    eager: bool,
    /// When the last collection ended, ns.
    ended_ns: u64,
    /// A collection is running: a listener that it calls must not start another.
    busy: bool,
    /// An abandoned collection has been reported.
    warned: bool,
}

/// Counters since the start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Statistics {
    pub collections: u64,
    pub abandoned: u64,
    pub pause_total_ns: u64,
    pub pause_max_ns: u64,
    pub collected_bytes: u64,
}

/// Why there was no collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotCollected {
    /// The mode is `explicit`.
    Mode,
    /// A thread did not stop, the system did not give what is needed, or a collection is running already.
    Abandoned,
}

impl Collection {
    pub const fn new() -> Collection {
        Collection {
            policy: Policy::new(),
            stack: MarkStack::new(),
            markers: Markers::new(),
            added: AddedRoots::new(),
            statistics: Statistics {
                collections: 0,
                abandoned: 0,
                pause_total_ns: 0,
                pause_max_ns: 0,
                collected_bytes: 0,
            },
            world: None,
            log: None,
            why: None,
            last_budget: 0,
            address_percent: ADDRESS_PERCENT_MIN,
            every: None,
            reclaim: 1,
            eager: false,
            ended_ns: 0,
            busy: false,
            warned: false,
        }
    }

    /// Bytes of its own mapped memory.
    pub fn mapped_bytes(&self) -> usize {
        self.stack.range().len() + self.markers.range().len()
    }
}

/// The times of a collection, ns.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    started: u64,
    stopped: u64,
    marked: u64,
    swept: u64,
}

impl Heap {
    /// Applies the settings. Without a world only added roots are read: for tests.
    pub fn configure(&self, settings: &Settings, world: Option<&'static World>) {
        let mut collection = self.collection.lock();
        collection.policy.configure(settings);
        collection.markers.configure(settings.markers);
        collection.world = world;
        collection.log = settings.log;
        collection.why = settings.why;
        collection.ended_ns = now_ns();
        self.mode.store(settings.mode as u32, Ordering::Relaxed);
        let rounding = if settings.mode == Mode::Explicit { 15 } else { 16 };
        self.rounding.store(rounding, Ordering::Relaxed);
        self.poison.store(settings.poison, Ordering::Relaxed);
        misuse::abort(settings.abort);
        collection.every = settings.every;
        collection.reclaim = settings.reclaim;
        collection.eager = settings.eager;
        self.units.lock().limit = settings.heap.map_or(usize::MAX, |bytes| bytes / UNIT);
        self.batch_bytes.store(settings.every.map_or(usize::MAX, |every| every / BATCHES), Ordering::Relaxed);
        collection.last_budget = collection.policy.first();
        self.set_budget(&collection, collection.last_budget, 0);
        if settings.every.is_some() && self.collects() {
            self.due_at_allocated.store(collection.last_budget as u64, Ordering::Relaxed);
        }
        self.fast_free_units.store(0, Ordering::Relaxed);
        self.enable_fast_path();
    }

    /// Sets how many bytes may be allocated before the next collection, in addition to those counted already.
    fn set_budget(&self, collection: &Collection, bytes: usize, counted: isize) {
        if collection.every.is_none() || !self.collects() {
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
        self.budget.store(isize::MAX, Ordering::Relaxed);
    }

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
        let mut collection = self.collection.lock();
        if collection.busy {
            return Err(NotCollected::Abandoned);
        }
        if reason != Reason::Called && self.epoch() != before {
            // Another thread collected while this one waited for the lock.
            return Ok(());
        }
        if reason == Reason::Budget && collection.every.is_none() && self.postpone(&mut collection) {
            return Ok(());
        }
        collection.busy = true;
        let signal_mask = SignalMaskGuard::new();
        let cpu_ns = thread_cpu_ns();
        self.sweep_all();
        if reason == Reason::Called {
            // The caller wants the collection finished, and free memory released.
            self.purge_due.store(true, Ordering::Relaxed);
        }
        let outcome = self.collect_stopped(&mut collection, reason);
        if reason == Reason::Called {
            self.sweep_all();
        }
        self.reporter.collector_cpu(thread_cpu_ns().saturating_sub(cpu_ns));
        collection.busy = false;
        let warning = collection.policy.warning();
        drop(collection);
        drop(signal_mask);
        if let Some(warning) = warning {
            warning.write();
        }
        outcome
    }

    /// A program may allocate large blocks and touch little of them: these cost addresses, not memory. When they are a
    /// good part of what was allocated, blocks may take more addresses than the budget, as long as the resident pages
    /// do not exceed it. Returns whether the collection can wait.
    fn postpone(&self, collection: &mut Collection) -> bool {
        let live = self.live_after_gc.load(Ordering::Relaxed);
        let allowed = live.saturating_add(collection.last_budget);
        let resident = self.resident_bytes();
        // Free resident memory will be reused, unless it is more than that.
        self.purge_due.store(resident > allowed.saturating_add(allowed / 4), Ordering::Relaxed);
        if self.large_since_gc.load(Ordering::Relaxed) < collection.last_budget / 4 {
            collection.address_percent = ADDRESS_PERCENT_MIN;
            return false;
        }
        let blocks = self.live_bytes();
        let address_percent =
            (blocks / (allowed / ADDRESS_PERCENT_MIN).max(1)).clamp(ADDRESS_PERCENT_MIN, ADDRESS_PERCENT_MAX);
        if resident < allowed - allowed / 8 && address_percent < ADDRESS_PERCENT_MAX {
            let left = allowed - resident;
            let extended = self.allocated_since_gc.load(Ordering::Relaxed).saturating_add_unsigned(left);
            self.budget.store(extended, Ordering::Relaxed);
            return true;
        }
        collection.address_percent = if resident > allowed + allowed / 8 {
            (address_percent - address_percent / 8).max(ADDRESS_PERCENT_MIN)
        } else {
            address_percent
        };
        false
    }

    /// Resident bytes of the heap.
    fn resident_bytes(&self) -> usize {
        let mut pages = [0u8; 4096];
        let bytes = self.reservation.units() * UNIT;
        let mut resident = 0;
        for at in (0..bytes).step_by(pages.len() * PAGE) {
            let length = (bytes - at).min(pages.len() * PAGE);
            let start = (self.reservation.base() + at) as *mut c_void;
            // SAFETY: the range is mapped memory of the heap, and `pages` has a byte for each page of it.
            if unsafe { libc::mincore(start, length, pages.as_mut_ptr()) } != 0 {
                return bytes;
            }
            resident += pages[..length / PAGE].iter().filter(|&&page| page & 1 != 0).count() * PAGE;
        }
        resident
    }

    /// Takes all locks and stops the world. A thread that ends frees its C library data with all signals blocked: if it
    /// waits for a lock there, the locks are released for it, and it is signalled again.
    pub(crate) fn stop_world(
        &self,
        world: Option<&'static World>,
    ) -> Result<(HeapGuards<'_>, Option<StoppedWorld<'static>>), StopError> {
        let Some(world) = world else { return Ok((self.lock_all(), None)) };
        let mut left_ms = world.patience_ms();
        let mut patience_ms = FIRST_PATIENCE_MS;
        loop {
            let guards = self.lock_all();
            match world.stop_within(patience_ms.min(left_ms)) {
                Ok(stopped) => return Ok((guards, Some(stopped))),
                Err(StopError::Thread(_)) if patience_ms < left_ms => {
                    left_ms -= patience_ms;
                    patience_ms *= 2;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn collect_stopped(&self, collection: &mut Collection, reason: Reason) -> Result<(), NotCollected> {
        let number = collection.statistics.collections + 1;
        let mut times = Times { started: now_ns(), ..Times::default() };
        let mutator_ns = times.started.saturating_sub(collection.ended_ns);
        let allocated_since_gc = self.allocated_since_gc.load(Ordering::Relaxed);
        let before = self.live_bytes();
        self.reporter.collection_starts(number, event_reason(reason));
        self.reporter.phase(number, Phase::Stop);
        let (mut guards, stopped) = match self.stop_world(collection.world) {
            Ok(locked_and_stopped) => locked_and_stopped,
            Err(error) => {
                self.abandon(collection, reason, cause(&error), before, times.started);
                return Err(NotCollected::Abandoned);
            }
        };
        times.stopped = now_ns();
        let threads = stopped.as_ref().map_or(1, |stopped| stopped.threads());
        if !collection.stack.prepare() {
            drop(stopped);
            drop(guards);
            self.abandon(collection, reason, Cause::Memory, before, times.started);
            return Err(NotCollected::Abandoned);
        }
        let epoch = self.epoch().wrapping_add(1);
        self.reporter.phase(number, Phase::Mark);
        let cached = self.mark_cached(&guards);
        let markers = collection.markers.prepare(self.live_after_gc.load(Ordering::Relaxed));
        let excluded_ranges = self.excluded_ranges(collection, &guards);
        let Collection { added, markers: workers, stack, .. } = &mut *collection;
        let roots = Roots { added, stopped: stopped.as_ref(), excluded_ranges: &excluded_ranges };
        let Ok(marked) = workers.mark(markers, &self.reservation, stack, epoch, &roots) else {
            // Marks are missing: nothing may be reclaimed by them.
            self.clear_marks();
            drop(stopped);
            drop(guards);
            self.abandon(collection, reason, Cause::Roots, before, times.started);
            return Err(NotCollected::Abandoned);
        };
        wipe_stack();
        self.reporter.collector_cpu(marked.helpers_cpu_ns);
        let live = marked.live + cached;
        times.marked = now_ns();
        guards.units.epoch = epoch;
        // A collection that was requested, or that runs on memory pressure, reclaims in any case.
        let reclaims = reason != Reason::Budget || number.is_multiple_of(collection.reclaim);
        let (kept, reclaimed) = if reclaims {
            self.epoch.store(epoch, Ordering::Relaxed);
            self.swept.store(false, Ordering::Release);
            for spans in &mut guards.spans_by_class {
                spans.reset();
            }
            (live, before.saturating_sub(live))
        } else {
            self.clear_marks();
            (self.live_bytes(), 0)
        };
        times.swept = times.marked;
        if collection.eager && reclaims {
            self.reporter.phase(number, Phase::Sweep);
            self.sweep_all_locked(&mut guards);
            self.report_used(&guards.units);
            times.swept = now_ns();
        }
        let budget = collection.policy.next(&Cycle {
            live,
            allocated: usize::try_from(allocated_since_gc).unwrap_or(0),
            roots: marked.roots,
            mark_ns: times.marked - times.started,
            stop_ns: times.stopped - times.started,
            mutator_ns,
            reclaimed,
            mode: if self.is_mode(Mode::Collect) { Mode::Collect } else { Mode::Hybrid },
        });
        self.live_after_gc.store(kept, Ordering::Relaxed);
        self.reclaimed_by_gc.store(reclaimed, Ordering::Relaxed);
        self.allocated_since_gc.store(0, Ordering::Relaxed);
        self.large_since_gc.store(0, Ordering::Relaxed);
        collection.last_budget = budget;
        if self.is_mode(Mode::Collect) {
            guards.units.keep = budget;
        }
        let allowed = live.saturating_add(budget);
        let scaled =
            (allowed / ADDRESS_PERCENT_MIN).saturating_mul(collection.address_percent).max(allowed) - live;
        let scaled_budget = if collection.every.is_some() { budget } else { scaled };
        self.set_budget(collection, scaled_budget, 0);
        let auxiliary_bytes = guards.caches.mapped_bytes() + collection.mapped_bytes();
        if self.auxiliary_bytes.swap(auxiliary_bytes, Ordering::Relaxed) != auxiliary_bytes {
            self.report_size(&guards.units);
        }
        self.reporter.phase(number, Phase::Resume);
        drop(stopped);
        let resumed = now_ns();
        collection.stack.shrink(KEPT);
        let pause_ns = resumed - times.started;
        let statistics = &mut collection.statistics;
        statistics.collections = number;
        statistics.pause_total_ns += pause_ns;
        statistics.pause_max_ns = statistics.pause_max_ns.max(pause_ns);
        statistics.collected_bytes += reclaimed as u64;
        self.reporter.collection_ends(Collected {
            number,
            live_bytes: live,
            collected_bytes: reclaimed,
            pause_ns,
        });
        drop(guards);
        collection.ended_ns = resumed;
        let ambiguous = self.explain(collection);
        if let Some(sink) = &collection.log {
            log::write(
                sink,
                &Report {
                    number,
                    reason,
                    heap_before: before,
                    heap_after: self.reservation.units() * UNIT,
                    live,
                    reclaimed,
                    ambiguous,
                    roots_bytes: marked.roots,
                    budget,
                    threads,
                    markers: marked.markers,
                    stop_ns: times.stopped - times.started,
                    roots_ns: 0,
                    mark_ns: times.marked - times.stopped,
                    sweep_ns: times.swept - times.marked,
                    pause_ns,
                },
            );
        }
        Ok(())
    }

    /// Abandons a collection: reports the first, and lets the heap grow.
    fn abandon(
        &self,
        collection: &mut Collection,
        reason: Reason,
        cause: Cause,
        before: usize,
        started: u64,
    ) {
        collection.statistics.abandoned += 1;
        let budget = collection.policy.abandoned();
        self.set_budget(collection, budget, self.allocated_since_gc.load(Ordering::Relaxed));
        if !core::mem::replace(&mut collection.warned, true) {
            let line = Message::new().text("tithe: ");
            match &cause {
                Cause::Thread { tid, name, .. } => {
                    let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
                    let name = core::str::from_utf8(&name[..length]).unwrap_or("?");
                    let line = decimal(line.text("thread "), *tid as u64).text(" (").text(name);
                    line.text(") did not stop for a collection in time (it may block all signals); the heap grows instead")
                }
                Cause::Memory => line.text("no memory for a collection; the heap grows instead"),
                Cause::Vfork => line.text("no collection in a child of vfork; the heap grows instead"),
                Cause::Threads | Cause::Roots => {
                    line.text("/proc/self is not readable, so there is no collection; the heap grows instead")
                }
            }
            .write();
        }
        if let Some(sink) = &collection.log {
            log::write_abandoned(
                sink,
                &Abandoned {
                    number: collection.statistics.abandoned,
                    reason,
                    cause,
                    heap_before: before,
                    waited_ns: now_ns().saturating_sub(started),
                },
            );
        }
    }

    /// Marks the blocks in caches without scanning them, so that they stay there. Returns their bytes.
    pub(crate) fn mark_cached(&self, guards: &HeapGuards<'_>) -> usize {
        let mut bytes = 0;
        guards.caches.each(|cache| {
            // SAFETY: caches are never unmapped; their threads are stopped, and lists are consistent at every
            // instruction.
            let cache = unsafe { &*cache };
            for list in &cache.lists[1..] {
                let mut block = list.head;
                while !block.is_null() {
                    bytes += self.mark_block(block as usize);
                    // SAFETY: a block in a list is free and linked.
                    block = unsafe { (*block).next };
                }
            }
            for reserved in &cache.pending[..cache.pending_count] {
                // SAFETY: pending blocks lie in a span of the heap, whose bits have their word.
                let bits = unsafe { &(*self.reservation.span(reserved.unit)).bits[reserved.word as usize] };
                bits.marked.fetch_or(reserved.mask, Ordering::Relaxed);
            }
        });
        bytes
    }

    /// Marks a block; returns its size, bytes.
    fn mark_block(&self, address: usize) -> usize {
        let unit = self.reservation.first((address - self.reservation.base()) >> UNIT_SHIFT);
        let span_class = self.reservation.span_class(unit as usize) as usize;
        let block = CLASS[span_class].index(address - self.reservation.address(unit));
        // SAFETY: `unit` is the first of the block's span, and the span has a bit for each block.
        let bits = unsafe { &(*self.reservation.span(unit)).bits[block / 64] };
        bits.marked.fetch_or(1 << (block % 64), Ordering::Relaxed);
        CLASS[span_class].size as usize
    }

    pub(crate) fn clear_marks(&self) {
        let mut unit = 0;
        while unit < self.reservation.units() {
            if self.reservation.span_class(unit) == FREE {
                unit += 1;
                continue;
            }
            // SAFETY: the first unit of a span or large block; all locks are held.
            let span = unsafe { &*self.reservation.span(self.reservation.first(unit)) };
            for bits in &span.bits
                [..CLASS.get(span.span_class as usize).map_or(1, |class| class.blocks.div_ceil(64).into())]
            {
                bits.marked.store(0, Ordering::Relaxed);
            }
            unit += span.units as usize;
        }
    }

    /// The heap's own ranges: they are read block by block, or not at all.
    pub(crate) fn excluded_ranges(
        &self,
        collection: &Collection,
        guards: &HeapGuards<'_>,
    ) -> [Range<usize>; 9] {
        let [spans, span_classes, firsts, blacklist] = guards.units.memory.tables();
        let own = core::ptr::from_ref(self) as usize;
        let heap = &guards.units.memory.heap;
        [
            heap.start()..heap.end(),
            spans,
            span_classes,
            firsts,
            blacklist,
            guards.caches.range(),
            collection.stack.range(),
            collection.markers.range(),
            own..own + size_of::<Heap>(),
        ]
    }

    /// As [`Heap::check`], with the result of the control contract: 0, or EINVAL after a message.
    pub fn check_and_report(&self) -> i32 {
        match self.check() {
            Ok(()) => 0,
            Err(Damage { address, invariant }) => {
                let line = Message::new().text("tithe: the heap is damaged at ").address(address);
                line.text(": this does not hold: ").text(invariant).write();
                libc::EINVAL
            }
        }
    }
}

/// Clears what marking has left on the stack below. The program may have mapped this stack itself, so that it is read
/// as a whole: addresses of blocks there would keep these alive.
#[inline(never)]
fn wipe_stack() {
    let mut below = [0_u64; 2048];
    core::hint::black_box(&mut below);
}

const fn event_reason(reason: Reason) -> EventReason {
    match reason {
        Reason::Budget => EventReason::Allocation,
        Reason::Memory => EventReason::Pressure,
        Reason::Called => EventReason::Requested,
    }
}

const _: () = assert!(SPAN_CLASSES < 200, "the span classes of large blocks have no size class");

fn cause(error: &StopError) -> Cause {
    match *error {
        StopError::Thread(UnstoppedThread { tid, name, state }) => {
            Cause::Thread { tid, name, state: u8::try_from(state).unwrap_or(b'?') }
        }
        StopError::NoMemory => Cause::Memory,
        StopError::NotOurProcess => Cause::Vfork,
        StopError::ProcUnreadable | StopError::NoSignal => Cause::Threads,
    }
}
