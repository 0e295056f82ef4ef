//! `TITHE_CHECK=young`: after a young or incremental collection has marked, everything is marked again from the same words
//! of the roots, as a full collection does. What the full marking reaches that one must have reached: a block that it has
//! not would be freed although the program may use it.

use core::convert::Infallible;
use core::sync::atomic::Ordering;

use heaptoll_assertions::assert_internal;
use heaptoll_runtime::Message;

use super::young::MARKS_OF_UNIT;
use crate::ages::words_of;
use crate::collector::Collector;
use crate::heap::Heap;
use crate::mark::Trace;
use crate::markers::Roots;
use crate::span::{Span, UnitIndex};

impl Heap {
    /// Marks everything, compares, and leaves the marks of the young collection as they were. Ends the process where a
    /// block was missed.
    pub(super) fn check_young(&self, collector: &mut Collector, epoch: u32) {
        let place = |first: UnitIndex, word: usize| first as usize * MARKS_OF_UNIT + word;
        let young = collector.generations.marks.capacity_mut();
        let Ok(()) = self.each_aged::<Infallible>(&mut |first, span, _| {
            for (word, bits) in span.bits.iter().enumerate().take(words_of(span.span_class)) {
                young[place(first, word)] = bits.marked.swap(0, Ordering::Relaxed);
            }
            Ok(())
        });
        let Collector { added, markers, stack, generations, .. } = &mut *collector;
        let roots = Roots {
            added,
            stopped: None,
            excluded_ranges: &[],
            gathered: Some(generations.words.as_slice()),
            young: false,
            trace: Trace::Repeated,
        };
        // SAFETY: the world is stopped, or only added roots are read, in tests; all locks are held, and one marker needs no
        // preparation.
        let repeated = unsafe { markers.mark(1, &self.reservation, stack, epoch, &roots) };
        assert_internal!(repeated.is_ok(), "roots that were gathered can be read");
        let young = collector.generations.marks.capacity_mut();
        let Ok(()) = self.each_aged::<Infallible>(&mut |first, span, _| {
            for (word, bits) in span.bits.iter().enumerate().take(words_of(span.span_class)) {
                let marked = young[place(first, word)];
                let missed = bits.marked.swap(marked, Ordering::Relaxed) & !marked;
                assert_internal!(missed == 0, "a young collection marks all that a full one marks");
                if missed != 0 {
                    self.report_missed(first, span, word, missed);
                }
            }
            Ok(())
        });
    }

    fn report_missed(&self, first: UnitIndex, span: &Span, word: usize, missed: u64) -> ! {
        let block = word * 64 + missed.trailing_zeros() as usize;
        let bytes = span.block_bytes();
        let line = Message::new().text("tithe: TITHE_CHECK=young: ");
        let line = if span.is_taken(block) {
            line.text("a collection would free a block that is reachable")
        } else {
            line.text("a collection has missed a word that points to a free place")
        };
        let line = line.text(", at ").address(self.reservation.address(first) + block * bytes);
        line.text(", bytes ").number(bytes as u64).abort()
    }
}
