//! What is one version's own: sizes, growth, headers, black lists, and the reported figures of a collection.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::Mutex;

use heaptoll_historic::boehm::bw16::{Bw16, V16};
use heaptoll_historic::boehm::bw26::{Bw26, V26};
use heaptoll_historic::boehm::{Boehm, CHUNK, Collector, Mutators, Version, Visitor};
use heaptoll_roots::{Origin, Root};
use heaptoll_runtime::{AbandonCause, Heap, PieceKind, RawEvent, StatsReporter};

/// A program that keeps every block the test holds.
#[derive(Default)]
struct KeptBlocks(Mutex<Vec<usize>>);

impl Mutators for KeptBlocks {
    fn start(&'static self) {}

    fn with_world_stopped(&self, _: &[Range<usize>], visitor: &mut dyn Visitor) -> Result<(), AbandonCause> {
        let words = self.0.lock().expect("no panic");
        let start = words.as_ptr() as usize;
        visitor.root(Root { range: start..start + 8 * words.len(), origin: Origin::Statics });
        visitor.finish();
        Ok(())
    }

    fn after_fork_in_child(&self) {}
}

fn keeps() -> &'static KeptBlocks {
    Box::leak(Box::default())
}

/// Allocates, and holds for ever.
fn allocate_root<V: Version>(heap: &mut Boehm<V>, keeps: &KeptBlocks, bytes: usize) -> usize {
    let block = heap.allocate(bytes).expect("memory").as_ptr() as usize;
    keeps.0.lock().expect("no panic").push(block);
    block
}

fn sizes<V: Version>() -> Vec<usize> {
    (0..V::CLASSES.count()).map(|class| V::CLASSES.bytes(class)).collect()
}

#[test]
fn sizes_of_1_6_are_pairs_of_words_and_then_by_half_larger() {
    assert_eq!(sizes::<V16>(), [16, 32, 48, 64, 96, 160, 256, 400, 608, 928, 1408, 2048]);
    // Zorn names 8, 16, 24, 32 and 48 bytes, of words of 4 bytes: the same in words.
    assert_eq!(sizes::<V16>()[..5].iter().map(|bytes| bytes / 2).collect::<Vec<_>>(), [8, 16, 24, 32, 48]);
}

#[test]
fn sizes_of_2_6_have_three_significant_bits_and_a_byte_to_spare() {
    let expected = [
        16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024, 1280,
        1536, 1792, 2048,
    ];
    assert_eq!(sizes::<V26>(), expected);
    let mut heap = Bw26::new();
    for (bytes, usable) in [(0, 15), (15, 15), (16, 31), (63, 63), (64, 79), (2047, 2047), (2048, 4095)] {
        let block = heap.allocate(bytes).expect("memory");
        // SAFETY: a live block.
        assert_eq!(unsafe { heap.usable(block) }, usable, "{bytes} bytes");
    }
}

#[test]
fn a_pointer_after_the_last_byte_keeps_an_object_of_2_6() {
    let keeps = keeps();
    let mut heap = Bw26::of(keeps);
    for bytes in [16, 32, 100, 2000, 4096, 40_960] {
        let block = heap.allocate(bytes).expect("memory").as_ptr() as usize;
        *keeps.0.lock().expect("no panic") = vec![block + bytes];
        assert_eq!(heap.collect(), 0);
        let mut live = Vec::new();
        heap.walk(&mut |piece| {
            if piece.kind == PieceKind::Live {
                live.push(piece.block);
            }
        });
        assert_eq!(live, [block], "{bytes} bytes");
    }
}

#[test]
fn every_chunk_of_1_6_begins_with_its_header_and_none_of_2_6_has_one() {
    let (mut inside, mut outside) = (Bw16::new(), Bw26::new());
    for size in [16, 100, 1000, 2048] {
        inside.allocate(size).expect("memory");
        outside.allocate(size).expect("memory");
    }
    let mut headers = Vec::new();
    inside.walk(&mut |piece| {
        if piece.kind == PieceKind::Metadata {
            headers.push((piece.address % CHUNK, piece.bytes));
        }
    });
    assert_eq!(headers, [(0, 96); 4]);
    outside.walk(&mut |piece| assert!(piece.kind != PieceKind::Metadata));
}

