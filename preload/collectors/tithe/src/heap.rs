//! The heap: the slow paths of malloc and free, where a thread's cache does not suffice. Blocks move in batches between
//! caches and spans, large blocks are runs of units of their own, and a collection is started when it is due.

use core::array;
use core::ptr::{self, NonNull};
use core::sync::atomic::{
    AtomicBool, AtomicIsize, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence,
};

use heaptoll_assertions::{assert_expensive, assert_internal, assert_sound};
use heaptoll_runtime::{Damage, Guard, LARGEST, Lock, Misuse, PAGE, StatsReporter};

use crate::cache::{Cache, FreeBlock};
use crate::caches::Caches;
use crate::class::{
    CACHE_LIMITS, CLASS, CLASSES, FREE, LARGE, LARGE_ATOMIC, LAST_PLAIN, SMALL_MAX, SPAN_CLASSES, SpanClass,
    UNIT, UNIT_SHIFT, aligned_class_of, class_of, is_atomic, is_small,
};
use crate::collector::Collector;
use crate::log::Reason;
use crate::mode::Mode;
use crate::reservation::HeapReservation;
use crate::runs::Units;
use crate::spans::{ReleaseError, Spans, SweepOutcome};

/// Ineffective collections on memory pressure, one after the other, before requests skip them.
const INEFFECTIVE_MAX: u32 = 8;

/// Mode `collect`: blocks up to this size are cleared before they are reused, bytes.
const CLEARED_MAX: usize = 8 << 10;

