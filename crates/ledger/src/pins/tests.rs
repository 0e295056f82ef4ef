//! Tests of the attribution of free bytes to call sites.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::attribution::{HeapRange, attribute};
use crate::residency::State;

const PAGE: u64 = 64;

fn block(address: u64, requested: u64, site: u32) -> Block {
    Block { address, requested, usable: requested, site, allocated_at_bytes: 1024 * u64::from(site) }
}

fn resident(start: u64, end: u64) -> Run {
    Run { start, end, state: State::Resident }
}

fn found(blocks: &[Block], runs: &[Run]) -> Pins {
    pins(blocks, runs, 0, PAGE, 10 * 1024)
}

#[test]
fn a_site_holds_what_is_free_on_pages_that_only_it_has_blocks_on() {
    let blocks = [block(0, 10, 1), block(20, 4, 1), block(64, 32, 2), block(100, 4, 3)];
    let found = found(&blocks, &[resident(0, 128)]);
    assert_eq!((found.pages, found.live_pages, found.bytes), (2, 2, 50 + 28));
    let by_site: Vec<(u32, u64, u64, u64)> =
        found.sites.iter().map(|pin| (pin.site, pin.alone_bytes, pin.shared_bytes, pin.blocks)).collect();
    assert_eq!(by_site, [(1, 50, 0, 2), (2, 0, 14, 1), (3, 0, 14, 1)]);
    assert_eq!(found.sites[0].block_bytes, 14);
    assert_eq!(found.sites[0].mean_age_bytes(), 9 * 1024);
    assert_eq!(found.others, Pin::default());
}

#[test]
fn what_does_not_divide_goes_to_the_first_sites() {
    let blocks = [block(0, 20, 5), block(20, 20, 4), block(40, 1, 9)];
    let found = found(&blocks, &[resident(0, 64)]);
    let parts: Vec<(u32, u64)> = found.sites.iter().map(|pin| (pin.site, pin.shared_bytes)).collect();
    assert_eq!(parts, [(4, 8), (5, 8), (9, 7)]);
}

#[test]
fn a_block_that_spans_pages_counts_once_and_fills_those_between() {
    let found = found(&[block(60, 300, 1)], &[resident(0, 640)]);
    // 60 free bytes before it on its first page, 24 after it on its last one.
    assert_eq!((found.pages, found.live_pages, found.bytes), (2, 6, 60 + 24));
    assert_eq!((found.sites[0].blocks, found.sites[0].block_bytes), (1, 300));
}

#[test]
fn pages_that_are_not_resident_hold_nothing() {
    let blocks = [block(0, 10, 1), block(64, 10, 2)];
    let found = found(&blocks, &[resident(64, 128)]);
    assert_eq!((found.pages, found.bytes, found.sites.len()), (1, 54, 1));
    assert_eq!(found.sites[0].site, 2);
}

#[test]
fn more_sites_than_are_kept_are_one_rest() {
    let blocks: Vec<Block> =
        (0..60).map(|at| block(u64::from(at) * PAGE, 64 - u64::from(at), at + 1)).collect();
    let found = found(&blocks, &[resident(0, 60 * PAGE)]);
    assert_eq!(found.sites.len(), MOST_SITES);
    let kept: u64 = found.sites.iter().map(Pin::bytes).sum();
    assert_eq!(kept + found.others.bytes(), found.bytes);
    assert_eq!(found.others.site, 0);
    assert!(found.sites.iter().all(|pin| pin.bytes() >= 10), "the largest are kept");
}

/// The same, page by page and byte by byte; bytes from 0 to 2048.
fn model(blocks: &[Block], runs: &[Run], header: u64) -> Vec<(u32, u64, u64)> {
    let mut owner = [usize::MAX; 2048];
    let mut owned = 0;
    for (index, block) in blocks.iter().enumerate() {
        for byte in block.address.saturating_sub(header).max(owned)..block.end() {
            owner[byte as usize] = index;
        }
        owned = owned.max(block.end());
    }
    let mut sums = std::collections::BTreeMap::new();
    for page in owner.chunks(PAGE as usize).enumerate() {
        let (start, bytes) = (page.0 as u64 * PAGE, page.1);
        let sites: BTreeSet<u32> =
            bytes.iter().filter(|owner| **owner != usize::MAX).map(|owner| blocks[*owner].site).collect();
        let free = bytes.iter().filter(|owner| **owner == usize::MAX).count() as u64;
        if sites.is_empty() || free == 0 || !runs.iter().any(|run| run.start <= start && start < run.end) {
            continue;
        }
        for site in &sites {
            let sum: &mut (u64, u64) = sums.entry(*site).or_default();
            if sites.len() == 1 { sum.0 += free } else { sum.1 += free / sites.len() as u64 }
        }
    }
    sums.into_iter().map(|(site, (alone, shared))| (site, alone, shared)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn the_parts_are_those_of_the_model_and_sum_up_to_external_fragmentation(
        gaps in prop::collection::vec((0..60_u64, 1..100_u64, 0..5_u32), 0..24),
        pages in prop::collection::vec(any::<bool>(), 32),
        header in prop::sample::select(vec![0_u64, 8]),
    ) {
        let mut at = 0;
        let blocks: Vec<Block> = gaps
            .iter()
            .map(|&(gap, bytes, site)| {
                let made = block(at + gap, bytes, site);
                at = made.end();
                made
            })
            .filter(|block| block.end() < 2048)
            .collect();
        let runs: Vec<Run> = (0..32_u64)
            .filter(|page| pages[*page as usize])
            .map(|page| resident(page * PAGE, (page + 1) * PAGE))
            .collect();
        let found = pins(&blocks, &runs, header, PAGE, 1 << 20);
        let range = HeapRange { start: 0, end: 2048, mapping: 0 };
        let (shares, _) = attribute(&blocks, &[range], &runs, header, PAGE);
        prop_assert_eq!(found.bytes, shares[0].pinned.resident);
        prop_assert_eq!(found.sites.iter().map(Pin::bytes).sum::<u64>(), found.bytes);
        let mut by_site: Vec<(u32, u64)> =
            found.sites.iter().map(|pin| (pin.site, pin.alone_bytes)).collect();
        by_site.sort_unstable();
        let model = model(&blocks, &runs, header);
        let expected: Vec<(u32, u64)> = model.iter().map(|&(site, alone, _)| (site, alone)).collect();
        prop_assert_eq!(by_site, expected);
        for (site, _, shared) in model {
            let pin = found.sites.iter().find(|pin| pin.site == site).expect("the model has it");
            prop_assert!(pin.shared_bytes >= shared && pin.shared_bytes <= shared + 32, "rounded up only");
        }
    }
}
