//! The worst case of time: blocks whose sizes ascend with their addresses make the tree a list, and every descent to
//! its end visits all of them.

use heaptoll_historic::cartesian::{Cartesian, HEADER, SMALLEST};
use heaptoll_runtime::{Heap, tally};

/// Groups of equal blocks, each group larger than the one before.
const GROUPS: usize = 100;
const EACH: usize = 1000;

/// A heap that has grown to `bytes`, all in one free block to carve from.
fn with_free_space(bytes: usize) -> Cartesian {
    let mut heap = Cartesian::new();
    let all = heap.allocate(bytes).expect("memory");
    // SAFETY: it is live, and freed once.
    assert_eq!(unsafe { heap.free(all) }, Ok(()));
    heap
}

/// Frees the groups in order of size, and in each the highest block first: a block becomes the root, or hangs at the
/// end of its group with all smaller groups to its left. So the list is built with few visits, EACH at most a time.
fn degenerate() -> Cartesian {
    let all = (1..=GROUPS).map(|group| EACH * (2 * SMALLEST + 16 * group)).sum();
    let mut heap = with_free_space(all);
    let mut groups = Vec::new();
    for group in 1..=GROUPS {
        let size = SMALLEST + 16 * group;
        let blocks: Vec<_> = (0..EACH)
            .map(|_| {
                let block = heap.allocate(size - HEADER).expect("memory");
                heap.allocate(0).expect("memory");
                block
            })
            .collect();
        groups.push(blocks);
    }
    // The rest of the last page would be larger than the largest group.
    let rest = tally(&heap).free as usize;
    heap.allocate(rest).expect("memory");
    for block in groups.into_iter().flat_map(|blocks| blocks.into_iter().rev()) {
        // SAFETY: it is live, and freed once.
        assert_eq!(unsafe { heap.free(block) }, Ok(()));
    }
    heap
}

#[test]
fn a_tree_of_100_000_blocks_can_be_a_list_of_100_000_and_every_visit_is_counted() {
    let all = (GROUPS * EACH) as u64;
    let mut heap = degenerate();
    assert_eq!(tally(&heap).filled().map(|range| range.free_blocks).sum::<u64>(), all);
    let depth = heap.depth().expect("a sound tree");
    assert_eq!(depth, all, "each block hangs to the left of the next");
    assert_eq!(heap.check(), Ok(()), "and neither the check nor the walk recurses");

    // The smallest block is the farthest down.
    let before = heap.searches_by_size();
    let block = heap.allocate(0).expect("memory");
    let allocation = heap.searches_by_size().steps - before.steps;
    assert_eq!(heap.searches_by_size().searches, before.searches + 1);
    assert_eq!(allocation, all);
    // And back again, along all that lie above it.
    let before = heap.searches_by_address();
    // SAFETY: it is live, and freed once.
    assert_eq!(unsafe { heap.free(block) }, Ok(()));
    let freeing = heap.searches_by_address().steps - before.steps;
    assert_eq!(freeing, all - 1);
    assert_eq!(heap.depth(), Ok(all));
    assert_eq!(heap.search().expect("it searches").longest, allocation);
    println!("depth {depth}; nodes visited by an allocation {allocation}, by a free {freeing}");
}

#[test]
fn equal_blocks_freed_in_order_of_address_make_a_list_too() {
    let mut heap = with_free_space(4000 * SMALLEST);
    let blocks: Vec<_> = (0..4000).map(|_| heap.allocate(0).expect("memory")).collect();
    let rest = tally(&heap).free as usize;
    heap.allocate(rest).expect("memory");
    let before = heap.searches_by_address().steps;
    for block in blocks.into_iter().step_by(2) {
        // SAFETY: it is live, and freed once.
        assert_eq!(unsafe { heap.free(block) }, Ok(()));
    }
    assert_eq!(heap.depth(), Ok(2000));
    let visits = heap.searches_by_address().steps - before;
    // Along all that are there, each time.
    assert_eq!(visits, 1999 * 2000 / 2);
    assert_eq!(heap.check(), Ok(()));
}