/// The heap of a process. Locks are taken in this order: the collector's, a span class's, the units', the caches'.
pub struct Heap {
    pub(crate) reservation: HeapReservation,
    /// Below this unit a free may take the fast path: all units, or none in mode `collect` and with `TITHE_POISON`.
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
            budget: AtomicIsize::new(isize::MAX),
            allocated_total: AtomicU64::new(0),
            due_at_allocated: AtomicU64::new(u64::MAX),
            batch_bytes: AtomicUsize::new(usize::MAX),
            large_since_gc: AtomicUsize::new(0),
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
        if !self.is_mode(Mode::Collect) && !self.poison.load(Ordering::Relaxed) {
            self.fast_free_units.store(self.reservation.units(), Ordering::Relaxed);
        }
    }

    /// Counts allocated bytes.
    fn count_allocated(&self, bytes: usize) {
        self.allocated_since_gc.fetch_add(bytes as isize, Ordering::Relaxed);
        self.allocated_total.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn count_freed(&self, bytes: usize) {
        self.allocated_since_gc.fetch_sub(bytes as isize, Ordering::Relaxed);
    }

    /// Collects because the system gives no more memory, or the heap's limit is reached; returns whether to try again.
    /// A program that requests memory again and again would do nothing but collect: after some ineffective collections,
    /// ever more requests skip theirs. Within a limit of the heap none does: the limit must measure the program's need.
    fn collect_for_memory(&self, cache: &mut Cache, units: u32) -> bool {
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
        if skipped > 0 {
            self.skipped_collections.store(skipped - 1, Ordering::Relaxed);
            return false;
        }
        let ineffective_collections = self.ineffective_collections.fetch_add(1, Ordering::Relaxed) + 1;
        if ineffective_collections > INEFFECTIVE_MAX {
            self.skipped_collections
                .store(1 << (ineffective_collections - INEFFECTIVE_MAX).min(10), Ordering::Relaxed);
        }
        self.collect(Reason::Memory).is_ok()
    }

    /// Returns all blocks of a thread's cache to their spans.
    pub(crate) fn flush_all(&self, cache: &mut Cache) {
        for span_class in 1..cache.lists.len() {
            if !cache.lists[span_class].head.is_null() {
                self.flush(cache, span_class as SpanClass, u32::MAX);
            }
        }
    }

    /// Counts a failed request for units if the heap's limit is the cause.
    fn count_limit_failure(&self, units: u32) {
        let taken = self.units.lock();
        if taken.exceeds_limit(&self.reservation, units) {
            self.reporter.refused();
        }
    }

    /// Called after a collection on memory pressure freed enough for the request: resets the count unless it reclaimed
    /// little, in which case the next one will come soon.
    fn note_effective_collection(&self) {
        if self.reclaimed_by_gc.load(Ordering::Relaxed) >= self.live_after_gc.load(Ordering::Relaxed) / 16 {
            self.ineffective_collections.store(0, Ordering::Relaxed);
        }
    }

    fn is_due(&self) -> bool {
        self.allocated_since_gc.load(Ordering::Relaxed) >= self.budget.load(Ordering::Relaxed)
            || self.allocated_total.load(Ordering::Relaxed) >= self.due_at_allocated.load(Ordering::Relaxed)
    }

    // --- small blocks -------------------------------------------------------------------------------------------

    /// Allocates a block of the span class: from the cache, or from the spans.
    #[inline]
    pub fn allocate_small(&self, cache: &mut Cache, span_class: SpanClass) -> *mut u8 {
        let block = cache.pop(span_class.into());
        if block.is_null() { self.refill(cache, span_class) } else { block.cast() }
    }

    /// Fills an empty list with a batch, and pops its first block. Null when there is no memory.
    #[inline(never)]
    pub fn refill(&self, cache: &mut Cache, span_class: SpanClass) -> *mut u8 {
        assert_internal!(is_small(span_class), "a cache has lists of span classes that have a size class");
        assert_internal!(
            cache.lists[span_class as usize].head.is_null(),
            "a list is filled again when it is empty"
        );
        if self.is_due() && self.collects() {
            let _ = self.collect(Reason::Budget);
        }
        let most = self.batch_bytes.load(Ordering::Relaxed) / CLASS[span_class as usize].size as usize;
        let wanted = usize::from(CACHE_LIMITS[span_class as usize].batch).min(most).max(1) as u32;
        let Some(got) = self.reserve_blocks(cache, span_class, wanted) else { return ptr::null_mut() };
        assert_internal!((1..=wanted).contains(&got), "a batch is of one block to as many as wanted");
        self.count_allocated(got as usize * CLASS[span_class as usize].size as usize);
        self.link_reserved(cache, span_class);
        cache.pop(span_class.into()).cast()
    }

    /// Reserves up to `wanted` blocks: from swept spans, from spans that wait to be swept, from fresh units, and after
    /// a collection. `None` when there is no memory.
    fn reserve_blocks(&self, cache: &mut Cache, span_class: SpanClass, wanted: u32) -> Option<u32> {
        let class = &CLASS[span_class as usize];
        let poison = self.poison.load(Ordering::Relaxed);
        let (mut swept, mut collected) = (false, false);
        loop {
            {
                let mut spans = self.spans_by_class[span_class as usize].lock();
                loop {
                    let got = spans.reserve(&self.reservation, cache, class, wanted);
                    if got > 0 {
                        assert_internal!(
                            cache.reserved_blocks() == got,
                            "as many blocks are pending as were reserved"
                        );
                        assert_internal!(
                            cache.pending[..cache.pending_count].iter().all(|reserved| {
                                self.reservation.span_class(reserved.unit as usize) == span_class
                            }),
                            "blocks are reserved from spans of their span class"
                        );
                        if collected {
                            self.note_effective_collection();
                        }
                        return Some(got);
                    }
                    let Some(unit) = spans.next_unswept(&self.reservation, span_class) else { break };
                    if spans.sweep(&self.reservation, unit, self.epoch(), poison) == SweepOutcome::Empty {
                        // The span is used at once.
                        spans.list(&self.reservation, unit);
                    }
                }
                if swept || self.swept.load(Ordering::Relaxed) {
                    let mut units = self.units.lock();
                    let taken = units.take(&self.reservation, class.units.into(), 1, !is_atomic(span_class));
                    if let Some(taken) = taken {
                        spans.initialise(&self.reservation, taken, span_class, self.epoch());
                        self.on_growth(&mut units);
                        continue;
                    }
                }
            }
            if !swept {
                self.sweep_all();
                swept = true;
            } else if !collected && self.collect_for_memory(cache, class.units.into()) {
                // Units of other span classes may be free now: sweep again before giving up.
                (collected, swept) = (true, false);
            } else {
                return None;
            }
        }
    }

    /// Fallback within a limit that leaves no span for the span class: a block of a larger class, or units of its own
    /// where these are fewer than a span's.
    #[cold]
    fn allocate_from_larger_class(
        &self,
        cache: &mut Cache,
        span_class: SpanClass,
        bytes: usize,
        alignment: usize,
    ) -> *mut u8 {
        if !self.is_limited() {
            return ptr::null_mut();
        }
        let last = if is_atomic(span_class) { SPAN_CLASSES as SpanClass - 1 } else { LAST_PLAIN };
        for wider in span_class + 1..=last {
            let class = &CLASS[wider as usize];
            if (class.size as usize).is_multiple_of(alignment)
                && self.spans_by_class[wider as usize].lock().reserve(&self.reservation, cache, class, 1) > 0
            {
                self.count_allocated(class.size as usize);
                self.link_reserved(cache, wider);
                return cache.pop(wider.into()).cast();
            }
        }
        let units = bytes.div_ceil(UNIT).max(1) as u32;
        let span_class = if is_atomic(span_class) { LARGE_ATOMIC } else { LARGE };
        let bytes = bytes.max(1).next_multiple_of(PAGE);
        match self.take_large(bytes, units, 1, span_class) {
            Some(address) => {
                self.count_allocated(bytes);
                self.large_since_gc.fetch_add(bytes, Ordering::Relaxed);
                address as *mut u8
            }
            None => {
                self.count_limit_failure(units);
                ptr::null_mut()
            }
        }
    }

    /// Links the pending blocks in front of the list, in order of address.
    fn link_reserved(&self, cache: &mut Cache, span_class: SpanClass) {
        let size = CLASS[span_class as usize].size as usize;
        let mut head = cache.lists[span_class as usize].head;
        let mut count = 0;
        // The program may leave parts of a block unwritten, and their old contents would keep garbage alive.
        let clear = size <= CLEARED_MAX && !is_atomic(span_class) && self.is_mode(Mode::Collect);
        for reserved in cache.pending[..cache.pending_count].iter().rev() {
            assert_internal!(reserved.mask != 0, "what is pending is of one block at least");
            assert_internal!(
                self.reservation.span_class(reserved.unit as usize) == span_class,
                "reserved blocks are linked into the list of their span class"
            );
            assert_internal!(
                reserved.word as usize * 64 + 63 - (reserved.mask.leading_zeros() as usize)
                    < CLASS[span_class as usize].blocks.into(),
                "reserved blocks lie in their span"
            );
            let start = self.reservation.address(reserved.unit) + reserved.word as usize * 64 * size;
            let mut mask = reserved.mask;
            count += mask.count_ones();
            if clear && !reserved.clean {
                // SAFETY: this thread has reserved the blocks, and no other thread uses them.
                unsafe { clear_blocks(start, size, mask) };
            }
            while mask != 0 {
                let bit = 63 - mask.leading_zeros();
                mask ^= 1 << bit;
                let block = (start + bit as usize * size) as *mut FreeBlock;
                // SAFETY: this thread has reserved the block, which has at least 16 bytes.
                unsafe { (*block).next = head };
                head = block;
            }
        }
        compiler_fence(Ordering::SeqCst);
        let list = &mut cache.lists[span_class as usize];
        list.head = head;
        list.free_slots = list.free_slots.wrapping_sub(count);
        compiler_fence(Ordering::SeqCst);
        cache.pending_count = 0;
        assert_expensive!(cache.is_counted(span_class.into()), "a list has as many blocks as it counts");
    }

    /// Returns the newest `count` blocks of a list to their spans.
    #[inline(never)]
    pub fn flush(&self, cache: &mut Cache, span_class: SpanClass, count: u32) {
        let size = CLASS[span_class as usize].size as usize;
        let mut done = 0;
        let mut wrong = None;
        {
            let mut spans = self.spans_by_class[span_class as usize].lock();
            while done < count {
                let list = &mut cache.lists[span_class as usize];
                let block = list.head;
                if block.is_null() {
                    break;
                }
                assert_internal!(
                    self.is_block_of(block as usize, span_class),
                    "blocks in a list are of its span class"
                );
                // SAFETY: a block in a list is free. The collector cannot intervene: it needs the lock held here.
                list.head = unsafe { (*block).next };
                list.free_slots = list.free_slots.wrapping_add(1);
                done += 1;
                match spans.release(&self.reservation, block as usize, self.epoch()) {
                    Ok(false) => {}
                    Ok(true) => {
                        let unit =
                            self.reservation.first((block as usize - self.reservation.base()) >> UNIT_SHIFT);
                        let units = u32::from(CLASS[span_class as usize].units);
                        assert_internal!(
                            // SAFETY: the first unit of a span of this span class, whose lock is held.
                            unsafe { !(*self.reservation.span(unit)).listed },
                            "a span whose units are released is in no list"
                        );
                        let mut all = self.units.lock();
                        all.release(&self.reservation, unit, units, false);
                        self.report_used(&all);
                    }
                    Err(found) => wrong = Some((block as usize, found)),
                }
            }
        }
        // Whether the list is counted right is not asserted here: fork may have copied the cache of another thread
        // while that thread changed it.
        assert_internal!(done <= count, "no more blocks return to their spans than requested");
        self.count_freed(done as usize * size);
        if let Some((address, wrong)) = wrong {
            crate::misuse::report("free", address, misuse_of(wrong));
        }
    }

    // --- large blocks -------------------------------------------------------------------------------------------

    /// Allocates a block of whole units, `bytes` of which the program may use, and `spare` bytes to grow after it.
    fn allocate_large(
        &self,
        cache: &mut Cache,
        bytes: usize,
        alignment: usize,
        span_class: SpanClass,
        spare: usize,
    ) -> *mut u8 {
        let Some(bytes) = bytes.checked_next_multiple_of(PAGE) else { return ptr::null_mut() };
        let Some(whole) = bytes.checked_add(spare).map(|bytes| bytes.div_ceil(UNIT)) else {
            return ptr::null_mut();
        };
        let Ok(units) = u32::try_from(whole) else { return ptr::null_mut() };
        assert_internal!(!is_small(span_class) && span_class != FREE, "a large block has no size class");
        assert_internal!(units as usize * UNIT >= bytes, "a large block fits its units");
        let Ok(alignment) = u32::try_from((alignment / UNIT).max(1)) else { return ptr::null_mut() };
        if self.is_due() && self.collects() {
            let _ = self.collect(Reason::Budget);
        }
        self.sweep_all();
        let mut taken = self.take_large(bytes, units, alignment, span_class);
        if taken.is_none() && self.collect_for_memory(cache, units) {
            self.sweep_all();
            taken = self.take_large(bytes, units, alignment, span_class);
            if taken.is_some() {
                self.note_effective_collection();
            }
        }
        let Some(address) = taken else {
            self.count_limit_failure(units);
            return ptr::null_mut();
        };
        self.count_allocated(bytes);
        self.large_since_gc.fetch_add(bytes, Ordering::Relaxed);
        address as *mut u8
    }

    fn take_large(&self, bytes: usize, count: u32, alignment: u32, span_class: SpanClass) -> Option<usize> {
        let mut units = self.units.lock();
        let taken = units.take(&self.reservation, count, alignment, !is_atomic(span_class))?;
        self.on_growth(&mut units);
        assert_internal!(
            bytes > 0 && bytes.is_multiple_of(PAGE) && bytes.div_ceil(UNIT) <= count as usize,
            "a large block fits its units"
        );
        assert_internal!(
            self.reservation.span_class(taken.first as usize) == FREE
                && self.reservation.span_class((taken.first + count - 1) as usize) == FREE,
            "a new large block is of units that are free"
        );
        // SAFETY: the units were just taken, and their lock is held.
        let span = unsafe { &mut *self.reservation.span(taken.first) };
        span.units = count;
        span.span_class = span_class;
        span.epoch = self.epoch();
        span.bytes = bytes;
        span.clean = taken.clean;
        span.clear_bits(1);
        span.bits[0].taken = 1;
        self.reservation.assign(taken.first, count, span_class);
        assert_sound!(units.check(&self.reservation));
        let address = self.reservation.address(taken.first);
        if !taken.clean {
            // Clears the key that a small block may have left: realloc would copy it into a small block, whose free
            // would then count as a double free.
            // SAFETY: the units were just taken, and no other thread uses them.
            unsafe { (*(address as *mut FreeBlock)).key = 0 };
        }
        Some(address)
    }

    // --- all blocks ---------------------------------------------------------------------------------------------

    /// The size of a request with the byte after its end where collections need it.
    fn with_end_byte(&self, bytes: usize) -> usize {
        bytes.saturating_add(self.rounding.load(Ordering::Relaxed) - 15)
    }

    /// Allocates a block of at least `bytes`. Null when there is no memory.
    pub fn allocate(&self, cache: &mut Cache, bytes: usize, atomic: bool) -> *mut u8 {
        let bytes = self.with_end_byte(bytes);
        if bytes <= SMALL_MAX {
            let span_class = (class_of(bytes.max(1)) + if atomic { CLASSES } else { 0 }) as SpanClass;
            let block = self.allocate_small(cache, span_class);
            return if block.is_null() {
                self.allocate_from_larger_class(cache, span_class, bytes, 1)
            } else {
                block
            };
        }
        if bytes > LARGEST {
            return ptr::null_mut();
        }
        self.allocate_large(cache, bytes, UNIT, if atomic { LARGE_ATOMIC } else { LARGE }, 0)
    }

    /// As [`Heap::allocate`], zeroed.
    pub fn allocate_zeroed(&self, cache: &mut Cache, bytes: usize) -> *mut u8 {
        let block = self.allocate(cache, bytes, false);
        if block.is_null() {
            return block;
        }
        // SAFETY: the block is large and was just allocated: only its owner's calls change its descriptor.
        let clean = self.with_end_byte(bytes) > SMALL_MAX
            && unsafe {
                (*self.reservation.span(((block as usize - self.reservation.base()) >> UNIT_SHIFT) as u32))
                    .clean
            };
        if !clean {
            // SAFETY: the block was just allocated with that many bytes.
            unsafe { block.write_bytes(0, bytes) };
        }
        block
    }

    /// As [`Heap::allocate`], at a multiple of `alignment`, a power of two.
    pub fn allocate_aligned(&self, cache: &mut Cache, alignment: usize, bytes: usize) -> *mut u8 {
        let bytes = self.with_end_byte(bytes);
        if alignment <= UNIT
            && let Some(class) = aligned_class_of(alignment, bytes)
        {
            let block = self.allocate_small(cache, class as SpanClass);
            return if block.is_null() {
                self.allocate_from_larger_class(cache, class as SpanClass, bytes, alignment)
            } else {
                block
            };
        }
        if bytes > LARGEST || alignment > LARGEST {
            return ptr::null_mut();
        }
        self.allocate_large(cache, bytes.max(1), alignment, LARGE, 0)
    }

    /// Frees a block at once, whatever the mode.
    ///
    /// # Errors
    /// The address is not a live block's, as far as the heap can determine; nothing has changed then.
    ///
    /// # Safety
    /// The program does not use the block after the call.
    pub unsafe fn free(&self, cache: &mut Cache, block: *mut u8) -> Result<(), Misuse> {
        let address = block as usize;
        let Some(unit) = self.reservation.unit_of(address) else { return Err(Misuse::Foreign) };
        let span_class = self.reservation.span_class(unit);
        if is_small(span_class) {
            self.verify(unit, span_class, address)?;
            let list = &cache.lists[span_class as usize];
            if list.free_slots == 0 {
                self.flush(
                    cache,
                    span_class,
                    u32::from(CACHE_LIMITS[span_class as usize].capacity).div_ceil(2),
                );
                assert_expensive!(
                    cache.is_counted(span_class.into()),
                    "a list has as many blocks as it counts"
                );
            }
            if self.poison.load(Ordering::Relaxed) {
                // SAFETY: `verify` has found a block of this size, which the caller no longer uses.
                unsafe { block.write_bytes(crate::spans::POISON, CLASS[span_class as usize].size as usize) };
            }
            // SAFETY: `verify` has found a block of this span class, which the caller no longer uses and no list holds.
            unsafe { cache.push(span_class.into(), block.cast(), self.key.load(Ordering::Relaxed)) };
            return Ok(());
        }
        if span_class == FREE {
            return Err(Misuse::DoubleFree);
        }
        let first = self.reservation.first(unit);
        if self.reservation.address(first) != address {
            return Err(Misuse::Damaged);
        }
        let mut units = self.units.lock();
        if self.reservation.span_class(unit) != span_class || self.reservation.first(unit) != first {
            return Err(Misuse::DoubleFree);
        }
        // SAFETY: the first unit of a large block; the units' lock is held.
        let (count, bytes) =
            unsafe { ((*self.reservation.span(first)).units, (*self.reservation.span(first)).bytes) };
        assert_internal!(bytes > 0 && bytes.div_ceil(UNIT) <= count as usize, "a large block fits its units");
        assert_internal!(
            // SAFETY: the first unit of a large block; the units' lock is held.
            unsafe { (*self.reservation.span(first)).is_taken(0) },
            "a large block is taken until it is freed"
        );
        if self.poison.load(Ordering::Relaxed) {
            // SAFETY: the descriptor read above gives the block's size; the caller no longer uses it.
            unsafe { block.write_bytes(crate::spans::POISON, bytes) };
        }
        units.release(&self.reservation, first, count, false);
        self.report_used(&units);
        drop(units);
        self.count_freed(bytes);
        Ok(())
    }

    /// Verifies that an address is that of a block of this span class, not known to be free.
    fn verify(&self, unit: usize, span_class: SpanClass, address: usize) -> Result<(), Misuse> {
        let class = &CLASS[span_class as usize];
        let offset = address - self.reservation.address(self.reservation.first(unit));
        let block = class.index(offset);
        if block * class.size as usize != offset || block >= class.blocks.into() {
            return Err(Misuse::Damaged);
        }
        // SAFETY: the address of a block in a span, as checked above; blocks have at least 16 bytes.
        if unsafe { (*(address as *const FreeBlock)).key } == self.key.load(Ordering::Relaxed) {
            return Err(Misuse::DoubleFree);
        }
        Ok(())
    }

    /// Makes a block at least `bytes` large, where it is or elsewhere with its contents. Null when there is no memory:
    /// nothing has changed then. The old block is freed at once, in every mode, as the program cannot use it any more.
    ///
    /// # Errors
    /// As [`Heap::free`].
    ///
    /// # Safety
    /// As [`Heap::free`].
    pub unsafe fn reallocate(
        &self,
        cache: &mut Cache,
        block: NonNull<u8>,
        bytes: usize,
    ) -> Result<*mut u8, Misuse> {
        let address = block.as_ptr() as usize;
        let Some(unit) = self.reservation.unit_of(address) else { return Err(Misuse::Foreign) };
        let span_class = self.reservation.span_class(unit);
        let usable;
        if is_small(span_class) {
            self.verify(unit, span_class, address)?;
            usable = CLASS[span_class as usize].size as usize;
            if self.with_end_byte(bytes) <= usable && (bytes > usable / 2 || usable <= 32) {
                return Ok(block.as_ptr());
            }
        } else {
            if span_class == FREE {
                return Err(Misuse::DoubleFree);
            }
            if self.reservation.address(self.reservation.first(unit)) != address {
                return Err(Misuse::Damaged);
            }
            usable = self.large_bytes(unit);
            if bytes > SMALL_MAX
                && bytes < LARGEST
                && self.resize_large(unit, span_class, self.with_end_byte(bytes))
            {
                return Ok(block.as_ptr());
            }
        }
        // A block that grew once will grow again: spare units after it cost no memory until they are touched.
        let new = if bytes > SMALL_MAX && bytes <= LARGEST && bytes > usable {
            let span_class = if is_atomic(span_class) { LARGE_ATOMIC } else { LARGE };
            // Within a limit spare units count as much as blocks.
            let limited = self.is_limited();
            let spare = if limited { 0 } else { bytes / 2 };
            let new = self.allocate_large(cache, self.with_end_byte(bytes), UNIT, span_class, spare);
            if new.is_null() && !limited {
                self.allocate_large(cache, self.with_end_byte(bytes), UNIT, span_class, 0)
            } else {
                new
            }
        } else {
            self.allocate(cache, bytes, is_atomic(span_class))
        };
        if !new.is_null() {
            assert_internal!(new != block.as_ptr(), "a block that is copied is another one");
            assert_internal!(
                self.usable(new) >= usable.min(bytes),
                "the contents of a block fit the one that replaces it"
            );
            // SAFETY: both blocks are live, distinct, and at least that long; the old one is freed once.
            unsafe {
                ptr::copy_nonoverlapping(block.as_ptr(), new, usable.min(bytes));
                self.free(cache, block.as_ptr())?;
            }
        }
        Ok(new)
    }

    fn is_limited(&self) -> bool {
        self.units.lock().limit != usize::MAX
    }

    fn large_bytes(&self, unit: usize) -> usize {
        // SAFETY: the unit is of a large block: only its owner's calls change its descriptor.
        unsafe { (*self.reservation.span(self.reservation.first(unit))).bytes }
    }

    /// Resizes a large block in place; false if that is impossible.
    fn resize_large(&self, unit: usize, span_class: SpanClass, bytes: usize) -> bool {
        let Some(bytes) = bytes.checked_next_multiple_of(PAGE) else { return false };
        let Ok(count) = u32::try_from(bytes.div_ceil(UNIT)) else { return false };
        let first = self.reservation.first(unit);
        let mut units = self.units.lock();
        // SAFETY: the first unit of a large block; the units' lock is held.
        let span = unsafe { &mut *self.reservation.span(first) };
        let before = span.bytes;
        assert_internal!(span.span_class == span_class, "a large block's descriptor has its span class");
        if count > span.units {
            let more = count - span.units;
            if units.take_at(&self.reservation, first + span.units, more).is_none() {
                return false;
            }
            for part in first + span.units..first + count {
                self.reservation.set_first(part, first);
            }
            self.reservation.set_span_class(first + span.units, more, span_class);
            span.units = count;
        } else if bytes < before && count < span.units {
            let rest = span.units - count;
            span.units = count;
            units.release(&self.reservation, first + count, rest, false);
        }
        span.bytes = bytes;
        span.clean = false;
        assert_internal!(bytes.div_ceil(UNIT) <= span.units as usize, "a large block fits its units");
        let end = first as usize + span.units as usize;
        assert_internal!(
            self.reservation.span_class(end - 1) == span_class && self.reservation.first(end - 1) == first,
            "a large block's units point to its first"
        );
        assert_internal!(
            end == self.reservation.units() || self.reservation.first(end) != first,
            "what follows a large block is not part of it"
        );
        self.report_used(&units);
        drop(units);
        if bytes > before {
            self.count_allocated(bytes - before);
        } else {
            self.count_freed(before - bytes);
        }
        true
    }

    /// Bytes of a block that the program may use, such that the address one past them still lies in it; 0 if it is no
    /// block. `realloc` to as many leaves the block where it is.
    pub fn usable_by_program(&self, block: *const u8) -> usize {
        self.usable(block).saturating_sub(self.with_end_byte(0))
    }

    /// Bytes of a block; 0 if it is no block.
    pub fn usable(&self, block: *const u8) -> usize {
        let Some(unit) = self.reservation.unit_of(block as usize) else { return 0 };
        match self.reservation.span_class(unit) {
            FREE => 0,
            span_class if is_small(span_class) => CLASS[span_class as usize].size as usize,
            _ => self.large_bytes(unit),
        }
    }

    // --- sweeping -----------------------------------------------------------------------------------------------

    /// Sweeps all spans and large blocks that still wait.
    pub fn sweep_all(&self) {
        if self.swept.load(Ordering::Acquire) {
            return;
        }
        let epoch = self.epoch();
        let poison = self.poison.load(Ordering::Relaxed);
        let mut unit = 0;
        while unit < self.reservation.units() {
            let span_class = self.reservation.span_class(unit);
            if is_small(span_class) {
                let class = &CLASS[span_class as usize];
                let mut spans = self.spans_by_class[span_class as usize].lock();
                // The span class is valid only if it is unchanged under the lock.
                if self.reservation.span_class(unit) == span_class {
                    let first = self.reservation.first(unit);
                    if spans.sweep(&self.reservation, first, self.epoch(), poison) == SweepOutcome::Empty {
                        self.units.lock().release(&self.reservation, first, class.units.into(), false);
                    }
                    unit = first as usize + usize::from(class.units);
                } else {
                    // The span was released meanwhile, and what is here now begins and ends elsewhere.
                    unit += 1;
                }
            } else if span_class == FREE {
                unit += 1;
            } else {
                let mut units = self.units.lock();
                unit += if self.reservation.span_class(unit) == span_class {
                    self.sweep_large(&mut units, unit, poison)
                } else {
                    1
                };
            }
        }
        let mut units = self.units.lock();
        self.report_used(&units);
        if self.epoch() == epoch {
            assert_expensive!(self.is_all_swept(), "no span and no large block misses a sweep of all");
            self.swept.store(true, Ordering::Release);
            if self.purge_due.swap(false, Ordering::Relaxed) {
                units.purge(&self.reservation);
            }
        }
    }

    /// Sweeps everything while the world is stopped. From the end, so that lists begin with the lowest span.
    pub(crate) fn sweep_all_locked(&self, guards: &mut HeapGuards<'_>) {
        let poison = self.poison.load(Ordering::Relaxed);
        let mut end = self.reservation.units();
        while end > 0 {
            let span_class = self.reservation.span_class(end - 1);
            let first = self.reservation.first(end - 1);
            if is_small(span_class) {
                let spans = &mut guards.spans_by_class[span_class as usize];
                if spans.sweep(&self.reservation, first, self.epoch(), poison) == SweepOutcome::Empty {
                    let count = CLASS[span_class as usize].units.into();
                    guards.units.release(&self.reservation, first, count, false);
                }
            } else if span_class != FREE {
                self.sweep_large(&mut guards.units, first as usize, poison);
            }
            // The table also maps the last unit of a free run to its first.
            assert_internal!((first as usize) < end, "a sweep of all goes on to lower units");
            end = first as usize;
        }
        assert_expensive!(self.is_all_swept(), "no span and no large block misses a sweep of all");
        guards.spans_by_class.iter_mut().for_each(|spans| spans.all_swept());
        self.swept.store(true, Ordering::Release);
        if self.purge_due.swap(false, Ordering::Relaxed) {
            guards.units.purge(&self.reservation);
        }
    }

    /// Sweeps a large block; returns how many units it has from `unit` on.
    fn sweep_large(&self, units: &mut Units, unit: usize, poison: bool) -> usize {
        let first = self.reservation.first(unit);
        // SAFETY: the first unit of a large block; the units' lock is held.
        let span = unsafe { &mut *self.reservation.span(first) };
        let (count, bytes) = (span.units, span.bytes);
        assert_internal!(
            (first as usize..first as usize + count as usize).contains(&unit),
            "a large block's units point to its first"
        );
        assert_internal!(span.is_taken(0), "a large block is taken until it is freed");
        if span.epoch != self.epoch() {
            assert_internal!(
                span.epoch.wrapping_add(1) == self.epoch(),
                "a large block is swept after every collection"
            );
            span.epoch = self.epoch();
            let marked = span.is_marked(0);
            span.bits[0].marked.store(0, Ordering::Relaxed);
            if !marked {
                if poison {
                    // SAFETY: the block is unreachable, so the program does not use it.
                    unsafe {
                        (self.reservation.address(first) as *mut u8).write_bytes(crate::spans::POISON, bytes)
                    };
                }
                // Its old contents would keep garbage alive when parts of it are reused, and clearing them costs more.
                // All units: after the bytes there may be contents of a longer block that was shrunk.
                let whole = count as usize * UNIT;
                let clean =
                    self.is_mode(Mode::Collect) && units.drop_pages(self.reservation.address(first), whole);
                units.release(&self.reservation, first, count, clean);
            }
        }
        first as usize + count as usize - unit
    }

    // --- invariants ---------------------------------------------------------------------------------------------

    /// Verifies every structure. Other threads' caches may change meanwhile and are not checked.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn check(&self) -> Result<(), Damage> {
        self.check_locked(&self.lock_all())
    }

    /// As [`Heap::check`], with the locks held.
    pub(crate) fn check_locked(&self, guards: &HeapGuards<'_>) -> Result<(), Damage> {
        guards.units.check(&self.reservation)?;
        for (span_class, spans) in guards.spans_by_class.iter().enumerate().skip(1) {
            spans.check(&self.reservation, span_class as SpanClass, self.epoch())?;
        }
        let mut unit = 0;
        while unit < self.reservation.units() {
            let span_class = self.reservation.span_class(unit);
            if span_class == LARGE || span_class == LARGE_ATOMIC {
                let first = self.reservation.first(unit);
                let address = self.reservation.address(first);
                // SAFETY: the first unit of a large block; the units' lock is held.
                let span = unsafe { &*self.reservation.span(first) };
                Damage::unless(first as usize == unit, address, "a large block's units point to its first")?;
                Damage::unless(span.is_taken(0), address, "a large block is taken until it is freed")?;
                Damage::unless(
                    !self.swept.load(Ordering::Relaxed) || span.epoch == self.epoch(),
                    address,
                    "no span and no large block misses a sweep of all",
                )?;
                let fits = span.bytes > 0 && span.bytes.div_ceil(UNIT) <= span.units as usize;
                Damage::unless(fits, address, "a large block fits its units")?;
                unit += span.units as usize;
            } else {
                let known = span_class == FREE || is_small(span_class);
                Damage::unless(
                    known,
                    self.reservation.address(unit as u32),
                    "a unit is of a known span class",
                )?;
                unit += 1;
            }
        }
        Damage::unless(
            unit == self.reservation.units(),
            self.reservation.base(),
            "large blocks end in the heap",
        )
    }
}

