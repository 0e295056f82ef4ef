//! How much of the free memory stays resident: what will be used again soon is kept, since new pages cost more.

use heaptoll_assertions::{assert_internal, assert_sound};
use heaptoll_runtime::PAGE;

use super::lists::BINS;
use super::{RESIDENT_MIN, Units};
use crate::class::UNIT;
use crate::reservation::HeapReservation;
use crate::resident::resident_bytes;
use crate::span::{NONE, Span, UnitIndex};

/// Free memory that stays resident before it is released to the system, as a share of what is not free.
const RESIDENT_SHARE: usize = 8;

impl Units {
    /// Releases free memory to the system where too much of it is resident. Dirty units are counted whole, and may be
    /// resident in part: how much is, is found out when their number has grown by as much as may be resident.
    pub(super) fn limit_resident(&mut self, reservation: &HeapReservation) {
        if self.locked || self.dirty <= self.dirty_allowed {
            return;
        }
        let most = RESIDENT_MIN.max(self.used_bytes(reservation) / RESIDENT_SHARE).max(self.keep);
        let allowed = (most / UNIT) as u32;
        if self.dirty > allowed && self.resident_bytes(reservation) > most {
            self.purge(reservation);
        }
        self.dirty_allowed = self.dirty + allowed;
    }

    /// Bytes of free units that are resident.
    pub(super) fn resident_bytes(&self, reservation: &HeapReservation) -> usize {
        let mut resident = 0;
        self.each_free(reservation, &mut |first, span| {
            if !span.clean {
                let start = reservation.address(first);
                resident += resident_bytes(start..start + span.units as usize * UNIT);
            }
        });
        resident
    }

    /// Visits all free runs.
    fn each_free(&self, reservation: &HeapReservation, visit: &mut dyn FnMut(UnitIndex, &Span)) {
        for bin in self.bins {
            let mut run = bin;
            while run != NONE {
                // SAFETY: a free run in a list, protected by the units' lock.
                let span = unsafe { &*reservation.span(run) };
                visit(run, span);
                run = span.next;
            }
        }
    }

    /// Releases the memory of all free runs to the system. The address space stays, in one mapping.
    pub fn purge(&mut self, reservation: &HeapReservation) {
        // SAFETY: errno's address is valid for the calling thread.
        let errno = unsafe { *libc::__errno_location() };
        self.release_kept(reservation);
        self.advise(reservation);
        assert_internal!(self.locked || self.dirty == 0, "no free unit is dirty after a purge");
        assert_sound!(self.check(reservation));
        // SAFETY: errno's address is valid for the calling thread.
        unsafe { *libc::__errno_location() = errno };
    }

    fn advise(&mut self, reservation: &HeapReservation) {
        for bin in 0..BINS {
            let mut run = self.bins[bin];
            while run != NONE {
                // SAFETY: a free run, protected by the units' lock; it contains no block. The descriptors of its units
                // after the first are unused, and are written before they are read.
                unsafe {
                    let span = &mut *reservation.span(run);
                    let inner = (reservation.span(run).add(1) as usize).next_multiple_of(PAGE);
                    let end = (reservation.span(run).add(span.units as usize) as usize) & !(PAGE - 1);
                    if end > inner {
                        libc::madvise(inner as *mut _, end - inner, libc::MADV_DONTNEED);
                    }
                    if !span.clean {
                        let bytes = span.units as usize * UNIT;
                        if libc::madvise(reservation.address(run) as *mut _, bytes, libc::MADV_DONTNEED) != 0
                        {
                            self.locked = true;
                            return;
                        }
                        assert_internal!(span.units <= self.dirty, "dirty units are counted");
                        span.clean = true;
                        self.dirty -= span.units;
                    }
                    run = span.next;
                }
            }
        }
    }

    /// Drops the pages of units that the caller is about to release; they then read as zeros. Returns whether the
    /// system did so.
    pub fn drop_pages(&mut self, start: usize, bytes: usize) -> bool {
        assert_internal!(start.is_multiple_of(PAGE) && bytes.is_multiple_of(PAGE), "whole pages are dropped");
        // SAFETY: errno's address is valid for the calling thread; the pages are of units that hold no live block (the
        // caller is about to release them).
        unsafe {
            let errno = *libc::__errno_location();
            let dropped = libc::madvise(start as *mut _, bytes, libc::MADV_DONTNEED) == 0;
            *libc::__errno_location() = errno;
            self.locked |= !dropped;
            dropped
        }
    }
}
