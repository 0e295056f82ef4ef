//! Which bytes of the heap are whose: live blocks laid over places of the heap and their pages.
//!
//! One pass over the blocks in order of address. A page with a byte of a live block on it cannot be given back: what is
//! free on it is external fragmentation. A page without one could be.

use crate::block::Block;
use crate::moment::{Amount, Defects};
use crate::residency::{Found, Run, Walk};

/// A part of the address space that is the heap's: a mapping, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// First address, a multiple of a page.
    pub start: u64,
    /// Address behind it, a multiple of a page.
    pub end: u64,
    /// The mapping it is of, by number.
    pub mapping: usize,
}

/// Whose the bytes of a place are. Together they are the place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shares {
    /// Asked for, in live blocks.
    pub live: Amount,
    /// Given and not asked for, in live blocks.
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
    /// The whole place.
    pub fn total(&self) -> Amount {
        self.live + self.internal + self.headers + self.pinned + self.idle
    }
}

/// Lays `blocks`, in order of address, over `places` and `runs`, in order and apart. Before each block, `header` bytes
/// are the manager's. Gives the shares of each place.
pub fn attribute(
    blocks: &[Block],
    places: &[Place],
    runs: &[Run],
    header: u64,
    page: u64,
) -> (Vec<Shares>, Defects) {
    let mut sweep = Sweep {
        places,
        shares: vec![Shares::default(); places.len()],
        on_pages: vec![Found::default(); places.len()],
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
        let (end, asked) = (block.end(), block.address.saturating_add(block.requested));
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
        let unmapped = sweep.lay(block.address.max(owned), asked, |shares| &mut shares.live)
            + sweep.lay(asked.max(owned), end, |shares| &mut shares.internal);
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
    for ((place, shares), on_pages) in places.iter().zip(&mut shares).zip(on_pages) {
        let all = walk.look(place.start, place.end);
        let taken = shares.live + shares.internal + shares.headers;
        shares.pinned = on_pages.amount.without(taken);
        shares.idle = all.amount.without(on_pages.amount);
        (shares.huge, shares.huge_idle) = (all.huge, all.huge - on_pages.huge);
    }
    (shares, defects)
}

struct Sweep<'a> {
    places: &'a [Place],
    shares: Vec<Shares>,
    /// All bytes of pages with a byte of somebody's.
    on_pages: Vec<Found>,
    /// The place that the last range was in, or the next one.
    at: usize,
    bytes: Walk<'a>,
    pages: Walk<'a>,
    /// Up to here, pages are in `on_pages`.
    paged: u64,
    page: u64,
}

impl Sweep<'_> {
    /// Gives a range to somebody. Ranges come in order and apart. Gives how many bytes of it lie in no place.
    #[inline]
    fn lay(&mut self, start: u64, end: u64, whose: impl Fn(&mut Shares) -> &mut Amount) -> u64 {
        if end <= start {
            return 0;
        }
        let mut homeless = end - start;
        while self.places.get(self.at).is_some_and(|place| place.end <= start) {
            self.at += 1;
        }
        // A range may span places; the next range may begin in any of them.
        for (number, place) in self.places.iter().enumerate().skip(self.at) {
            if place.start >= end {
                break;
            }
            let (start, end) = (start.max(place.start), end.min(place.end));
            homeless -= end - start;
            *whose(&mut self.shares[number]) += self.bytes.look(start, end).amount;
            // Places begin and end with pages, so that these lie in the place.
            let first = (start / self.page * self.page).max(self.paged);
            let behind = end.next_multiple_of(self.page);
            if first < behind {
                let found = self.pages.look(first, behind);
                self.on_pages[number].amount += found.amount;
                self.on_pages[number].huge += found.huge;
                self.paged = behind;
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
    fn model(blocks: &[Block], places: &[Place], runs: &[Run], header: u64) -> (Vec<Shares>, Defects) {
        #[derive(Clone, Copy, PartialEq)]
        enum Owner {
            Nobody,
            Live,
            Internal,
            Header,
        }
        let mut owner = [Owner::Nobody; 2048];
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
                let asked = byte < block.address + block.requested;
                owner[byte as usize] = if asked { Owner::Live } else { Owner::Internal };
                unmapped += u64::from(!places.iter().any(|place| (place.start..place.end).contains(&byte)));
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
        let shares = places.iter().map(|place| {
            let mut shares = Shares::default();
            for byte in place.start..place.end {
                let first = byte / PAGE * PAGE;
                let pinned = (first..first + PAGE).any(|byte| owner[byte as usize] != Owner::Nobody);
                let state = runs.iter().find(|run| (run.start..run.end).contains(&byte)).map(|run| run.state);
                let huge = u64::from(state == Some(State::Huge));
                shares.huge += huge;
                let amount = match owner[byte as usize] {
                    Owner::Live => &mut shares.live,
                    Owner::Internal => &mut shares.internal,
                    Owner::Header => &mut shares.headers,
                    Owner::Nobody if pinned => &mut shares.pinned,
                    Owner::Nobody => {
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

    /// Ranges of pages, in order and apart, from gaps and lengths; those that touch stay two.
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
        fn every_byte_is_whose_the_model_says(
            pieces in prop::collection::vec((0..3_u64, 1..8_u64), 0..6),
            resident in prop::collection::vec((0..4_u64, 1..4_u64, 0..3_u8), 0..12),
            blocks in prop::collection::vec((0..1000_u64, 0..60_u64, 0..20_u64), 0..40),
            header in prop::sample::select(vec![0_u64, 8, 3]),
        ) {
            let places: Vec<Place> = ranges(&pieces)
                .into_iter()
                .enumerate()
                .map(|(mapping, (start, end))| Place { start, end, mapping })
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
                    // Now and then unknown.
                    usable: if more == 19 { 0 } else { requested + more },
                })
                .collect();
            blocks.sort_by_key(|block| block.address);
            let told = attribute(&blocks, &places, &runs, header, PAGE);
            prop_assert_eq!(&told, &model(&blocks, &places, &runs, header));
            for (shares, place) in told.0.iter().zip(&places) {
                prop_assert_eq!(shares.total().total(), place.end - place.start);
            }
        }
    }

    #[test]
    fn blocks_at_the_end_of_the_address_space_do_not_overflow() {
        let block = Block { address: u64::MAX - 100, requested: u64::MAX, usable: 7 };
        let (_, defects) = attribute(&[block], &[], &[], 8, 4096);
        assert_eq!((defects.unmapped_blocks, defects.unmapped_bytes), (1, 100));
    }
}
