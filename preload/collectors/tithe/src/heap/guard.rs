//! free in mode `guard`: the block is cleared and stays where it is until a pass finds no word that leads to it.

use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;

use heaptoll_assertions::assert_internal;
use heaptoll_runtime::Misuse;

use super::Heap;
use crate::ages::words_of;
use crate::cache::{Cache, FreeBlock};
use crate::class::{CLASS, FREE, SpanClass, UNIT, is_small};
use crate::collector::Collector;
use crate::guard_settings::GuardSettings;
use crate::log;
use crate::misuse::LateWrite;
use crate::mode::Mode;
use crate::resident::{clear_resident, has_content};
use crate::runs::Units;
use crate::span::{Span, UnitIndex};

/// Bytes of freed blocks that a cache counts by itself before it adds them to the heap's.
const COUNTED_AT_ONCE: usize = 16 << 10;
/// Of the bytes of a large block, whose pages are given back at its free, this part waits: it costs addresses only.
const LARGE_PART: usize = 8;
/// Large blocks that are inaccessible at once, at most: each may divide a mapping, of which a process has 65,530.
const INACCESSIBLE_MAX: usize = 16384;

impl Heap {
    /// Frees a small block: it waits. Cleared before it counts as freed, so that a pass finds it either whole or clear.
    ///
    /// # Errors
    /// The address is not that of a block, or it is freed; nothing has changed then.
    ///
    /// # Safety
    /// The program does not use the block after the call.
    #[inline(always)]
    pub(crate) unsafe fn hold_small(
        &self,
        cache: &mut Cache,
        unit: usize,
        span_class: SpanClass,
        address: usize,
    ) -> Result<(), Misuse> {
        let (first, block) = self.verify_own(cache, unit, span_class, address)?;
        let size = CLASS[span_class as usize].size as usize;
        if self.reservation.freed_table.clears.load(Ordering::Relaxed) {
            // SAFETY: `verify` has found a block of this size, which the caller no longer uses.
            unsafe { (address as *mut u8).write_bytes(0, size) };
        }
        if !self.set_freed(first, block) {
            return Err(Misuse::DoubleFree);
        }
        cache.waiting += size;
        if cache.waiting >= COUNTED_AT_ONCE {
            self.waiting.fetch_add(core::mem::take(&mut cache.waiting), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Frees a large block: it gives its pages back, and its addresses wait. Called with the units' lock held.
    ///
    /// # Errors
    /// It is freed already.
    pub(super) fn hold_large(&self, units: &mut Units, first: UnitIndex) -> Result<(), Misuse> {
        if !self.set_freed(first, 0) {
            return Err(Misuse::DoubleFree);
        }
        // SAFETY: the first unit of a large block; the units' lock is held.
        let span = unsafe { &mut *self.reservation.span(first) };
        let table = &self.reservation.freed_table;
        span.clean = table.clears.load(Ordering::Relaxed) && self.clear_large(units, first, span.units);
        span.inaccessible = span.clean && self.protect(first, span.units);
        self.waiting.fetch_add(waiting_bytes(span), Ordering::Relaxed);
        Ok(())
    }

    /// Drops the pages of a large block that was freed, or clears them where the system does not; returns whether they were
    /// dropped.
    fn clear_large(&self, units: &mut Units, first: UnitIndex, count: u32) -> bool {
        let (start, bytes) = (self.reservation.address(first), count as usize * UNIT);
        let dropped = units.drop_pages(start, bytes);
        if !dropped {
            // SAFETY: the block's units, which the program no longer uses.
            unsafe { (start as *mut u8).write_bytes(0, bytes) };
        }
        dropped
    }

    /// Makes a large block that was freed inaccessible, if that is wanted and the system does so.
    fn protect(&self, first: UnitIndex, count: u32) -> bool {
        let table = &self.reservation.freed_table;
        let is_wanted = table.faults.load(Ordering::Relaxed)
            && table.inaccessible.load(Ordering::Relaxed) < INACCESSIBLE_MAX
            && self.set_access(first, count, libc::PROT_NONE);
        table.inaccessible.fetch_add(is_wanted.into(), Ordering::Relaxed);
        is_wanted
    }

    /// Before a large block becomes available: it is accessible again. False when the system refuses that.
    pub(super) fn unprotect(&self, first: UnitIndex, span: &mut Span) -> bool {
        if !span.inaccessible {
            return true;
        }
        let done = self.set_access(first, span.units, libc::PROT_READ | libc::PROT_WRITE);
        span.inaccessible = !done;
        self.reservation.freed_table.inaccessible.fetch_sub(done.into(), Ordering::Relaxed);
        done
    }

    fn set_access(&self, first: UnitIndex, count: u32, access: c_int) -> bool {
        let start = self.reservation.address(first) as *mut c_void;
        // SAFETY: errno's address is valid for the calling thread; the pages are of a large block that was freed.
        unsafe {
            let errno = *libc::__errno_location();
            let done = libc::mprotect(start, count as usize * UNIT, access) == 0;
            *libc::__errno_location() = errno;
            done
        }
    }

    /// Finds whether a large block of `count` units was written after its free, and clears it then. Only pages that are
    /// resident are read: others would be brought.
    pub(super) fn clear_written_large(&self, first: UnitIndex, count: u32) {
        let (start, table) = (self.reservation.address(first), &self.reservation.freed_table);
        let pages = start..start + count as usize * UNIT;
        if self.is_held(first) && table.clears.load(Ordering::Relaxed) && has_content(pages.clone()) {
            table.count_late(start);
            // SAFETY: the block was freed, and becomes available.
            unsafe { clear_resident(pages) };
        }
    }

    /// Sets the bit of a block; returns false where it was set.
    #[inline(always)]
    fn set_freed(&self, first: UnitIndex, block: usize) -> bool {
        let freed = self.reservation.freed(first);
        assert_internal!(freed.is_some(), "in mode guard each block has a bit that it is freed");
        freed.is_some_and(|freed| freed.add_own(block / 64, 1 << (block % 64)))
    }

    /// As [`Heap::verify`], and that the thread's cache has not reserved the block: it was never handed out then since it became
    /// available.
    #[inline(always)]
    pub(super) fn verify_own(
        &self,
        cache: &Cache,
        unit: usize,
        span_class: SpanClass,
        address: usize,
    ) -> Result<(UnitIndex, usize), Misuse> {
        let (first, block) = self.verify(unit, span_class, address)?;
        let is_in_cache = cache.has_reserved(span_class.into(), first, block, address);
        if is_in_cache { Err(Misuse::DoubleFree) } else { Ok((first, block)) }
    }

    /// Verifies that an address is that of a block of this span class, not known to be free. Returns the first unit of its
    /// span, and its number there.
    #[inline(always)]
    pub(super) fn verify(
        &self,
        unit: usize,
        span_class: SpanClass,
        address: usize,
    ) -> Result<(UnitIndex, usize), Misuse> {
        let class = &CLASS[span_class as usize];
        let first = self.reservation.first(unit);
        let offset = address - self.reservation.address(first);
        let block = class.index(offset);
        if block * class.size as usize != offset || block >= class.blocks.into() {
            return Err(Misuse::Damaged);
        }
        let is_free = match self.reservation.freed(first) {
            Some(freed) => freed.has(block),
            // SAFETY: the address of a block in a span, as checked above; blocks have at least 16 bytes.
            None => unsafe { (*(address as *const FreeBlock)).key == self.key.load(Ordering::Relaxed) },
        };
        if is_free { Err(Misuse::DoubleFree) } else { Ok((first, block)) }
    }

    /// Whether a large block is freed and waits.
    pub(super) fn is_held(&self, first: UnitIndex) -> bool {
        self.reservation.freed(first).is_some_and(|freed| freed.has(0))
    }

    /// Whether freed blocks of as many units may wait.
    pub(super) fn waits_for(&self, units: u32) -> bool {
        let most = self.waiting.load(Ordering::Relaxed).saturating_mul(LARGE_PART);
        self.is_mode(Mode::Guard) && most >= units as usize * UNIT
    }

    /// Whether an address is that of a block that is freed.
    pub(super) fn is_waiting(&self, address: usize) -> bool {
        let Some(unit) = self.reservation.unit_of(address) else { return false };
        match self.reservation.span_class(unit) {
            FREE => false,
            small if is_small(small) => self.verify(unit, small, address) == Err(Misuse::DoubleFree),
            _ => self.is_held(self.reservation.first(unit)),
        }
    }

    /// Bytes that count against the budget of the next collection: allocated, or in mode `guard` freed.
    pub(crate) fn counted(&self) -> isize {
        if self.is_mode(Mode::Guard) {
            isize::try_from(self.waiting.load(Ordering::Relaxed)).unwrap_or(isize::MAX)
        } else {
            self.allocated_since_gc.load(Ordering::Relaxed)
        }
    }

    /// Reports how many bytes of freed blocks waited, and what became of them.
    pub(crate) fn report_held(&self, waiting: usize) {
        if self.is_mode(Mode::Guard) {
            let (kept, released) = (self.kept.load(Ordering::Relaxed), self.released.load(Ordering::Relaxed));
            self.reporter.held(waiting, kept, released, self.reservation.freed_table.late());
        }
    }

    /// At the end of the process: what was found since the last collection.
    pub(crate) fn report_at_end(&self) {
        self.report_held(0);
        let late = self.collector.try_lock().and_then(|collector| self.take_late(&collector));
        late.inspect(LateWrite::report);
    }

    /// A block that was written after its free, if one was found: it is in the log, and to be reported without a lock.
    pub(crate) fn take_late(&self, collector: &Collector) -> Option<LateWrite> {
        let address = self.reservation.freed_table.take_late()?;
        if let Some(sink) = &collector.log {
            log::write_late(sink, address);
        }
        Some(LateWrite { address, to_stderr: collector.guard.to_stderr })
    }

    /// Knows freed blocks from now on: those of spans that are there are available, and clear. Called at start, by the only
    /// thread. False when there is no memory for the table.
    pub(crate) fn enable_guard(&self, settings: &GuardSettings) -> bool {
        let mut cache = self.caches.lock().newest();
        while !cache.is_null() {
            // SAFETY: caches are never unmapped; this is the process's only thread.
            unsafe {
                self.flush_all(&mut *cache);
                cache = (*cache).next;
            }
        }
        let mut guards = self.lock_all();
        guards.units.purge(&self.reservation);
        self.reservation.freed_table.configure(settings);
        if !self.reservation.enable_freed(&mut guards.units.memory) {
            return false;
        }
        self.reservation.each_span(|first, span| {
            // SAFETY: the descriptor of a span or large block; all locks are held.
            let span = unsafe { &*span };
            if is_small(span.span_class) {
                self.begin_freed(first, span);
            }
        });
        true
    }

    /// The blocks of a span that are not taken are freed.
    fn begin_freed(&self, first: UnitIndex, span: &Span) {
        let Some(freed) = self.reservation.freed(first) else { return };
        let class = &CLASS[span.span_class as usize];
        for word in 0..words_of(span.span_class) {
            let available = Span::present(class.blocks.into(), word) & !span.bits[word].taken;
            freed.set(word, available);
            let mut rest = available;
            while rest != 0 {
                let block = word * 64 + rest.trailing_zeros() as usize;
                rest &= rest - 1;
                let start = self.reservation.address(first) + block * class.size as usize;
                // SAFETY: a block that is available; its span class's lock is held.
                unsafe { (start as *mut u8).write_bytes(0, class.size as usize) };
            }
        }
    }
}

/// Bytes that wait for a freed block of a span, or for a large one.
pub(crate) fn waiting_bytes(span: &Span) -> usize {
    let is_dropped = !is_small(span.span_class) && span.clean;
    if is_dropped { (span.bytes / LARGE_PART).max(1) } else { span.block_bytes() }
}
