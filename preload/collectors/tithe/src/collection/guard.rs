//! What mode `guard` adds to a collection: what the program has is marked before, so that words that are read mark freed
//! blocks only. What is neither becomes available.

use core::sync::atomic::Ordering;

use crate::ages::words_of;
use crate::class::{CLASS, UNIT, is_small};
use crate::guard_settings::{AtBound, GuardSettings};
use crate::heap::guard::waiting_bytes;
use crate::heap::{Heap, HeapGuards};
use crate::progress::Guarded;
use crate::span::{Bits, Span, UnitIndex};
use crate::spans::clear_written;

/// A span whose blocks are all freed gives its memory back at this collection that keeps it. Most are used again before, and
/// new pages cost more than the old ones.
const HELD_LONG: u8 = 2;

impl Heap {
    /// Before marking: marks what is taken and not freed; returns its bytes. Blocks in caches are not the program's, and
    /// count as freed until [`Heap::mark_held_in_caches`].
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

    /// After marking, also where that has failed: blocks in caches stay there. Returns the bytes of those that it marks.
    pub(super) fn mark_held_in_caches(&self, guards: &HeapGuards<'_>) -> usize {
        let mut bytes = 0;
        self.each_cached(guards, &mut |first, word, mask| {
            // SAFETY: the first unit of a span, whose bits have the word; the world is stopped and all locks are held.
            let span = unsafe { &*self.reservation.span(first) };
            if let Some(freed) = self.reservation.freed(first) {
                freed.remove(word, mask);
            }
            let unmarked = mask & !span.bits[word].marked.fetch_or(mask, Ordering::Relaxed);
            bytes += unmarked.count_ones() as usize * span.block_bytes();
        });
        bytes
    }

    /// After marking: finds how much waited and is kept. A span whose blocks are all freed gives its memory back. Where nothing
    /// is reclaimed, nothing is released either.
    pub(super) fn end_guard(
        &self,
        guards: &mut HeapGuards<'_>,
        settings: &GuardSettings,
        reclaims: bool,
    ) -> Guarded {
        let mut found = Guarded { cached: self.mark_held_in_caches(guards), ..Guarded::NONE };
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
            found.bounded += kept * waiting_bytes(span);
            let is_held = settings.clear && is_small(span.span_class) && kept > 0 && waiting == taken;
            span.held = if is_held { span.held.saturating_add(1) } else { 0 };
            if span.held == HELD_LONG {
                let (start, bytes) = (self.reservation.address(first), span.units as usize * UNIT);
                for (word, (_, freed)) in self.held_words(first, span).enumerate() {
                    // What was written after its free is found now, or not at all.
                    clear_written(&self.reservation, start, &CLASS[span.span_class as usize], word, freed);
                }
                guards.units.drop_pages(start, bytes);
            }
        });
        if let Some(bound) = settings.waiting.filter(|_| reclaims && settings.at_bound == AtBound::Release) {
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
        // Some more than are too many, or as many would be again after a few frees.
        let most = if found.bounded > bound { bound - bound / 4 } else { bound };
        // What became available since is not older when it is freed again.
        self.release_older(found, most, &|older, kept| older & kept);
        if found.bounded > most {
            self.release_older(found, most, &|_, kept| kept);
        }
    }

    /// Finds the older ones among those that are kept, and releases of them what is kept beyond `most` bytes.
    fn release_older(&self, found: &mut Guarded, most: usize, choose: &dyn Fn(u64, u64) -> u64) {
        self.each_span(&mut |first, span| {
            let Some(row) = self.reservation.older(first) else { return };
            for (word, (bits, freed)) in self.held_words(first, span).enumerate() {
                let mut older = choose(row.word(word), freed & bits.marked.load(Ordering::Relaxed));
                while older != 0 && found.bounded > most {
                    let bit = older & older.wrapping_neg();
                    older &= !bit;
                    bits.marked.fetch_and(!bit, Ordering::Relaxed);
                    found.kept -= span.block_bytes();
                    found.bounded -= waiting_bytes(span);
                    found.kept_blocks -= 1;
                    found.released += span.block_bytes();
                }
                row.set(word, older);
            }
        });
    }
}
