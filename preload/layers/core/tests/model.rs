//! The tables against a model, an ordered map of blocks: whatever is inserted and removed, both agree, and the tables
//! are sound.

use std::collections::BTreeMap;
use std::ops::Range;

use heaptoll_layer_core::sweep::side_tables::Tables;
use proptest::prelude::*;

/// Where the blocks of these tests would lie: nothing is read there.
const ARENA: usize = 0x1234_5670_0000;

/// What is done.
#[derive(Debug, Clone)]
enum Action {
    /// A block so many bytes after the end of a block, by its number, or at the arena's start.
    Insert { after: usize, gap: usize, bytes: usize },
    /// Removes the block of this number.
    Remove(usize),
    /// A block that lies over others, so many eights after the start of one.
    Override { at: usize, eights: usize, bytes: usize },
}

/// Mostly small, some that cross pages, some that are large.
fn bytes() -> impl Strategy<Value = usize> {
    prop_oneof![
        8 => (2_usize..9).prop_map(|eights| eights * 8),
        4 => (2_usize..200).prop_map(|eights| eights * 8),
        2 => (200_usize..8192).prop_map(|eights| eights * 8),
        1 => (8190_usize..8195).prop_map(|eights| eights * 8),
        1 => (8192_usize..600_000).prop_map(|eights| eights * 8),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    let gap = prop_oneof![3 => Just(0_usize), 3 => 0_usize..10, 1 => 0_usize..2000, 1 => 0_usize..300_000];
    prop_oneof![
        6 => (any::<usize>(), gap, bytes())
            .prop_map(|(after, gap, bytes)| Action::Insert { after, gap: gap * 8, bytes }),
        4 => any::<usize>().prop_map(Action::Remove),
        1 => (any::<usize>(), 0_usize..100, bytes()).prop_map(|(at, eights, bytes)| Action::Override { at, eights, bytes }),
    ]
}

/// The model: starts and bytes.
#[derive(Default)]
struct Model(BTreeMap<usize, usize>);

impl Model {
    fn nth(&self, number: usize) -> Option<(usize, usize)> {
        let number = number.checked_rem(self.0.len())?;
        self.0.iter().nth(number).map(|(start, bytes)| (*start, *bytes))
    }

    fn overlapping(&self, range: Range<usize>) -> Vec<usize> {
        let before =
            self.0.range(..range.start).next_back().filter(|(start, bytes)| *start + *bytes > range.start);
        before.into_iter().chain(self.0.range(range)).map(|(start, _)| *start).collect()
    }

    fn find(&self, address: usize) -> Option<(usize, usize)> {
        let (start, bytes) = self.0.range(..=address).next_back()?;
        (address < start + bytes).then_some((*start, *bytes))
    }

    fn pages(&self) -> usize {
        let (mut pages, mut last) = (0, 0);
        for (start, bytes) in &self.0 {
            let (first, end) = (start >> 12, (start + bytes - 1) >> 12);
            pages += end + 1 - first.max(last);
            last = last.max(end + 1);
        }
        pages
    }
}

fn assert_same(tables: &Tables, model: &Model, at: usize) {
    for delta in [0, 1, 7, 8, 15, 16, 24, 255, 256, 4095, 4096, 65535, 1 << 20] {
        for address in [at.wrapping_sub(delta), at + delta] {
            let found = tables.find(address).map(|block| (block.start, block.bytes));
            assert_eq!(found, model.find(address), "find({address:#x})");
        }
    }
    assert_eq!(tables.bytes_of(at), model.0.get(&at).copied());
    assert_eq!(tables.used_pages(), model.pages());
}

fn assert_sound(tables: &Tables, model: &Model) {
    assert_eq!(tables.check(), Ok(()));
    let mut seen = Vec::new();
    tables.for_each(|start, bytes| seen.push((start, bytes)));
    assert_eq!(seen, model.0.iter().map(|(start, bytes)| (*start, *bytes)).collect::<Vec<_>>());
    assert_eq!(tables.blocks(), model.0.len());
    assert_eq!(tables.bytes(), model.0.values().sum::<usize>());
    let mut expected: Vec<Range<usize>> = Vec::new();
    for (start, bytes) in &model.0 {
        let pages = start & !4095..(start + bytes).next_multiple_of(4096);
        match expected.last_mut() {
            Some(last) if pages.start <= last.end => last.end = last.end.max(pages.end),
            _ => expected.push(pages),
        }
    }
    let mut ranges = Vec::new();
    tables.heap_ranges(|range| ranges.push(range));
    assert_eq!(ranges, expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn the_tables_are_an_ordered_map(acts in proptest::collection::vec(action(), 1..200)) {
        let (tables, mut model, mut high) = (Box::new(Tables::new()), Model::default(), 0);
        for action in &acts {
            let (start, bytes) = match *action {
                Action::Insert { after, gap, bytes } => {
                    let end = model.nth(after).map_or(ARENA, |(start, bytes)| start + bytes);
                    let start = end + gap;
                    if !model.overlapping(start..start + bytes).is_empty() {
                        continue;
                    }
                    (start, bytes)
                }
                Action::Remove(number) => {
                    let Some((start, bytes)) = model.nth(number) else { continue };
                    prop_assert_eq!(tables.remove(start + 8), None, "not a start");
                    prop_assert_eq!(tables.remove(start), Some(bytes));
                    prop_assert_eq!(tables.remove(start), None, "removed twice");
                    model.0.remove(&start);
                    assert_same(&tables, &model, start);
                    continue;
                }
                Action::Override { at, eights, bytes } => {
                    let Some((start, _)) = model.nth(at) else { continue };
                    let start = start + eights * 8;
                    for lost in model.overlapping(start..start + bytes) {
                        let bytes = model.0.remove(&lost);
                        // What covers the new block from before, or is large, is not searched for.
                        if lost < start || bytes >= Some(1 << 16) {
                            prop_assert_eq!(tables.remove(lost), bytes);
                        }
                    }
                    (start, bytes)
                }
            };
            prop_assert_eq!(tables.insert(start, bytes), Ok(()));
            model.0.insert(start, bytes);
            assert_same(&tables, &model, start);
            high = high.max(tables.used_pages());
        }
        prop_assert!(tables.used_pages_high() >= high);
        assert_sound(&tables, &model);
        // Everything goes, and nothing is left.
        for (start, bytes) in std::mem::take(&mut model.0) {
            prop_assert_eq!(tables.remove(start), Some(bytes));
        }
        assert_sound(&tables, &model);
        prop_assert_eq!(tables.used_pages(), 0);
    }
}

#[test]
fn neighbours_share_sixteen_bytes() {
    let tables = Box::new(Tables::new());
    for (start, bytes) in
        [(ARENA, 24), (ARENA + 24, 16), (ARENA + 40, 24), (ARENA + 64, 16), (ARENA + 80, 40)]
    {
        assert_eq!(tables.insert(start, bytes), Ok(()));
    }
    assert_eq!(tables.remove(ARENA + 24), Some(16));
    assert_eq!(tables.check(), Ok(()));
    assert_eq!(tables.find(ARENA + 23).map(|block| block.start), Some(ARENA));
    assert_eq!(tables.find(ARENA + 24), None);
    assert_eq!(tables.find(ARENA + 40).map(|block| block.bytes), Some(24));
    assert_eq!(tables.insert(ARENA + 24, 16), Ok(()));
    assert_eq!(tables.remove(ARENA), Some(24));
    assert_eq!(tables.find(ARENA + 24).map(|block| block.bytes), Some(16));
    assert_eq!(tables.check(), Ok(()));
}

#[test]
fn a_block_that_ends_in_the_middle_where_a_stale_one_starts_ousts_it() {
    let tables = Box::new(Tables::new());
    for (stale, start, bytes) in
        [(ARENA + 16, ARENA, 24), (ARENA + 256, ARENA + 264, 16), (ARENA + 536, ARENA + 520, 24)]
    {
        tables.insert(stale, 24).expect("memory");
        tables.insert(start, bytes).expect("memory");
        assert_eq!(tables.find(start + bytes), None);
        assert_eq!(tables.bytes_of(start), Some(bytes));
        assert_eq!(tables.check(), Ok(()));
    }
}

#[test]
fn small_blocks_lie_across_every_boundary() {
    let tables = Box::new(Tables::new());
    for boundary in [256, 4096, 1 << 16, 1 << 20, 1 << 34] {
        for bytes in [16, 24, 64, 4096 + 24, 65528] {
            for before in (8..bytes).step_by((bytes / 24 * 8).max(8)) {
                let start = 0x2000_0000_0000 + boundary - before;
                assert_eq!(tables.insert(start, bytes), Ok(()));
                for at in [start, start + before - 1, start + before, start + bytes - 1] {
                    assert_eq!(tables.find(at).map(|block| (block.start, block.bytes)), Some((start, bytes)));
                }
                assert_eq!((tables.find(start - 1), tables.find(start + bytes)), (None, None));
                assert_eq!(tables.used_pages(), ((start + bytes - 1) >> 12) - (start >> 12) + 1);
                assert_eq!(tables.remove(start), Some(bytes));
                assert_eq!(tables.used_pages(), 0);
            }
        }
        assert_eq!(tables.check(), Ok(()));
    }
}

#[test]
fn blocks_of_gigabytes_cost_nothing_a_page() {
    let tables = Box::new(Tables::new());
    let bytes = 100 << 30;
    assert_eq!(tables.insert(ARENA + 8, bytes), Ok(()));
    assert_eq!(tables.used_pages(), (bytes >> 12) + 1);
    assert_eq!(tables.find(ARENA + (50 << 30)).map(|block| block.start), Some(ARENA + 8));
    assert_eq!(tables.find(ARENA + bytes + 7).map(|block| block.start), Some(ARENA + 8));
    assert_eq!(tables.find(ARENA + bytes + 8), None);
    assert_eq!(tables.insert(ARENA + bytes + 8, 16), Ok(()));
    let own: usize = tables.ranges().iter().map(ExactSizeIterator::len).sum();
    assert!(own < 3 << 20, "{own} bytes of tables");
    assert_eq!(tables.remove(ARENA + 8), Some(bytes));
    assert_eq!((tables.blocks(), tables.used_pages()), (1, 1));
}

#[test]
fn without_memory_nothing_is_half_done() {
    let tables = Box::new(Tables::new());
    tables.insert(ARENA, 32).expect("memory");
    tables.fail_every(1);
    // New chunks and nodes need memory; the supply has some left.
    let mut refused = 0;
    for chunk in 1..200 {
        refused += usize::from(tables.insert(ARENA + (chunk << 20) - 16, 32).is_err());
        refused += usize::from(tables.insert(ARENA + (chunk << 34) - 16, 1 << 21).is_err());
    }
    assert!(refused > 100, "{refused}");
    tables.fail_every(0);
    assert_eq!(tables.check(), Ok(()));
    assert_eq!(tables.insert(ARENA + (199 << 20) - 16, 32), Ok(()));
    assert_eq!(tables.check(), Ok(()));
}

#[test]
fn addresses_that_nothing_can_have_are_not_found() {
    let tables = Tables::new();
    for address in [0, 8, 1 << 46, (1 << 47) - 1, 1 << 47, usize::MAX, usize::MAX - 7] {
        assert_eq!((tables.find(address), tables.remove(address)), (None, None));
    }
    assert_eq!(tables.first_in(0..usize::MAX), None);
}

#[test]
fn threads_insert_and_remove_at_once() {
    let tables = Box::new(Tables::new());
    // Each has every fourth slot of 48 bytes, so that all share all bitmaps.
    const THREADS: usize = 4;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let tables = &tables;
            scope.spawn(move || {
                let mut live = BTreeMap::new();
                let mut random = 88_172_645_463_325_252_u64 + thread as u64;
                for _ in 0..200_000 {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    let place = (random % 3000) as usize * THREADS + thread;
                    let start = ARENA + place * 48 + (place % 2) * 8;
                    if let Some(bytes) = live.remove(&start) {
                        assert_eq!(tables.bytes_of(start), Some(bytes));
                        assert_eq!(tables.remove(start), Some(bytes));
                    } else {
                        let bytes = 16 + (random >> 32) as usize % 3 * 8;
                        tables.insert(start, bytes).expect("memory");
                        live.insert(start, bytes);
                    }
                    let large = ARENA + (1 << 32) + (thread << 21) + 8 * (random >> 60) as usize;
                    if random >> 40 & 63 == 0 {
                        tables.insert(large, 1 << 20).expect("memory");
                        assert_eq!(tables.find(large + 4097).map(|block| block.start), Some(large));
                        assert_eq!(tables.remove(large), Some(1 << 20));
                    }
                }
                for (start, bytes) in live {
                    assert_eq!(tables.remove(start), Some(bytes));
                }
            });
        }
    });
    assert_eq!(tables.check(), Ok(()));
    assert_eq!((tables.blocks(), tables.used_pages()), (0, 0));
}
