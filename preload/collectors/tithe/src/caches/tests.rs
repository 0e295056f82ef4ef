//! Opening and closing caches, and their lists against a model.

extern crate std;

use std::boxed::Box;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::cache::FreeBlock;
use crate::class::{CACHE_LIMITS, SPAN_CLASSES};
use crate::heap::Heap;

fn count(heap: &Heap) -> usize {
    let mut count = 0;
    heap.caches.lock().each(|_| count += 1);
    count
}

#[test]
fn an_open_cache_is_empty_and_has_its_full_capacity() {
    let heap = Box::new(Heap::new());
    // SAFETY: `open_cache` has just opened it for this test alone.
    let cache = unsafe { &mut *heap.open_cache(5).expect("memory") };
    assert!(cache.has_thread() && cache.thread == 5);
    for (span_class, limits) in CACHE_LIMITS.iter().enumerate().skip(1) {
        assert_eq!(
            (cache.length(span_class), cache.lists[span_class].free_slots),
            (0, u32::from(limits.capacity))
        );
        assert!(cache.pop(span_class).is_null());
        assert_eq!(cache.length(span_class), 0, "nothing came, nothing is counted");
    }
}

#[test]
fn caches_come_back_newest_first_and_are_made_only_when_none_is_idle() {
    let heap = Box::new(Heap::new());
    let caches: Vec<_> = (0..20).map(|thread| heap.open_cache(thread + 1).expect("memory")).collect();
    assert_eq!(count(&heap), 20);
    for &cache in &caches[5..15] {
        // SAFETY: a cache of this heap that the test does not use while it is closed.
        unsafe { heap.close_cache(cache) };
    }
    for &cache in caches[5..15].iter().rev() {
        assert_eq!(heap.open_cache(99), Some(cache));
    }
    assert_eq!(count(&heap), 20);
    assert!(!caches.contains(&heap.open_cache(100).expect("memory")));
    assert_eq!(count(&heap), 21);
    let range = heap.caches.lock().range();
    heap.caches.lock().each(|cache| assert!(range.contains(&(cache as usize))));
}

#[test]
fn without_memory_there_is_no_cache_and_idle_ones_still_serve() {
    let heap = Box::new(Heap::new());
    let first = heap.open_cache(1).expect("memory");
    heap.caches.lock().region.fail_every(1);
    assert_eq!(heap.open_cache(2), None);
    // SAFETY: a cache of this heap that the test does not use while it is closed.
    unsafe { heap.close_cache(first) };
    assert_eq!(heap.open_cache(3), Some(first));
    assert_eq!(heap.open_cache(4), None);
    heap.caches.lock().region.fail_every(0);
    assert!(heap.open_cache(4).is_some());
}

#[test]
fn a_forked_child_takes_over_the_caches_of_the_others() {
    let heap = Box::new(Heap::new());
    let caches: [*mut Cache; 3] = core::array::from_fn(|at| heap.open_cache(at as i32 + 1).expect("memory"));
    for cache in caches {
        for bytes in [16, 100, 5000] {
            // SAFETY: the heap's; this test is the only thread.
            assert!(!heap.allocate(unsafe { &mut *cache }, bytes, false).is_null());
        }
    }
    let before = heap.live_bytes();
    // SAFETY: this test is the only thread.
    unsafe { heap.close_other_caches(caches[1]) };
    assert_eq!(heap.check(), Ok(()));
    let lengths = caches.map(|cache| {
        // SAFETY: caches are never unmapped; this test is the only thread.
        (1..SPAN_CLASSES).map(|span_class| unsafe { (*cache).length(span_class) }).sum::<u32>()
    });
    assert!(lengths[0] == 0 && lengths[1] > 0 && lengths[2] == 0, "{lengths:?}");
    assert!(heap.live_bytes() < before);
    // Both are idle, once each.
    let again =
        [heap.open_cache(1), heap.open_cache(2), heap.open_cache(3)].map(|cache| cache.expect("memory"));
    assert!(
        again[..2].contains(&caches[0]) && again[..2].contains(&caches[2]) && !caches.contains(&again[2])
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_list_gives_back_what_it_was_given_newest_first(pushes in prop::collection::vec(any::<bool>(), 1..200)) {
        let mut blocks: Vec<[usize; 2]> = std::vec![[7, 7]; pushes.len()];
        let heap = Box::new(Heap::new());
        // SAFETY: `open_cache` has just opened it for this test alone.
        let cache = unsafe { &mut *heap.open_cache(1).expect("memory") };
        let mut model = Vec::new();
        for (block, push) in blocks.iter_mut().zip(pushes) {
            if push && cache.lists[9].free_slots > 0 {
                let block: *mut FreeBlock = block.as_mut_ptr().cast();
                // SAFETY: two words of `blocks`, as long as a free block, that no list holds.
                unsafe { cache.push(9, block, 0x1234) };
                model.push(block);
            } else {
                let got = cache.pop(9);
                assert_eq!(got, model.pop().unwrap_or_default());
                if !got.is_null() {
                    // SAFETY: one of the words.
                    let block = unsafe { &*got };
                    assert!(block.next.is_null() && block.key == 0, "nothing of the list stays in the block");
                }
            }
            assert_eq!(cache.length(9) as usize, model.len());
            let mut listed = cache.lists[9].head;
            for &block in model.iter().rev() {
                assert_eq!(listed, block);
                // SAFETY: one of the words, in the list.
                assert_eq!(unsafe { (*listed).key }, 0x1234);
                // SAFETY: one of the words, in the list.
                listed = unsafe { (*listed).next };
            }
            assert!(listed.is_null());
        }
        cache.lists[9].head = ptr::null_mut();
    }
}
