//! Free runs of units: spans and large blocks are taken from them and released to them.
//!
//! A run is in a list by its length, exact up to 32 units, then by powers of two. A run's first descriptor holds its
//! length, and the table of first units maps its last unit to its first (a boundary tag): neighbours that become free
//! are coalesced at once.

use heaptoll_assertions::{assert_expensive, assert_internal, assert_sound};

use crate::class::{FREE, UNIT, UNIT_SHIFT};
use crate::reservation::{HeapReservation, Memory};
use crate::span::{NONE, UnitIndex};

mod check;
mod kept;
mod lists;
mod residency;

use lists::{BINS, KEPT_BINS, Kept, bin_of, bin_of_run, kept_bin_of};

/// Free memory that stays resident before it is released to the system, at least, bytes.
pub const RESIDENT_MIN: usize = 4 << 20;
/// How many runs of a list are examined for one that is not blacklisted, or has an aligned part.
const TRIES: u32 = 16;

/// The free runs and the memory they lie in.
#[derive(Debug)]
pub struct Units {
    pub memory: Memory,
    /// The lists of free runs by their length, and those of kept runs.
    bins: [UnitIndex; BINS + KEPT_BINS],
    /// Bit k: list k is not empty; of the lists by length.
    filled: u64,
    kept: Kept,
    /// Units in free runs, and in those of them that may be resident.
    free: u32,
    dirty: u32,
    /// As many may be dirty until it is found out again how many of their bytes are resident.
    dirty_allowed: u32,
    /// Free memory that will be used soon, bytes: what may be allocated before the next collection.
    pub keep: usize,
    /// Units that may be in use; a request beyond it fails.
    pub limit: usize,
    /// The system rejects the release of memory (mlockall).
    locked: bool,
    /// The epoch of the last collection, for the blacklist.
    pub epoch: u32,
    /// Number of units when the heap's size was last reported.
    pub reported_units: usize,
    /// Units skipped so far because they were blacklisted.
    pub avoided: u64,
}

/// A run of units that was taken.
#[derive(Debug, Clone, Copy)]
pub struct TakenUnits {
    pub first: UnitIndex,
    /// It reads as zeros, and no page of it is resident.
    pub clean: bool,
}

impl Units {
    pub const fn new() -> Units {
        Units {
            memory: Memory::new(),
            bins: [NONE; BINS + KEPT_BINS],
            filled: 0,
            kept: Kept::new(),
            free: 0,
            dirty: 0,
            dirty_allowed: (RESIDENT_MIN / UNIT) as u32,
            keep: 0,
            limit: usize::MAX,
            locked: false,
            epoch: 0,
            reported_units: 0,
            avoided: 0,
        }
    }

    /// Bytes in free runs.
    pub const fn free_bytes(&self) -> usize {
        self.free as usize * UNIT
    }

    /// Bytes of the units that belong to spans and large blocks.
    pub fn used_bytes(&self, reservation: &HeapReservation) -> usize {
        assert_internal!(self.free as usize <= reservation.units(), "free units are units of the heap");
        (reservation.units() - self.free as usize) * UNIT
    }

    /// Whether this many more units would exceed the limit.
    pub fn exceeds_limit(&self, reservation: &HeapReservation, units: u32) -> bool {
        reservation.units() - self.free as usize + units as usize > self.limit
    }

