//! Knuth's buddies against the model, and what is theirs.

use std::ptr::NonNull;

use heaptoll_historic::buddy::Buddy;
use heaptoll_runtime::{Heap, Misuse, PAGE, PieceKind};

crate::kit::trial!(Buddy, reuses: true);

fn sizes(heap: &Buddy, kind: PieceKind) -> Vec<usize> {
    let mut sizes = Vec::new();
    heap.walk(&mut |piece| {
        if piece.kind == kind {
            sizes.push(piece.bytes);
        }
    });
    sizes
}

fn allocate(heap: &mut Buddy, bytes: usize) -> NonNull<u8> {
    heap.allocate(bytes).expect("memory")
}

fn free(heap: &mut Buddy, block: NonNull<u8>) {
    // SAFETY: the tests free live blocks, once.
    assert_eq!(unsafe { heap.free(block) }, Ok(()));
    assert_eq!(heap.check(), Ok(()));
}

fn resize(heap: &mut Buddy, block: NonNull<u8>, bytes: usize) -> bool {
    // SAFETY: the tests resize live blocks.
    let resized = unsafe { heap.resize(block, bytes) }.expect("a live block");
    assert_eq!(heap.check(), Ok(()));
    resized
}

/// The free blocks of a page of which nothing is in use.
const PAGE_SPLIT: [usize; 7] = [32, 64, 128, 256, 512, 1024, 2048];

#[test]
fn a_block_is_split_down_and_buddies_are_united_in_every_order_of_freeing() {
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
        let mut heap = Buddy::new();
        let blocks: Vec<_> = (0..4).map(|_| allocate(&mut heap, 500)).collect();
        // The first is the page's only block of 512 bytes; the second splits 1024, the third takes the rest of
        // it, the fourth splits 2048.
        assert_eq!(sizes(&heap, PieceKind::Free), [32, 64, 128, 256, 512, 1024]);
        order.into_iter().for_each(|at| free(&mut heap, blocks[at]));
        assert_eq!(sizes(&heap, PieceKind::Free), PAGE_SPLIT, "{order:?}");
    }
}

#[test]
fn neighbours_that_are_no_buddies_stay_apart() {
    let mut heap = Buddy::new();
    let blocks: Vec<_> = (0..PAGE / 1024 - 1).map(|_| allocate(&mut heap, 1000)).collect();
    // 1024 bytes at 1024, 2048 and 3072: the first is the second's neighbour, and the buddy of what the base lies in.
    free(&mut heap, blocks[0]);
    free(&mut heap, blocks[1]);
    let free_large =
        |heap: &Buddy| sizes(heap, PieceKind::Free).into_iter().filter(|&size| size > 512).collect();
    let large: Vec<_> = free_large(&heap);
    assert_eq!(large, [1024, 1024]);
    free(&mut heap, blocks[2]);
    let large: Vec<_> = free_large(&heap);
    assert_eq!(large, [1024, 2048]);
}

#[test]
fn the_smallest_order_that_has_a_block_is_split() {
    let mut heap = Buddy::new();
    allocate(&mut heap, 200);
    allocate(&mut heap, 200);
    assert_eq!(sizes(&heap, PieceKind::Free), [32, 64, 128, 256, 1024, 2048]);
}

