//! Boehm's heap against the model, and his bound.

use std::collections::BTreeMap;
use std::ptr::NonNull;

use heaptoll_historic::kingsley::pow2::{CHUNK, Pow2};
use heaptoll_runtime::{Damage, Heap, Misuse, PAGE, Piece, PieceKind, Region};
use proptest::test_runner::{Config, TestRunner};

use crate::kit::{replay, sequence};

crate::kit::trial!(Pow2, reuses: true);

/// Boehm's heap under watch: after each step blocks are counted by size, and his bound must hold.
struct Watched {
    heap: Pow2,
    /// Most blocks in use at once, by their size in bytes.
    most: BTreeMap<usize, usize>,
}

impl Watched {
    fn new() -> Watched {
        Watched { heap: Pow2::new(), most: BTreeMap::new() }
    }

    fn check(&mut self) {
        let (mut live, mut all) = (BTreeMap::new(), BTreeMap::new());
        self.heap.walk(&mut |piece| {
            if piece.kind == PieceKind::Live {
                *live.entry(piece.bytes).or_insert(0) += 1;
            }
            if matches!(piece.kind, PieceKind::Live | PieceKind::Free) {
                *all.entry(piece.bytes).or_insert(0) += 1;
            }
        });
        for (size, count) in live {
            let most = self.most.entry(size).or_insert(0);
            *most = count.max(*most);
        }
        for (size, count) in all {
            let most = self.most.get(&size).copied().unwrap_or(0);
            assert!(count <= most + 1, "{count} blocks of {size} bytes, {most} at most in use at once");
        }
        let bound = self.most.iter().map(|(size, most)| (most + 1) * size).sum::<usize>() + CHUNK;
        let mapped = self.heap.region().mapped_bytes();
        assert!(mapped <= bound, "{mapped} bytes mapped, at most {bound} by Boehm: {:?}", self.most);
    }
}

impl Heap for Watched {
    const NAME: &'static str = "watched";

    fn region(&self) -> &Region {
        self.heap.region()
    }

    fn region_mut(&mut self) -> &mut Region {
        self.heap.region_mut()
    }

    fn allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let got = self.heap.allocate(bytes);
        self.check();
        got
    }

    fn allocate_aligned(&mut self, alignment: usize, bytes: usize) -> Option<NonNull<u8>> {
        let got = self.heap.allocate_aligned(alignment, bytes);
        self.check();
        got
    }

    unsafe fn free(&mut self, block: NonNull<u8>) -> Result<(), Misuse> {
        // SAFETY: `block` came from this heap and is live, as `Heap::free` requires.
        let freed = unsafe { self.heap.free(block) };
        self.check();
        freed
    }

    unsafe fn resize(&mut self, block: NonNull<u8>, bytes: usize) -> Result<bool, Misuse> {
        // SAFETY: `block` came from this heap and is live, as `Heap::resize` requires.
        let resized = unsafe { self.heap.resize(block, bytes) };
        self.check();
        resized
    }

    unsafe fn usable(&self, block: NonNull<u8>) -> usize {
        // SAFETY: `block` is a live block of this heap, as `Heap::usable` requires.
        unsafe { self.heap.usable(block) }
    }

    fn walk(&self, visit: &mut dyn FnMut(Piece)) {
        self.heap.walk(visit);
    }

    fn check(&self) -> Result<(), Damage> {
        self.heap.check()
    }
}

#[test]
fn boehms_bound_holds_after_every_step() {
    for fail_every in [0, 3] {
        let outcome =
            TestRunner::new(Config { cases: 128, ..Config::default() }).run(&sequence(400), |operations| {
                let mut watched = Watched::new();
                watched.region_mut().fail_every(fail_every);
                replay(watched, fail_every != 0, &operations);
                Ok(())
            });
        assert!(outcome.is_ok(), "{outcome:?}");
    }
}

#[test]
fn boehms_bound_is_reached_but_for_a_block() {
    // Blocks of a size below a chunk, held all at once: the chunk that the last came from is the bound's chunk.
    for size in [8, 24, 56, 1016, 2040] {
        let mut watched = Watched::new();
        (0..1000).for_each(|_| assert!(watched.allocate(size).is_some()));
        let mapped = watched.region().mapped_bytes();
        assert!(mapped > 1000 * (size + 8) && mapped <= 1001 * (size + 8) + CHUNK, "{size}: {mapped}");
    }
}

