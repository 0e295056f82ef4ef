//! Large blocks: runs of whole units of their own, which grow and shrink where they are.

use core::ptr;
use core::sync::atomic::Ordering;

use heaptoll_assertions::{assert_internal, assert_sound};
use heaptoll_runtime::{Misuse, PAGE};

use super::Heap;
use crate::cache::{Cache, FreeBlock};
use crate::class::{FREE, SpanClass, UNIT, is_atomic, is_small};
use crate::log::Reason;
use crate::mode::Mode;
use crate::resident::clear_resident;

impl Heap {
    /// Allocates a block of whole units, `bytes` of which the program may use, and `spare` bytes to grow after it.
    pub(super) fn allocate_large(
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
            self.collect_overdrawn();
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

    pub(super) fn take_large(
        &self,
        bytes: usize,
        count: u32,
        alignment: u32,
        span_class: SpanClass,
    ) -> Option<usize> {
        let mut units = self.units.lock();
        let avoid = !is_atomic(span_class);
        let kept = units.take_kept(&self.reservation, count, alignment, avoid);
        let taken = kept.or_else(|| units.take(&self.reservation, count, alignment, avoid))?;
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
        span.dense = false;
        span.clear_bits(1);
        span.bits[0].taken = 1;
        if let Some(freed) = self.reservation.freed(taken.first) {
            freed.set(0, 0);
        }
        self.reservation.assign(taken.first, count, span_class);
        self.reservation.begin_ages(taken.first, count, span_class);
        assert_sound!(units.check(&self.reservation));
        let address = self.reservation.address(taken.first);
        if !taken.clean {
            // Clears the key that a small block may have left: realloc would copy it into a small block, whose free
            // would then count as a double free.
            // SAFETY: the units were just taken, and no other thread uses them.
            unsafe { (*(address as *mut FreeBlock)).key = 0 };
        }
        drop(units);
        if kept.is_some() && avoid {
            // Its old contents would keep garbage alive where the program leaves them.
            // SAFETY: the units were just taken, and no other thread uses them.
            let cleared = unsafe { clear_resident(address..address + count as usize * UNIT) };
            // SAFETY: the descriptor is of the block that was just taken, which the program does not have yet.
            unsafe { (*self.reservation.span(taken.first)).clean = cleared };
        }
        Some(address)
    }

    /// Frees a large block, of which a unit was found to be of this span class.
    ///
    /// # Errors
    /// The address is not a live large block's; nothing has changed then.
    pub(super) fn free_large(
        &self,
        unit: usize,
        span_class: SpanClass,
        block: *mut u8,
    ) -> Result<(), Misuse> {
        let address = block as usize;
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
        if self.is_mode(Mode::Guard) {
            return self.hold_large(&mut units, first);
        }
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

    pub(super) fn large_bytes(&self, unit: usize) -> usize {
        // SAFETY: the unit is of a large block: only its owner's calls change its descriptor.
        unsafe { (*self.reservation.span(self.reservation.first(unit))).bytes }
    }

    /// Resizes a large block in place; false if that is impossible, or it is freed and waits.
    pub(super) fn resize_large(&self, unit: usize, span_class: SpanClass, bytes: usize) -> bool {
        let Some(bytes) = bytes.checked_next_multiple_of(PAGE) else { return false };
        let Ok(count) = u32::try_from(bytes.div_ceil(UNIT)) else { return false };
        let first = self.reservation.first(unit);
        let mut units = self.units.lock();
        if self.is_held(first) {
            return false;
        }
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
        } else if bytes < before && self.is_mode(Mode::Guard) {
            // Words may lead to the end, which is nobody else's as long as the block is there.
            let end = self.reservation.address(first) + bytes;
            units.drop_pages(end, span.units as usize * UNIT - bytes);
        } else if bytes < before && count < span.units {
            let rest = span.units - count;
            span.units = count;
            units.release(&self.reservation, first + count, rest, false);
        }
        if bytes > before {
            self.reservation.extend_ages(first, span.units);
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
}
