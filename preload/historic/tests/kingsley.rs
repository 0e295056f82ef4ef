//! Kingsley's heap against the model, and what is Kingsley's about it.

use std::ptr::NonNull;

use heaptoll_historic::kingsley::Kingsley;
use heaptoll_runtime::{Heap, Misuse, PAGE, Piece, PieceKind};

crate::kit::trial!(Kingsley, reuses: true);

fn pieces(heap: &Kingsley, kind: PieceKind) -> Vec<Piece> {
    let mut pieces = Vec::new();
    heap.walk(&mut |piece| {
        if piece.kind == kind {
            pieces.push(piece);
        }
    });
    pieces
}

fn allocate(heap: &mut Kingsley, bytes: usize) -> NonNull<u8> {
    heap.allocate(bytes).expect("memory")
}

#[test]
fn classes_are_powers_of_two_less_a_header_word() {
    let mut heap = Kingsley::new();
    for (bytes, usable) in [(0, 8), (8, 8), (9, 24), (24, 24), (25, 56), (4088, 4088), (4089, 8184)] {
        let block = allocate(&mut heap, bytes);
        // SAFETY: a live block.
        assert_eq!(unsafe { heap.usable(block) }, usable, "{bytes} bytes");
    }
}

#[test]
fn a_list_is_refilled_with_a_page_of_the_one_size_or_one_block_of_the_larger_ones() {
    let mut heap = Kingsley::new();
    allocate(&mut heap, 100);
    // The first page of all lacks its first block.
    assert_eq!((pieces(&heap, PieceKind::Free).len(), heap.region().mapped_bytes()), (PAGE / 128 - 2, PAGE));
    allocate(&mut heap, 1000);
    let free = pieces(&heap, PieceKind::Free);
    assert_eq!(free.iter().filter(|piece| piece.bytes == 1024).count(), 3, "{free:?}");
    assert_eq!(heap.region().mapped_bytes(), 2 * PAGE);
    allocate(&mut heap, 100_000);
    assert_eq!(pieces(&heap, PieceKind::Free), free, "a large block comes alone");
    assert_eq!(heap.region().mapped_bytes(), 2 * PAGE + (128 << 10));
}

#[test]
fn a_page_is_handed_out_in_order_of_address_and_freed_blocks_come_back_last_in_first_out() {
    let mut heap = Kingsley::new();
    let blocks: Vec<_> = (0..5).map(|_| allocate(&mut heap, 200)).collect();
    assert!(blocks.windows(2).all(|pair| pair[1].as_ptr() as usize - pair[0].as_ptr() as usize == 256));
    for block in &blocks[1..4] {
        // SAFETY: live, and freed once.
        assert_eq!(unsafe { heap.free(*block) }, Ok(()));
    }
    assert_eq!([3, 2, 1].map(|_| allocate(&mut heap, 129)), [blocks[3], blocks[2], blocks[1]]);
}

#[test]
fn nothing_is_split_or_coalesced() {
    let mut heap = Kingsley::new();
    let large = allocate(&mut heap, 60_000);
    let small: Vec<_> = (0..1000).map(|_| allocate(&mut heap, 8)).collect();
    let sizes = |heap: &Kingsley| {
        let mut sizes = Vec::new();
        heap.walk(&mut |piece| sizes.push(piece.bytes));
        sizes
    };
    let before = sizes(&heap);
    for block in small.into_iter().chain([large]) {
        // SAFETY: live, and freed once.
        assert_eq!(unsafe { heap.free(block) }, Ok(()));
    }
    assert_eq!(sizes(&heap), before);
    allocate(&mut heap, 500);
    assert_eq!(
        sizes(&heap)[..before.len() - 1],
        before[..before.len() - 1],
        "a free larger block is left alone"
    );
}

#[test]
fn realloc_stays_where_the_class_is_the_same_and_moves_to_smaller_ones_too() {
    let mut heap = Kingsley::new();
    let block = allocate(&mut heap, 100);
    // SAFETY: a live block.
    unsafe {
        assert_eq!([57, 64, 120].map(|bytes| heap.resize(block, bytes)), [Ok(true); 3]);
        assert_eq!([0, 56, 121, usize::MAX / 2].map(|bytes| heap.resize(block, bytes)), [Ok(false); 4]);
    }
    let block = heap.allocate_aligned(1024, 500).expect("memory");
    // SAFETY: a live block.
    unsafe {
        let usable = heap.usable(block);
        // What lies before the aligned address counts.
        assert_eq!([usable, usable + 1].map(|bytes| heap.resize(block, bytes)), [Ok(true), Ok(false)]);
    }
}

#[test]
fn headers_reveal_double_frees_and_foreign_addresses() {
    let mut heap = Kingsley::new();
    let block = allocate(&mut heap, 400);
    let aligned = heap.allocate_aligned(1 << 20, 400).expect("memory");
    // Up to a page blocks are aligned like their size; this one is not, and has a marker.
    // SAFETY: a live block.
    assert!(unsafe { heap.usable(aligned) } < (1 << 21) - 8);
    let local = [0u128; 4];
    // SAFETY: the words in front of all of these can be read, and what is wrong with them is what is tested.
    unsafe {
        assert_eq!(heap.free(block.add(160)), Err(Misuse::Damaged));
        assert_eq!(heap.free(block.add(1)), Err(Misuse::Damaged));
        assert_eq!(heap.free(NonNull::from(&local[2]).cast()), Err(Misuse::Foreign));
        assert_eq!(heap.resize(NonNull::from(&local[2]).cast(), 10), Err(Misuse::Foreign));
        for live in [block, aligned] {
            assert_eq!(heap.free(live), Ok(()));
            assert_eq!(heap.free(live), Err(Misuse::DoubleFree));
            assert_eq!(heap.resize(live, 10), Err(Misuse::DoubleFree));
        }
    }
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn check_finds_a_header_and_a_link_that_were_overwritten() {
    // A header without a mark, and links to nowhere, to the block itself, and to nothing though others follow.
    for (word, value) in [(-1, Some(7)), (0, Some(7)), (0, None), (0, Some(0))] {
        let mut heap = Kingsley::new();
        let block = allocate(&mut heap, 24);
        // SAFETY: live, and freed once; then a word of the free block, or its header, is written.
        unsafe {
            assert_eq!((heap.free(block), heap.check()), (Ok(()), Ok(())));
            let value = value.unwrap_or(block.as_ptr() as usize - 8);
            block.cast::<usize>().offset(word).write(value);
        }
        assert!(heap.check().is_err(), "{value:?} at {word}");
    }
}

/// Found as a refill without end: with its header the largest request rounds up to 2^64, which is 0 in a word.
#[test]
fn a_request_that_rounds_up_to_the_whole_of_a_word_is_refused() {
    let mut heap = Kingsley::new();
    let largest = isize::MAX as usize;
    for bytes in [largest, largest - 7, largest - 8, 1 << 62, 1 << 48] {
        assert!(heap.allocate(bytes).is_none(), "{bytes} bytes");
    }
    assert_eq!((heap.check(), heap.region().mapped_bytes()), (Ok(()), 0));
}