    fn link(&mut self, reservation: &HeapReservation, first: UnitIndex, units: u32, clean: bool, kept: bool) {
        let end = first as usize + units as usize;
        assert_internal!(units > 0 && end <= reservation.units(), "a free run lies in the heap");
        assert_internal!(
            reservation.span_class(first as usize) == FREE && reservation.span_class(end - 1) == FREE,
            "a free run is of free units"
        );
        assert_expensive!(
            (first as usize..end).all(|unit| reservation.span_class(unit) == FREE),
            "a free run is of free units"
        );
        let bin = if kept { kept_bin_of(units) } else { bin_of(units) };
        let head = self.bins[bin];
        assert_internal!(head != first, "a free run enters its list once");
        assert_internal!(
            kept || (head == NONE) == (self.filled >> bin & 1 == 0),
            "a list's bit is set if it is not empty"
        );
        // SAFETY: the units are free and `&mut self` holds their lock; `head` is NONE or a free run.
        unsafe {
            let run = &mut *reservation.span(first);
            run.units = units;
            run.clean = clean;
            run.kept = kept;
            run.previous = NONE;
            run.next = head;
            if head != NONE {
                let after = &mut *reservation.span(head);
                assert_internal!(after.previous == NONE, "no run is before the first of a list");
                after.previous = first;
            }
        }
        reservation.set_first(first, first);
        reservation.set_first(first + units - 1, first);
        self.bins[bin] = first;
        if !kept {
            self.filled |= 1 << bin;
        }
        self.free += units;
        if !clean {
            self.dirty += units;
        }
        assert_internal!(reservation.first(end - 1) == first, "a free run's last unit points to its first");
        assert_internal!(self.dirty <= self.free, "dirty units are free ones");
        assert_internal!(self.free as usize <= reservation.units(), "free units are units of the heap");
    }

    /// Removes a run from its list; returns its length and whether it is clean.
    fn unlink(&mut self, reservation: &HeapReservation, first: UnitIndex) -> (u32, bool) {
        // SAFETY: `first` begins a free run, whose descriptor the units' lock protects, as those of its neighbours in
        // the list.
        let (units, clean, kept, bin, next, previous) = unsafe {
            let run = &*reservation.span(first);
            (run.units, run.clean, run.kept, bin_of_run(run), run.next, run.previous)
        };
        assert_internal!(units > 0, "a free run has units");
        assert_internal!(reservation.span_class(first as usize) == FREE, "a free run is of free units");
        assert_internal!(
            reservation.first(first as usize + units as usize - 1) == first,
            "a free run's last unit points to its first"
        );
        assert_internal!(
            (previous == NONE) == (self.bins[bin] == first),
            "the first run of a list is the one without a run before it"
        );
        if previous == NONE {
            self.bins[bin] = next;
            if next == NONE && !kept {
                self.filled &= !(1 << bin);
            }
        } else {
            // SAFETY: `previous` is a free run of the same list, protected by the units' lock.
            let before = unsafe { &mut *reservation.span(previous) };
            assert_internal!(before.next == first, "the links of free runs are mutual");
            assert_internal!(bin_of_run(before) == bin, "a free run is in the list of its length");
            before.next = next;
        }
        if next != NONE {
            // SAFETY: `next` is a free run of the same list, protected by the units' lock.
            let after = unsafe { &mut *reservation.span(next) };
            assert_internal!(after.previous == first, "the links of free runs are mutual");
            assert_internal!(bin_of_run(after) == bin, "a free run is in the list of its length");
            after.previous = previous;
        }
        assert_internal!(
            kept || (self.bins[bin] == NONE) == (self.filled >> bin & 1 == 0),
            "a list's bit is set if it is not empty"
        );
        assert_internal!(units <= self.free, "free units are counted");
        assert_internal!(clean || units <= self.dirty, "dirty units are counted");
        self.free -= units;
        if !clean {
            self.dirty -= units;
        }
        (units, clean)
    }

    /// Releases units to the free runs, coalescing them with free neighbours.
    pub fn release(&mut self, reservation: &HeapReservation, first: UnitIndex, units: u32, clean: bool) {
        let mut released = first as usize..first as usize + units as usize;
        assert_internal!(
            units > 0 && released.end <= reservation.units(),
            "what is released lies in the heap"
        );
        // New units are clean and free already.
        assert_internal!(
            clean
                || reservation.span_class(released.start) != FREE
                    && reservation.span_class(released.end - 1) != FREE,
            "units are released once"
        );
        assert_expensive!(
            clean || released.all(|unit| reservation.span_class(unit) != FREE),
            "units are released once"
        );
        reservation.end_ages(first, units);
        reservation.set_span_class(first, units, FREE);
        self.join(reservation, first, units, clean);
        assert_sound!(self.check(reservation));
        self.limit_resident(reservation);
    }

