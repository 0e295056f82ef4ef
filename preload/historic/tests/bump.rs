//! The heap that only hands out against the model.

use std::ptr::NonNull;

use heaptoll_historic::bump::Bump;
use heaptoll_runtime::{Heap, Misuse, PAGE};

crate::kit::trial!(Bump, reuses: false);

fn allocate(heap: &mut Bump, bytes: usize) -> usize {
    heap.allocate(bytes).expect("memory").as_ptr() as usize
}

fn at(address: usize) -> NonNull<u8> {
    NonNull::new(address as *mut u8).expect("not null")
}

#[test]
fn blocks_follow_each_other_with_one_word_between() {
    let mut heap = Bump::new();
    let first = allocate(&mut heap, 24);
    assert_eq!(first, heap.region().start() + 16);
    assert_eq!([0, 8, 9, 24, 40].map(|bytes| allocate(&mut heap, bytes) - first), [32, 48, 64, 96, 128]);
    assert_eq!(heap.region().mapped_bytes(), PAGE);
}

#[test]
fn a_first_block_of_whole_pages_ends_in_the_region() {
    let mut heap = Bump::new();
    allocate(&mut heap, PAGE - 8);
    assert_eq!((heap.check(), heap.region().mapped_bytes()), (Ok(()), 2 * PAGE));
}

#[test]
fn free_does_nothing() {
    let mut heap = Bump::new();
    let block = allocate(&mut heap, 100);
    let local = [7u128; 2];
    // SAFETY: free reads nothing, so neither a second one nor a foreign address does harm.
    unsafe {
        assert_eq!([block, block].map(|block| heap.free(at(block))), [Ok(()); 2]);
        assert_eq!(heap.free(NonNull::from(&local[1]).cast()), Ok(()));
        assert_eq!(heap.usable(at(block)), 104);
    }
    assert_eq!(allocate(&mut heap, 100), block + 112);
}

#[test]
fn the_last_block_grows_in_place_beyond_its_page_and_others_do_not() {
    let mut heap = Bump::new();
    let (first, last) = (allocate(&mut heap, 100), allocate(&mut heap, 100));
    // SAFETY: live blocks.
    unsafe {
        assert_eq!(heap.resize(at(last), 100_000), Ok(true));
        assert_eq!(heap.usable(at(last)), 100_008);
        assert_eq!([105, 104, 1].map(|bytes| heap.resize(at(first), bytes)), [Ok(false), Ok(true), Ok(true)]);
        assert_eq!(heap.usable(at(first)), 104, "nothing is given back");
    }
    assert_eq!(allocate(&mut heap, 1), last + 100_016);
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn realloc_reads_the_header_and_so_knows_foreign_addresses() {
    let mut heap = Bump::new();
    let block = allocate(&mut heap, 100);
    let local = [7u128; 2];
    // SAFETY: the words in front of these can be read.
    unsafe {
        assert_eq!(heap.resize(NonNull::from(&local[1]).cast(), 10), Err(Misuse::Foreign));
        assert_eq!(heap.resize(at(block + 16), 10), Err(Misuse::Damaged));
    }
}

/// Found as a block of 2^62 bytes: the space after an address that was never handed out wrapped around.
#[test]
fn realloc_refuses_an_address_that_was_not_handed_out_yet() {
    let mut heap = Bump::new();
    let block = allocate(&mut heap, 100);
    // SAFETY: the words in front of these are the region's.
    unsafe {
        for beyond in [112, 128, 1024] {
            assert_eq!(heap.resize(at(block + beyond), 10), Err(Misuse::Damaged));
        }
    }
}

#[test]
fn an_aligned_block_leaves_a_gap_that_the_walk_knows() {
    let mut heap = Bump::new();
    allocate(&mut heap, 8);
    let aligned = heap.allocate_aligned(1024, 100).expect("memory").as_ptr() as usize;
    assert_eq!(aligned, heap.region().start() + 1024);
    assert_eq!(allocate(&mut heap, 8), aligned + 112);
    assert_eq!(heap.check(), Ok(()));
    let tally = heaptoll_runtime::tally(&heap);
    assert_eq!((tally.live, tally.unused), (8 + 104 + 8, tally.mapped - tally.live - tally.metadata));
    // SAFETY: the word in front of the aligned block is its header.
    unsafe { at(aligned - 8).cast::<usize>().write(5) };
    assert!(heap.check().is_err());
}