#[test]
fn a_heap_of_1_6_begins_with_256_kib_and_grows_by_half_when_less_than_a_quarter_was_reclaimed() {
    let keeps = keeps();
    let mut heap = Bw16::of(keeps);
    let mut grown = Vec::new();
    while grown.len() < 4 {
        allocate_root(&mut heap, keeps, 1000);
        if grown.last() != Some(&heap.bytes()) {
            grown.push(heap.bytes());
        }
    }
    assert_eq!(grown, [256 << 10, 384 << 10, 576 << 10, 864 << 10]);
    assert_eq!(heap.collections(), 3, "each growth after a collection");
    // With nothing alive a collection reclaims all, and the heap stays.
    keeps.0.lock().expect("no panic").clear();
    for _ in 0..10_000 {
        heap.allocate(1000).expect("memory");
    }
    assert_eq!(heap.bytes(), 864 << 10);
}

#[test]
fn a_heap_of_2_6_grows_by_64_kib_and_then_by_half_as_much_again_each_time() {
    let keeps = keeps();
    let mut heap = Bw26::of(keeps);
    let mut grown = Vec::new();
    while grown.len() < 6 {
        allocate_root(&mut heap, keeps, 1000);
        if grown.last() != Some(&(heap.bytes() / CHUNK)) {
            grown.push(heap.bytes() / CHUNK);
        }
    }
    let growth: Vec<usize> = grown.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!((grown[0], growth), (16, vec![17, 25, 37, 55, 82]));
}

#[test]
fn a_collection_of_2_6_waits_for_a_quarter_of_the_heap() {
    let keeps = keeps();
    let mut heap = Bw26::of(keeps);
    for _ in 0..2000 {
        allocate_root(&mut heap, keeps, 1000);
    }
    assert_eq!(heap.collect(), 0);
    let size = heap.bytes();
    let mut before = heap.collections();
    for _ in 0..20 {
        let mut allocated = 0;
        while heap.collections() == before && heap.bytes() == size {
            heap.allocate(1000).expect("memory");
            allocated += 1024;
        }
        before = heap.collections();
        assert!(heap.bytes() > size || allocated >= size / 4, "{allocated} bytes between two collections");
    }
}

#[test]
fn a_chunk_that_two_collections_saw_a_number_for_is_avoided_by_2_6() {
    let keeps = keeps();
    let mut heap = Bw26::of(keeps);
    heap.allocate(16).expect("memory");
    let start = heap.region().start();
    // The second, third and fifth chunk are free, and the words would be pointers into them.
    let odd = [start + CHUNK + 100, start + 2 * CHUNK, start + 4 * CHUNK + 8];
    *keeps.0.lock().expect("no panic") = odd.to_vec();
    for _ in 0..2 {
        assert_eq!(heap.collect(), 0);
    }
    keeps.0.lock().expect("no panic").clear();
    let chunks: Vec<usize> =
        (0..13).map(|_| (heap.allocate(2000).expect("memory").as_ptr() as usize - start) / CHUNK).collect();
    assert!(chunks.iter().all(|chunk| ![1, 2, 4].contains(chunk)), "{chunks:?}");
    let large = (heap.allocate(8000).expect("memory").as_ptr() as usize - start) / CHUNK;
    assert!(![0, 1, 2, 3, 4].contains(&large), "a large object neither begins nor ends there: {large}");
    assert_eq!(heap.check(), Ok(()));
}

unsafe extern "C" fn log_event(event: *const RawEvent, context: *mut c_void) {
    // SAFETY: the reporter's event, and the list the test passed.
    let (event, log) = unsafe { (&*event, &mut *context.cast::<Vec<[u64; 3]>>()) };
    log.push([u64::from(event.kind), event.collection, event.value]);
}

fn events_of_a_collection<V: Version>() -> Vec<[u64; 3]> {
    let reporter: &'static StatsReporter = Box::leak(Box::new(StatsReporter::new("test")));
    let keeps = keeps();
    let mut heap = Boehm::<V>::of(keeps);
    heap.start(reporter);
    for _ in 0..10 {
        heap.allocate(1000).expect("memory");
    }
    allocate_root(&mut heap, keeps, 100);
    let mut log: Vec<[u64; 3]> = Vec::new();
    assert_eq!(reporter.listen(Some(log_event), (&raw mut log).cast()), 0);
    assert_eq!(heap.collect(), 0);
    assert_eq!(reporter.listen(None, std::ptr::null_mut()), 0);
    let slot = reporter.slot();
    let counter = |counter: &std::sync::atomic::AtomicU64| counter.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(counter(&slot.collections), 1);
    assert!(
        counter(&slot.pause_total_ns) > 0 && counter(&slot.pause_max_ns) == counter(&slot.pause_total_ns)
    );
    assert!(counter(&slot.collected_bytes) >= 10_000);
    log
}

