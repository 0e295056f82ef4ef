//! Ages of blocks: which are old, so that young collections keep them unread, and what is known of each unit for that.
//!
//! Sticky mark bits (Demers et al., *Combining generational and conservative garbage collection*, POPL 1990): a block that
//! a collection has marked is old until a full collection decides again. One invariant makes a young collection find all
//! that a full one would: **each word of an old block was read since it was last written, or lies on a page that the next
//! collection reads; and whatever such a word points into was made old when it was read.** Therefore also places that held
//! no block when a word pointing there was read are old: a block allocated there later is born old.
//!
//! - A place in a span without a block has its bit in [`Age::old`] set.
//! - Any other such unit (free, the unused end of a span or large block) is [`TAINTED`] until the next full collection.
//! - A block that is born old was not read: it lies in a span that is not dense, which the next young collection reads
//!   whole. But a dense span may have one to which a word pointed while a cache had it, and a large block may grow: their
//!   units are marked [`REREAD`].
//!
//! In a collection in increments ([`crate::increments`]) marks have the part of ages until it ends: a place that a word
//! points to which was read is marked, taken or not, units without places are tainted, and what is born marked is read
//! again.
//!
//! There are no ages, and nothing here does anything, unless generations are on or pauses are short.

use core::sync::atomic::{AtomicU8, Ordering};

use heaptoll_assertions::assert_internal;

use crate::age::Age;
use crate::class::{CLASS, FREE, SpanClass, UNIT};
use crate::reservation::{AHEAD, HeapReservation};
use crate::span::{Span, UnitIndex};

/// A word that will not be read again may point into the unit, where there is no block.
pub const TAINTED: u8 = 1 << 0;
/// Old blocks in the unit hold words that no collection has read.
pub const REREAD: u8 = 1 << 1;
/// The first of four bits for the unit's pages: the page was written.
pub const WRITTEN: u8 = 1 << 4;
/// All pages of the unit.
pub const ALL_WRITTEN: u8 = 0xf0;

// A unit's pages have a bit each.
const _: () = assert!(UNIT / heaptoll_runtime::PAGE == 4);

/// Words of bits that the blocks of a span class have in a span.
pub fn words_of(span_class: SpanClass) -> usize {
    CLASS.get(span_class as usize).map_or(1, |class| usize::from(class.blocks).div_ceil(64))
}

impl HeapReservation {
    /// Whether blocks have ages.
    #[inline(always)]
    pub fn has_ages(&self) -> bool {
        !self.ages().is_null()
    }

    /// The ages in a unit below [`HeapReservation::units`]; only where there are ages. The lock that protects the unit's
    /// descriptor protects them.
    #[inline(always)]
    pub fn age(&self, unit: UnitIndex) -> *mut Age {
        assert_internal!(
            self.has_ages() && (unit as usize) < self.units(),
            "a unit with ages is one of the heap"
        );
        // SAFETY: where there are ages the table has a row for every unit, and the caller passes one below `units`.
        unsafe { self.ages().add(unit as usize) }
    }

    /// What is known of a unit of the heap, or of one that it may grow into.
    #[inline(always)]
    pub fn unit_flags(&self, unit: usize) -> &AtomicU8 {
        assert_internal!(self.has_ages(), "units have flags where blocks have ages");
        // SAFETY: the table has a row for every unit and as many more as `Marks` considers; all are atomic.
        unsafe { AtomicU8::from_ptr(self.flags().add(unit)) }
    }

    /// Sets flags of some units.
    pub fn set_flags(&self, first: UnitIndex, count: u32, flags: u8) {
        for unit in first as usize..(first + count) as usize {
            self.unit_flags(unit).fetch_or(flags, Ordering::Relaxed);
        }
    }

    /// Keeps of the flags of all units only some.
    pub fn keep_flags(&self, kept: u8) {
        for unit in 0..self.units() + AHEAD {
            let flags = self.unit_flags(unit);
            flags.store(flags.load(Ordering::Relaxed) & kept, Ordering::Relaxed);
        }
    }

    fn is_tainted(&self, first: UnitIndex, count: u32) -> bool {
        (first as usize..(first + count) as usize)
            .any(|unit| self.unit_flags(unit).load(Ordering::Relaxed) & TAINTED != 0)
    }

    /// The blocks of a new span or large block begin as young, or as old where a word may point to them that is not read
    /// again. The caller has taken the units and set their span class.
    pub fn begin_ages(&self, first: UnitIndex, count: u32, span_class: SpanClass) {
        if !self.has_ages() {
            return;
        }
        let tainted = self.is_tainted(first, count);
        let words = words_of(span_class);
        let blocks = CLASS.get(span_class as usize).map_or(1, |class| class.blocks.into());
        // SAFETY: the units were just taken by the caller, so that no other thread uses their rows.
        let (age, span) = unsafe { (&mut *self.age(first), &*self.span(first)) };
        for (word, old) in age.old[..words].iter_mut().enumerate() {
            let born = if tainted { Span::present(blocks, word) } else { 0 };
            if self.is_marking() {
                *old = 0;
                span.bits[word].marked.store(born, Ordering::Relaxed);
            } else {
                *old = born;
            }
        }
        if tainted && self.is_marking() {
            self.set_flags(first, count, REREAD);
        }
    }

    /// Units are about to be released by a span or large block, or a part of one: words that pointed to its old blocks may
    /// still be there.
    pub fn end_ages(&self, first: UnitIndex, count: u32) {
        let span_class = if self.has_ages() { self.span_class(first as usize) } else { FREE };
        if span_class == FREE {
            return;
        }
        let owner = self.first(first as usize);
        // SAFETY: the first unit of the span or large block that the caller releases, whose lock it holds.
        let (age, span) = unsafe { (&*self.age(owner), &*self.span(owner)) };
        let words = words_of(span_class);
        let is_marked = self.is_marking()
            && span.bits[..words].iter().any(|bits| bits.marked.load(Ordering::Relaxed) != 0);
        if is_marked || age.old[..words].iter().any(|&old| old != 0) {
            self.set_flags(first, count, TAINTED);
        }
    }

    /// A large block of so many units has more usable bytes: words may point into what was not its own, and it holds words
    /// that were not read.
    pub fn extend_ages(&self, first: UnitIndex, count: u32) {
        if !self.has_ages() {
            return;
        }
        // SAFETY: the first unit of a large block; the caller holds the units' lock.
        let (age, span) = unsafe { (&mut *self.age(first), &*self.span(first)) };
        let (tainted, marked) = (self.is_tainted(first, count), &span.bits[0].marked);
        if self.is_marking() {
            if tainted {
                marked.store(1, Ordering::Relaxed);
            }
        } else if tainted {
            age.old[0] |= 1;
        }
        if age.old[0] & 1 != 0 || self.is_marking() && marked.load(Ordering::Relaxed) != 0 {
            self.set_flags(first, count, REREAD);
        }
    }
}
