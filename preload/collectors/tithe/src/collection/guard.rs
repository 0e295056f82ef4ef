//! What mode `guard` adds to a collection: what the program has is marked before, so that words that are read mark freed
//! blocks only. What is neither becomes available.

use core::sync::atomic::Ordering;

use crate::ages::words_of;
use crate::class::{UNIT, is_small};
use crate::heap::{Heap, HeapGuards};
use crate::progress::Guarded;

/// After so many collections a span whose blocks are all freed gives its memory back: most are used again before, and new
/// pages cost more than the old ones.
const HELD_LONG: u8 = 2;

impl Heap {
    /// Before marking: marks what is taken and not freed; returns its bytes. Blocks in caches are not the program's, and
    /// count as freed until [`Heap::end_guard`].
    pub(super) fn mark_unfreed(&self, guards: &HeapGuards<'_>) -> usize {
        self.each_cached(guards, &mut |first, word, mask| {
            let again = self.reservation.freed(first).map_or(0, |freed| freed.add(word, mask));
            // A thread has freed a block that another one's cache has.
            self.double_frees.fetch_add(u64::from(again.count_ones()), Ordering::Relaxed);
        });
        let mut bytes = 0;
        self.each_span(&mut |first, span| {
            let Some(freed) = self.reservation.freed(first) else { return };
            for (word, bits) in span.bits.iter().enumerate().take(words_of(span.span_class)) {
                let unfreed = bits.taken & !freed.word(word);
                bits.marked.store(unfreed, Ordering::Relaxed);
                bytes += unfreed.count_ones() as usize * span.block_bytes();
            }
        });
        bytes
    }

    /// After marking: blocks in caches stay there. Finds how much waited and is kept. A span whose blocks are all freed gives
    /// its memory back.
    pub(super) fn end_guard(&self, guards: &mut HeapGuards<'_>) -> Guarded {
        let mut found = Guarded::NONE;
        self.each_cached(guards, &mut |first, word, mask| {
            // SAFETY: the first unit of a span, whose bits have the word; the world is stopped and all locks are held.
            let span = unsafe { &*self.reservation.span(first) };
            if let Some(freed) = self.reservation.freed(first) {
                freed.remove(word, mask);
            }
            let unmarked = mask & !span.bits[word].marked.fetch_or(mask, Ordering::Relaxed);
            found.cached += unmarked.count_ones() as usize * span.block_bytes();
        });
        let HeapGuards { units, .. } = guards;
        let clears = self.reservation.freed_table.clears.load(Ordering::Relaxed);
        self.each_span(&mut |first, span| {
            let Some(freed) = self.reservation.freed(first) else { return };
            let (mut taken, mut waiting, mut kept) = (0, 0, 0);
            for (word, bits) in span.bits.iter().enumerate().take(words_of(span.span_class)) {
                let freed = bits.taken & freed.word(word);
                taken += bits.taken.count_ones() as usize;
                waiting += freed.count_ones() as usize;
                kept += (freed & bits.marked.load(Ordering::Relaxed)).count_ones() as usize;
            }
            found.waiting += waiting * span.block_bytes();
            found.kept += kept * span.block_bytes();
            found.kept_blocks += kept;
            let is_held = clears && is_small(span.span_class) && kept > 0 && waiting == taken;
            span.held = if is_held { span.held.saturating_add(1) } else { 0 };
            if span.held == HELD_LONG {
                units.drop_pages(self.reservation.address(first), span.units as usize * UNIT);
            }
        });
        found
    }
}
