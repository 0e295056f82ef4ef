//! Calls of each family of routines, and whether they are all of them: a block that is freed was made before.

use std::collections::{BTreeMap, BTreeSet};

use heaptoll_reftrace::Event;
use heaptoll_reftrace::word::Text;
use rustc_hash::FxHashSet;

use crate::allocator_symbols::C_FAMILY;

/// Calls of one family from outside of all routines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FamilyCalls {
    /// Of routines that return a block, `realloc` among them.
    pub allocations: u64,
    /// Of routines that only free.
    pub frees: u64,
    /// Of both: those with a block that no routine was seen to make. In a child of fork they may be its parent's.
    pub unknown: u64,
    /// Of allocations: those that returned a block that no routine was seen to free.
    pub reused: u64,
    /// Bytes requested.
    pub bytes: u64,
    /// Of both: those that called a routine of another family, and so only forwarded.
    pub forwarded: u64,
}

/// Counts them for one process image.
#[derive(Debug, Default)]
pub(crate) struct Families {
    calls: BTreeMap<u8, FamilyCalls>,
    inlined: BTreeMap<u8, BTreeSet<String>>,
    /// Blocks that are live.
    blocks: FxHashSet<u64>,
    /// Blocks of no bytes. An allocator may give one of them again and again.
    empty: FxHashSet<u64>,
    threads: bool,
}

/// Most objects named in which routines were inlined.
const NAMED: usize = 8;

impl Families {
    pub(crate) fn event(&mut self, event: &Event<'_>) {
        match *event {
            Event::Enter { routine, family, arguments: [block, ..], .. } => {
                if routine.queries() {
                    return;
                }
                let calls = self.calls.entry(family).or_default();
                *(if routine.frees() { &mut calls.frees } else { &mut calls.allocations }) += 1;
                let takes = (routine.frees() || routine.resizes()) && block != 0;
                if takes && !self.blocks.remove(&block) && !self.empty.contains(&block) {
                    // A thread of the C library frees the blocks of its cache once more when it ends.
                    calls.unknown += u64::from(family != C_FAMILY || !self.threads);
                }
            }
            Event::Leave { routine, family, arguments: [block, size, count], result, served_by, .. } => {
                if routine.queries() {
                    return;
                }
                if served_by.is_some() {
                    self.calls.entry(family).or_default().forwarded += 1;
                }
                if routine.frees() {
                    return;
                }
                if result != 0 {
                    let calls = self.calls.entry(family).or_default();
                    let requested = routine.requested([block, size, count]);
                    calls.bytes = calls.bytes.saturating_add(requested.unwrap_or(0));
                    if requested == Some(0) {
                        self.empty.insert(result);
                    } else {
                        calls.reused += u64::from(!self.blocks.insert(result));
                    }
                // A resize that failed leaves the block as it was; one to size 0 has freed it.
                } else if routine.resizes()
                    && block != 0
                    && size != 0
                    && (count != 0 || !routine.multiplies())
                {
                    self.blocks.insert(block);
                }
            }
            Event::ThreadStart { .. } => self.threads = true,
            Event::Text { what: Text::Inlined, word, bytes } => {
                let Ok(family) = u8::try_from(word >> 8) else { return };
                let objects = self.inlined.entry(family).or_default();
                if objects.len() < NAMED {
                    objects.insert(String::from_utf8_lossy(bytes).into_owned());
                }
            }
            _ => {}
        }
    }

    pub(crate) fn finish(self) -> (BTreeMap<u8, FamilyCalls>, BTreeMap<u8, BTreeSet<String>>) {
        (self.calls, self.inlined)
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_reftrace::{Clock, Routine};

    use super::*;

    fn call(families: &mut Families, routine: Routine, family: u8, arguments: [u64; 3], result: u64) {
        let (clock, site) = (Clock::default(), 0);
        families.event(&Event::Enter { routine, family, clock, arguments, site });
        let (cost, collector) = (clock, clock);
        let served_by = (family == 1).then_some(0);
        families.event(&Event::Leave {
            routine,
            family,
            clock,
            arguments,
            site,
            result,
            cost,
            collector,
            served_by,
        });
    }

    #[test]
    fn a_block_that_was_not_seen_to_be_made_is_unknown_once() {
        let mut families = Families::default();
        call(&mut families, Routine::Malloc, 1, [40, 0, 0], 100);
        call(&mut families, Routine::Realloc, 1, [100, 80, 0], 200);
        call(&mut families, Routine::Free, 1, [200, 0, 0], 0);
        call(&mut families, Routine::Free, 1, [200, 0, 0], 0);
        call(&mut families, Routine::Free, 1, [0, 0, 0], 0);
        call(&mut families, Routine::Free, 0, [300, 0, 0], 0);
        let (calls, _) = families.finish();
        assert_eq!(
            calls[&1],
            FamilyCalls { allocations: 2, frees: 3, unknown: 1, reused: 0, bytes: 120, forwarded: 5 }
        );
        assert_eq!(calls[&0], FamilyCalls { frees: 1, unknown: 1, ..FamilyCalls::default() });
    }

    /// Before, such an allocator was taken for one whose `free` is inlined.
    #[test]
    fn a_block_of_no_bytes_may_be_given_and_freed_again_and_again() {
        let mut families = Families::default();
        for _ in 0..3 {
            call(&mut families, Routine::Malloc, 1, [0, 0, 0], 100);
        }
        for _ in 0..3 {
            call(&mut families, Routine::Free, 1, [100, 0, 0], 0);
        }
        let (calls, _) = families.finish();
        assert_eq!((calls[&1].unknown, calls[&1].reused), (0, 0));
    }

    #[test]
    fn a_block_that_is_given_again_was_freed_without_a_call() {
        let mut families = Families::default();
        for _ in 0..3 {
            call(&mut families, Routine::Calloc, 0, [3, 40, 0], 100);
        }
        call(&mut families, Routine::Realloc, 0, [100, 50, 0], 100);
        call(&mut families, Routine::Free, 0, [100, 0, 0], 0);
        call(&mut families, Routine::Malloc, 0, [60, 0, 0], 100);
        let calls = families.finish().0[&0];
        assert_eq!((calls.allocations, calls.reused, calls.bytes), (5, 2, 470));
    }

    #[test]
    fn a_resize_that_failed_leaves_its_block() {
        let mut families = Families::default();
        call(&mut families, Routine::Malloc, 1, [40, 0, 0], 100);
        call(&mut families, Routine::Reallocarray, 1, [100, 1 << 40, 1 << 20], 0);
        call(&mut families, Routine::Free, 1, [100, 0, 0], 0);
        // To size 0 it frees.
        call(&mut families, Routine::Malloc, 1, [40, 0, 0], 100);
        call(&mut families, Routine::Realloc, 1, [100, 0, 0], 0);
        call(&mut families, Routine::Free, 1, [100, 0, 0], 0);
        assert_eq!(families.finish().0[&1].unknown, 1);
    }
}
