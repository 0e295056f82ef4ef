//! All ways to mark find the same blocks: those that are reachable in a model of the graph.

extern crate std;

use core::sync::atomic::Ordering;

use std::boxed::Box;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::class::{CLASS, FREE};
use crate::heap::Heap;
use crate::mode::Mode;
use crate::settings::Settings;

/// One test at a time: each has regions of its own, and a process has addresses for some tens of them.
static TURN: Mutex<()> = Mutex::new(());

/// How to mark.
#[derive(Debug, Clone, Copy)]
struct Way {
    markers: usize,
    /// Most entries of the collecting thread's stack, and of helpers' stacks and the pool.
    own: usize,
    others: usize,
}

const WIDE: usize = usize::MAX;
const WAYS: [Way; 9] = [
    Way { markers: 1, own: WIDE, others: WIDE },
    Way { markers: 1, own: 1, others: WIDE },
    Way { markers: 1, own: 7, others: WIDE },
    Way { markers: 1, own: 130, others: WIDE },
    Way { markers: 2, own: WIDE, others: WIDE },
    Way { markers: 4, own: WIDE, others: WIDE },
    Way { markers: 2, own: 1, others: 1 },
    Way { markers: 3, own: 5, others: 2 },
    Way { markers: 4, own: 300, others: 200 },
];

/// Blocks of a heap, words in them, and the roots.
struct Graph {
    heap: Box<Heap>,
    cache: *mut crate::cache::Cache,
    blocks: Vec<usize>,
    /// The root words; they must not move once they were added.
    roots: Vec<usize>,
}

impl Graph {
    fn new() -> Graph {
        let heap = Box::new(Heap::new());
        heap.configure(&Settings { mode: Mode::Collect, min_headroom: 1 << 40, ..Settings::new() }, None);
        let cache = heap.open_cache(1).expect("a cache");
        Graph { heap, cache, blocks: Vec::new(), roots: Vec::new() }
    }

    /// Allocates a block of zeros; returns its number.
    fn block(&mut self, bytes: usize, atomic: bool) -> usize {
        // SAFETY: `open_cache` returned it, caches are never unmapped, and only this test uses it.
        let block = self.heap.allocate(unsafe { &mut *self.cache }, bytes, atomic);
        assert!(!block.is_null());
        // SAFETY: the block was just allocated with this many bytes.
        unsafe { block.write_bytes(0, bytes) };
        self.blocks.push(block as usize);
        self.blocks.len() - 1
    }

    /// Writes a word of a block.
    fn set(&mut self, block: usize, word: usize, value: usize) {
        // SAFETY: tests stay within their blocks.
        unsafe { (self.blocks[block] as *mut usize).add(word).write(value) };
    }

    fn add_roots(&mut self) {
        let range = self.roots.as_ptr_range();
        self.heap.collector.lock().added.add(range.start as usize, range.end as usize, 0).expect("memory");
    }

    /// Marks, and returns the marked blocks; clears all marks.
    fn mark(&self, way: Way) -> (BTreeSet<usize>, Marked) {
        let collector = self.heap.collector.lock();
        let _guards = self.heap.lock_all();
        let mut stack = MarkStack::new();
        stack.limit(way.own);
        let mut markers = Markers::new();
        markers.configure(Some(way.markers));
        markers.set_limits(0, way.others);
        let count = markers.prepare(0);
        assert_eq!(count, way.markers);
        let roots = Roots {
            added: &collector.added,
            stopped: None,
            excluded_ranges: &[],
            gathered: None,
            young: false,
            trace: Trace::Plain,
        };
        // SAFETY: this test alone uses the heap and its roots, and holds the locks; `prepare` has returned `count`.
        let marked = unsafe { markers.mark(count, &self.heap.reservation, &mut stack, 7, &roots) }
            .expect("all roots are readable");
        assert_eq!(marked.roots, self.roots.len() * 8);
        assert_eq!(marked.markers, way.markers, "the system gives threads");
        drop(collector);
        (self.take_marks(), marked)
    }

    fn take_marks(&self) -> BTreeSet<usize> {
        let (reservation, mut marks) = (&self.heap.reservation, BTreeSet::new());
        self.heap.each_span(&mut |first, span| {
            let (blocks, size) = CLASS
                .get(span.span_class as usize)
                .map_or((1, 0), |class| (class.blocks, class.size as usize));
            for block in 0..blocks.into() {
                if span.is_marked(block) {
                    marks.insert(reservation.address(first) + block * size);
                }
            }
            for bits in &mut span.bits[..usize::from(blocks).div_ceil(64)] {
                bits.marked.store(0, Ordering::Relaxed);
            }
        });
        marks
    }

    fn expect(&self, reachable: &BTreeSet<usize>) {
        let mut live = None;
        for way in WAYS {
            let (marks, marked) = self.mark(way);
            assert!(marks == *reachable, "{way:?} finds {} of {}", marks.len(), reachable.len());
            assert_eq!(*live.get_or_insert(marked.live), marked.live, "{way:?} counts the same bytes");
        }
    }
}

