//! The free ranges of a heap, in order of address: finds the lowest, the highest and the tightest that fits.
//!
//! Gaps lie in blocks of at most 128, each with the length of its longest: a search skips blocks that have none long
//! enough, which is fast for as many gaps as live heaps have (tens of thousands).

use std::collections::BTreeSet;

/// The end of all addresses.
const END: u64 = 1 << 63;
/// Gaps of a block.
const BLOCK: usize = 128;

/// One free range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gap {
    start: u64,
    length: u64,
}

impl Gap {
    fn end(self) -> u64 {
        self.start + self.length
    }

    /// The lowest address of a block in it.
    fn lowest(self, length: u64, align: u64) -> Option<u64> {
        let start = self.start.checked_next_multiple_of(align)?;
        (start.checked_add(length)? <= self.end()).then_some(start)
    }

    /// The highest address of a block in it that ends at or below `limit`.
    fn highest(self, length: u64, align: u64, limit: u64) -> Option<u64> {
        let start = self.end().min(limit).checked_sub(length)? / align * align;
        (start >= self.start).then_some(start)
    }
}

/// All free ranges, from address 0 on; the last has no end.
#[derive(Debug)]
pub(super) struct Gaps {
    blocks: Vec<Vec<Gap>>,
    /// Longest gap of each block.
    longest: Vec<u64>,
    /// Length and start of all, where [`Gaps::tightest`] is used.
    by_length: Option<BTreeSet<(u64, u64)>>,
}

impl Gaps {
    /// Everything is free. `tightest`: whether [`Gaps::tightest`] will be used.
    pub(super) fn new(tightest: bool) -> Gaps {
        let all = Gap { start: 0, length: END };
        Gaps {
            blocks: vec![vec![all]],
            longest: vec![END],
            by_length: tightest.then(|| BTreeSet::from([(all.length, all.start)])),
        }
    }

    /// The lowest address at which a block fits (first fit).
    pub(super) fn lowest(&self, length: u64, align: u64) -> Option<u64> {
        let blocks = self.longest.iter().zip(&self.blocks).filter(|(longest, _)| **longest >= length);
        blocks.flat_map(|(_, gaps)| gaps).find_map(|gap| gap.lowest(length, align))
    }

    /// The highest address at which a block fits below `limit`.
    pub(super) fn highest(&self, length: u64, align: u64, limit: u64) -> Option<u64> {
        let blocks = self.longest.iter().zip(&self.blocks).rev().filter(|(longest, _)| **longest >= length);
        blocks
            .flat_map(|(_, gaps)| gaps.iter().rev())
            .filter(|gap| gap.length >= length)
            .find_map(|gap| gap.highest(length, align, limit))
    }

    /// The lowest address in the shortest gap in which a block fits (best fit).
    pub(super) fn tightest(&self, length: u64, align: u64) -> Option<u64> {
        let gaps = self.by_length.as_ref()?.range((length, 0)..);
        gaps.map(|&(length, start)| Gap { start, length }).find_map(|gap| gap.lowest(length, align))
    }

    /// Whether all of these bytes are free.
    pub(super) fn is_free(&self, start: u64, length: u64) -> bool {
        let (block, at) = self.after(start);
        self.before(block, at).is_some_and(|(block, at)| {
            let gap = self.blocks[block][at];
            start + length <= gap.end()
        })
    }

    /// Allocates bytes that are free.
    pub(super) fn take(&mut self, start: u64, length: u64) {
        let (block, at) = self.after(start);
        let Some((block, at)) = self.before(block, at) else { return };
        let gap = self.blocks[block][at];
        debug_assert!(gap.start <= start && start + length <= gap.end());
        let below = Gap { start: gap.start, length: start - gap.start };
        let above = Gap { start: start + length, length: gap.end() - (start + length) };
        match (below.length > 0, above.length > 0) {
            (false, false) => self.remove(block, at),
            (true, false) => self.replace(block, at, below),
            (false, true) => self.replace(block, at, above),
            (true, true) => {
                self.replace(block, at, below);
                self.insert(block, at + 1, above);
            }
        }
    }

    /// Frees bytes; coalesces them with adjacent gaps.
    pub(super) fn give(&mut self, start: u64, length: u64) {
        let (block, at) = self.after(start);
        let below = self.before(block, at).filter(|&(block, at)| self.blocks[block][at].end() == start);
        let end = start + length;
        let above = self.blocks[block].get(at).filter(|gap| gap.start == end).copied();
        match (below, above) {
            (None, None) => self.insert(block, at, Gap { start, length }),
            (None, Some(above)) => {
                self.replace(block, at, Gap { start, length: length + above.length });
            }
            (Some((lower, last)), above) => {
                let gap = self.blocks[lower][last];
                let joined = gap.length + length + above.map_or(0, |above| above.length);
                if above.is_some() {
                    self.remove_only(block, at);
                }
                self.replace(lower, last, Gap { start: gap.start, length: joined });
                self.drop_if_empty(block);
            }
        }
    }

