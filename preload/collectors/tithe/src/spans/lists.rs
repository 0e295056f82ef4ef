//! The lists of the swept spans of one span class that have free blocks: one for each home, newest first.
//!
//! A span's home is that of the cache that last took blocks of it, or that freed the first block of it when it was full. Threads
//! of different homes then rarely have blocks on one line of the processor's cache, which each write would move.

use heaptoll_assertions::assert_internal;

use crate::reservation::HeapReservation;
use crate::span::{NONE, UnitIndex};

/// Homes of caches. Where there are more caches than that, some share one.
pub const HOMES: usize = 8;

/// The lists of one span class.
#[derive(Debug)]
pub struct Lists {
    pub firsts: [UnitIndex; HOMES],
}

impl Lists {
    pub const fn new() -> Lists {
        Lists { firsts: [NONE; HOMES] }
    }

    /// The first span of a home's list.
    pub const fn first(&self, home: u8) -> UnitIndex {
        self.firsts[home as usize % HOMES]
    }

    /// See [`super::Spans::adopt`].
    #[inline(always)]
    pub fn adopt(&mut self, reservation: &HeapReservation, home: u8) -> bool {
        assert_internal!(self.first(home) == NONE, "a home that has a span adopts none");
        let others = self.firsts != [NONE; HOMES];
        if others {
            self.adopt_any(reservation, home);
        }
        others
    }

    #[cold]
    fn adopt_any(&mut self, reservation: &HeapReservation, home: u8) {
        if let Some(&unit) = self.firsts.iter().find(|&&unit| unit != NONE) {
            self.unlink(reservation, unit);
            self.link(reservation, unit, home);
        }
    }

    /// Puts a span into the list of a home.
    pub fn link(&mut self, reservation: &HeapReservation, unit: UnitIndex, home: u8) {
        let first = &mut self.firsts[usize::from(home) % HOMES];
        // SAFETY: a span of this span class, whose lock `&mut self` implies.
        unsafe {
            let span = &mut *reservation.span(unit);
            assert_internal!(!span.listed && *first != unit, "a span enters its list once");
            assert_internal!(span.free > 0, "spans in the list have free blocks");
            assert_internal!(reservation.first(unit as usize) == unit, "lists link the first units of spans");
            span.listed = true;
            span.home = home;
            span.previous = NONE;
            span.next = *first;
            if *first != NONE {
                let head = &mut *reservation.span(*first);
                assert_internal!(head.span_class == span.span_class, "spans in a list are of its span class");
                assert_internal!(head.previous == NONE, "no span is before the first of a list");
                head.previous = unit;
            }
        }
        *first = unit;
    }

    /// Takes a span out of its list.
    pub fn unlink(&mut self, reservation: &HeapReservation, unit: UnitIndex) {
        // SAFETY: a span of this span class, whose lock `&mut self` implies.
        unsafe {
            let span = &mut *reservation.span(unit);
            let (next, previous) = (span.next, span.previous);
            let first = &mut self.firsts[usize::from(span.home) % HOMES];
            assert_internal!(span.listed, "only a listed span leaves its list");
            assert_internal!(
                (previous == NONE) == (*first == unit),
                "the first span of a list is the one without a span before it"
            );
            span.listed = false;
            if previous == NONE {
                *first = next;
            } else {
                let before = &mut *reservation.span(previous);
                assert_internal!(before.next == unit, "the links of spans are mutual");
                before.next = next;
            }
            if next != NONE {
                let after = &mut *reservation.span(next);
                assert_internal!(after.previous == unit, "the links of spans are mutual");
                after.previous = previous;
            }
        }
    }
}

/// Whether a span is in its list. For assertions.
pub fn is_listed(reservation: &HeapReservation, unit: UnitIndex) -> bool {
    // SAFETY: a span of a span class whose lock the caller holds; only read.
    unsafe { (*reservation.span(unit)).listed }
}