/// The shape of a graph: blocks with bytes and whether they are pointer-free, edges from a word of one block into
/// another, and roots.
#[derive(Debug, Clone)]
struct Shape {
    blocks: Vec<(usize, bool)>,
    edges: Vec<(prop::sample::Index, prop::sample::Index, prop::sample::Index, prop::sample::Index)>,
    roots: Vec<prop::sample::Index>,
}

fn shapes() -> impl Strategy<Value = Shape> {
    use prop::sample::Index;
    let bytes = prop_oneof![6 => 16..200_usize, 2 => 200..5000_usize, 1 => 5000..200_000_usize];
    let block = (bytes, prop::bool::weighted(0.1));
    let edge = any::<(Index, Index, Index, Index)>();
    (
        prop::collection::vec(block, 1..400),
        prop::collection::vec(edge, 0..900),
        prop::collection::vec(any::<Index>(), 1..8),
    )
        .prop_map(|(blocks, edges, roots)| Shape { blocks, edges, roots })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_way_marks_what_is_reachable_and_nothing_else(shape in shapes()) {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut graph = Graph::new();
        for &(bytes, atomic) in &shape.blocks {
            graph.block(bytes, atomic);
        }
        let mut words = std::collections::BTreeMap::new();
        for (from, word, to, inside) in &shape.edges {
            let from = from.index(shape.blocks.len());
            let to = to.index(shape.blocks.len());
            let word = word.index(shape.blocks[from].0 / 8);
            graph.set(from, word, graph.blocks[to] + inside.index(shape.blocks[to].0));
            words.insert((from, word), to);
        }
        let roots: Vec<_> = shape.roots.iter().map(|root| root.index(shape.blocks.len())).collect();
        graph.roots = roots.iter().map(|&root| graph.blocks[root]).collect();
        // Words that point to no block: outside, free, after the heap.
        graph.roots.extend([0, 1, usize::MAX, graph.heap.reservation.base() - 8]);
        let last = graph.heap.reservation.units() - 1;
        if graph.heap.reservation.span_class(last) == FREE {
            graph.roots.push(graph.heap.reservation.address(0) + (graph.heap.reservation.units() << 14) - 8);
        }
        graph.roots.push(graph.heap.reservation.address(0) + (graph.heap.reservation.units() << 14) + 100);
        graph.add_roots();
        let mut reached = BTreeSet::new();
        let mut grey = roots;
        while let Some(block) = grey.pop() {
            if reached.insert(block) && !shape.blocks[block].1 {
                grey.extend(words.range((block, 0)..(block + 1, 0)).map(|(_, &to)| to));
            }
        }
        graph.expect(&reached.iter().map(|&block| graph.blocks[block]).collect());
    }
}

#[test]
fn a_list_of_a_million_blocks_is_marked() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut graph = Graph::new();
    for number in 0..1_000_000 {
        graph.block(32, false);
        if number > 0 {
            graph.set(number, 1, graph.blocks[number - 1]);
        }
    }
    graph.roots = vec![*graph.blocks.last().expect("a million")];
    graph.add_roots();
    graph.expect(&graph.blocks.iter().copied().collect());
}

#[test]
fn a_huge_array_of_pointers_is_marked() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    const COUNT: usize = 600_000;
    let mut graph = Graph::new();
    let array = graph.block(COUNT * 8, false);
    for word in 0..COUNT {
        let block = graph.block(if word.is_multiple_of(1000) { 600 } else { 16 }, word % 7 == 0);
        graph.set(array, word, graph.blocks[block] + 3);
    }
    graph.roots = vec![0; 10_000];
    graph.roots[9_999] = graph.blocks[array] + COUNT * 8 - 1;
    graph.add_roots();
    graph.expect(&graph.blocks.iter().copied().collect());
}

/// Words are looked at in groups: an address is found at every multiple of half a word, wherever its group begins and ends.
#[test]
fn a_lone_address_is_found_at_every_place() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut graph = Graph::new();
    let (holder, target) = (graph.block(296, false), graph.block(48, false));
    graph.roots = vec![graph.blocks[holder]];
    graph.add_roots();
    let (start, address) = (graph.blocks[holder], graph.blocks[target] + 5);
    for at in (0..=296 - 8).step_by(4) {
        // SAFETY: the word lies in the block.
        unsafe { ((start + at) as *mut usize).write_unaligned(address) };
        let marked = graph.mark(WAYS[0]).0;
        assert!(marked.contains(&graph.blocks[target]), "at {at}");
        // SAFETY: as above.
        unsafe { ((start + at) as *mut usize).write_unaligned(0) };
    }
    assert!(!graph.mark(WAYS[0]).0.contains(&graph.blocks[target]));
}

#[test]
fn the_caller_blocks_the_signals_it_blocked() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut graph = Graph::new();
    graph.block(16, false);
    graph.roots = vec![graph.blocks[0]];
    graph.add_roots();
    let mask = || {
        std::fs::read_to_string("/proc/thread-self/status")
            .expect("status")
            .lines()
            .find(|line| line.starts_with("SigBlk"))
            .map(std::string::String::from)
    };
    let before = mask();
    graph.mark(Way { markers: 4, own: WIDE, others: WIDE });
    assert_eq!(mask(), before);
}
