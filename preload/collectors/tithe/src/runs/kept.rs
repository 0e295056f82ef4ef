//! Kept runs: dead large blocks whose pages stay resident for the next block of the same length, so that a program that
//! allocates blocks of one length over and over, and touches the same part of each, touches the same pages again.
//!
//! Of each length as many are kept as blocks of it were allocated between the last two collections. What is kept is free:
//! it is never part of a longer run, and whatever finds no other memory has it released.

use heaptoll_assertions::{assert_internal, assert_sound};

use super::lists::{BINS, KEPT_BINS, kept_bin_of};
use super::{TakenUnits, Units};
use crate::class::{FREE, UNIT};
use crate::reservation::HeapReservation;
use crate::span::{NONE, UnitIndex};

/// How many kept runs of a length are examined for one that is not blacklisted.
const TRIES: u32 = 4;

impl Units {
    /// Takes a kept run of this length for a large block, if there is one, and counts that one was needed. Blacklisted
    /// units are avoided if `avoid`.
    pub fn take_kept(
        &mut self,
        reservation: &HeapReservation,
        units: u32,
        alignment: u32,
        avoid: bool,
    ) -> Option<TakenUnits> {
        let length = units as usize;
        if length > KEPT_BINS {
            return None;
        }
        self.kept.requested[length - 1] = self.kept.requested[length - 1].saturating_add(1);
        if self.kept.count[length - 1] == 0 || self.exceeds_limit(reservation, units) {
            return None;
        }
        let mut run = self.bins[kept_bin_of(units)];
        for _ in 0..TRIES {
            if run == NONE {
                return None;
            }
            if self.place(reservation, run..run + units, units, alignment, avoid) == Some(run) {
                self.unlink(reservation, run);
                self.kept.count[length - 1] -= 1;
                return Some(TakenUnits { first: run, clean: false });
            }
            // SAFETY: a free run in a list, protected by the units' lock.
            run = unsafe { (*reservation.span(run)).next };
        }
        None
    }

    /// Releases the units of a dead large block with its pages, unless enough of its length are kept; returns whether it
    /// is kept.
    pub fn keep(&mut self, reservation: &HeapReservation, first: UnitIndex, units: u32) -> bool {
        let length = units as usize;
        if length > KEPT_BINS || self.kept.count[length - 1] >= self.kept.wanted[length - 1] {
            return false;
        }
        reservation.end_ages(first, units);
        reservation.set_span_class(first, units, FREE);
        self.link(reservation, first, units, false, true);
        self.kept.count[length - 1] += 1;
        assert_sound!(self.check(reservation));
        true
    }

    /// Called by each collection that reclaims: what was not needed since the last one will not be kept.
    pub const fn begin_period(&mut self) {
        self.kept.wanted = self.kept.requested;
        self.kept.requested = [0; KEPT_BINS];
    }

    /// Called when all is swept: releases what is kept beyond what was needed.
    pub fn release_surplus(&mut self, reservation: &HeapReservation) {
        for length in 0..KEPT_BINS {
            while self.kept.count[length] > self.kept.wanted[length] {
                self.release_one_kept(reservation, self.bins[BINS + length]);
            }
        }
        assert_sound!(self.check(reservation));
    }

    /// Makes all kept runs free runs like others.
    pub(super) fn release_kept(&mut self, reservation: &HeapReservation) {
        for bin in BINS..BINS + KEPT_BINS {
            while self.bins[bin] != NONE {
                self.release_one_kept(reservation, self.bins[bin]);
            }
        }
    }

    /// Drops the pages of a kept run, whose contents would keep garbage alive when parts of it are reused, and makes it part
    /// of the free runs next to it.
    pub(super) fn release_one_kept(&mut self, reservation: &HeapReservation, first: UnitIndex) {
        let (units, clean) = self.unlink(reservation, first);
        assert_internal!(!clean && units as usize <= KEPT_BINS, "kept runs are short, and were used");
        self.kept.count[units as usize - 1] -= 1;
        let clean = self.drop_pages(reservation.address(first), units as usize * UNIT);
        self.join(reservation, first, units, clean);
    }
}
