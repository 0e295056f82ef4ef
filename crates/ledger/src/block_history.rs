//! Where blocks have been: ranges of pages, forgotten when they are unmapped.
//!
//! The record forgets nothing. When the manager unmaps address space and the program maps something else there, it must
//! not count as heap because of the blocks that were there before.

use crate::block::Block;
use crate::mapping::Mapping;

/// Ranges of addresses, `start..end`, in order and disjoint.
type Ranges = Vec<(u64, u64)>;

/// The ranges where blocks have been.
#[derive(Debug)]
pub struct BlockHistory {
    page: u64,
    /// Bytes before each block that are the manager's.
    header: u64,
    ranges: Ranges,
    /// Where blocks have been and nothing was mapped in a later sample.
    gone: Ranges,
}

impl BlockHistory {
    /// Empty.
    pub fn new(page: u64, header: u64) -> BlockHistory {
        BlockHistory { page, header, ranges: Ranges::new(), gone: Ranges::new() }
    }

    /// Where blocks have been that is still mapped.
    pub fn ranges(&self) -> &[(u64, u64)] {
        &self.ranges
    }

    /// Adds the ranges of the record and those of live blocks, which are in order of address.
    pub fn update(&mut self, mut ever: Ranges, blocks: &[Block], mappings: &[Mapping]) {
        ever.append(&mut self.ranges);
        let ever = without(&joined(ever, self.page), &self.gone);
        let live = self.pages_of(blocks);
        self.gone = without(&self.gone, &live);
        let all = joined(ever.into_iter().chain(live).collect(), self.page);
        let mapped = joined(mappings.iter().map(|mapping| (mapping.start, mapping.end)).collect(), self.page);
        let lost = without(&all, &mapped);
        self.ranges = without(&all, &lost);
        self.gone = joined(self.gone.drain(..).chain(lost).collect(), self.page);
    }

    /// The pages of blocks and of their headers, in order of address; neighbours are merged. A header may lie on the
    /// page before its block.
    fn pages_of(&self, blocks: &[Block]) -> Ranges {
        let mut pages: Ranges = Vec::new();
        for block in blocks {
            let start = block.address.saturating_sub(self.header) / self.page * self.page;
            let end = up(block.end(), self.page);
            match pages.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => pages.push((start, end)),
            }
        }
        pages
    }
}

fn up(address: u64, page: u64) -> u64 {
    address.checked_next_multiple_of(page).unwrap_or(u64::MAX / page * page)
}

/// Ranges extended to whole pages, in order and disjoint.
fn joined(mut ranges: Ranges, page: u64) -> Ranges {
    for (start, end) in &mut ranges {
        *start = *start / page * page;
        *end = up(*end, page);
    }
    ranges.retain(|(start, end)| start < end);
    // They come as a few sorted pieces: a sort that merges is faster than one that does not.
    ranges.sort();
    ranges.dedup_by(|next, last| {
        let touches = next.0 <= last.1;
        if touches {
            last.1 = last.1.max(next.1);
        }
        touches
    });
    ranges
}

/// The part of `ranges` that is not in `others`, both in order and disjoint.
fn without(ranges: &[(u64, u64)], others: &[(u64, u64)]) -> Ranges {
    let mut left = Ranges::new();
    let mut at = 0;
    for &(start, end) in ranges {
        while others.get(at).is_some_and(|other| other.1 <= start) {
            at += 1;
        }
        let mut from = start;
        for other in others[at..].iter().take_while(|other| other.0 < end) {
            if other.0 > from {
                left.push((from, other.0));
            }
            from = from.max(other.1);
        }
        if from < end {
            left.push((from, end));
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ranges() -> impl Strategy<Value = Ranges> {
        prop::collection::vec((0..60_u64, 0..8_u64).prop_map(|(start, more)| (start, start + more)), 0..12)
    }

    fn holds(ranges: &[(u64, u64)], byte: u64) -> bool {
        ranges.iter().any(|(start, end)| (*start..*end).contains(&byte))
    }

    proptest! {
        #[test]
        fn joining_and_taking_away_are_as_by_byte(one in ranges(), other in ranges()) {
            let (a, b) = (joined(one.clone(), 1), joined(other.clone(), 1));
            let left = without(&a, &b);
            for byte in 0..80 {
                prop_assert_eq!(holds(&a, byte), holds(&one, byte));
                prop_assert_eq!(holds(&left, byte), holds(&one, byte) && !holds(&other, byte));
            }
            prop_assert!(a.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }

    /// Before, the page of a header alone counted as fresh and as a page of a block, and the caches went below zero.
    #[test]
    fn the_page_of_a_header_has_held_a_block() {
        let mapping = Mapping { start: 0x1000, end: 0x9000, ..Mapping::default() };
        let block = Block { address: 0x3000, requested: 100, usable: 100, ..Block::default() };
        let mut history = BlockHistory::new(0x1000, 8);
        history.update(vec![(0x3000, 0x3064)], &[block], &[mapping]);
        assert_eq!(history.ranges(), [(0x2000, 0x4000)]);
    }

    #[test]
    fn what_was_unmapped_once_is_no_longer_heap_until_a_block_lives_there() {
        let mapping = |start, end| Mapping { start, end, ..Mapping::default() };
        let (low, high) = (mapping(0x1000, 0x9000), mapping(0x20000, 0x30000));
        let ever = || vec![(0x2000, 0x3000), (0x20000, 0x30000)];
        let mut seen = BlockHistory::new(0x1000, 0);
        seen.update(ever(), &[], &[low.clone(), high.clone()]);
        assert_eq!(seen.ranges(), ever());
        seen.update(ever(), &[], std::slice::from_ref(&low));
        assert_eq!(seen.ranges(), [(0x2000, 0x3000)]);
        seen.update(ever(), &[], &[low.clone(), high.clone()]);
        assert_eq!(seen.ranges(), [(0x2000, 0x3000)]);
        let block = Block { address: 0x21010, requested: 0x1000, usable: 0x1000, ..Block::default() };
        seen.update(ever(), &[block], &[low.clone(), high.clone()]);
        assert_eq!(seen.ranges(), [(0x2000, 0x3000), (0x21000, 0x23000)]);
        seen.update(ever(), &[], &[low, high]);
        assert_eq!(seen.ranges(), [(0x2000, 0x3000), (0x21000, 0x23000)]);
    }
}