fn sizes(heap: &Pow2, kind: PieceKind) -> Vec<usize> {
    let mut sizes = Vec::new();
    heap.walk(&mut |piece| {
        if piece.kind == kind {
            sizes.push(piece.bytes);
        }
    });
    sizes
}

#[test]
fn the_first_page_is_split_down_to_one_block_of_each_size() {
    let mut heap = Pow2::new();
    let block = heap.allocate(100).expect("memory");
    assert_eq!(sizes(&heap, PieceKind::Free), [16, 32, 64, 256, 512, 1024, 2048]);
    assert_eq!(heap.region().mapped_bytes(), PAGE);
    // SAFETY: live, and freed once.
    assert_eq!(unsafe { heap.free(block) }, Ok(()));
    assert_eq!(sizes(&heap, PieceKind::Free), [16, 32, 64, 128, 256, 512, 1024, 2048]);
}

#[test]
fn the_first_list_of_larger_blocks_is_split_and_nothing_is_combined() {
    let mut heap = Pow2::new();
    let blocks: Vec<_> = (0..2).map(|_| heap.allocate(24).expect("memory")).collect();
    // The second came from the block of 64 bytes, which lay after the first.
    assert_eq!(sizes(&heap, PieceKind::Live), [32, 32]);
    assert_eq!(sizes(&heap, PieceKind::Free), [16, 32, 128, 256, 512, 1024, 2048]);
    let third = heap.allocate(200).expect("memory");
    let fourth = heap.allocate(200).expect("memory");
    assert_eq!(
        sizes(&heap, PieceKind::Free),
        [16, 32, 128, 256, 1024, 2048],
        "512 is the first that has any"
    );
    for block in blocks.into_iter().chain([third, fourth]) {
        // SAFETY: live, and freed once.
        assert_eq!(unsafe { heap.free(block) }, Ok(()));
    }
    assert_eq!(sizes(&heap, PieceKind::Free), [16, 32, 32, 32, 128, 256, 256, 256, 1024, 2048]);
}

#[test]
fn a_large_block_is_got_alone_and_serves_smaller_ones_once_it_is_free() {
    let mut heap = Pow2::new();
    let large = heap.allocate(100_000).expect("memory");
    assert_eq!(heap.region().mapped_bytes(), PAGE + (128 << 10));
    // SAFETY: live, and freed once.
    assert_eq!(unsafe { heap.free(large) }, Ok(()));
    heap.allocate(5000).expect("memory");
    assert_eq!(heap.region().mapped_bytes(), PAGE + (128 << 10));
    let large: Vec<_> = sizes(&heap, PieceKind::Free).into_iter().filter(|&size| size > 2048).collect();
    assert_eq!(large, [8192, 16384, 32768, 65536]);
}

#[test]
fn realloc_to_a_smaller_class_moves_lest_it_add_blocks_to_classes_that_have_some() {
    let mut heap = Pow2::new();
    let block = heap.allocate(1000).expect("memory");
    // SAFETY: a live block.
    unsafe {
        assert_eq!(heap.resize(block, 505), Ok(true));
        assert_eq!(heap.resize(block, 504), Ok(false));
        assert_eq!(heap.resize(block, 1017), Ok(false));
    }
}

#[test]
fn headers_reveal_double_frees_and_foreign_addresses() {
    let mut heap = Pow2::new();
    let blocks =
        [heap.allocate(400), heap.allocate_aligned(1 << 20, 100)].map(|block| block.expect("memory"));
    let local = [0u128; 4];
    // SAFETY: the words in front of all of these can be read, and what is wrong with them is what is tested.
    unsafe {
        assert_eq!(heap.free(blocks[0].add(160)), Err(Misuse::Damaged));
        assert_eq!(heap.free(NonNull::from(&local[2]).cast()), Err(Misuse::Foreign));
        for block in blocks {
            assert_eq!(heap.free(block), Ok(()));
            assert_eq!(heap.free(block), Err(Misuse::DoubleFree));
        }
    }
    assert_eq!(heap.check(), Ok(()));
}
