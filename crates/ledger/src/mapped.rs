//! Large mappings that the program made itself, by the call sites that made them.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::line::Term;

/// Ranges that are kept; a program that makes more is followed no further.
const MOST: usize = 1 << 16;
/// Call sites that a snapshot keeps.
const MOST_SITES: usize = 20;

/// Memory that is not heap by the call site that mapped it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Mapper {
    /// The line that it is part of; other anonymous memory in files from before this was recorded.
    pub term: Term,
    /// The call site: an index into the trace's sites; 0 is "not recorded".
    pub site: u32,
    /// Its bytes that are still mapped, and hold no heap.
    pub bytes: u64,
    /// Of these, bytes in memory.
    pub resident: u64,
}

/// Where calls of `mmap` have mapped memory.
#[derive(Debug, Clone, Default)]
pub struct Mapped {
    /// By first address: the address after it, and the call site.
    ranges: BTreeMap<u64, (u64, u32)>,
}

impl Mapped {
    /// A call has mapped this range: what was there before is gone.
    pub fn map(&mut self, start: u64, end: u64, site: u32) {
        if start >= end || self.ranges.len() >= MOST {
            return;
        }
        let over: Vec<(u64, u64, u32)> = self.within(start, end).collect();
        for (from, to, other) in over {
            self.ranges.remove(&from);
            if from < start {
                self.ranges.insert(from, (start, other));
            }
            if to > end {
                self.ranges.insert(end, (to, other));
            }
        }
        self.ranges.insert(start, (end, site));
    }

    /// A call has moved, enlarged or shrunk a mapping, given by first address and bytes: it keeps the call sites that it had,
    /// and what it grew by has that of its end. `site`, which made the call, has what is not known. What has left its
    /// place is forgotten with what is unmapped.
    pub fn remap(&mut self, (from, old_bytes): (u64, u64), (to, bytes): (u64, u64), site: u32) {
        // Without an old length it is shared memory, mapped a second time.
        let kept = if old_bytes == 0 { bytes } else { old_bytes.min(bytes) };
        let (source_end, end) = (from.saturating_add(kept), to.saturating_add(bytes));
        let mut parts: Vec<(u64, u64, u32)> = self.within(from, source_end).collect();
        let moved = |address: u64| to.saturating_add(address.clamp(from, source_end) - from);
        parts.iter_mut().for_each(|part| (part.0, part.1) = (moved(part.0), moved(part.1)));
        if let Some(last) = parts.last_mut() {
            last.1 = end;
        }
        self.map(to, end, site);
        parts.into_iter().for_each(|(start, end, other)| self.map(start, end, other));
    }

    /// The ranges that reach into `start..end`, whole, in order, with their call sites.
    pub fn within(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64, u32)> {
        let before = self.ranges.range(..start).next_back().filter(|(_, (to, _))| *to > start);
        let from = before.map_or(start, |(from, _)| *from);
        self.ranges.range(from..end).map(|(&from, &(to, site))| (from, to, site))
    }

    /// Forgets the ranges that are not mapped any more: `mapped` are those that are, in order.
    pub fn forget(&mut self, mapped: &[(u64, u64)]) {
        self.ranges.retain(|&start, _| {
            let at = mapped.partition_point(|&(_, end)| end <= start);
            mapped.get(at).is_some_and(|&(from, _)| from <= start)
        });
    }
}

/// The call sites of these parts, those with most in memory first.
pub fn mappers(parts: impl Iterator<Item = Mapper>) -> Vec<Mapper> {
    let mut by_site: FxHashMap<(Term, u32), Mapper> = FxHashMap::default();
    for part in parts {
        let (term, site) = (part.term, part.site);
        let mapper = by_site.entry((term, site)).or_insert(Mapper { term, site, ..Mapper::default() });
        mapper.bytes += part.bytes;
        mapper.resident += part.resident;
    }
    let mut all: Vec<Mapper> = by_site.into_values().collect();
    all.sort_unstable_by_key(|mapper| (std::cmp::Reverse(mapper.resident), mapper.term, mapper.site));
    all.truncate(MOST_SITES);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_call_has_a_range_and_what_is_unmapped_is_forgotten() {
        let mut mapped = Mapped::default();
        mapped.map(10, 50, 1);
        mapped.map(20, 30, 2);
        mapped.map(45, 60, 3);
        mapped.map(9, 9, 4);
        let all = |mapped: &Mapped, start, end| mapped.within(start, end).collect::<Vec<_>>();
        assert_eq!(all(&mapped, 0, 99), [(10, 20, 1), (20, 30, 2), (30, 45, 1), (45, 60, 3)]);
        assert_eq!(all(&mapped, 12, 21), [(10, 20, 1), (20, 30, 2)]);
        assert_eq!(all(&mapped, 30, 45), [(30, 45, 1)]);
        mapped.forget(&[(0, 15), (30, 99)]);
        assert_eq!(all(&mapped, 0, 99), [(10, 20, 1), (30, 45, 1), (45, 60, 3)]);
        (0..2 * MOST as u64).for_each(|at| mapped.map(100 + at, 101 + at, 5));
        assert_eq!(mapped.ranges.len(), MOST);
    }

    /// Before, a mapping that `mremap` had moved or enlarged had no call site.
    #[test]
    fn a_mapping_that_is_moved_enlarged_or_shrunk_keeps_its_call_sites() {
        let all = |(from, old_bytes), (to, bytes)| {
            let mut mapped = Mapped::default();
            mapped.map(10, 20, 1);
            mapped.map(20, 30, 2);
            mapped.map(100, 110, 3);
            mapped.remap((from, old_bytes), (to, bytes), 9);
            mapped.forget(&[(to, to + bytes)]);
            mapped.within(0, 999).collect::<Vec<_>>()
        };
        assert_eq!(all((10, 20), (200, 20)), [(200, 210, 1), (210, 220, 2)], "moved");
        assert_eq!(all((10, 20), (200, 50)), [(200, 210, 1), (210, 250, 2)], "moved and enlarged");
        assert_eq!(all((10, 20), (200, 5)), [(200, 205, 1)], "moved and shrunk");
        assert_eq!(all((10, 20), (10, 50)), [(10, 20, 1), (20, 60, 2)], "enlarged");
        assert_eq!(all((15, 15), (15, 10)), [(15, 20, 1), (20, 25, 2)], "shrunk");
        assert_eq!(all((10, 10), (95, 10)), [(95, 105, 1)], "over another");
        assert_eq!(all((10, 0), (200, 10)), [(200, 210, 1)], "a second mapping");
        assert_eq!(all((50, 10), (200, 40)), [(200, 240, 9)], "unknown");
    }

    #[test]
    fn what_a_call_site_has_mapped_is_one_sum() {
        let part = |site, resident| Mapper { site, bytes: 100, resident, ..Mapper::default() };
        let shared = Mapper { term: Term::Shared, ..part(1, 7) };
        let found = mappers([part(1, 10), part(2, 30), part(1, 25), shared].into_iter());
        assert_eq!(found, [Mapper { bytes: 200, ..part(1, 35) }, part(2, 30), shared]);
    }
}