    /// The first gap that begins above `start`; the end of the last block, when there is none.
    fn after(&self, start: u64) -> (usize, usize) {
        let block = self.blocks.partition_point(|gaps| gaps[0].start <= start).saturating_sub(1);
        let at = self.blocks[block].partition_point(|gap| gap.start <= start);
        // The entry after the last of a block is the first of the next.
        if at == self.blocks[block].len() && block + 1 < self.blocks.len() {
            (block + 1, 0)
        } else {
            (block, at)
        }
    }

    fn before(&self, block: usize, at: usize) -> Option<(usize, usize)> {
        match (block, at) {
            (0, 0) => None,
            (block, 0) => Some((block - 1, self.blocks[block - 1].len() - 1)),
            (block, at) => Some((block, at - 1)),
        }
    }

    fn insert(&mut self, block: usize, at: usize, gap: Gap) {
        if let Some(by_length) = &mut self.by_length {
            by_length.insert((gap.length, gap.start));
        }
        self.blocks[block].insert(at, gap);
        self.longest[block] = self.longest[block].max(gap.length);
        if self.blocks[block].len() > BLOCK {
            let upper = self.blocks[block].split_off(BLOCK / 2);
            self.blocks.insert(block + 1, upper);
            self.longest.insert(block + 1, 0);
            self.measure(block);
            self.measure(block + 1);
        }
    }

    fn replace(&mut self, block: usize, at: usize, gap: Gap) {
        let old = std::mem::replace(&mut self.blocks[block][at], gap);
        if let Some(by_length) = &mut self.by_length {
            by_length.remove(&(old.length, old.start));
            by_length.insert((gap.length, gap.start));
        }
        if gap.length >= self.longest[block] {
            self.longest[block] = gap.length;
        } else if old.length == self.longest[block] {
            self.measure(block);
        }
    }

    fn remove(&mut self, block: usize, at: usize) {
        self.remove_only(block, at);
        self.drop_if_empty(block);
    }

    /// Removes a gap; its block may be left empty.
    fn remove_only(&mut self, block: usize, at: usize) {
        let old = self.blocks[block].remove(at);
        if let Some(by_length) = &mut self.by_length {
            by_length.remove(&(old.length, old.start));
        }
        if old.length == self.longest[block] {
            self.measure(block);
        }
    }

    fn drop_if_empty(&mut self, block: usize) {
        // The last gap has no end and is never taken whole: one block remains.
        if self.blocks[block].is_empty() {
            self.blocks.remove(block);
            self.longest.remove(block);
        }
    }

    fn measure(&mut self, block: usize) {
        self.longest[block] = self.blocks[block].iter().map(|gap| gap.length).max().unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A heap of a few hundred cells, one flag each.
    const CELLS: u64 = 3000;

    fn free(cells: &[bool], start: u64, length: u64) -> bool {
        (start..start + length).all(|cell| cells.get(cell as usize).is_none_or(|taken| !taken))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn places_are_those_of_a_table_of_cells(steps in prop::collection::vec((0..6_u8, 1..30_u64, 0..4_u32, any::<prop::sample::Index>()), 1..600)) {
            let mut cells = vec![false; CELLS as usize];
            let mut gaps = Gaps::new(true);
            let mut live: Vec<(u64, u64)> = Vec::new();
            for (step, length, align, index) in steps {
                let align = 1 << align;
                let lowest = (0..).step_by(align).find(|&start| free(&cells, start, length)).unwrap();
                prop_assert_eq!(gaps.lowest(length, align as u64), Some(lowest));
                let limit = CELLS / 2;
                let highest = (0..=limit.saturating_sub(length)).rev().find(|&start| start.is_multiple_of(align as u64) && free(&cells, start, length));
                prop_assert_eq!(gaps.highest(length, align as u64, limit), highest);
                let tightest = gaps.tightest(length, align as u64).unwrap();
                prop_assert!(free(&cells, tightest, length) && tightest.is_multiple_of(align as u64));
                let place = match step {
                    0 | 1 => Some(lowest),
                    2 => highest,
                    3 => Some(tightest),
                    _ => None,
                };
                match place {
                    Some(start) if start + length < CELLS => {
                        prop_assert!(gaps.is_free(start, length));
                        gaps.take(start, length);
                        prop_assert!(!gaps.is_free(start, 1));
                        cells[start as usize..(start + length) as usize].fill(true);
                        live.push((start, length));
                    }
                    _ if !live.is_empty() => {
                        let (start, length) = live.swap_remove(index.index(live.len()));
                        gaps.give(start, length);
                        prop_assert!(gaps.is_free(start, length));
                        cells[start as usize..(start + length) as usize].fill(false);
                    }
                    _ => {}
                }
                for (block, gaps) in gaps.blocks.iter().zip(&gaps.longest) {
                    prop_assert_eq!(block.iter().map(|gap| gap.length).max(), Some(*gaps));
                }
            }
        }
    }

    #[test]
    fn thousands_of_gaps_join_again() {
        let mut gaps = Gaps::new(true);
        for at in 0..10_000 {
            gaps.take(at * 16, 16);
        }
        for at in (0..10_000).step_by(2).chain((1..10_000).step_by(2)) {
            gaps.give(at * 16, 16);
        }
        assert_eq!(gaps.blocks, [[Gap { start: 0, length: END }]]);
        assert_eq!(gaps.by_length.unwrap().len(), 1);
    }
}
