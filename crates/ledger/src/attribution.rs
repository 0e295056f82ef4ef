//! Attributes the bytes of the heap to owners: live blocks laid over ranges of the heap and their pages.
//!
//! One pass over the blocks in order of address. A page with a byte of a live block on it cannot be released: what is
//! free on it is external fragmentation. A page without one could be.

use crate::block::Block;
use crate::line::Amount;
use crate::residency::{RangeResidency, Run, Walk};
use crate::snapshot::Defects;

/// A part of the address space that is the heap's: a mapping, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapRange {
    /// First address, a multiple of a page.
    pub start: u64,
    /// Address after it, a multiple of a page.
    pub end: u64,
    /// Index of its mapping.
    pub mapping: usize,
}

/// The bytes of a range by owner. Together they are the range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shares {
    /// Requested, in live blocks.
    pub live: Amount,
    /// Usable and not requested, in live blocks.
    pub internal: Amount,
    /// Before live blocks: their headers.
    pub headers: Amount,
    /// The rest of pages with one of these.
    pub pinned: Amount,
    /// Pages with none.
    pub idle: Amount,
    /// Resident bytes on huge pages.
    pub huge: u64,
    /// Of `idle`, resident bytes on huge pages.
    pub huge_idle: u64,
}

impl Shares {
    /// The whole range.
    pub fn total(&self) -> Amount {
        self.live + self.internal + self.headers + self.pinned + self.idle
    }
}

/// Lays `blocks`, in order of address, over `ranges` and `runs`, in order and disjoint. Before each block, `header`
/// bytes are the manager's. Returns the shares of each range.
pub fn attribute(
    blocks: &[Block],
    heap_ranges: &[HeapRange],
    runs: &[Run],
    header: u64,
    page: u64,
) -> (Vec<Shares>, Defects) {
    let mut sweep = Sweep {
        heap_ranges,
        shares: vec![Shares::default(); heap_ranges.len()],
        on_pages: vec![RangeResidency::default(); heap_ranges.len()],
        at: 0,
        bytes: Walk::new(runs),
        pages: Walk::new(runs),
        paged: 0,
        page,
    };
    let mut defects = Defects::default();
    // Up to here, every byte has an owner.
    let mut owned = 0;
    for block in blocks {
        let (end, requested) = (block.end(), block.address.saturating_add(block.requested));
        if block.address < owned {
            let twice = owned.min(end) - block.address;
            if twice > 0 {
                defects.overlapping_blocks += 1;
                defects.overlapping_bytes += twice;
            }
        }
        sweep.lay(block.address.saturating_sub(header).max(owned), block.address, |shares| {
            &mut shares.headers
        });
        let unmapped = sweep.lay(block.address.max(owned), requested, |shares| &mut shares.live)
            + sweep.lay(requested.max(owned), end, |shares| &mut shares.internal);
        if unmapped > 0 {
            if defects.unmapped_blocks == 0 {
                defects.unmapped_address = block.address;
            }
            defects.unmapped_blocks += 1;
            defects.unmapped_bytes += unmapped;
        }
        owned = owned.max(end);
    }
    let (mut shares, on_pages) = (sweep.shares, sweep.on_pages);
    let mut walk = Walk::new(runs);
    for ((range, shares), on_pages) in heap_ranges.iter().zip(&mut shares).zip(on_pages) {
        let all = walk.measure(range.start, range.end);
        let taken = shares.live + shares.internal + shares.headers;
        shares.pinned = on_pages.amount.without(taken);
        shares.idle = all.amount.without(on_pages.amount);
        (shares.huge, shares.huge_idle) = (all.huge, all.huge - on_pages.huge);
    }
    (shares, defects)
}

struct Sweep<'a> {
    heap_ranges: &'a [HeapRange],
    shares: Vec<Shares>,
    /// All bytes of pages with a byte that has an owner.
    on_pages: Vec<RangeResidency>,
    /// The range that the last piece was in, or the next one.
    at: usize,
    bytes: Walk<'a>,
    pages: Walk<'a>,
    /// Up to here, pages are in `on_pages`.
    paged: u64,
    page: u64,
}

