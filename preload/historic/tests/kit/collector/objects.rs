//! Objects of all kinds: what keeps them, what is found in their place.

use std::ptr::NonNull;

use heaptoll_historic::support::Collector;
use heaptoll_runtime::PAGE;

use super::program::{GivenRoots, allocate, allocate_root, collect, list, live, read, write};

pub fn a_list_is_kept_by_a_pointer_to_the_inside_of_its_first<C: Collector>() {
    let given = GivenRoots::new();
    let mut heap = C::of(given);
    // A collection in between would find nothing of it.
    let first = list(&mut heap, 100, 40, 3);
    list(&mut heap, 100, 40, 3);
    given.set(&[first + 39]);
    collect(&mut heap);
    let (kept, mut at) = (live(&heap), first);
    assert_eq!(kept.len(), 100);
    while at != 0 {
        assert!(kept.contains(&at));
        at = read(at + 24);
    }
}

pub fn garbage_in_a_loop_keeps_the_heap_at_a_size<C: Collector>() {
    let given = GivenRoots::new();
    let mut heap = C::of(given);
    let turn = |heap: &mut C, turn: usize| {
        let kept = list(heap, 1, 500, 0);
        given.set(&[kept]);
        for _ in 0..20 {
            allocate(heap, 16 << (turn % 6));
        }
        allocate(heap, 3000 + turn % 5000);
    };
    (0..3000).for_each(|at| turn(&mut heap, at));
    let size = heap.bytes();
    (0..30_000).for_each(|at| turn(&mut heap, at));
    assert_eq!((heap.bytes(), heap.check()), (size, Ok(())));
    assert!(heap.collections() > 20, "{} collections", heap.collections());
}

pub fn what_is_reclaimed_is_zero_when_it_is_handed_out_again<C: Collector>() {
    let given = GivenRoots::new();
    let mut heap = C::of(given);
    for size in [16, 48, 100, 700, 2000, 2048, 5000, 40_000] {
        given.set(&[]);
        let before: Vec<usize> = (0..40).map(|_| allocate_root(&mut heap, given, size)).collect();
        for &block in &before {
            // SAFETY: a live block of that size.
            unsafe { (block as *mut u8).write_bytes(0xEE, size) };
        }
        // One stays, so that its chunk is swept object by object.
        given.set(&before[20..21]);
        collect(&mut heap);
        // More than a chunk has: a circle hands out last what died last.
        let again: Vec<usize> = (0..300).map(|_| allocate_root(&mut heap, given, size)).collect();
        let used_again = again.iter().any(|block| before.contains(block));
        assert!(used_again || size > 1000, "{size} bytes are used again, where several share a chunk");
        for block in again {
            assert_ne!(block, before[20], "the one that stays");
            assert!((0..size / 8).all(|at| read(block + 8 * at) == 0), "{size} bytes at {block:#x} are zero");
        }
    }
}

pub fn what_realloc_moved_is_freed_and_what_it_kept_holds_nothing_after_its_end<C: Collector>() {
    let given = GivenRoots::new();
    let mut heap = C::of(given);
    let held = allocate(&mut heap, 64);
    let block = allocate(&mut heap, 1000);
    let place = NonNull::new(block as *mut u8).expect("an address");
    write(block + 800, held);
    // SAFETY: a live block, which is given back once.
    unsafe {
        assert_eq!(heap.resize(place, 800), Ok(true));
        given.set(&[block]);
        collect(&mut heap);
        assert_eq!(live(&heap), [block].into(), "the word after the new end is gone");
        assert_eq!(heap.resize(place, 3000), Ok(false));
        assert_eq!(heap.resize(place, 100), Ok(false), "far too large for that now");
        assert_eq!(heap.discard(place), Ok(()));
        assert_eq!((heap.check(), live(&heap)), (Ok(()), [].into()));
        let large = heap.allocate(50_000).expect("memory");
        assert_eq!(heap.discard(large), Ok(()));
        assert_eq!((heap.check(), live(&heap)), (Ok(()), [].into()));
        assert!(heap.discard(NonNull::from(&given).cast()).is_err(), "not of this heap");
        assert!(heap.resize(large, 10).is_err(), "free already");
    }
}

pub fn large_objects_live_by_any_word_into_them_and_go_with_their_chunks<C: Collector>() {
    let given = GivenRoots::new();
    let mut heap = C::of(given);
    // So long that the way back to the first chunk takes several steps.
    let bytes = 300 * PAGE;
    for offset in [0, 8, PAGE, 127 * PAGE + 3, bytes - 1] {
        let block = allocate(&mut heap, bytes);
        let other = allocate(&mut heap, 20 * PAGE);
        write(block + bytes - 8, other);
        given.set(&[block + offset]);
        collect(&mut heap);
        assert_eq!(live(&heap), [block, other].into(), "{offset}");
        given.set(&[]);
        collect(&mut heap);
        assert_eq!(live(&heap), [].into());
    }
    assert!(heap.bytes() < 3 * 400 * PAGE, "{} bytes: chunks are used again", heap.bytes());
}

pub fn a_word_on_a_free_list_does_not_keep_the_list_alive<C: Collector>() {
    let given = GivenRoots::new();
    let mut heap = C::of(given);
    let block = allocate(&mut heap, 64);
    let dead = allocate(&mut heap, 64);
    given.set(&[block]);
    collect(&mut heap);
    // The dead one is free now, and linked to the others.
    given.set(&[block, dead]);
    for _ in 0..4 {
        collect(&mut heap);
        assert_eq!(live(&heap), [block].into());
    }
}

pub fn aligned_objects_are_kept_and_reclaimed_like_others<C: Collector>() {
    let given = GivenRoots::new();
    let mut heap = C::of(given);
    for bits in 5..21 {
        let alignment = 1 << bits;
        let block = heap.allocate_aligned(alignment, 100).expect("memory").as_ptr() as usize;
        assert_eq!(block % alignment, 0);
        write(block + 88, allocate(&mut heap, 16));
        given.set(&[block + 99]);
        collect(&mut heap);
        assert_eq!(live(&heap), [block, read(block + 88)].into(), "aligned to {alignment}");
        given.set(&[]);
        collect(&mut heap);
        assert_eq!(live(&heap), [].into());
    }
}
