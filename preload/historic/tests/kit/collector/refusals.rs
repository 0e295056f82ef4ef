//! Memory that cannot be had, and collections that cannot be made.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use heaptoll_historic::support::Collector;

use super::program::{GivenRoots, allocate, allocate_root, collect, live};

/// Found as a program that hung at its limit: each of its small blocks took a collection of the whole heap.
pub fn a_full_heap_refuses_instead_of_collecting_for_every_block<C: Collector>() {
    let given = GivenRoots::new();
    let mut heap = C::of(given);
    let mut held = Vec::new();
    while heap.bytes() < 4 << 20 {
        held.push(allocate_root(&mut heap, given, 10_000));
    }
    heap.region_mut().fail_every(1);
    while let Some(block) = heap.allocate(1000) {
        given.words.lock().expect("no panic").push(block.as_ptr() as usize);
    }
    // What little remains is used and dropped, block by block.
    let given_out = (0..300).filter(|_| heap.allocate(100).is_some()).count();
    assert!(given_out < 300, "a full heap refuses");
    given.set(&held[..held.len() / 2]);
    assert!((0..100_000).all(|_| heap.allocate(100).is_some()), "half of it is garbage now");
    assert_eq!(heap.check(), Ok(()));
}

pub fn without_more_memory_what_is_dead_is_used_again<C: Collector>() {
    let given = GivenRoots::new();
    let mut heap = C::of(given);
    let kept = allocate(&mut heap, 100);
    given.set(&[kept]);
    heap.region_mut().fail_every(1);
    for _ in 0..20_000 {
        assert!(heap.allocate(100).is_some());
    }
    assert!(heap.allocate(1 << 20).is_none(), "too large");
    let mut held = vec![kept];
    while let Some(block) = heap.allocate(1000) {
        held.push(block.as_ptr() as usize);
        given.set(&held);
    }
    assert_eq!(heap.check(), Ok(()));
    given.set(&[kept]);
    assert!(heap.allocate(1000).is_some(), "all but one are dead");
    collect(&mut heap);
    assert_eq!(live(&heap), [kept].into());
}

pub fn what_no_process_can_have_is_refused_without_a_collection<C: Collector>() {
    let given = GivenRoots::new();
    let mut heap = C::of(given);
    let before = heap.collections();
    for bytes in [1 << 47, 1 << 62, isize::MAX as usize - 64] {
        assert_eq!((heap.allocate(bytes), heap.allocate_aligned(64, bytes)), (None, None), "{bytes}");
    }
    assert_eq!(heap.allocate_aligned(1 << 62, 8), None);
    assert_eq!((heap.collections(), heap.check()), (before, Ok(())));
}

pub fn a_collection_that_is_given_up_reclaims_nothing_and_the_next_does<C: Collector>() {
    let given = GivenRoots::new();
    let mut heap = C::of(given);
    // Half of a list stays, so that the second version leaves chunks to be swept later.
    let blocks: Vec<usize> = (0..2000).map(|_| allocate_root(&mut heap, given, 32)).collect();
    let kept: Vec<usize> = blocks.iter().copied().step_by(2).collect();
    given.set(&kept);
    assert!(heap.collect_by_itself().is_ok());
    given.refuses.store(true, Ordering::Relaxed);
    assert_eq!(heap.collect(), 11, "EAGAIN");
    assert_eq!(heap.check(), Ok(()));
    let size = heap.bytes();
    let more: BTreeSet<usize> = (0..40_000).map(|_| allocate(&mut heap, 32)).collect();
    assert_eq!(more.len(), 40_000);
    assert!(kept.iter().all(|block| !more.contains(block)), "what is alive was handed out again");
    assert!(heap.bytes() > size, "the heap grows instead");
    given.refuses.store(false, Ordering::Relaxed);
    collect(&mut heap);
    assert_eq!(live(&heap), kept.iter().copied().collect());
}
