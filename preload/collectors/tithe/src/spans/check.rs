//! The invariants of the spans of one span class, verified.

use core::sync::atomic::Ordering;

use heaptoll_runtime::Damage;

use super::Spans;
use super::lists::HOMES;
use crate::class::CLASS;
use crate::reservation::HeapReservation;
use crate::span::{NONE, Span, UnitIndex};

impl Spans {
    /// Verifies the list and the counts of every span of the span class.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn check(&self, reservation: &HeapReservation, span_class: u8, epoch: u32) -> Result<(), Damage> {
        let class = &CLASS[span_class as usize];
        let mut listed = self.check_lists(reservation, span_class, epoch)?;
        let mut unit = 0;
        while unit < reservation.units() {
            if reservation.span_class(unit) != span_class {
                unit += 1;
                continue;
            }
            let first = unit as UnitIndex;
            let address = reservation.address(first);
            // SAFETY: a span of this span class, whose lock is held; only read.
            let span = unsafe { &*reservation.span(first) };
            let end = unit + usize::from(class.units);
            Damage::unless(
                end <= reservation.units()
                    && (unit..end).all(|part| {
                        reservation.span_class(part) == span_class && reservation.first(part) == first
                    }),
                address,
                "a span's units point to its first",
            )?;
            Damage::unless(span.span_class == span_class, address, "a span's descriptor has its span class")?;
            let words = usize::from(class.blocks).div_ceil(64);
            for (word, bits) in span.bits[..words].iter().enumerate() {
                let beyond = !Span::present(class.blocks.into(), word);
                let marked = bits.marked.load(Ordering::Relaxed);
                Damage::unless((bits.taken | marked) & beyond == 0, address, "no block is beyond the last")?;
                let may_be_marked = span.epoch != epoch || reservation.is_marking();
                Damage::unless(may_be_marked || marked == 0, address, "a swept span has no marks")?;
                let is_swept = span.epoch == epoch;
                let available = if is_swept { !bits.taken & !beyond } else { 0 };
                let freed = reservation.freed(first).map_or(u64::MAX, |freed| freed.word(word));
                Damage::unless(available & !freed == 0, address, "a block that is not taken is freed")?;
            }
            if span.epoch == epoch {
                let taken: u32 = span.bits[..words].iter().map(|bits| bits.taken.count_ones()).sum();
                let free = u32::from(class.blocks) - taken;
                Damage::unless(free == u32::from(span.free), address, "the count of free blocks is right")?;
                Damage::unless(
                    free == 0 || span.listed != span.dense,
                    address,
                    "a span with free blocks is in the list, unless it is dense",
                )?;
                Damage::unless(
                    span.is_full_before_hint(class.blocks.into()),
                    address,
                    "words before the hint are full",
                )?;
                Damage::unless(!span.listed || listed > 0, address, "a span that is listed is in the list")?;
                listed -= usize::from(span.listed);
            } else {
                Damage::unless(end > self.cursor, address, "what waits to be swept lies beyond the cursor")?;
            }
            unit = end;
        }
        Damage::unless(listed == 0, reservation.base(), "every listed span is in the heap")
    }

    /// Verifies the lists; returns how many spans they have.
    fn check_lists(
        &self,
        reservation: &HeapReservation,
        span_class: u8,
        epoch: u32,
    ) -> Result<usize, Damage> {
        let mut listed = 0;
        for home in 0..HOMES as u8 {
            let (mut unit, mut previous) = (self.lists.first(home), NONE);
            while unit != NONE {
                let address = reservation.address(unit);
                Damage::unless(
                    (unit as usize) < reservation.units(),
                    address,
                    "links of spans lie in the heap",
                )?;
                // SAFETY: the unit lies in the heap, as checked above, so that it has a descriptor; the lock of the span
                // class is held; only read.
                let span = unsafe { &*reservation.span(unit) };
                Damage::unless(
                    reservation.span_class(unit as usize) == span_class,
                    address,
                    "spans in a list are of its span class",
                )?;
                Damage::unless(span.listed && span.free > 0, address, "spans in the list have free blocks")?;
                Damage::unless(span.epoch == epoch, address, "spans in the list were swept")?;
                Damage::unless(span.previous == previous, address, "the links of spans are mutual")?;
                Damage::unless(span.home == home, address, "a span is in the list of its home")?;
                listed += 1;
                Damage::unless(listed <= reservation.units(), address, "lists of spans end")?;
                previous = unit;
                unit = span.next;
            }
        }
        Ok(listed)
    }
}