    /// Lists free units, coalesced with free neighbours.
    fn join(&mut self, reservation: &HeapReservation, first: UnitIndex, units: u32, clean: bool) {
        let (mut first, mut units, mut clean) = (first, units, clean);
        if first > 0
            && let Some(before) = self.joinable(reservation, first as usize - 1)
        {
            assert_internal!(before < first, "a run before another one begins before it");
            let (more, was_clean) = self.unlink(reservation, before);
            assert_internal!(before + more == first, "a run ends where its free neighbour begins");
            first = before;
            units += more;
            clean &= was_clean;
        }
        if let Some(after) = self.joinable(reservation, first as usize + units as usize) {
            let (more, was_clean) = self.unlink(reservation, after);
            units += more;
            clean &= was_clean;
        }
        self.link(reservation, first, units, clean, false);
        assert_internal!(
            (first == 0 || self.joinable(reservation, first as usize - 1).is_none())
                && self.joinable(reservation, first as usize + units as usize).is_none(),
            "free neighbours are coalesced"
        );
    }

    /// The free run that a unit is in, if it may be part of a longer one.
    fn joinable(&self, reservation: &HeapReservation, unit: usize) -> Option<UnitIndex> {
        if unit >= reservation.units() || reservation.span_class(unit) != FREE {
            return None;
        }
        let first = reservation.first(unit);
        // SAFETY: `unit` is the first or the last of a free run, whose descriptor is that of its first; the caller holds the
        // units' lock.
        (!unsafe { (*reservation.span(first)).kept }).then_some(first)
    }

    /// Takes `units` units that begin at a multiple of `alignment` units; grows the heap where there is no such run.
    /// Blacklisted units are avoided if `avoid`. The caller sets the span class of the units.
    pub fn take(
        &mut self,
        reservation: &HeapReservation,
        units: u32,
        alignment: u32,
        avoid: bool,
    ) -> Option<TakenUnits> {
        assert_internal!(units > 0 && alignment.is_power_of_two(), "units are taken by powers of two");
        if self.exceeds_limit(reservation, units) {
            return None;
        }
        let taken = self
            .find(reservation, units, alignment, avoid, TRIES)
            .or_else(|| {
                self.grow(reservation, units.checked_add(alignment - 1)?)?;
                self.find(reservation, units, alignment, avoid, TRIES)
            })
            .or_else(|| {
                self.release_kept(reservation);
                self.find(reservation, units, alignment, false, u32::MAX)
            })?;
        assert_internal!(
            (reservation.address(taken.first) >> UNIT_SHIFT).is_multiple_of(alignment as usize),
            "units that are taken are aligned as requested"
        );
        assert_internal!(
            self.used_bytes(reservation) / UNIT <= self.limit,
            "what is taken stays within the limit of the heap"
        );
        Some(taken)
    }

    /// Examines at most `limit` runs of a list: every list is searched, however many runs of shorter lists do not fit.
    fn find(
        &mut self,
        reservation: &HeapReservation,
        units: u32,
        alignment: u32,
        avoid: bool,
        limit: u32,
    ) -> Option<TakenUnits> {
        let mut bins = self.filled & (u64::MAX << bin_of(units));
        while bins != 0 {
            let bin = bins.trailing_zeros() as usize;
            bins &= bins - 1;
            let mut run = self.bins[bin];
            let mut tries = limit;
            while run != NONE && tries > 0 {
                // SAFETY: a free run in a list, protected by the units' lock.
                let (length, next) =
                    unsafe { ((*reservation.span(run)).units, (*reservation.span(run)).next) };
                assert_internal!(bin_of(length) == bin, "a free run is in the list of its length");
                assert_internal!(next != run, "lists of free runs end");
                if let Some(at) = self.place(reservation, run..run + length, units, alignment, avoid) {
                    return Some(self.cut(reservation, run, at, units));
                }
                // Without blacklist and alignment, a run can only fail in lists of mixed lengths: they are searched
                // whole.
                if avoid || alignment > 1 {
                    tries -= 1;
                }
                run = next;
            }
        }
        None
    }