impl Sweep<'_> {
    /// Assigns a piece to an owner. Pieces come in order and disjoint. Returns how many bytes of it lie in no range.
    #[inline]
    fn lay(&mut self, start: u64, end: u64, owner: impl Fn(&mut Shares) -> &mut Amount) -> u64 {
        if end <= start {
            return 0;
        }
        let mut homeless = end - start;
        while self.heap_ranges.get(self.at).is_some_and(|range| range.end <= start) {
            self.at += 1;
        }
        // A piece may span ranges; the next piece may begin in any of them.
        for (number, range) in self.heap_ranges.iter().enumerate().skip(self.at) {
            if range.start >= end {
                break;
            }
            let (start, end) = (start.max(range.start), end.min(range.end));
            homeless -= end - start;
            *owner(&mut self.shares[number]) += self.bytes.measure(start, end).amount;
            // Ranges begin and end with pages, so that these lie in the range.
            let first = (start / self.page * self.page).max(self.paged);
            let last = end.next_multiple_of(self.page);
            if first < last {
                let found = self.pages.measure(first, last);
                self.on_pages[number].amount += found.amount;
                self.on_pages[number].huge += found.huge;
                self.paged = last;
            }
        }
        homeless
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::residency::State;

    const PAGE: u64 = 16;

    /// The same, byte by byte. Bytes from 0 to 1024.
    fn model(
        blocks: &[Block],
        heap_ranges: &[HeapRange],
        runs: &[Run],
        header: u64,
    ) -> (Vec<Shares>, Defects) {
        #[derive(Clone, Copy, PartialEq)]
        enum Owner {
            None,
            Live,
            Internal,
            Header,
        }
        let mut owner = [Owner::None; 2048];
        let mut defects = Defects::default();
        let mut owned = 0;
        for block in blocks {
            for byte in block.address.saturating_sub(header)..block.address {
                if byte >= owned {
                    owner[byte as usize] = Owner::Header;
                }
            }
            let (mut twice, mut unmapped) = (0, 0);
            for byte in block.address..block.end() {
                if byte < owned {
                    twice += 1;
                    continue;
                }
                let requested = byte < block.address + block.requested;
                owner[byte as usize] = if requested { Owner::Live } else { Owner::Internal };
                unmapped +=
                    u64::from(!heap_ranges.iter().any(|range| (range.start..range.end).contains(&byte)));
            }
            defects.overlapping_blocks += u64::from(twice > 0);
            defects.overlapping_bytes += twice;
            if unmapped > 0 && defects.unmapped_blocks == 0 {
                defects.unmapped_address = block.address;
            }
            defects.unmapped_blocks += u64::from(unmapped > 0);
            defects.unmapped_bytes += unmapped;
            owned = owned.max(block.end());
        }
        let shares = heap_ranges.iter().map(|range| {
            let mut shares = Shares::default();
            for byte in range.start..range.end {
                let first = byte / PAGE * PAGE;
                let pinned = (first..first + PAGE).any(|byte| owner[byte as usize] != Owner::None);
                let state = runs.iter().find(|run| (run.start..run.end).contains(&byte)).map(|run| run.state);
                let huge = u64::from(state == Some(State::Huge));
                shares.huge += huge;
                let amount = match owner[byte as usize] {
                    Owner::Live => &mut shares.live,
                    Owner::Internal => &mut shares.internal,
                    Owner::Header => &mut shares.headers,
                    Owner::None if pinned => &mut shares.pinned,
                    Owner::None => {
                        shares.huge_idle += huge;
                        &mut shares.idle
                    }
                };
                match state {
                    Some(State::Resident | State::Huge) => amount.resident += 1,
                    Some(State::Swapped) => amount.swapped += 1,
                    None => amount.absent += 1,
                }
            }
            shares
        });
        (shares.collect(), defects)
    }

    /// Ranges of pages, in order and disjoint, from gaps and lengths; those that touch stay two.
    fn ranges(pieces: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let mut at = 0;
        pieces
            .iter()
            .map(|&(gap, pages)| {
                let start = at + gap * PAGE;
                at = start + pages * PAGE;
                (start, at)
            })
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn every_byte_has_the_owner_that_the_model_gives(
            pieces in prop::collection::vec((0..3_u64, 1..8_u64), 0..6),
            resident in prop::collection::vec((0..4_u64, 1..4_u64, 0..3_u8), 0..12),
            blocks in prop::collection::vec((0..1000_u64, 0..60_u64, 0..20_u64), 0..40),
            header in prop::sample::select(vec![0_u64, 8, 3]),
        ) {
            let heap_ranges: Vec<HeapRange> = ranges(&pieces)
                .into_iter()
                .enumerate()
                .map(|(mapping, (start, end))| HeapRange { start, end, mapping })
                .collect();
            let gaps: Vec<(u64, u64)> = resident.iter().map(|&(gap, pages, _)| (gap, pages)).collect();
            let states = [State::Resident, State::Huge, State::Swapped];
            let runs: Vec<Run> = ranges(&gaps)
                .into_iter()
                .zip(&resident)
                .map(|((start, end), &(_, _, state))| Run { start, end, state: states[usize::from(state)] })
                .collect();
            let mut blocks: Vec<Block> = blocks
                .into_iter()
                .map(|(address, requested, more)| Block {
                    address,
                    requested,
                    // Sometimes unknown.
                    usable: if more == 19 { 0 } else { requested + more },
                    ..Block::default()
                })
                .collect();
            blocks.sort_by_key(|block| block.address);
            let attributed = attribute(&blocks, &heap_ranges, &runs, header, PAGE);
            prop_assert_eq!(&attributed, &model(&blocks, &heap_ranges, &runs, header));
            for (shares, range) in attributed.0.iter().zip(&heap_ranges) {
                prop_assert_eq!(shares.total().total(), range.end - range.start);
            }
        }
    }

    #[test]
    fn blocks_at_the_end_of_the_address_space_do_not_overflow() {
        let block = Block { address: u64::MAX - 100, requested: u64::MAX, usable: 7, ..Block::default() };
        let (_, defects) = attribute(&[block], &[], &[], 8, 4096);
        assert_eq!((defects.unmapped_blocks, defects.unmapped_bytes), (1, 100));
    }
}
