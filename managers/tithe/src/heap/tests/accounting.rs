//! Counts: bytes, the census, the classes in it.

use heaptoll_floor::RawClass;

use super::*;

#[test]
fn bytes_are_counted_by_what_blocks_take() {
    let bench = Bench::new(Mode::Hybrid, 1);
    let blocks: [usize; 3] = [100_000, 50_000, 33_000].map(|bytes| bench.allocate(bytes));
    let live = |bench: &Bench| bench.census().live_bytes;
    let whole: usize = [100_000_usize, 50_000, 33_000].iter().map(|bytes| bytes.next_multiple_of(PAGE)).sum();
    assert_eq!((live(&bench), bench.heap.live_bytes()), (whole as u64, whole));
    assert_eq!(bench.free(blocks[1]), Ok(()));
    assert_eq!(bench.heap.live_bytes(), whole - 53_248);
    let small = bench.allocate(100);
    assert_eq!(live(&bench), (whole - 53_248 + 112) as u64);
    assert_eq!(bench.free(small), Ok(()));
    assert_eq!(live(&bench), (whole - 53_248) as u64, "a block in a cache is free");
    bench.audit();
}

#[test]
fn a_collection_forgets_no_bytes_in_caches() {
    let mut bench = Bench::new(Mode::Hybrid, 2);
    let roots = [bench.allocate(48), bench.allocate(5000), bench.allocate(200_000)];
    bench.add_roots(&roots);
    for _ in 0..500 {
        bench.allocate(48);
    }
    bench.collect();
    assert_eq!(bench.heap.live_bytes() as u64, bench.census().live_bytes + bench.cached_bytes() as u64);
    assert!(bench.cached_bytes() > 0);
    // The cache gives back what it held before the collection, and the count ends where it began.
    for root in roots {
        assert_eq!(bench.free(root), Ok(()));
    }
    bench.close();
    assert_eq!((bench.heap.live_bytes(), bench.census().live_bytes), (0, 0));
    assert_eq!(
        bench.heap.since.load(Ordering::Relaxed) + bench.heap.live.load(Ordering::Relaxed) as isize,
        0
    );
    bench.audit();
}

#[test]
fn the_census_knows_the_blocks_of_each_class() {
    let bench = Bench::new(Mode::Hybrid, 1);
    let sizes = [15, 15, 15, 111, 1000, 1000, 9000, LAST, 40_000, 80_000];
    let blocks = sizes.map(|bytes| bench.allocate(bytes));
    // Pointer-free blocks count with their class.
    let atomic = bench.heap.allocate(bench.cache(0), 111, true);
    assert!(!atomic.is_null());
    assert_eq!(bench.free(blocks[0]), Ok(()));
    let mut classes = [RawClass::default(); CLASSES + 2];
    let mut census = bench.census();
    census.classes = classes.as_mut_ptr();
    census.class_capacity = classes.len() as u32;
    // SAFETY: the array has so much room.
    unsafe { bench.heap.census(&mut census, true) };
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
    bench.audit();
}

#[test]
fn a_realloc_in_place_is_counted() {
    let bench = Bench::new(Mode::Hybrid, 1);
    let block = bench.allocate(200_000);
    let at = NonNull::new(block as *mut u8).expect("an address");
    for bytes in [190_000, 60_000, 33_000, 250_000, 400_000, 40_000] {
        // SAFETY: a live block.
        let got = unsafe { bench.heap.reallocate(bench.cache(0), at, bytes) };
        assert_eq!(got, Ok(at.as_ptr()), "nothing is behind it");
        assert_eq!(bench.heap.live_bytes(), bytes.next_multiple_of(PAGE));
        assert_eq!(bench.usable(block), bytes.next_multiple_of(PAGE));
        bench.audit();
    }
    assert_eq!(bench.free(block), Ok(()));
    assert_eq!(bench.heap.live_bytes(), 0);
}