#[test]
fn a_collection_reports_its_phases_in_order() {
    // Start (requested), stop, mark, sweep, resume, end with the live bytes. No growth, since it was requested.
    let v16 = events_of_a_collection::<V16>();
    assert_eq!(v16, [[1, 1, 2], [3, 1, 1], [3, 1, 3], [3, 1, 4], [3, 1, 5], [2, 1, 160]]);
    let v26 = events_of_a_collection::<V26>();
    assert_eq!(v26, [[1, 1, 2], [3, 1, 1], [3, 1, 3], [3, 1, 5], [2, 1, 112]]);
}

#[test]
fn a_heap_without_a_program_does_not_collect() {
    let mut heap = Bw16::new();
    heap.allocate(100).expect("memory");
    assert_ne!(heap.collect(), 0);
    assert_eq!(heap.collections(), 0);
}

fn a_limit_is_kept<V: Version>() {
    let keeps = keeps();
    let mut heap = Boehm::<V>::of(keeps);
    let reporter: &'static StatsReporter = Box::leak(Box::new(StatsReporter::new(V::NAME)));
    heap.start(reporter);
    heap.limit(1 << 20);
    // Twenty times as much as the limit, and nothing of it kept.
    for bytes in [40, 1000, 5000] {
        for _ in 0..(20 << 20) / bytes {
            assert!(heap.allocate(bytes).is_some(), "{}: {bytes}", V::NAME);
        }
    }
    assert!(heap.bytes() <= 1 << 20);
    let refused = || reporter.slot().refused_calls.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(refused(), 0);
    let mut held = 0;
    while let Some(block) = heap.allocate(400) {
        keeps.0.lock().expect("no panic").push(block.as_ptr() as usize);
        held += 400;
    }
    assert!(held > (1 << 20) * 3 / 4 && held <= 1 << 20, "{}: {held}", V::NAME);
    assert!(heap.bytes() <= 1 << 20);
    assert_eq!(refused(), 1);
    assert!(heap.allocate(2 << 20).is_none());
    assert_eq!(refused(), 2);
    keeps.0.lock().expect("no panic").clear();
    assert!(heap.allocate(1000).is_some());
    assert_eq!(heap.check(), Ok(()));
    assert!(reporter.slot().collector_cpu_ns.load(std::sync::atomic::Ordering::Relaxed) > 0);
}

#[test]
fn a_heap_with_a_limit_collects_when_it_is_full_and_then_gives_nothing() {
    a_limit_is_kept::<V16>();
    a_limit_is_kept::<V26>();
}

/// What a version finds alive when only a pointer-free object, or a plain one, leads to another: the large ones too.
fn kept_by<V: Version>(pointer_free: bool) {
    for bytes in [16, 100, 2000, 40_960] {
        let keeps = keeps();
        let mut heap = Boehm::<V>::of(keeps);
        let other = heap.allocate(64).expect("memory");
        let block = if pointer_free { heap.allocate_pointer_free(bytes) } else { heap.allocate(bytes) };
        let block = block.expect("memory");
        // SAFETY: a live block of at least a word.
        unsafe { block.cast::<usize>().write(other.as_ptr() as usize) };
        *keeps.0.lock().expect("no panic") = vec![block.as_ptr() as usize];
        for _ in 0..2 {
            assert_eq!(heap.collect(), 0);
            let mut live = Vec::new();
            heap.walk(&mut |piece| {
                if piece.kind == PieceKind::Live {
                    live.push(piece.block);
                }
            });
            let expected = if pointer_free { 1 } else { 2 };
            assert_eq!(live.len(), expected, "{bytes} bytes, pointer-free: {pointer_free}");
            assert!(live.contains(&(block.as_ptr() as usize)));
        }
        assert!(heap.check().is_ok());
        // What is reclaimed of it serves the next, and is clear.
        keeps.0.lock().expect("no panic").clear();
        assert_eq!(heap.collect(), 0);
        let again = heap.allocate_pointer_free(bytes).expect("memory");
        // SAFETY: a live block of at least a word.
        assert_eq!(unsafe { again.cast::<usize>().read() }, 0, "{bytes} bytes");
        assert!(heap.check().is_ok());
    }
}

#[test]
fn a_pointer_free_object_keeps_nothing_and_a_plain_one_does() {
    for pointer_free in [true, false] {
        kept_by::<V16>(pointer_free);
        kept_by::<V26>(pointer_free);
    }
}
