//! Memory of the file, reserved before it is touched.
//!
//! The file is sparse. A store to a page for which the file system has no memory raises SIGBUS, which would kill the
//! program. So each side reserves a page itself before it first touches it, except the pages that the tool reserved
//! before the program started. A statement of the other side about a page is not trusted: it may be overwritten.

use core::ops::Range;

use crate::atomic::{AtomicU32, Ordering};
use crate::attachment::Attachment;
use crate::layout::{ENTRY_GROUP, Geometry, Header};
use crate::sys;

/// What memory is reserved for: a less urgent need may use a smaller part of the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// A ring that grows: half of the budget.
    Growth,
    /// The first blocks of a thread's own ring: seven eighths.
    First,
    /// The first blocks of a ring that threads share: all of it.
    Shared,
}

impl Need {
    fn part(self, budget: u32) -> u32 {
        match self {
            Need::Growth => budget / 2,
            Need::First => budget - budget / 8,
            Need::Shared => budget,
        }
    }
}

/// Counts `blocks` more blocks, if the budget has them for this need.
fn charge(count: &AtomicU32, blocks: u32, budget: u32, need: Need) -> bool {
    let before = count.fetch_add(blocks, Ordering::AcqRel);
    let fits = before.saturating_add(blocks) <= need.part(budget);
    if !fits {
        count.fetch_sub(blocks, Ordering::AcqRel);
    }
    fits
}

impl Attachment {
    /// Reserves part of the file for this process's mapping. False: there is no memory, or this cannot be found out.
    fn reserve(header: &Header, part: Range<usize>) -> bool {
        let part = sys::whole_pages(part);
        let at = core::ptr::from_ref(header).cast::<u8>().cast_mut().wrapping_add(part.start);
        // SAFETY: both callers compute the part from the geometry that was checked when the file was mapped, so it lies
        // in the mapping, which begins with the header and ends with a page.
        unsafe { heaptoll_process::populate::populate(at, part.len()) }.is_ok()
    }

    /// Whether an entry of the process table has memory; reserves it.
    pub(crate) fn has_entry(&self, header: &Header, geometry: Geometry, index: usize) -> bool {
        let group = index / ENTRY_GROUP;
        if group == 0 || group as u32 == self.entry_group.load(Ordering::Relaxed) {
            return true;
        }
        let has = Self::reserve(header, geometry.entry_group(group));
        if has {
            self.entry_group.store(group as u32, Ordering::Relaxed);
        }
        has
    }

    /// Reserves blocks of a ring that the caller owns and that has memory for the blocks before them. `held` counts the
    /// blocks that are charged to the budget already: those of a ring that was used before are.
    pub(crate) fn reserve_blocks(
        &self,
        header: &Header,
        geometry: Geometry,
        (ring, held): (usize, &AtomicU32),
        blocks: Range<u32>,
        need: Need,
    ) -> bool {
        let charged = held.load(Ordering::Relaxed).min(geometry.ring_blocks());
        let more = blocks.end.saturating_sub(charged.max(blocks.start));
        let count = &header.registry.0.blocks;
        let budget = self.budget.load(Ordering::Relaxed);
        if more > 0 && !charge(count, more, budget, need) {
            return false;
        }
        if !Self::reserve(header, geometry.blocks(ring, blocks.clone())) {
            if more > 0 {
                count.fetch_sub(more, Ordering::AcqRel);
            }
            return false;
        }
        if blocks.end > charged {
            held.store(blocks.end, Ordering::Relaxed);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_less_leaves_memory_for_what_is_needed_more() {
        let count = AtomicU32::new(0);
        assert!(charge(&count, 4, 8, Need::Growth));
        assert!(!charge(&count, 1, 8, Need::Growth));
        assert!(charge(&count, 3, 8, Need::First));
        assert!(!charge(&count, 1, 8, Need::First));
        assert!(charge(&count, 1, 8, Need::Shared));
        assert!(!charge(&count, 1, 8, Need::Shared));
        assert_eq!(count.load(Ordering::Relaxed), 8, "what was refused is not counted");
        count.store(u32::MAX, Ordering::Relaxed);
        assert!(!charge(&count, 1, 8, Need::Shared), "an overwritten count");
    }
}
