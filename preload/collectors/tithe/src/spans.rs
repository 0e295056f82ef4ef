//! The spans of one span class: reserving blocks for a cache, releasing them, sweeping after a collection.
//!
//! All of it happens under the span class's lock. Swept spans with free blocks are in [`lists`]; those that wait to be
//! swept are found by their span class in the reservation's table, in order of address, so that low addresses fill
//! first.

use core::sync::atomic::{AtomicU64, Ordering};

use heaptoll_assertions::{assert_internal, assert_sound};

use crate::ages::{REREAD, words_of};
use crate::bump::{Reserved, WORDS};
use crate::cache::Cache;
use crate::class::{CLASS, FREE, SizeClass, SpanClass, is_small};
use crate::reservation::HeapReservation;
use crate::runs::TakenUnits;
use crate::span::{NONE, Span, UnitIndex};

mod check;
mod lists;

pub use lists::HOMES;
use lists::{Lists, is_listed};

/// The spans of one span class.
#[derive(Debug)]
pub struct Spans {
    lists: Lists,
    /// The unit from which on spans may wait to be swept; `usize::MAX` when none does.
    cursor: usize,
}

/// Words that are read before it is known whether they are clear.
const CLEAR_AT_ONCE: usize = 64;

/// The outcome of sweeping a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SweepOutcome {
    /// It was swept before.
    Already,
    /// It has blocks that are taken: it is in the list, or full.
    Kept,
    /// No block of it is taken: the caller releases its units, or lists it.
    Empty,
}

/// Why an address cannot be released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseError {
    Free,
    Inside,
}

impl Spans {
    pub const fn new() -> Spans {
        Spans { lists: Lists::new(), cursor: usize::MAX }
    }

    /// Puts a span that was found empty into the list of a home.
    pub fn list(&mut self, reservation: &HeapReservation, unit: UnitIndex, home: u8) {
        self.lists.link(reservation, unit, home);
    }

    /// Moves a span of another home to this one, which has none; returns whether there was one.
    #[inline(always)]
    pub fn adopt(&mut self, reservation: &HeapReservation, home: u8) -> bool {
        self.lists.adopt(reservation, home)
    }

    /// Initialises fresh units as a span of this span class and lists it for a home.
    pub fn initialise(
        &mut self,
        reservation: &HeapReservation,
        taken: TakenUnits,
        span_class: u8,
        epoch: u32,
        home: u8,
    ) {
        let unit = taken.first;
        let class = &CLASS[span_class as usize];
        assert_internal!(is_small(span_class), "a span has a size class");
        assert_internal!(
            (unit as usize..unit as usize + usize::from(class.units))
                .all(|unit| reservation.span_class(unit) == FREE),
            "a new span is of units that are free"
        );
        // SAFETY: the caller has just taken the units, and no other thread uses them.
        let span = unsafe { &mut *reservation.span(unit) };
        span.units = u32::from(class.units);
        span.span_class = span_class;
        span.epoch = epoch;
        span.free = class.blocks;
        span.hint = 0;
        span.bytes = 0;
        span.clean = taken.clean;
        span.dense = false;
        span.held = 0;
        span.clear_bits(class.blocks as usize);
        if let Some(freed) = reservation.freed(unit) {
            (0..words_of(span_class))
                .for_each(|word| freed.set(word, Span::present(class.blocks.into(), word)));
        }
        reservation.assign(unit, u32::from(class.units), span_class);
        reservation.begin_ages(unit, u32::from(class.units), span_class);
        self.lists.link(reservation, unit, home);
        assert_sound!(self.check(reservation, span_class, epoch));
    }

