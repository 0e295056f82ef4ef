//! A program whose roots are the words in a list, and what it does with blocks.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use heaptoll_historic::support::{Collector, Mutators, Visitor};
use heaptoll_roots::{Origin, Root};
use heaptoll_runtime::{AbandonCause, PieceKind};

/// See the module.
#[derive(Debug, Default)]
pub struct GivenRoots {
    /// The roots.
    pub words: Mutex<Vec<usize>>,
    /// Whether stops fail.
    pub refuses: AtomicBool,
}

impl GivenRoots {
    /// None yet.
    pub fn new() -> &'static GivenRoots {
        Box::leak(Box::default())
    }

    /// These, and no others.
    pub fn set(&self, words: &[usize]) {
        *self.words.lock().expect("no panic") = words.to_vec();
    }
}

impl Mutators for GivenRoots {
    fn start(&'static self) {}

    fn with_world_stopped(&self, _: &[Range<usize>], visitor: &mut dyn Visitor) -> Result<(), AbandonCause> {
        let words = self.words.lock().expect("no panic");
        let start = words.as_ptr() as usize;
        visitor.root(Root { range: start..start + 8 * words.len(), origin: Origin::Statics });
        if self.refuses.load(Ordering::Relaxed) {
            // As when the list of mappings cannot be read to its end.
            return Err(AbandonCause::Roots);
        }
        visitor.finish();
        Ok(())
    }

    fn after_fork_in_child(&self) {}
}

/// A block that is to be had.
pub fn allocate<C: Collector>(heap: &mut C, bytes: usize) -> usize {
    heap.allocate(bytes).expect("memory").as_ptr() as usize
}

/// Allocates, and adds it to the roots.
pub fn allocate_root<C: Collector>(heap: &mut C, given: &GivenRoots, bytes: usize) -> usize {
    let block = allocate(heap, bytes);
    given.words.lock().expect("no panic").push(block);
    block
}

/// Writes a word of a block.
pub fn write(address: usize, word: usize) {
    // SAFETY: the tests write to live blocks.
    unsafe { (address as *mut usize).write(word) };
}

/// Reads a word of a block.
pub fn read(address: usize) -> usize {
    // SAFETY: the tests read live blocks.
    unsafe { (address as *const usize).read() }
}

/// The live blocks.
pub fn live<C: Collector>(heap: &C) -> BTreeSet<usize> {
    let mut live = BTreeSet::new();
    heap.walk(&mut |piece| {
        if piece.kind == PieceKind::Live {
            live.insert(piece.block);
        }
    });
    live
}

/// Collects, and checks the heap.
pub fn collect<C: Collector>(heap: &mut C) {
    assert_eq!((heap.collect(), heap.check()), (0, Ok(())));
}

/// A list of `length` blocks, each with the address of the next in its word `at`; the first's address.
pub fn list<C: Collector>(heap: &mut C, length: usize, bytes: usize, at: usize) -> usize {
    (0..length).fold(0, |next, _| {
        let block = allocate(heap, bytes);
        write(block + 8 * at, next);
        block
    })
}
