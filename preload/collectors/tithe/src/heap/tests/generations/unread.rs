//! Blocks at places that words pointed to before, and contents that no collection has read. In each test a young collection
//! must keep what a full one would: `TITHE_CHECK=young` compares them too.

use std::vec::Vec;

use super::*;
use crate::class::SizeClass;

/// Bytes of small blocks of more than a page, which a span of several units holds.
const SMALL: usize = 5000;
/// Where in a block its last page is: neither `free` nor `malloc` writes there.
const LAST_PAGE: usize = 4992;

/// A heap with an old block of many pages, whose words are not read again unless they are written.
struct Old {
    fixture: HeapFixture,
    holder: usize,
    roots: Box<[usize; 64]>,
}

impl Old {
    fn new(mode: Mode) -> Old {
        let fixture = HeapFixture::with(&Settings { poison: false, ..settings(mode) }, 1);
        let holder = fixture.allocate_clear(100_000, false);
        let mut roots = Box::new([0; 64]);
        roots[0] = holder;
        fixture.add_roots(&roots[..]);
        Old { fixture, holder, roots }
    }

    /// Many small blocks, of which every `period`th lives, but for one that points to a place where a block was: it is
    /// found by `collect_full`.
    fn small_blocks(&mut self, period: usize) -> (usize, usize) {
        let blocks: Vec<usize> = (0..40).map(|_| self.fixture.allocate_clear(SMALL, false)).collect();
        for (root, block) in self.roots[1..].iter_mut().zip(&blocks).step_by(period) {
            *root = *block;
        }
        let target = self.fixture.allocate_clear(48, false);
        set_word(blocks[7] + LAST_PAGE, target);
        self.roots[8] = 0;
        (blocks[7], target)
    }

    /// All that is reachable is old, and pages are protected.
    fn collect_full(&self) {
        self.fixture.collect();
        self.fixture.collect_young();
    }

    /// A full collection that leaves free units resident.
    fn collect_full_for_budget(&self) {
        self.fixture.heap.collector.lock().generations.begin();
        assert!(!self.fixture.collect_young());
    }

    /// A word of the old block, which is read by the next collection and then never again.
    fn point_to(&self, address: usize) {
        set_word(self.holder + 50_000, address);
        self.fixture.collect_young();
    }

    /// Allocates blocks until one contains an address.
    fn allocate_over(&self, address: usize, bytes: usize) -> usize {
        let mut blocks = (0..4000).map(|_| self.fixture.allocate(bytes));
        let found = blocks.find(|block| (*block..block + bytes).contains(&address));
        found.expect("the place is used again")
    }

    /// Allocates blocks of a class until a span of one unit has no other ones; returns its address. Their words are
    /// `value`, but for those on the span's first page and next to it: it is written when another block begins there.
    fn whole_span(&self, class: &SizeClass, value: usize) -> usize {
        let (size, blocks) = (class.size as usize, usize::from(class.blocks));
        let places: Vec<usize> = (0..4 * blocks)
            .map(|_| {
                let block = self.fixture.allocate_clear(size - 1, false);
                let words = (block..block + size / 8 * 8).step_by(8);
                words.filter(|at| at % UNIT >= PAGE + 16).for_each(|at| set_word(at, value));
                block
            })
            .collect();
        let whole =
            |start: &usize| places.iter().filter(|place| *place / UNIT * UNIT == *start).count() == blocks;
        places.iter().map(|place| place / UNIT * UNIT).find(whole).expect("a span without blocks in caches")
    }

    /// A young collection keeps a block.
    fn expect_kept(&self, block: usize) {
        self.fixture.collect_young();
        assert!(self.fixture.is_taken(block), "a full collection would keep it");
        self.fixture.audit();
    }
}

#[test]
fn a_block_from_a_cache_that_was_marked_unread_is_read_next() {
    let mut old = Old::new(Mode::Hybrid);
    let (block, target) = old.small_blocks(1);
    old.fixture.free(block).expect("a live block");
    old.roots[8] = block;
    old.collect_full();
    assert!(!old.fixture.is_taken(target), "what is in a cache keeps nothing");
    assert_eq!(old.fixture.allocate(SMALL), block, "the newest block of the cache");
    assert_eq!(old.allocate_over(target, 48), target);
    old.expect_kept(target);
}