    /// Reserves up to `wanted` blocks of a span of the cache's home; returns how many. They are cleared before they are handed
    /// out if `clears`, unless they read as zeros.
    pub fn reserve(
        &mut self,
        reservation: &HeapReservation,
        cache: &mut Cache,
        span_class: SpanClass,
        wanted: u32,
        clears: bool,
    ) -> u32 {
        let unit = self.lists.first(cache.home);
        if unit == NONE {
            return 0;
        }
        let class = &CLASS[span_class as usize];
        // SAFETY: a span of this span class, whose lock `&mut self` implies.
        let span = unsafe { &mut *reservation.span(unit) };
        assert_internal!(span.listed && span.free > 0, "spans in the list have free blocks");
        assert_internal!(span.span_class == span_class, "spans in a list are of its span class");
        assert_internal!(!span.dense, "no block is reserved in a dense span");
        let words = usize::from(class.blocks).div_ceil(64);
        let (mut word, mut first, mut got, mut masks) = (span.hint as usize, 0, 0, [0; WORDS]);
        while word < words && got < wanted && (got == 0 || word < first + WORDS) {
            let bits = &mut span.bits[word];
            let available = Span::present(class.blocks.into(), word) & !bits.taken;
            let mask = lowest(available, wanted - got);
            assert_internal!(mask & bits.taken == 0, "only free blocks are reserved");
            if mask != 0 {
                first = if got == 0 { word } else { first };
                masks[word - first] = mask;
                got += mask.count_ones();
                bits.taken |= mask;
                if let Some(freed) = reservation.freed(unit) {
                    assert_internal!(mask & !freed.word(word) == 0, "a block that is reserved is freed");
                    freed.remove(word, mask);
                }
                if bits.marked.load(Ordering::Relaxed) & mask != 0 {
                    // Between the increments of a collection: the blocks are born marked.
                    reservation.set_flags(unit, span.units, REREAD);
                }
            }
            if mask == available {
                word += 1;
            }
        }
        assert_internal!(
            (1..=wanted).contains(&got),
            "one block is reserved at least, and no more than wanted"
        );
        assert_internal!(
            u32::from(span.free) >= got,
            "a span's count of free blocks covers what is reserved"
        );
        span.free -= got as u16;
        span.hint = word as u32;
        assert_internal!(span.is_counted(class.blocks.into()), "the count of free blocks is right");
        assert_internal!(span.is_full_before_hint(class.blocks.into()), "words before the hint are full");
        assert_internal!(span.free == 0 || word < words, "free blocks lie in the words from the hint on");
        let start = reservation.address(unit) + first * 64 * class.size as usize;
        let clears = clears && !span.clean;
        if span.free == 0 {
            self.lists.unlink(reservation, unit);
        }
        let reserved = Reserved { start, masks, unit, word: first as u16, next: 0, clears };
        cache.reserve(span_class.into(), reserved, class.size);
        got
    }

    /// The next span of the span class that may wait to be swept.
    pub fn next_unswept(&mut self, reservation: &HeapReservation, span_class: u8) -> Option<UnitIndex> {
        let end = reservation.units();
        if self.cursor >= end {
            return None;
        }
        // SAFETY: the table has a row for every unit, and the range ends at the last one.
        let found = unsafe {
            libc::memchr(
                reservation.span_classes().add(self.cursor).cast(),
                span_class.into(),
                end - self.cursor,
            )
        };
        if found.is_null() {
            self.cursor = usize::MAX;
            return None;
        }
        let unit = found as usize - reservation.span_classes() as usize;
        assert_internal!((self.cursor..end).contains(&unit), "a search finds units of the heap");
        self.cursor = unit + usize::from(CLASS[span_class as usize].units);
        let first = reservation.first(unit);
        assert_internal!(
            first as usize <= unit && reservation.span_class(first as usize) == span_class,
            "a span's units point to its first"
        );
        Some(first)
    }

    /// After a collection: everything waits to be swept.
    pub fn reset(&mut self) {
        *self = Spans { lists: Lists::new(), cursor: 0 };
    }

    /// After everything was swept: nothing waits.
    pub fn all_swept(&mut self) {
        self.cursor = usize::MAX;
    }