/// What assertions read.
impl Heap {
    /// Whether an address is that of a block of this span class.
    pub(crate) fn is_block_of(&self, address: usize, span_class: SpanClass) -> bool {
        self.reservation.unit_of(address).is_some_and(|unit| {
            let first = self.reservation.first(unit);
            self.reservation.span_class(unit) == span_class
                && CLASS[span_class as usize].is_block(address - self.reservation.address(first))
        })
    }

    /// Whether every span and every large block was swept after the last collection. Called with the units' lock held.
    pub(crate) fn is_all_swept(&self) -> bool {
        (0..self.reservation.units()).filter(|&unit| self.reservation.span_class(unit) != FREE).all(|unit| {
            // SAFETY: the first unit of a span or large block; the units' lock is held.
            unsafe { (*self.reservation.span(self.reservation.first(unit))).epoch == self.epoch() }
        })
    }
}

impl Default for Heap {
    fn default() -> Heap {
        Heap::new()
    }
}

/// Clears the blocks of a word that are in the mask, adjacent ones at once.
///
/// # Safety
/// The caller has reserved the blocks, of `size` bytes each.
unsafe fn clear_blocks(start: usize, size: usize, mut mask: u64) {
    while mask != 0 {
        let first = mask.trailing_zeros();
        let count = (!(mask >> first)).trailing_zeros();
        assert_internal!(
            count > 0 && first + count <= 64,
            "the blocks that are cleared are those of one word"
        );
        // SAFETY: the blocks are reserved for the caller (this function's contract), and `mask` selects adjacent ones.
        unsafe { ((start + first as usize * size) as *mut u8).write_bytes(0, count as usize * size) };
        mask &= !(u64::MAX >> (64 - count) << first);
    }
}

fn misuse_of(wrong: ReleaseError) -> Misuse {
    match wrong {
        ReleaseError::Free => Misuse::DoubleFree,
        ReleaseError::Inside => Misuse::Damaged,
    }
}

#[cfg(test)]
mod tests;