    /// Where in a free run the units fit. The address must be aligned: the heap itself begins at a smaller alignment.
    fn place(
        &mut self,
        reservation: &HeapReservation,
        run: core::ops::Range<UnitIndex>,
        units: u32,
        alignment: u32,
        avoid: bool,
    ) -> Option<UnitIndex> {
        let before = reservation.base() >> UNIT_SHIFT;
        let mut at = run.start;
        loop {
            let aligned = (before + at as usize).checked_next_multiple_of(alignment as usize)? - before;
            at = UnitIndex::try_from(aligned).ok()?;
            if at.checked_add(units)? > run.end {
                return None;
            }
            if !avoid {
                return Some(at);
            }
            match (at..at + units).rev().find(|&unit| self.is_blacklisted(reservation, unit)) {
                None => return Some(at),
                Some(blacklist) => {
                    self.avoided += 1;
                    at = blacklist + 1;
                }
            }
        }
    }

    /// Whether one of the last two collections, or the one that is in increments, found a word equal to an address in this
    /// unit.
    fn is_blacklisted(&self, reservation: &HeapReservation, unit: UnitIndex) -> bool {
        // SAFETY: the table has a row for every unit; `unit` lies in a free run of the heap.
        let seen = unsafe { reservation.blacklist().add(unit as usize).read() };
        seen != 0
            && (seen == blacklist_mark(self.epoch)
                || seen == blacklist_mark(self.epoch.wrapping_sub(1))
                || reservation.is_marking() && seen == blacklist_mark(self.epoch.wrapping_add(1)))
    }

    /// Splits the free run at `run`: takes `units` at `at`, and the rest stays free.
    fn cut(
        &mut self,
        reservation: &HeapReservation,
        run: UnitIndex,
        at: UnitIndex,
        units: u32,
    ) -> TakenUnits {
        let free = self.free;
        let (length, clean) = self.unlink(reservation, run);
        assert_internal!(
            run <= at && at + units <= run + length,
            "the units that are taken lie in the run that they are cut from"
        );
        if at > run {
            self.link(reservation, run, at - run, clean, false);
        }
        let rest = run + length - (at + units);
        if rest > 0 {
            self.link(reservation, at + units, rest, clean, false);
        }
        assert_internal!(self.free + units == free, "what is cut from a run is no longer free");
        TakenUnits { first: at, clean }
    }

    /// Takes exactly the units from `at` on, if they begin a free run that is long enough.
    pub fn take_at(
        &mut self,
        reservation: &HeapReservation,
        at: UnitIndex,
        units: u32,
    ) -> Option<TakenUnits> {
        if at as usize >= reservation.units()
            || reservation.span_class(at as usize) != FREE
            || self.exceeds_limit(reservation, units)
        {
            return None;
        }
        assert_internal!(
            reservation.first(at as usize) == at,
            "a free run begins where the unit before it is not free"
        );
        if self.joinable(reservation, at as usize).is_none() {
            self.release_one_kept(reservation, at);
        }
        // SAFETY: a free run begins there, as the unit before it is not free; the units' lock protects it.
        let long_enough = unsafe { (*reservation.span(at)).units } >= units;
        long_enough.then(|| self.cut(reservation, at, at, units))
    }

    /// Grows the heap so that a free run of `units` is there.
    fn grow(&mut self, reservation: &HeapReservation, units: u32) -> Option<()> {
        let before = reservation.units();
        // A free run at the end is part of the new run.
        let at_end = match before.checked_sub(1).and_then(|last| self.joinable(reservation, last)) {
            // SAFETY: the first unit of a free run, protected by the units' lock.
            Some(run) => unsafe { (*reservation.span(run)).units },
            None => 0,
        };
        let grown = reservation.grow(&mut self.memory, units.saturating_sub(at_end).max(1))?;
        assert_internal!(at_end + grown >= units, "the heap grows by what is missing");
        assert_internal!(reservation.units() == before + grown as usize, "units are counted when they exist");
        self.release(reservation, before as UnitIndex, grown, true);
        Some(())
    }
}

/// The blacklist's encoding of the number of a collection: never 0.
pub const fn blacklist_mark(epoch: u32) -> u8 {
    (epoch % 255) as u8 + 1
}

#[cfg(test)]
mod tests;
