//! Sweeping all that waits since the last collection: span by span while the program runs, or at once while the world is
//! stopped.

use core::sync::atomic::Ordering;

use heaptoll_assertions::{assert_expensive, assert_internal};

use super::{Heap, HeapGuards};
use crate::class::{CLASS, FREE, UNIT, is_small};
use crate::mode::Mode;
use crate::runs::Units;
use crate::spans::SweepOutcome;

impl Heap {
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
            units.release_surplus(&self.reservation);
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
        guards.units.release_surplus(&self.reservation);
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
            let is_kept = span.is_marked(0);
            span.bits[0].marked.store(0, Ordering::Relaxed);
            if !is_kept && self.unprotect(first, span) {
                let was_dropped = span.clean && self.is_held(first);
                self.clear_written_large(first, count);
                if poison {
                    // SAFETY: the block is unreachable, so the program does not use it.
                    unsafe {
                        (self.reservation.address(first) as *mut u8).write_bytes(crate::spans::POISON, bytes)
                    };
                }
                let drops = self.is_mode(Mode::Collect);
                if !(drops && units.keep(&self.reservation, first, count)) {
                    // Its old contents would keep garbage alive when parts of it are reused.
                    // All units: after the bytes there may be contents of a longer block that was shrunk.
                    let whole = count as usize * UNIT;
                    // Of a block that was dropped, too: what was written since may be swapped out.
                    let clean =
                        (drops || was_dropped) && units.drop_pages(self.reservation.address(first), whole);
                    units.release(&self.reservation, first, count, clean);
                }
            }
        }
        first as usize + count as usize - unit
    }
}
