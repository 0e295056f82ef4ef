//! Quick Fit against the model, and what makes it Quick Fit.

use std::ptr::NonNull;

use heaptoll_historic::lea::quickfit::{QUICK, QuickFit};
use heaptoll_runtime::{Heap, Misuse, PieceKind, tally};

crate::kit::trial!(QuickFit, reuses: true);

fn blocks<const N: usize>(heap: &mut QuickFit, sizes: [usize; N]) -> [NonNull<u8>; N] {
    sizes.map(|bytes| heap.allocate(bytes).expect("memory"))
}

fn give_back(heap: &mut QuickFit, blocks: &[NonNull<u8>]) {
    for &block in blocks {
        // SAFETY: each is live, and freed once.
        assert_eq!(unsafe { heap.free(block) }, Ok(()));
    }
}

fn free_bytes(heap: &QuickFit) -> Vec<usize> {
    let mut sizes = Vec::new();
    heap.walk(&mut |piece| {
        if piece.kind == PieceKind::Free {
            sizes.push(piece.bytes);
        }
    });
    sizes
}

#[test]
fn each_small_size_has_its_list_and_the_last_freed_is_the_first_taken() {
    let mut heap = QuickFit::new();
    let sizes = [0, 16, 17, 32, 33, 48, 49, QUICK];
    let first = blocks(&mut heap, sizes);
    give_back(&mut heap, &first);
    assert_eq!(heap.check(), Ok(()));
    let searches = heap.search().expect("the general heap searches").searches;
    let second = blocks(&mut heap, sizes);
    for pair in 0..4 {
        assert_eq!(second[2 * pair], first[2 * pair + 1]);
        assert_eq!(second[2 * pair + 1], first[2 * pair]);
    }
    assert_eq!(heap.search().expect("the general heap searches").searches, searches, "without a search");
}

#[test]
fn small_blocks_are_never_coalesced_and_large_ones_are() {
    let mut heap = QuickFit::new();
    let many: Vec<_> = (0..4096).map(|_| heap.allocate(64).expect("memory")).collect();
    let mapped = heap.region().mapped_bytes();
    give_back(&mut heap, &many);
    // All but a few: where a rest is no block of its own, the general heap gives 96 bytes.
    let listed = free_bytes(&heap).iter().filter(|&&bytes| bytes == 80).count();
    assert!(listed >= 4000, "the walk knows {listed} to be free");
    blocks(&mut heap, [200_000]);
    assert!(heap.region().mapped_bytes() > mapped + 190_000, "what is in a list is lost to other sizes");
    assert_eq!(heap.check(), Ok(()));

    let mut heap = QuickFit::new();
    let many: Vec<_> = (0..4096).map(|_| heap.allocate(65).expect("memory")).collect();
    let mapped = heap.region().mapped_bytes();
    give_back(&mut heap, &many);
    blocks(&mut heap, [200_000]);
    assert_eq!(heap.region().mapped_bytes(), mapped, "beyond the lists it is the general heap");
}

#[test]
fn a_block_that_was_resized_goes_by_its_size_of_now() {
    let mut heap = QuickFit::new();
    let [large, small, _] = blocks(&mut heap, [500, 16, 16]);
    // SAFETY: live blocks.
    unsafe {
        assert_eq!(heap.resize(large, 60), Ok(true));
        assert_eq!(heap.usable(large), 64);
    }
    give_back(&mut heap, &[large, small]);
    assert_eq!(blocks(&mut heap, [64, 10]), [large, small]);
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn aligned_blocks_go_to_the_lists_too() {
    let mut heap = QuickFit::new();
    let aligned = heap.allocate_aligned(4096, 40).expect("memory");
    give_back(&mut heap, &[aligned]);
    assert_eq!(blocks(&mut heap, [48]), [aligned]);
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn the_header_reveals_what_is_no_live_block() {
    let mut heap = QuickFit::new();
    let [first, second, third] = blocks(&mut heap, [100, 200, 300]);
    let mut foreign = [0u128; 4];
    // SAFETY: misuse is what is tested; the words before the addresses are the heap's or the test's.
    unsafe {
        assert_eq!(heap.free(NonNull::from(&mut foreign[2]).cast()), Err(Misuse::Foreign));
        assert_eq!(heap.free(third.add(16)), Err(Misuse::Damaged));
        first.cast::<usize>().sub(1).write(7);
        assert_eq!(heap.free(first), Err(Misuse::Damaged));
        first.cast::<usize>().sub(1).write(second.cast::<usize>().sub(1).read() - 224 + 128);
        assert_eq!(heap.free(first), Ok(()));
        assert_eq!(heap.free(second), Ok(()));
        // The general heap settles what it was given at its next malloc.
        blocks(&mut heap, [1000]);
        assert_eq!(heap.free(second), Err(Misuse::DoubleFree));
    }
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn a_free_block_of_a_quick_size_is_not_taken_into_a_list() {
    let mut heap = QuickFit::new();
    let [first, second] = blocks(&mut heap, [100, 16]);
    // SAFETY: a live block; then the mistake that is tested: 32 of its bytes are its own no more, and free.
    unsafe {
        assert_eq!(heap.resize(first, 50), Ok(true));
        assert_eq!(heap.free(first.add(80)), Err(Misuse::DoubleFree));
    }
    give_back(&mut heap, &[first, second]);
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn the_check_ends_on_a_quick_list_that_comes_round() {
    for later in [0, 1] {
        let mut heap = QuickFit::new();
        let many = blocks(&mut heap, [50, 50, 100]);
        give_back(&mut heap, &[many[0]]);
        give_back(&mut heap, &many[1..][..later]);
        // SAFETY: the mistake that is tested.
        unsafe { heap.free(many[0]).expect("not noticed") };
        assert_eq!(heap.check().expect_err("a ring").invariant, "a block is in one quick list, once");
    }
}

#[test]
fn the_tally_counts_what_is_in_lists_as_free() {
    let mut heap = QuickFit::new();
    let many = blocks(&mut heap, [10, 20, 100]);
    assert_eq!(tally(&heap).live, 16 + 32 + 112);
    give_back(&mut heap, &many);
    assert_eq!(tally(&heap).live, 0);
}