#[test]
fn a_block_at_a_place_that_a_word_points_to_is_read_next() {
    let mut old = Old::new(Mode::Hybrid);
    let (block, target) = old.small_blocks(2);
    old.collect_full();
    assert!(!old.fixture.is_taken(block));
    old.point_to(block + 100);
    assert_eq!(old.allocate_over(block, SMALL), block);
    assert_eq!(word(block + LAST_PAGE), target, "contents stay");
    assert_eq!(old.allocate_over(target, 48), target);
    old.expect_kept(target);
}

#[test]
fn a_large_block_at_a_place_that_a_word_points_to_is_read_next() {
    let old = Old::new(Mode::Collect);
    old.collect_full();
    let target = old.fixture.allocate_clear(48, false);
    let span = old.whole_span(class_with_unused_end(), target);
    old.collect_full_for_budget();
    assert!(!old.fixture.is_taken(span));
    old.point_to(span + 100);
    // Words that are not read again are no reason to avoid a unit for long.
    (0..3).for_each(|_| assert!(old.fixture.collect_young() || !old.fixture.is_tracked()));
    let block = old.allocate_over(span + 100, 40_000);
    let words = (block + 16..block + 40_000).step_by(8);
    assert!(words.into_iter().any(|at| word(at) == target), "contents stay");
    assert_eq!(old.allocate_over(target, 48), target);
    old.expect_kept(target);
}

#[test]
fn what_an_old_block_grows_over_is_read_next() {
    let mut old = Old::new(Mode::Collect);
    let block = old.fixture.allocate_clear(48_000, false);
    old.roots[1] = block;
    old.collect_full();
    let target = old.fixture.allocate_clear(48, false);
    set_word(block + 45_000, target);
    resize(&old.fixture, block, 33_000);
    old.fixture.collect_young();
    assert!(!old.fixture.is_taken(target));
    resize(&old.fixture, block, 48_000);
    assert_eq!(word(block + 45_000), target, "contents stay");
    assert_eq!(old.allocate_over(target, 48), target);
    old.expect_kept(target);
}

#[test]
fn a_block_that_grows_over_a_place_that_a_word_points_to_is_kept() {
    let old = Old::new(Mode::Collect);
    old.collect_full();
    let place = old.fixture.allocate_clear(33_000, false);
    old.point_to(place + 3 * UNIT + 100);
    assert!(!old.fixture.is_taken(place));
    let block = old.allocate_over(place, 33_000);
    assert_eq!(block, place);
    resize(&old.fixture, block, 33_000 + 2 * UNIT);
    old.expect_kept(block);
}

#[test]
fn a_block_where_the_unused_end_of_a_large_one_was_is_kept() {
    let old = Old::new(Mode::Collect);
    old.collect_full();
    let place = old.fixture.allocate_clear(33_000, false);
    let unused = place + 45_000;
    old.point_to(unused);
    assert!(!old.fixture.is_taken(place));
    let block = old.allocate_over(unused, 48_000);
    old.expect_kept(block);
}

#[test]
fn a_block_where_the_unused_end_of_a_span_was_is_kept() {
    let old = Old::new(Mode::Collect);
    old.collect_full();
    let span = old.whole_span(class_with_unused_end(), 0);
    let unused = span + UNIT - 32;
    old.point_to(unused);
    let block = old.allocate_over(unused, 40_000);
    old.expect_kept(block);
}

/// A class of spans of one unit that leave some bytes unused.
fn class_with_unused_end() -> &'static SizeClass {
    let unused = |class: &SizeClass| UNIT - class.size as usize * usize::from(class.blocks);
    CLASS[1..].iter().find(|class| class.units == 1 && unused(class) > 64).expect("a size class")
}

/// Resizes a large block where it is.
fn resize(fixture: &HeapFixture, block: usize, bytes: usize) {
    let place = NonNull::new(block as *mut u8).expect("a block");
    // SAFETY: the block is live.
    let new = unsafe { fixture.heap.reallocate(fixture.cache(0), place, bytes) };
    assert_eq!(new.expect("a live block") as usize, block, "a large block is resized where it is");
}