#[test]
fn a_heap_that_ends_in_free_blocks_is_extended_by_what_is_missing_only() {
    let mut heap = Buddy::new();
    let small = allocate(&mut heap, 3000);
    // A fresh heap has no whole page: the base is taken.
    assert_eq!(heap.region().mapped_bytes(), 2 * PAGE);
    let next = allocate(&mut heap, 3000);
    assert_eq!(heap.region().mapped_bytes(), 3 * PAGE);
    free(&mut heap, next);
    allocate(&mut heap, 2 * PAGE - 8);
    assert_eq!(heap.region().mapped_bytes(), 4 * PAGE, "the third page was free, and is the lower half");
    free(&mut heap, small);
    allocate(&mut heap, 8 * PAGE - 8);
    assert_eq!(heap.region().mapped_bytes(), 16 * PAGE, "from the next multiple on");
    assert_eq!(sizes(&heap, PieceKind::Free), [&PAGE_SPLIT[..], &[4096, 16384]].concat());
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn a_page_that_is_added_is_united_with_the_one_before() {
    let mut heap = Buddy::new();
    // Pages 1, 2 and 3 in blocks of half a page; then page 2 and 3 are given back.
    let halves: Vec<_> = (0..7).map(|_| allocate(&mut heap, 2040)).collect();
    assert_eq!(heap.region().mapped_bytes(), 4 * PAGE);
    halves[3..].iter().for_each(|&half| free(&mut heap, half));
    assert_eq!(sizes(&heap, PieceKind::Free).last(), Some(&(2 * PAGE)));
}

#[test]
fn realloc_shrinks_in_place_and_grows_over_free_upper_buddies() {
    let mut heap = Buddy::new();
    let block = allocate(&mut heap, 2040);
    assert!(resize(&mut heap, block, 100));
    assert_eq!(sizes(&heap, PieceKind::Free), [32, 64, 128, 256, 512, 1024, 128, 256, 512, 1024]);
    assert!(resize(&mut heap, block, 1000) && resize(&mut heap, block, 2040));
    assert_eq!(sizes(&heap, PieceKind::Free), PAGE_SPLIT[..6]);
    // Its buddy is below it, and not whole: it ends there.
    assert!(!resize(&mut heap, block, 2041));
    assert!(resize(&mut heap, block, 500));
    let middle = allocate(&mut heap, 500);
    let _upper = allocate(&mut heap, 1000);
    let _last = allocate(&mut heap, 1000);
    free(&mut heap, middle);
    let before = sizes(&heap, PieceKind::Free);
    // 512 above it may be free, 1024 above that is not: nothing is taken.
    assert!(!resize(&mut heap, block, 2040));
    assert_eq!(sizes(&heap, PieceKind::Free), before);
}

#[test]
fn aligned_blocks_need_no_extra_space_where_their_size_aligns_them() {
    let mut heap = Buddy::new();
    for alignment in [32, 64, 256, 1024, 4096, 1 << 20] {
        let block = heap.allocate_aligned(alignment, alignment - 8).expect("memory");
        // SAFETY: a live block.
        assert_eq!(unsafe { heap.usable(block) }, alignment - 8);
    }
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn an_alignment_beyond_the_region_s_own_is_had_inside_a_larger_block() {
    let mut heap = Buddy::new();
    allocate(&mut heap, 1);
    // Where the region lies is random; one start in 64 is aligned to more than this.
    let alignment = 1 << (heap.region().start().trailing_zeros() + 1).min(27);
    let block = heap.allocate_aligned(alignment, 100).expect("address space");
    assert!((block.as_ptr() as usize).is_multiple_of(alignment));
    assert_eq!(heap.check(), Ok(()));
    assert!(resize(&mut heap, block, 200));
    free(&mut heap, block);
    // SAFETY: a second free, which is what is tested.
    assert_eq!(unsafe { heap.free(block) }, Err(Misuse::DoubleFree));
}

#[test]
fn tags_reveal_double_frees_after_uniting_too_and_foreign_addresses() {
    let mut heap = Buddy::new();
    let blocks: Vec<_> = (0..6).map(|_| allocate(&mut heap, 400)).collect();
    let local = [0u128; 4];
    // SAFETY: the words in front of all of these can be read, and what is wrong with them is what is tested.
    unsafe {
        assert_eq!(heap.free(blocks[0].add(160)), Err(Misuse::Damaged));
        assert_eq!(heap.free(NonNull::from(&local[2]).cast()), Err(Misuse::Foreign));
        for block in &blocks {
            assert_eq!(heap.free(*block), Ok(()));
        }
        for block in &blocks {
            assert_eq!(heap.free(*block), Err(Misuse::DoubleFree));
            assert_eq!(heap.resize(*block, 10), Err(Misuse::DoubleFree));
        }
    }
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn check_finds_tags_and_links_that_were_overwritten() {
    for (word, value) in [(-1, 7), (0, 7), (0, 0), (1, 8), (-1, 0xa11f << 48 | 9)] {
        let mut heap = Buddy::new();
        let blocks: Vec<_> = (0..8).map(|_| allocate(&mut heap, 200)).collect();
        blocks.iter().step_by(2).for_each(|&block| free(&mut heap, block));
        // SAFETY: a word of a free block or its tag.
        unsafe { blocks[4].cast::<usize>().offset(word).write(value) };
        assert!(heap.check().is_err(), "{value:#x} at {word}");
    }
}