    /// Makes marked blocks taken and the rest free, which `poison` fills.
    pub fn sweep(
        &mut self,
        reservation: &HeapReservation,
        unit: UnitIndex,
        epoch: u32,
        poison: bool,
    ) -> SweepOutcome {
        // SAFETY: a span of this span class, whose lock `&mut self` implies.
        let span = unsafe { &mut *reservation.span(unit) };
        if span.epoch == epoch {
            return SweepOutcome::Already;
        }
        assert_internal!(
            reservation.first(unit as usize) == unit,
            "a span's descriptor is that of its first unit"
        );
        assert_internal!(
            span.span_class == reservation.span_class(unit as usize),
            "a span's descriptor has its span class"
        );
        assert_internal!(span.epoch.wrapping_add(1) == epoch, "a span is swept after every collection");
        span.epoch = epoch;
        span.listed = false;
        span.clean = false;
        let class = &CLASS[span.span_class as usize];
        let mut free = 0;
        for (word, bits) in span.bits[..usize::from(class.blocks).div_ceil(64)].iter_mut().enumerate() {
            let marked = *bits.marked.get_mut();
            assert_internal!(marked & !bits.taken == 0, "only taken blocks are marked");
            assert_internal!(
                bits.taken & !Span::present(class.blocks.into(), word) == 0,
                "no block is beyond the last"
            );
            if let Some(freed) = reservation.freed(unit) {
                let available = bits.taken & !marked;
                assert_internal!(available & !freed.word(word) == 0, "only freed blocks become available");
                if reservation.freed_table.clears.load(Ordering::Relaxed) {
                    clear_written(reservation, reservation.address(unit), class, word, available);
                }
            }
            if poison {
                fill(reservation.address(unit), class, word, bits.taken & !marked);
            }
            bits.taken = marked;
            bits.marked = AtomicU64::new(0);
            free += (Span::present(class.blocks.into(), word) & !marked).count_ones();
        }
        assert_internal!(free <= u32::from(class.blocks), "a span has no more free blocks than blocks");
        span.free = free as u16;
        span.hint = 0;
        // The program may have freed blocks of it since they were marked.
        span.dense = span.dense && is_dense(class.blocks - span.free, class);
        assert_internal!(span.is_counted(class.blocks.into()), "the count of free blocks is right");
        assert_internal!(span.is_full_before_hint(class.blocks.into()), "words before the hint are full");
        assert_internal!(!span.has_marks(class.blocks.into()), "a swept span has no marks");
        if span.free == class.blocks {
            assert_internal!(!span.dense, "a span without live blocks is not dense");
            return SweepOutcome::Empty;
        }
        if span.free > 0 && !span.dense {
            self.lists.link(reservation, unit, span.home);
        }
        SweepOutcome::Kept
    }

    /// Makes the free places of a dense span available; returns whether there are some now. The span waits to be swept, or
    /// it was swept.
    pub fn thin(&mut self, reservation: &HeapReservation, unit: UnitIndex, epoch: u32) -> bool {
        // SAFETY: a span of this span class, whose lock `&mut self` implies.
        let span = unsafe { &mut *reservation.span(unit) };
        if !core::mem::take(&mut span.dense) {
            return false;
        }
        let (is_swept, free) = (span.epoch == epoch, span.free);
        if is_swept && free > 0 {
            self.lists.link(reservation, unit, span.home);
        }
        !is_swept || free > 0
    }

