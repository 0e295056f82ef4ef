//! The invariants of the whole heap, and what assertions read of it.

use core::sync::atomic::Ordering;

use heaptoll_runtime::Damage;

use super::{Heap, HeapGuards};
use crate::class::{CLASS, FREE, LARGE, LARGE_ATOMIC, SpanClass, UNIT, UNIT_SHIFT, is_small};

impl Heap {
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

    /// Whether a block of a span is taken, or will be once the span is swept.
    pub(crate) fn is_taken(&self, block: usize, span_class: SpanClass) -> bool {
        let _spans = self.spans_by_class[span_class as usize].lock();
        let first = self.reservation.first((block - self.reservation.base()) >> UNIT_SHIFT);
        let index = CLASS[span_class as usize].index(block - self.reservation.address(first));
        // SAFETY: the first unit of a span of this span class, whose lock is held.
        let span = unsafe { &*self.reservation.span(first) };
        if span.epoch == self.epoch() { span.is_taken(index) } else { span.is_marked(index) }
    }

    /// Whether every span and every large block was swept after the last collection. Called with the units' lock held.
    pub(crate) fn is_all_swept(&self) -> bool {
        (0..self.reservation.units()).filter(|&unit| self.reservation.span_class(unit) != FREE).all(|unit| {
            // SAFETY: the first unit of a span or large block; the units' lock is held.
            unsafe { (*self.reservation.span(self.reservation.first(unit))).epoch == self.epoch() }
        })
    }
}
