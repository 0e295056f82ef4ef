//! Lea's heap against the model, and what makes it Lea's.

use std::process::Command;
use std::ptr::NonNull;

use heaptoll_historic::lea::{Block, Lea};
use heaptoll_runtime::{Heap, Misuse, PieceKind, tally};

crate::kit::trial!(Lea, reuses: true);

fn blocks<const N: usize>(heap: &mut Lea, sizes: [usize; N]) -> [NonNull<u8>; N] {
    sizes.map(|bytes| heap.allocate(bytes).expect("memory"))
}

fn give_back(heap: &mut Lea, blocks: &[NonNull<u8>]) {
    for &block in blocks {
        // SAFETY: each is live, and freed once.
        assert_eq!(unsafe { heap.free(block) }, Ok(()));
    }
}

/// Free blocks and their bytes, tags included, in order of address.
fn free_blocks(heap: &Lea) -> Vec<usize> {
    let mut sizes = Vec::new();
    heap.walk(&mut |piece| {
        if piece.kind == PieceKind::Free {
            sizes.push(piece.bytes);
        }
    });
    sizes
}

#[test]
fn a_free_only_links_the_block() {
    let mut heap = Lea::new();
    let [first, second, _] = blocks(&mut heap, [200, 300, 400]);
    let words = |block: NonNull<u8>| {
        // SAFETY: a block's header, and its second word after the link.
        unsafe { (block.cast::<usize>().sub(1).read(), block.cast::<usize>().add(1).read()) }
    };
    let before = (words(first), words(second));
    give_back(&mut heap, &[first, second]);
    assert_eq!((words(first), words(second)), before, "tags and the rest are as they were");
    let returned: Vec<_> = heap.returned().collect();
    assert_eq!(returned, [second, first].map(|block| Block::of_user(block.as_ptr() as usize)));
    assert_eq!(free_blocks(&heap)[..2], [224, 320], "the walk knows them to be free, each by itself");
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn the_last_returned_block_is_the_first_choice_if_it_fits_exactly() {
    let mut heap = Lea::new();
    let [first, second, third] = blocks(&mut heap, [500, 100, 500]);
    give_back(&mut heap, &[third, first, second]);
    let searches = heap.search().expect("it searches").searches;
    assert_eq!(heap.allocate(90), Some(second), "a rest of 16 bytes is no block");
    assert_eq!(heap.search().expect("it searches").searches, searches, "without a search");
    assert_eq!(heap.allocate(500), Some(first));
}

/// Found as a small block given for 2^48 bytes and more: the size's upper bits were lost in those of the tag's sign.
#[test]
fn a_request_above_every_size_is_not_served_by_the_block_returned_last() {
    for bits in 47..63 {
        let mut heap = Lea::new();
        let [block] = blocks(&mut heap, [100]);
        give_back(&mut heap, &[block]);
        for bytes in [0, 84, 100, 112].map(|more| (1 << bits) + more) {
            assert_eq!(heap.allocate(bytes), None, "{bytes} bytes");
            assert_eq!(heap.allocate_aligned(1 << bits, bytes - (1 << bits)), None, "aligned to 2^{bits}");
            assert_eq!(heap.allocate(100).map(|again| give_back(&mut heap, &[again])), Some(()));
        }
        assert_eq!(heap.check(), Ok(()));
    }
}

#[test]
fn what_was_returned_goes_to_its_bin_uncoalesced_at_a_later_malloc() {
    let mut heap = Lea::new();
    let [first, second, third, _] = blocks(&mut heap, [500, 100, 200, 600]);
    give_back(&mut heap, &[first, second, third]);
    // Nothing of that size: the list is settled, and the block comes from the remainder.
    blocks(&mut heap, [800]);
    assert_eq!(heap.returned().count(), 0);
    assert_eq!(free_blocks(&heap)[..3], [512 + 16, 128, 224]);
    let got = blocks(&mut heap, [200, 100, 500]);
    assert_eq!(got, [third, second, first], "dirty blocks are used for their own size");
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn dirty_blocks_are_coalesced_before_the_heap_grows_whatever_the_order() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut heap = Lea::new();
        // 8192 bytes less two sentinels are one block of 8176.
        let parts = blocks(&mut heap, [2528, 2704, 2896]);
        assert_eq!(heap.region().mapped_bytes(), 8192);
        assert_eq!(free_blocks(&heap), []);
        give_back(&mut heap, &order.map(|at| parts[at]));
        assert_eq!(heap.allocate(8176 - 16), Some(parts[0]), "{order:?}");
        assert_eq!(heap.region().mapped_bytes(), 8192, "{order:?}");
        assert_eq!(heap.check(), Ok(()));
    }
}