    /// Frees a block that no cache holds; a span that was full goes to this home. Returns whether the whole span is free now:
    /// then it is unlisted, and the caller releases its units.
    ///
    /// # Errors
    /// The address is not that of a taken block.
    pub fn release(
        &mut self,
        reservation: &HeapReservation,
        address: usize,
        epoch: u32,
        home: u8,
    ) -> Result<bool, ReleaseError> {
        let unit = reservation.first(address.wrapping_sub(reservation.base()) >> crate::class::UNIT_SHIFT);
        // SAFETY: a span of this span class, whose lock `&mut self` implies.
        let span = unsafe { &mut *reservation.span(unit) };
        assert_internal!(is_small(span.span_class), "a block in a cache lies in a span");
        let class = &CLASS[span.span_class as usize];
        let offset = address - reservation.address(unit);
        let block = class.index(offset);
        if block * class.size as usize != offset || block >= class.blocks.into() {
            return Err(ReleaseError::Inside);
        }
        let (word, bit) = (block / 64, 1u64 << (block % 64));
        let bits = &mut span.bits[word];
        let marked = bits.marked.load(Ordering::Relaxed);
        if let Some(freed) = reservation.freed(unit) {
            freed.add(word, bit);
        }
        if span.epoch != epoch {
            assert_internal!(span.epoch.wrapping_add(1) == epoch, "a span is swept after every collection");
            // The span waits to be swept: its marks hold which blocks are taken.
            if marked & bit == 0 {
                return Err(ReleaseError::Free);
            }
            bits.marked.store(marked & !bit, Ordering::Relaxed);
            return Ok(false);
        }
        if bits.taken & bit == 0 {
            return Err(ReleaseError::Free);
        }
        assert_internal!(marked == 0 || reservation.is_marking(), "a swept span has no marks");
        assert_internal!(
            span.free < class.blocks,
            "a span with a taken block has fewer free ones than blocks"
        );
        assert_internal!(
            span.listed == (span.free > 0 && !span.dense),
            "a swept span is in its list exactly while it has free blocks and is not dense"
        );
        bits.taken &= !bit;
        span.clean = false;
        span.free += 1;
        assert_internal!(span.is_counted(class.blocks.into()), "the count of free blocks is right");
        span.hint = span.hint.min(word as u32);
        span.dense = span.dense && is_dense(class.blocks - span.free, class);
        let (free, listed, dense) = (span.free, span.listed, span.dense);
        if free == class.blocks {
            if listed {
                self.lists.unlink(reservation, unit);
            }
            assert_internal!(!is_listed(reservation, unit), "a span whose units are released is in no list");
            return Ok(true);
        }
        if !listed && !dense {
            self.lists.link(reservation, unit, home);
        }
        assert_internal!(is_listed(reservation, unit) != dense, "a span with free blocks is in the list");
        assert_sound!(self.check(reservation, reservation.span_class(unit as usize), epoch));
        Ok(false)
    }
}

/// Whether so many old blocks make a span dense: seven eighths of it.
pub fn is_dense(old: u16, class: &SizeClass) -> bool {
    u32::from(old) * 8 >= u32::from(class.blocks) * 7
}

/// The lowest `count` bits of `bits`, or all.
#[inline(always)]
fn lowest(bits: u64, count: u32) -> u64 {
    if bits.count_ones() <= count {
        return bits;
    }
    let mut rest = bits;
    for _ in 0..count {
        rest &= rest - 1;
    }
    assert_internal!((bits & !rest).count_ones() == count, "as many bits are chosen as were requested");
    bits & !rest
}

/// Mode `guard`: blocks that were freed and are not clear were written after their free. They are counted, and cleared.
pub fn clear_written(
    reservation: &HeapReservation,
    start: usize,
    class: &SizeClass,
    word: usize,
    mut mask: u64,
) {
    let size = class.size as usize;
    while mask != 0 {
        let from = mask.trailing_zeros();
        let count = (mask >> from).trailing_ones();
        mask &= u64::MAX.checked_shl(from + count).unwrap_or(0);
        let start = start + (word * 64 + from as usize) * size;
        // SAFETY: the caller found the blocks freed, so that the program must not use them, and no cache has them.
        let run = unsafe {
            core::slice::from_raw_parts_mut(start as *mut u64, count as usize * size / size_of::<u64>())
        };
        if is_clear(run) {
            continue;
        }
        for block in run.chunks_exact_mut(size / size_of::<u64>()) {
            if !is_clear(block) {
                reservation.freed_table.count_late(block.as_ptr() as usize);
                block.fill(0);
            }
        }
    }
}

fn is_clear(words: &[u64]) -> bool {
    words.chunks(CLEAR_AT_ONCE).all(|words| words.iter().fold(0, |found, &word| found | word) == 0)
}

/// The byte that fills reclaimed blocks with `TITHE_POISON=1`.
pub const POISON: u8 = 0xdf;

#[cold]
fn fill(start: usize, class: &SizeClass, word: usize, mut mask: u64) {
    while mask != 0 {
        let block = word * 64 + mask.trailing_zeros() as usize;
        mask &= mask - 1;
        let size = class.size as usize;
        assert_internal!(block < class.blocks.into(), "what is filled lies in its span");
        // SAFETY: `sweep` found the block taken and not marked: it is unreachable.
        unsafe { ((start + block * size) as *mut u8).write_bytes(POISON, size) };
    }
}

#[cfg(test)]
mod tests;
