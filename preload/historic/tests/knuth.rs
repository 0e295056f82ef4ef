//! Knuth's heap against the model, and what its tags notice.

use heaptoll_historic::knuth::Knuth;
use heaptoll_runtime::{Heap, Misuse};

crate::kit::trial!(Knuth, reuses: true);

#[test]
fn tags_reveal_double_frees_foreign_addresses_and_writes_beyond_a_block() {
    let mut heap = Knuth::new();
    let blocks = [100, 200, 300].map(|bytes| heap.allocate(bytes).expect("memory"));
    // SAFETY: the second block is freed twice and the first is written beyond, which is what is tested; all
    // addresses are the heap's, or are refused for not being.
    unsafe {
        assert_eq!(heap.free(blocks[1]), Ok(()));
        assert_eq!(heap.free(blocks[1]), Err(Misuse::DoubleFree));
        assert_eq!(heap.free(blocks[2].add(16)), Err(Misuse::Damaged));
        assert_eq!(heap.free(blocks[2].add(8)), Err(Misuse::Foreign));
        assert_eq!(heap.free(std::ptr::NonNull::<u128>::dangling().cast()), Err(Misuse::Foreign));
        let usable = heap.usable(blocks[0]);
        blocks[0].as_ptr().add(usable).write(0);
        assert_eq!(heap.free(blocks[0]), Err(Misuse::Damaged));
    }
    assert!(heap.check().is_err());
}

#[test]
fn freed_neighbours_become_one_block_whatever_the_order() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut heap = Knuth::new();
        let blocks = [1000, 1000, 1000].map(|bytes| heap.allocate(bytes).expect("memory"));
        for at in order {
            // SAFETY: each is live, and freed once.
            assert_eq!(unsafe { heap.free(blocks[at]) }, Ok(()));
        }
        let tally = heaptoll_runtime::tally(&heap);
        assert_eq!(tally.filled().map(|range| range.free_blocks).sum::<u64>(), 1, "{order:?}");
        assert_eq!(heap.check(), Ok(()));
    }
}

#[test]
fn a_rest_is_a_block_from_48_bytes_on() {
    let mut heap = Knuth::new();
    // 4096 bytes less two sentinels are one free block of 4080.
    let first = heap.allocate(4080 - 16 - 32).expect("memory");
    // SAFETY: a live block.
    assert_eq!(unsafe { heap.usable(first) }, 4080 - 16, "a rest of 32 stays with the block");
    let mut heap = Knuth::new();
    let first = heap.allocate(4080 - 16 - 48).expect("memory");
    // SAFETY: a live block.
    assert_eq!(unsafe { heap.usable(first) }, 4080 - 16 - 48, "a rest of 48 is a block");
}

#[test]
fn freed_blocks_are_found_without_going_round() {
    let mut heap = Knuth::new();
    let blocks: Vec<_> = (0..8).map(|_| heap.allocate(480).expect("memory")).collect();
    // Holes at 1, 3 and 5, each fit for what comes; the free rest of the page is not.
    for at in [1, 3, 5] {
        // SAFETY: each is live, and freed once.
        assert_eq!(unsafe { heap.free(blocks[at]) }, Ok(()));
    }
    let before = heap.search().expect("it searches").longest;
    let got: Vec<_> = (0..3).map(|_| heap.allocate(480).expect("memory")).collect();
    let mut sorted = got.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), 3);
    assert!(got.iter().all(|block| [1, 3, 5].iter().any(|&at| blocks[at] == *block)), "holes are filled");
    assert!(heap.search().expect("it searches").longest <= before.max(2), "without starting over");
}

