//! Contents that no increment has read: blocks that begin where a word that was read points to, without a write to their
//! pages. A full marking would reach what they hold.

use std::vec::Vec;

use super::*;
use crate::increments::Stage;

/// Bytes of small blocks of more than a page, which a span of several units holds.
const SMALL: usize = 5000;
/// Where in a block its last page is: neither `free` nor `malloc` writes there.
const LAST_PAGE: usize = 4992;

/// A heap with a block whose words are read first.
struct Marked {
    fixture: HeapFixture,
    holder: usize,
    /// Nothing points to it but words in memory that is free.
    target: usize,
    roots: Box<[usize; 64]>,
}

impl Marked {
    fn new() -> Marked {
        let fixture = HeapFixture::with(&Settings { poison: false, ..settings(Mode::Hybrid) }, 1);
        let holder = fixture.allocate_clear(1000, false);
        let mut roots = Box::new([0; 64]);
        roots[0] = holder;
        fixture.add_roots(&roots[..]);
        let target = fixture.allocate_clear(48, false);
        Marked { fixture, holder, target, roots }
    }

    fn free(&self, block: usize) {
        assert_eq!(self.fixture.free(block), Ok(()));
        self.fixture.heap.flush_all(self.fixture.cache(0));
    }

    /// A collection, after which pages that are not written count as unwritten, though they are free.
    fn record(&self) {
        self.fixture.collect_to_the_end();
        self.fixture.heap.sweep_all();
    }

    /// Begins a collection, and marks until all that is reachable by now is marked.
    fn mark_all(&self) {
        while self.fixture.has_increments() {
            self.fixture.collect_increment();
            let collector = self.fixture.heap.collector.lock();
            if collector.increments.stage == Stage::Marking && collector.stack.is_empty() {
                break;
            }
        }
    }

    /// Ends the collection: what is listed is not reclaimed.
    fn end(&self, kept: &[usize]) {
        self.fixture.collect_to_the_end();
        self.fixture.heap.sweep_all();
        for &block in kept {
            assert!(self.fixture.is_taken(block), "{block:#x} was reclaimed");
        }
        self.fixture.audit();
    }
}

#[test]
fn a_block_at_a_place_that_a_word_points_to_is_read() {
    let mut marked = Marked::new();
    let blocks: Vec<usize> = (0..40).map(|_| marked.fixture.allocate_clear(SMALL, false)).collect();
    for (root, block) in marked.roots[1..].iter_mut().zip(&blocks) {
        *root = *block;
    }
    let place = blocks[7];
    set_word(place + LAST_PAGE, marked.target);
    marked.roots[8] = 0;
    set_word(marked.holder + 8, place);
    marked.free(place);
    marked.mark_all();
    let again = (0..40).any(|_| marked.fixture.allocate(SMALL) == place);
    assert!(again, "the only free place of its span");
    marked.end(&[place, marked.target]);
}

#[test]
fn a_large_block_in_units_of_a_marked_one_is_kept() {
    let marked = Marked::new();
    let before = marked.fixture.allocate_clear(100_000, false);
    set_word(marked.holder + 8, before);
    marked.mark_all();
    marked.free(before);
    assert_eq!(marked.fixture.allocate(100_000), before);
    marked.end(&[before]);
}

#[test]
fn a_large_block_in_free_units_that_a_word_points_to_is_read() {
    let mut marked = Marked::new();
    let before = marked.fixture.allocate_clear(100_000, false);
    marked.roots[1] = marked.fixture.allocate_clear(100_000, false);
    set_word(before + 50_000, marked.target);
    set_word(marked.holder + 8, before);
    marked.record();
    marked.free(before);
    marked.mark_all();
    // Such units are avoided while there are others.
    marked.fixture.heap.units.lock().memory.heap.fail_every(1);
    assert!((0..50).any(|_| marked.fixture.allocate(100_000) == before));
    marked.end(&[before, marked.target]);
}

#[test]
fn what_a_marked_block_grows_over_is_read() {
    let mut marked = Marked::new();
    let block = marked.fixture.allocate_clear(3 * UNIT - PAGE, false);
    let after = marked.fixture.allocate_clear(5 * UNIT - PAGE, false);
    assert_eq!(after, block + 3 * UNIT);
    set_word(after + 2 * UNIT + 8, marked.target);
    set_word(marked.holder + 8, block);
    marked.roots[1] = after;
    marked.record();
    marked.roots[1] = 0;
    marked.free(after);
    marked.mark_all();
    let at = NonNull::new(block as *mut u8).expect("an address");
    // SAFETY: the block is live.
    let grown = unsafe { marked.fixture.heap.reallocate(marked.fixture.cache(0), at, 7 * UNIT) };
    assert_eq!(grown, Ok(at.as_ptr()), "in its place");
    marked.end(&[block, marked.target]);
}
