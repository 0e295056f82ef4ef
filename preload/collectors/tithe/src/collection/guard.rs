//! What mode `guard` adds to a collection: what the program has is marked before, so that words that are read mark freed
//! blocks only. What is neither becomes available.

use core::sync::atomic::Ordering;

use crate::ages::words_of;
use crate::class::{UNIT, is_small};
use crate::guard_settings::{AtBound, GuardSettings};
use crate::heap::{Heap, HeapGuards};
use crate::progress::Guarded;
use crate::span::{Bits, Span, UnitIndex};

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
            for (bits, freed) in self.held_words(first, span) {
                let unfreed = bits.taken & !freed;
                bits.marked.store(unfreed, Ordering::Relaxed);
                bytes += unfreed.count_ones() as usize * span.block_bytes();
            }
        });
        bytes
    }

    /// After marking: blocks in caches stay there. Finds how much waited and is kept. A span whose blocks are all freed gives
    /// its memory back.
    pub(super) fn end_guard(&self, guards: &mut HeapGuards<'_>, settings: &GuardSettings) -> Guarded {
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
        self.each_span(&mut |first, span| {
            let (mut taken, mut waiting, mut kept) = (0, 0, 0);
            for (bits, freed) in self.held_words(first, span) {
                taken += bits.taken.count_ones() as usize;
                waiting += freed.count_ones() as usize;
                kept += (freed & bits.marked.load(Ordering::Relaxed)).count_ones() as usize;
            }
            found.waiting += waiting * span.block_bytes();
            found.kept += kept * span.block_bytes();
            found.kept_blocks += kept;
            let is_held = settings.clear && is_small(span.span_class) && kept > 0 && waiting == taken;
            span.held = if is_held { span.held.saturating_add(1) } else { 0 };
            if span.held == HELD_LONG {
                let (start, bytes) = (self.reservation.address(first), span.units as usize * UNIT);
                guards.units.drop_pages(start, bytes);
            }
        });
        if let Some(bound) = settings.waiting.filter(|_| settings.at_bound == AtBound::Release) {
            self.release_oldest(&mut found, bound);
        }
        found
    }

    /// The words of a span's bits, with those of its blocks that wait.
    fn held_words<'a>(&'a self, first: UnitIndex, span: &'a Span) -> impl Iterator<Item = (&'a Bits, u64)> {
        let freed = self.reservation.freed(first);
        span.bits
            .iter()
            .take(words_of(span.span_class))
            .enumerate()
            .map(move |(word, bits)| (bits, bits.taken & freed.map_or(0, |freed| freed.word(word))))
    }

    /// Where words lead to more freed blocks than may wait: the older ones become available. When there are none any more, all
    /// that are kept then are the older ones.
    fn release_oldest(&self, found: &mut Guarded, bound: usize) {
        // What became available since is not older when it is freed again.
        self.release_older(found, bound, &|older, kept| older & kept);
        if found.kept > bound {
            self.release_older(found, bound, &|_, kept| kept);
        }
    }

    /// Finds the older ones among those that are kept, and releases of them what is kept beyond the bound.
    fn release_older(&self, found: &mut Guarded, bound: usize, choose: &dyn Fn(u64, u64) -> u64) {
        self.each_span(&mut |first, span| {
            let Some(row) = self.reservation.older(first) else { return };
            for (word, (bits, freed)) in self.held_words(first, span).enumerate() {
                let mut older = choose(row.word(word), freed & bits.marked.load(Ordering::Relaxed));
                while older != 0 && found.kept > bound {
                    let bit = older & older.wrapping_neg();
                    older &= !bit;
                    bits.marked.fetch_and(!bit, Ordering::Relaxed);
                    found.kept -= span.block_bytes();
                    found.kept_blocks -= 1;
                    found.released += span.block_bytes();
                }
                row.set(word, older);
            }
        });
    }
}