/// Moraes' rover. With one that goes on after each search, every other search passes what was left over.
#[test]
fn a_search_begins_at_what_was_freed_last_and_stays_where_it_fits() {
    let mut heap = Knuth::new();
    // 4080 bytes: three holes of 1008 with 32 behind each, and the rest in use.
    let [first, _, second, _, third, _] =
        [992, 1, 992, 1, 992, 1].map(|bytes| heap.allocate(bytes).expect("memory"));
    let holes = [first, second, third];
    heap.allocate(4080 - 3 * 1040 - 16).expect("memory");
    for hole in holes {
        // SAFETY: each is live, and freed once.
        assert_eq!(unsafe { heap.free(hole) }, Ok(()));
    }
    let before = heap.search().expect("it searches").steps;
    let from: Vec<_> = (0..6)
        .map(|_| {
            let got = heap.allocate(100).expect("memory");
            holes
                .iter()
                .position(|&hole| hole <= got && got.as_ptr() as usize - (hole.as_ptr() as usize) < 1008)
        })
        .collect();
    assert_eq!(from, [2; 6].map(Some), "the hole that was freed last has space for all of them");
    assert_eq!(heap.search().expect("it searches").steps - before, 6, "each at the first look");
    // It is too small now, and what the next one leaves over is larger than it.
    let block = heap.allocate(500).expect("memory");
    assert!(
        holes[..2]
            .iter()
            .any(|&hole| hole <= block && block.as_ptr() as usize - (hole.as_ptr() as usize) < 1008)
    );
    let before = heap.search().expect("it searches").steps;
    heap.allocate(300).expect("memory");
    assert_eq!(heap.search().expect("it searches").steps - before, 1, "the rover went to the larger block");
}

#[test]
fn a_heap_without_memory_knows_no_address() {
    let mut heap = Knuth::new();
    for address in [1, 8, 16, 4096, usize::MAX - 15, usize::MAX] {
        let block = std::ptr::NonNull::new(address as *mut u8).expect("not null");
        // SAFETY: no such block is there, which is what must be noticed.
        assert_eq!(unsafe { heap.free(block) }, Err(Misuse::Foreign), "{address:#x}");
    }
}

#[test]
fn a_double_free_of_a_block_that_its_neighbours_swallowed_is_seen() {
    for free_first in [[false, false], [true, false], [false, true], [true, true]] {
        let mut heap = Knuth::new();
        // One page, given out from above: they lie side by side, between others that stay.
        let blocks = [500; 5].map(|bytes| heap.allocate(bytes).expect("memory"));
        // SAFETY: each is live and freed once, but for the one that is tested.
        unsafe {
            for (at, _) in [3, 1].into_iter().zip(free_first).filter(|&(_, free)| free) {
                assert_eq!(heap.free(blocks[at]), Ok(()));
            }
            assert_eq!(heap.free(blocks[2]), Ok(()));
            assert!(heap.free(blocks[2]).is_err(), "neighbours free before: {free_first:?}");
        }
        assert_eq!(heap.check(), Ok(()));
    }
}

/// Found as a read of unmapped memory: the space for a tag was counted from beyond the heap's end, and came out as all
/// there is.
#[test]
fn an_address_too_near_the_end_for_a_block_is_refused_whatever_lies_before_it() {
    let mut heap = Knuth::new();
    let block = heap.allocate(4080 - 16).expect("memory");
    // SAFETY: what is written is the block's; the address is in it, and is what must be noticed.
    unsafe {
        block.write_bytes(0x77, heap.usable(block));
        let last = block.add(heap.usable(block));
        assert_eq!(last.as_ptr() as usize, heap.region().end() - 16);
        assert_eq!(heap.free(last), Err(Misuse::Foreign));
        assert_eq!(heap.resize(last, 10), Err(Misuse::Foreign));
        assert_eq!(heap.free(last.sub(16)), Err(Misuse::Damaged));
        assert_eq!(heap.free(block), Ok(()));
    }
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn check_finds_a_block_that_leaves_no_space_for_another_before_the_sentinel() {
    let mut heap = Knuth::new();
    let block = heap.allocate(4080 - 16).expect("memory");
    // SAFETY: a header and a footer of 4064 bytes in the block of 4080.
    unsafe {
        block.cast::<usize>().sub(1).write(4064 | 1);
        block.cast::<usize>().add(4064 / 8 - 2).write(4064 | 1);
    }
    assert_eq!(heap.check().err().map(|damage| damage.invariant), Some("blocks end at the sentinel"));
}
