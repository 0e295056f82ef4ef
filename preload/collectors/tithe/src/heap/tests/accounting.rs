//! Counts: bytes, the census, the classes in it.

use heaptoll_runtime::RawClass;

use super::*;
use crate::api::Stats;
use crate::policy::LEAST;

#[test]
fn bytes_are_counted_by_what_blocks_take() {
    let fixture = HeapFixture::new(Mode::Hybrid, 1);
    let blocks: [usize; 3] = [100_000, 50_000, 33_000].map(|bytes| fixture.allocate(bytes));
    let live = |fixture: &HeapFixture| fixture.census().live_bytes;
    let whole: usize = [100_000_usize, 50_000, 33_000].iter().map(|bytes| bytes.next_multiple_of(PAGE)).sum();
    assert_eq!((live(&fixture), fixture.heap.live_bytes()), (whole as u64, whole));
    assert_eq!(fixture.free(blocks[1]), Ok(()));
    assert_eq!(fixture.heap.live_bytes(), whole - 53_248);
    let small = fixture.allocate(100);
    assert_eq!(live(&fixture), (whole - 53_248 + 112) as u64);
    assert_eq!(fixture.free(small), Ok(()));
    assert_eq!(live(&fixture), (whole - 53_248) as u64, "a block in a cache is free");
    fixture.audit();
}

#[test]
fn a_collection_forgets_no_bytes_in_caches() {
    let mut fixture = HeapFixture::new(Mode::Hybrid, 2);
    let roots = [fixture.allocate(48), fixture.allocate(5000), fixture.allocate(200_000)];
    fixture.add_roots(&roots);
    for _ in 0..500 {
        fixture.allocate(48);
    }
    fixture.collect();
    assert_eq!(fixture.heap.live_bytes() as u64, fixture.census().live_bytes + fixture.cached_bytes() as u64);
    assert!(fixture.cached_bytes() > 0);
    // The cache returns what it held before the collection, and the count ends where it began.
    for root in roots {
        assert_eq!(fixture.free(root), Ok(()));
    }
    fixture.close();
    assert_eq!((fixture.heap.live_bytes(), fixture.census().live_bytes), (0, 0));
    assert_eq!(
        fixture.heap.allocated_since_gc.load(Ordering::Relaxed)
            + fixture.heap.live_after_gc.load(Ordering::Relaxed) as isize,
        0
    );
    fixture.audit();
}

/// Caches count ahead of what they reserve, all of them together by no more than is set.
#[test]
fn several_caches_count_no_less_than_they_reserve() {
    let fixture = HeapFixture::new(Mode::Collect, 8);
    let mut blocks = 0;
    for at in 0..4000 {
        let request = 40 + at % 100;
        assert!(!fixture.heap.allocate(fixture.cache(at % 8), request, false).is_null());
        blocks += CLASS[class_of(request + 1)].size as usize;
    }
    let counted = || fixture.heap.allocated_since_gc.load(Ordering::Relaxed) as usize;
    assert_eq!(counted(), blocks + fixture.cached_bytes());
    let ahead: usize = (0..8).map(|at| fixture.cache(at).counted).sum();
    assert!((1..=64 << 10).contains(&ahead), "{ahead}");
    fixture.collect();
    assert_eq!((0..8).map(|at| fixture.cache(at).counted).sum::<usize>(), 0);
    fixture.audit();
}

/// Where caches counted ahead as much as the smallest budget, that alone would make collections due again and again.
#[test]
fn the_smallest_budget_is_reserved_between_two_collections_of_several_caches() {
    let fixture = HeapFixture::new(Mode::Collect, 2);
    fixture.collect();
    fixture.heap.set_budget(&fixture.heap.collector.lock(), LEAST, 0);
    let mut at = 0;
    while !fixture.heap.is_due() {
        assert!(!fixture.heap.allocate(fixture.cache(at % 2), 100, false).is_null());
        at += 1;
    }
    let ahead: usize = (0..2).map(|at| fixture.cache(at).counted).sum();
    let reserved = fixture.heap.allocated_since_gc.load(Ordering::Relaxed) as usize - ahead;
    assert!(reserved >= LEAST - LEAST / 16, "{reserved}");
}

#[test]
fn what_is_counted_ahead_is_not_allocated() {
    let fixture = HeapFixture::new(Mode::Collect, 2);
    assert!(!fixture.heap.allocate(fixture.cache(0), 100, false).is_null());
    assert!(fixture.cache(0).counted > 0);
    let allocated = || fixture.heap.counters(size_of::<Stats>() as u64).allocated_bytes;
    let before = allocated();
    fixture.collect();
    assert_eq!(allocated(), before, "it never falls");
}

#[test]
fn the_census_knows_the_blocks_of_each_class() {
    let fixture = HeapFixture::new(Mode::Hybrid, 1);
    let sizes = [15, 15, 15, 111, 1000, 1000, 9000, LAST, 40_000, 80_000];
    let blocks = sizes.map(|bytes| fixture.allocate(bytes));
    // Pointer-free blocks count with their class.
    let atomic = fixture.heap.allocate(fixture.cache(0), 111, true);
    assert!(!atomic.is_null());
    assert_eq!(fixture.free(blocks[0]), Ok(()));
    let mut classes = [RawClass::default(); CLASSES + 2];
    let mut census = fixture.census();
    census.classes = classes.as_mut_ptr();
    census.class_capacity = classes.len() as u32;
    // SAFETY: `classes` has `class_capacity` elements.
    unsafe { fixture.heap.census(&mut census, true) };
    let live = |bytes: u64| {
        let class = classes[..census.class_count as usize].iter().find(|class| class.block_bytes == bytes);
        class.map(|class| (class.live_blocks, class.live_bytes))
    };
    assert_eq!(live(16), Some((2, 32)));
    assert_eq!(live(112), Some((2, 224)));
    assert_eq!(live(1024), Some((2, 2048)));
    assert_eq!(live(9216), Some((1, 9216)));
    assert_eq!(live(SMALL_MAX as u64), Some((1, SMALL_MAX as u64)));
    assert_eq!(live(0), Some((2, 40_960 + 81_920)), "large blocks have no size in common");
    assert_eq!(live(32), None);
    let classes = &classes[..census.class_count as usize];
    assert_eq!(classes.iter().map(|class| class.live_bytes).sum::<u64>(), census.live_bytes);
    assert_eq!(classes.iter().map(|class| class.free_bytes).sum::<u64>(), census.free_bytes);
    fixture.audit();
}

#[test]
fn a_realloc_in_place_is_counted() {
    let fixture = HeapFixture::new(Mode::Hybrid, 1);
    let block = fixture.allocate(200_000);
    let at = NonNull::new(block as *mut u8).expect("an address");
    for bytes in [190_000, 60_000, 33_000, 250_000, 400_000, 40_000] {
        // SAFETY: `block` was allocated above and is live.
        let got = unsafe { fixture.heap.reallocate(fixture.cache(0), at, bytes) };
        assert_eq!(got, Ok(at.as_ptr()), "the units after it are free");
        assert_eq!(fixture.heap.live_bytes(), bytes.next_multiple_of(PAGE));
        assert_eq!(fixture.usable(block), bytes.next_multiple_of(PAGE));
        fixture.audit();
    }
    assert_eq!(fixture.free(block), Ok(()));
    assert_eq!(fixture.heap.live_bytes(), 0);
}
