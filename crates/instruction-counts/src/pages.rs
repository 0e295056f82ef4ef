//! Pages in which a block was ever placed and that are still mapped: the most at once.
//!
//! Managers map what they may need in steps from 4 KiB to hundreds of gigabytes, so sizes of mappings show the step
//! rather than the manager. Pages with blocks are defined alike for all managers, and each was at least offered to the
//! program. Memory released without `munmap` (by `madvise`) still counts.

use std::collections::BTreeMap;

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Cached numbers of counted pages, by the lower bits of the number.
const KNOWN: usize = 1024;

/// Runs of pages that blocks were placed in; no two of them touch.
#[derive(Debug)]
pub(crate) struct Pages {
    /// First byte to the first byte after the run.
    runs: BTreeMap<u64, u64>,
    bytes: u64,
    /// Most bytes at once.
    pub most_bytes: u64,
    /// Numbers of pages in runs, or 0: most blocks lie in one of them.
    known: Box<[u64; KNOWN]>,
}

impl Default for Pages {
    fn default() -> Pages {
        Pages { runs: BTreeMap::new(), bytes: 0, most_bytes: 0, known: Box::new([0; KNOWN]) }
    }
}

impl Pages {
    /// Records a block from `address` up to `end`: all pages that it overlaps count.
    pub fn place(&mut self, address: u64, end: u64) {
        let (first, last) = (address / PAGE, end.saturating_sub(1) / PAGE);
        if first == last && self.known[first as usize % KNOWN] == first {
            return;
        }
        if end <= address {
            return;
        }
        self.insert(first * PAGE, (last + 1).saturating_mul(PAGE));
        self.known[first as usize % KNOWN] = first;
    }

    fn insert(&mut self, mut start: u64, mut end: u64) {
        if let Some((before, upto)) = self.runs.range(..=start).next_back().map(|(a, b)| (*a, *b))
            && upto >= start
        {
            if upto >= end {
                return;
            }
            start = before;
        }
        // Runs that begin within it, or at its end, become part of it.
        while let Some((inner, upto)) = self.runs.range(start..=end).next_back().map(|(a, b)| (*a, *b)) {
            self.runs.remove(&inner);
            self.bytes -= upto - inner;
            end = end.max(upto);
        }
        self.runs.insert(start, end);
        self.bytes += end - start;
        self.most_bytes = self.most_bytes.max(self.bytes);
    }

    /// Memory was unmapped or became inaccessible.
    pub fn remove(&mut self, address: u64, end: u64) {
        let (start, end) = (address / PAGE * PAGE, end.div_ceil(PAGE).saturating_mul(PAGE));
        let mut removed = false;
        while let Some((first, upto)) = self.runs.range(..end).next_back().map(|(a, b)| (*a, *b))
            && upto > start
        {
            self.runs.remove(&first);
            self.bytes -= upto.min(end) - first.max(start);
            if first < start {
                self.runs.insert(first, start);
            }
            if upto > end {
                self.runs.insert(end, upto);
            }
            removed = true;
        }
        if removed {
            self.known.fill(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_block_counts_all_the_pages_it_lies_in_once() {
        let mut pages = Pages::default();
        pages.place(PAGE + 16, PAGE + 48);
        pages.place(PAGE + 64, PAGE + 96);
        assert_eq!(pages.most_bytes, PAGE);
        pages.place(3 * PAGE - 8, 5 * PAGE + 8);
        assert_eq!(pages.most_bytes, 5 * PAGE);
    }

    #[test]
    fn pages_that_are_gone_count_again_when_a_block_comes_again() {
        let mut pages = Pages::default();
        pages.place(PAGE, 11 * PAGE);
        pages.remove(0, 1 << 40);
        assert_eq!((pages.bytes, pages.most_bytes), (0, 10 * PAGE));
        pages.place(PAGE, PAGE + 8);
        assert_eq!((pages.bytes, pages.most_bytes), (PAGE, 10 * PAGE));
    }

    fn step() -> impl Strategy<Value = (bool, u64, u64)> {
        (any::<bool>(), PAGE..60 * PAGE, 1..9 * PAGE)
    }

    proptest! {
        #[test]
        fn they_are_those_of_a_set(steps in proptest::collection::vec(step(), 1..80)) {
            let (mut pages, mut set, mut most) = (Pages::default(), BTreeSet::new(), 0);
            for (places, address, bytes) in steps {
                let within = address / PAGE..(address + bytes).div_ceil(PAGE);
                if places {
                    pages.place(address, address + bytes);
                    set.extend(within);
                } else {
                    pages.remove(address, address + bytes);
                    set.retain(|page| !within.contains(page));
                }
                most = most.max(set.len());
                prop_assert_eq!(pages.bytes, set.len() as u64 * PAGE);
            }
            prop_assert_eq!(pages.most_bytes, most as u64 * PAGE);
            let ends: Vec<_> = pages.runs.iter().flat_map(|(start, end)| [*start, *end]).collect();
            prop_assert!(ends.is_sorted_by(|one, next| one < next), "runs do not touch: {:?}", ends);
        }
    }
}