#[test]
fn the_second_split_for_a_size_makes_five_more_of_it() {
    let mut heap = Lea::new();
    blocks(&mut heap, [100]);
    assert_eq!(free_blocks(&heap).len(), 1);
    blocks(&mut heap, [100]);
    assert_eq!(free_blocks(&heap)[..5], [128; 5]);
    assert_eq!(heap.returned().count(), 5);
    let searches = heap.search().expect("it searches").searches;
    blocks(&mut heap, [100; 5]);
    assert_eq!(heap.search().expect("it searches").searches, searches, "they need no search");
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn a_rest_is_a_block_from_32_bytes_on() {
    for (rest, usable) in [(16, 8176 - 16), (32, 8176 - 16 - 32)] {
        let mut heap = Lea::new();
        let [block] = blocks(&mut heap, [8176 - 16 - rest]);
        // SAFETY: a live block.
        assert_eq!(unsafe { heap.usable(block) }, usable);
    }
}

#[test]
fn the_first_growth_has_space_for_the_sentinels_too() {
    for size in [8176, 8192, 8208, 3 * 8192 - 16, 3 * 8192] {
        let mut heap = Lea::new();
        let [block] = blocks(&mut heap, [size - 16]);
        // SAFETY: a live block.
        assert!(unsafe { heap.usable(block) } >= size - 16, "{size}");
        let mapped = (size + 16).next_multiple_of(8192);
        assert_eq!((heap.region().mapped_bytes(), heap.check()), (mapped, Ok(())), "{size}");
    }
}

#[test]
fn of_dirty_blocks_of_one_size_the_last_that_was_settled_is_taken() {
    let mut heap = Lea::new();
    let [first, _, second, _] = blocks(&mut heap, [200, 16, 200, 16]);
    give_back(&mut heap, &[first, second]);
    // The returned list is settled from its front: the second, then the first.
    blocks(&mut heap, [1000]);
    assert_eq!(blocks(&mut heap, [200, 200]), [first, second]);
}

#[test]
fn dirty_blocks_are_coalesced_from_the_largest_bin_down_and_no_further_than_needed() {
    let mut heap = Lea::new();
    // 1456 and 1472 bytes of one bin, 320 and 336 of another, and the rest of 8176 in use.
    let [large, larger, _, small, medium, _, _] = blocks(&mut heap, [1440, 1456, 16, 304, 320, 16, 4512]);
    assert_eq!(free_blocks(&heap), []);
    give_back(&mut heap, &[large, larger, small, medium]);
    assert_eq!(blocks(&mut heap, [2800]), [large]);
    assert_eq!(free_blocks(&heap), [1456 + 1472 - 2816, 320, 336], "the small ones are as they were");
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn a_large_bin_without_an_exact_block_is_coalesced_with_all_that_was_returned() {
    let mut heap = Lea::new();
    let [first, second, _, third, fourth, _] = blocks(&mut heap, [5008, 5040, 16, 100, 200, 16]);
    give_back(&mut heap, &[first, second]);
    blocks(&mut heap, [600]);
    assert_eq!(free_blocks(&heap)[..2], [5024, 5056], "dirty, in one bin");
    give_back(&mut heap, &[third, fourth]);
    // Of the same bin, but neither fits exactly.
    blocks(&mut heap, [4960]);
    let free = free_blocks(&heap);
    assert!(free.contains(&(5024 + 5056)) && free.contains(&(128 + 224)), "{free:?}");
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn the_worst_malloc_settles_all_that_was_freed_before_it() {
    let mut heap = Lea::new();
    let many: Vec<_> = (0..10_000).map(|at| heap.allocate(100 + 16 * (at % 2)).expect("memory")).collect();
    give_back(&mut heap, &many);
    blocks(&mut heap, [1000]);
    assert!(heap.search().expect("it searches").longest >= 10_000);
    // Each is settled once: the next one has nothing to do.
    let before = heap.search().expect("it searches").steps;
    blocks(&mut heap, [3000]);
    assert!(heap.search().expect("it searches").steps - before < 10);
}

#[test]
fn a_resize_grows_over_several_free_neighbours() {
    let mut heap = Lea::new();
    let [first, second, third, fourth] = blocks(&mut heap, [100, 200, 304, 16]);
    // SAFETY: a live block, as below.
    assert_eq!(unsafe { heap.resize(first, 112 + 224 + 320) }, Ok(false));
    give_back(&mut heap, &[second, third]);
    // SAFETY: a live block.
    unsafe {
        assert_eq!(heap.resize(first, 112 + 224 + 320 + 1), Ok(false), "one byte more than there is");
        assert_eq!(heap.resize(first, 112 + 224 + 320), Ok(true));
        assert_eq!(heap.usable(first), 112 + 224 + 320);
        assert_eq!(heap.resize(first, 50), Ok(true));
        assert_eq!(heap.usable(first), 64);
    }
    give_back(&mut heap, &[fourth]);
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn resize_finds_by_the_tags_what_free_does_not() {
    let mut heap = Lea::new();
    let [first, second, third] = blocks(&mut heap, [100, 200, 300]);
    give_back(&mut heap, &[second]);
    blocks(&mut heap, [1000]);
    // SAFETY: misuse is what is tested, and the addresses are the heap's, or refused for not being.
    unsafe {
        assert_eq!(heap.resize(second, 20), Err(Misuse::DoubleFree));
        assert_eq!(heap.resize(third.add(16), 20), Err(Misuse::Damaged));
        assert_eq!(heap.resize(third.add(8), 20), Err(Misuse::Foreign));
        assert_eq!(heap.resize(NonNull::<u128>::dangling().cast(), 20), Err(Misuse::Foreign));
        let usable = heap.usable(first);
        first.as_ptr().add(usable).write(0);
        assert_eq!(heap.resize(first, 20), Err(Misuse::Damaged));
    }
    assert!(heap.check().is_err());
}

#[test]
fn the_check_ends_on_a_list_that_comes_round() {
    for later in [0, 1, 2] {
        let mut heap = Lea::new();
        let many = blocks(&mut heap, [100, 200, 300]);
        // SAFETY: the last is freed twice, `later` frees apart, which is what is tested.
        unsafe {
            heap.free(many[2]).expect("free only links");
            many[..later].iter().for_each(|&block| heap.free(block).expect("free only links"));
            heap.free(many[2]).expect("free only links");
        }
        assert_eq!(heap.check().expect_err("a ring").invariant, "a block is in one list, once");
    }
}

/// Found as a free block that was handed out: freed and not settled, it passed for live.
#[test]
fn a_resize_of_a_returned_block_is_a_double_free() {
    for bytes in [20, 200, 5000] {
        let mut heap = Lea::new();
        let [first, second, _] = blocks(&mut heap, [100, 200, 300]);
        give_back(&mut heap, &[second, first]);
        // SAFETY: the mistake is what is tested.
        assert_eq!(unsafe { heap.resize(second, bytes) }, Err(Misuse::DoubleFree), "{bytes} bytes");
        assert_eq!(heap.check(), Ok(()));
    }
}

/// Bytes of live blocks by a walk alone: a census asserts now and then that the heap is sound.
fn live_bytes(heap: &Lea) -> usize {
    let mut live = 0;
    heap.walk(&mut |piece| {
        if piece.kind == PieceKind::Live {
            live += piece.bytes - piece.overhead;
        }
    });
    live
}

/// Found as a census without end.
#[test]
fn the_walk_ends_on_a_list_that_comes_round() {
    let mut heap = Lea::new();
    let many = blocks(&mut heap, [100, 200, 300]);
    let before = live_bytes(&heap);
    give_back(&mut heap, &[many[0], many[1], many[0]]);
    let after = live_bytes(&heap);
    assert_eq!(before - after, 112 + 208);
    assert_eq!(live_bytes(&heap), after, "marks were taken away");
    assert!(heap.check().is_err());
}

/// Commits a mistake in a process of its own, whose name is this test's, and returns its output as it died.
fn dies(name: &str, mistake: impl FnOnce()) -> String {
    if std::env::var_os("HEAPTOLL_LEA_MISTAKE").is_some() {
        mistake();
        std::process::exit(0);
    }
    let this = std::env::current_exe().expect("the test's own file");
    let output = Command::new(this)
        .args([&format!("lea::{name}"), "--exact", "--nocapture"])
        .env("HEAPTOLL_LEA_MISTAKE", "1")
        .output()
        .expect("the test runs again");
    assert!(!output.status.success(), "it went unnoticed");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_double_free_is_reported_where_malloc_meets_the_block_again() {
    let message = dies("a_double_free_is_reported_where_malloc_meets_the_block_again", || {
        let mut heap = Lea::new();
        let many = blocks(&mut heap, [100, 200, 300]);
        give_back(&mut heap, &[many[1], many[0], many[1]]);
        blocks(&mut heap, [1000]);
    });
    assert!(
        message.contains("malloc found among the freed blocks 0x") && message.contains("double free"),
        "{message}"
    );
}

#[test]
fn a_foreign_address_is_reported_where_malloc_meets_it() {
    let message = dies("a_foreign_address_is_reported_where_malloc_meets_it", || {
        let mut heap = Lea::new();
        let mut foreign = [0u128; 8];
        give_back(&mut heap, &[NonNull::from(&mut foreign[4]).cast()]);
        blocks(&mut heap, [16]);
    });
    assert!(message.contains("not one that was allocated here"), "{message}");
}

#[test]
fn a_write_beyond_a_block_is_reported_where_malloc_meets_it() {
    let message = dies("a_write_beyond_a_block_is_reported_where_malloc_meets_it", || {
        let mut heap = Lea::new();
        let [block, _] = blocks(&mut heap, [100, 200]);
        // SAFETY: the mistake: the footer is overwritten.
        unsafe { block.as_ptr().add(112).write(1) };
        give_back(&mut heap, &[block]);
        blocks(&mut heap, [1000]);
    });
    assert!(message.contains("a write beyond a block"), "{message}");
}

#[test]
fn the_tally_counts_what_is_returned_as_free() {
    let mut heap = Lea::new();
    let many = blocks(&mut heap, [100, 200, 300]);
    let live = tally(&heap).live;
    give_back(&mut heap, &many);
    assert_eq!((live, tally(&heap).live), (112 + 208 + 304, 0));
}
