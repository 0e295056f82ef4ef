//! The way of small blocks back: from a thread's cache to their spans, and of empty spans to the free units.

use heaptoll_assertions::assert_internal;
use heaptoll_runtime::Misuse;

use super::Heap;
use crate::cache::Cache;
use crate::class::{CLASS, SpanClass, UNIT_SHIFT};
use crate::spans::ReleaseError;

impl Heap {
    /// Returns all blocks of a thread's cache to their spans.
    pub(crate) fn flush_all(&self, cache: &mut Cache) {
        for span_class in 1..cache.lists.len() {
            if cache.has(span_class) {
                self.flush(cache, span_class as SpanClass, u32::MAX);
            }
        }
    }

    /// Returns `count` blocks to their spans: the newest of the list, then reserved ones.
    #[inline(never)]
    pub fn flush(&self, cache: &mut Cache, span_class: SpanClass, count: u32) {
        let size = CLASS[span_class as usize].size as usize;
        let (home, mut done) = (cache.home, 0);
        let mut wrong = None;
        {
            let mut spans = self.spans_by_class[span_class as usize].lock();
            while done < count {
                // The collector cannot intervene: it needs the lock held here.
                let block = cache.remove(span_class.into());
                if block.is_null() {
                    break;
                }
                assert_internal!(
                    self.is_block_of(block as usize, span_class),
                    "blocks in a list are of its span class"
                );
                done += 1;
                match spans.release(&self.reservation, block as usize, self.epoch(), home) {
                    Ok(false) => {}
                    Ok(true) => {
                        let unit =
                            self.reservation.first((block as usize - self.reservation.base()) >> UNIT_SHIFT);
                        let units = u32::from(CLASS[span_class as usize].units);
                        assert_internal!(
                            // SAFETY: the first unit of a span of this span class, whose lock is held.
                            unsafe { !(*self.reservation.span(unit)).listed },
                            "a span whose units are released is in no list"
                        );
                        let mut all = self.units.lock();
                        all.release(&self.reservation, unit, units, false);
                        self.report_used(&all);
                    }
                    Err(found) => wrong = Some((block as usize, found)),
                }
            }
        }
        // Whether the list is counted right is not asserted here: fork may have copied the cache of another thread
        // while that thread changed it.
        assert_internal!(done <= count, "no more blocks return to their spans than requested");
        self.count_freed(done as usize * size);
        if let Some((address, wrong)) = wrong {
            crate::misuse::report("free", address, misuse_of(wrong));
        }
    }
}

fn misuse_of(wrong: ReleaseError) -> Misuse {
    match wrong {
        ReleaseError::Free => Misuse::DoubleFree,
        ReleaseError::Inside => Misuse::Damaged,
    }
}
