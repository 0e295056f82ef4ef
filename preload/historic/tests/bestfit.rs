//! Best fit against the model, and against the definition of best fit.

use std::ptr::NonNull;

use heaptoll_historic::knuth::Block;
use heaptoll_historic::knuth::bestfit::BestFitHeap;
use heaptoll_runtime::{Heap, Misuse, PieceKind};
use proptest::prelude::ProptestConfig;
use proptest::proptest;
use proptest::test_runner::FileFailurePersistence;

use crate::kit::{Operation, sequence};

crate::kit::trial!(BestFitHeap, reuses: true);

/// Free blocks as (address, size), tags included.
fn free_blocks(heap: &BestFitHeap) -> Vec<(usize, usize)> {
    let mut blocks = Vec::new();
    heap.walk(&mut |piece| {
        if piece.kind == PieceKind::Free {
            blocks.push((piece.address, piece.bytes));
        }
    });
    blocks
}

/// Allocates, and proves that the block came out of the smallest free one that was large enough.
fn allocate_best(heap: &mut BestFitHeap, bytes: usize) -> NonNull<u8> {
    let need = Block::size_for(bytes);
    let before = free_blocks(heap);
    let end = heap.region().end();
    let got = heap.allocate(bytes).expect("memory");
    let address = got.as_ptr() as usize;
    let smallest = before.iter().map(|&(_, size)| size).filter(|&size| size >= need).min();
    let source = before.iter().find(|&&(at, size)| (at..at + size).contains(&address));
    match smallest {
        Some(smallest) => {
            assert_eq!(source.map(|&(_, size)| size), Some(smallest), "{need} bytes from {before:?}");
            assert_eq!(heap.region().end(), end, "the heap grew with a block at hand");
        }
        None => assert!(heap.region().end() > end, "{need} bytes appeared out of {before:?}"),
    }
    got
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_smaller_sufficient_block_existed(operations in sequence(300)) {
        let mut heap = BestFitHeap::new();
        let mut live = Vec::new();
        for operation in operations {
            match operation {
                Operation::Allocate(bytes) | Operation::Aligned(_, bytes) => {
                    live.push(allocate_best(&mut heap, bytes));
                }
                Operation::Free(at) | Operation::Resize(at, _) => {
                    if let Some(at) = at.checked_rem(live.len()) {
                        // SAFETY: it is live, and is forgotten here.
                        assert_eq!(unsafe { heap.free(live.swap_remove(at)) }, Ok(()));
                    }
                }
            }
        }
        assert_eq!(heap.check(), Ok(()));
    }
}

/// A heap with holes of these sizes (of the requests), kept apart by live blocks, and the addresses of the holes.
/// What was left of the last page is used up, so that the holes are all there is.
fn with_holes(requests: &[usize]) -> (BestFitHeap, Vec<NonNull<u8>>) {
    let mut heap = BestFitHeap::new();
    // One large free block to carve them all from.
    let all = heap.allocate(requests.iter().map(|bytes| bytes + 128).sum()).expect("memory");
    // SAFETY: it is live, and freed once.
    assert_eq!(unsafe { heap.free(all) }, Ok(()));
    let mut holes = Vec::new();
    for &bytes in requests {
        holes.push(heap.allocate(bytes).expect("memory"));
        heap.allocate(1).expect("memory");
    }
    for (_, size) in free_blocks(&heap) {
        heap.allocate(size - heaptoll_historic::knuth::TAGS).expect("memory");
    }
    for &hole in &holes {
        // SAFETY: each is live, and freed once.
        assert_eq!(unsafe { heap.free(hole) }, Ok(()));
    }
    assert_eq!(free_blocks(&heap).len(), requests.len());
    (heap, holes)
}

/// Blocks that the next allocation of `bytes` visits, and its address.
fn steps(heap: &mut BestFitHeap, bytes: usize) -> (u64, NonNull<u8>) {
    let before = heap.search().expect("it searches").steps;
    let got = heap.allocate(bytes).expect("memory");
    (heap.search().expect("it searches").steps - before, got)
}

#[test]
fn a_search_without_an_exact_fit_visits_every_block() {
    let requests: Vec<_> = (0..1000).map(|at| 2000 + 16 * at).collect();
    let (mut heap, holes) = with_holes(&requests);
    // The smallest is the best for a request that fits none exactly, and is split from its upper end.
    let (visited, got) = steps(&mut heap, 1000);
    assert_eq!(visited, 1000);
    assert_eq!(
        got.as_ptr() as usize,
        holes[0].as_ptr() as usize + Block::size_for(2000) - Block::size_for(1000)
    );
    // All are too small: all are visited, and the heap grows.
    assert_eq!(steps(&mut heap, 100_000).0, 1000);
    assert_eq!(heap.search().expect("it searches").longest, 1000);
}

#[test]
fn a_search_ends_at_an_exact_fit() {
    let (mut heap, holes) = with_holes(&[3000, 500, 1000, 500, 400]);
    // From the rover on: 3000, 500, and no further.
    let (visited, got) = steps(&mut heap, 500);
    assert_eq!((visited, got), (2, holes[1]));
    // Of equals the first from the rover, which has moved behind it: 1000, 500.
    let (visited, got) = steps(&mut heap, 500);
    assert_eq!((visited, got), (2, holes[3]));
}

#[test]
fn of_equals_that_fit_inexactly_the_first_from_the_rover_is_split() {
    let (mut heap, holes) = with_holes(&[1000, 1000, 3000]);
    let (visited, got) = steps(&mut heap, 500);
    let upper = holes[0].as_ptr() as usize + Block::size_for(1000) - Block::size_for(500);
    assert_eq!((visited, got.as_ptr() as usize), (3, upper));
}

#[test]
fn a_better_block_after_a_sufficient_one_is_taken() {
    let (mut heap, holes) = with_holes(&[3000, 1000, 500, 700]);
    let (visited, got) = steps(&mut heap, 510);
    assert_eq!(visited, 3, "500 and 510 are one size");
    assert_eq!(got, holes[2]);
    let (visited, got) = steps(&mut heap, 600);
    assert_eq!(visited, 3, "one hole is gone");
    let upper = holes[3].as_ptr() as usize + Block::size_for(700) - Block::size_for(600);
    assert_eq!(got.as_ptr() as usize, upper, "a rest of 96 bytes stays free");
}

#[test]
fn tags_reveal_double_frees_and_foreign_addresses() {
    let mut heap = BestFitHeap::new();
    let blocks = [100, 200].map(|bytes| heap.allocate(bytes).expect("memory"));
    // SAFETY: a block is freed twice and a foreign one once, which is what is tested and refused.
    unsafe {
        assert_eq!(heap.free(blocks[0]), Ok(()));
        assert_eq!(heap.free(blocks[0]), Err(Misuse::DoubleFree));
        assert_eq!(heap.free(NonNull::<u128>::dangling().cast()), Err(Misuse::Foreign));
    }
    assert_eq!(heap.check(), Ok(()));
}
