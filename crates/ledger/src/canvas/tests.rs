//! Tests of the picture: its sums are those of the ledger, and what was freed around a survivor is found.

use proptest::prelude::*;

use super::*;
use crate::attribution::{HeapRange, attribute};

const PAGE: u64 = 64;

fn block(address: u64, requested: u64, site: u32) -> Block {
    Block { address, requested, usable: requested, site, allocated_at_bytes: 1024 * u64::from(site) }
}

fn resident(start: u64, end: u64) -> Run {
    Run { start, end, state: State::Resident }
}

fn of<'a>(blocks: &'a [Block], runs: &'a [Run], freed: Option<&'a FreedBlocks>) -> Subject<'a> {
    Subject { blocks, runs, header: 0, page_size: PAGE, clock_bytes: 10 * 1024, freed }
}

#[test]
fn a_cell_names_who_has_it_and_how_old_that_is() {
    let blocks = [block(0, 10, 1), block(64, 32, 2), block(100, 4, 3), block(200, 300, 4)];
    let found = picture(&of(&blocks, &[resident(0, 192), resident(256, 640)], None));
    let holders = |cell: usize| -> Vec<(u32, u64, u64)> {
        let cell = &found.cells[cell];
        cell.holders.iter().map(|holder| (holder.site, holder.live_bytes, holder.held_bytes)).collect()
    };
    assert_eq!((found.pages, found.cell_pages, found.cells.len()), (9, 1, 9));
    assert_eq!(holders(0), [(1, 10, 54)]);
    assert_eq!(holders(1), [(2, 32, 14), (3, 4, 14)]);
    assert_eq!((found.cells[0].age_kib, found.cells[1].age_kib), (9, 7));
    // The page at 128 has no block; that at 192, where a block begins, is not resident.
    assert_eq!((found.cells[2].empty_pages, holders(2)), (1, vec![]));
    assert_eq!((found.cells[3].start, holders(3)), (256, vec![(4, 64, 0)]));
    assert_eq!(holders(6), [(4, 52, 12)]);
    assert_eq!(found.followed_one_in, 0);
    assert_eq!(found.sites().collect::<std::collections::BTreeSet<u32>>(), [1, 2, 3, 4].into());
}

#[test]
fn many_pages_share_cells_and_gaps_are_left_out() {
    let runs: Vec<Run> = (0..10_000).map(|at| resident(at * 2 * PAGE, (at * 2 + 1) * PAGE)).collect();
    let blocks: Vec<Block> = (0..10_000).map(|at| block(at * 2 * PAGE, 16, 1)).collect();
    let found = picture(&of(&blocks, &runs, None));
    assert_eq!((found.pages, found.cell_pages), (10_000, 7));
    assert!(found.cells.len() as u64 <= MOST_CELLS);
    let pages: u64 = (0..found.cells.len()).map(|cell| found.pages_of(cell)).sum();
    assert_eq!(pages, 10_000);
    assert!(found.cells.iter().all(|cell| cell.empty_pages == 0 && cell.live_bytes * 3 == cell.held_bytes));
}

#[test]
fn what_was_freed_around_a_survivor_is_what_is_free_there_now() {
    let mut freed = FreedBlocks::new(PAGE);
    freed.free(0, 64, 9);
    freed.free(32, 48, 8);
    freed.free(64, 128, 7);
    // A survivor that was allocated where a block of site 9 had been, and one more on a page of its own.
    let blocks = [block(10, 10, 1), block(128, 4, 1)];
    let found = picture(&of(&blocks, &[resident(0, 192)], Some(&freed)));
    assert_eq!(found.followed_one_in, 1);
    let [around] = &found.around[..] else { panic!("one site: {found:?}") };
    assert_eq!((around.site, around.held_bytes, around.unused_bytes), (1, 54 + 60, 60));
    assert_eq!(around.freed, [FreedBytes { site: 9, bytes: 38 }, FreedBytes { site: 8, bytes: 16 }]);
    assert_eq!(around.others_bytes, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn the_cells_together_are_the_lines_of_the_ledger(
        gaps in prop::collection::vec((0..60_u64, 1..300_u64, 0..5_u32), 0..24),
        pages in prop::collection::vec(any::<bool>(), 32),
        header in prop::sample::select(vec![0_u64, 8]),
        cell_pages in 1..5_u64,
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
        let subject = Subject { header, ..of(&blocks, &runs, None) };
        let range = HeapRange { start: 0, end: 2048, mapping: 0 };
        let (shares, _) = attribute(&blocks, &[range], &runs, header, PAGE);
        let found = draw(&subject, cell_pages);
        let sum = |of: fn(&Cell) -> u64| found.cells.iter().map(of).sum::<u64>();
        prop_assert_eq!(sum(|cell| cell.held_bytes), shares[0].pinned.resident);
        let live = shares[0].live + shares[0].internal + shares[0].headers;
        prop_assert_eq!(sum(|cell| cell.live_bytes), live.resident);
        prop_assert_eq!(sum(|cell| cell.empty_pages) * PAGE, shares[0].idle.resident);
        for (at, cell) in found.cells.iter().enumerate() {
            let bytes = cell.live_bytes + cell.held_bytes + cell.empty_pages * PAGE;
            prop_assert_eq!(bytes, found.pages_of(at) * PAGE);
            let held: u64 = cell.holders.iter().map(|holder| holder.held_bytes).sum();
            prop_assert!(held <= cell.held_bytes);
        }
    }
}
