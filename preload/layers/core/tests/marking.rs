//! All configurations of marking find the same blocks: those that a model of the graph has as reachable; the others are
//! dead.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use heaptoll_layer_core::sweep::side_tables::{Marking, Tables};
use proptest::prelude::*;

/// One test at a time: each has regions of its own, and a process has space for some tens of them.
pub static TURN: Mutex<()> = Mutex::new(());

/// How to mark: threads, entries of the own stack, and of helpers' stacks and the pool.
pub const CONFIGURATIONS: [(usize, usize, usize); 8] = [
    (1, usize::MAX, usize::MAX),
    (1, 1, 1),
    (1, 7, 1),
    (1, 130, 1),
    (2, usize::MAX, usize::MAX),
    (4, usize::MAX, usize::MAX),
    (2, 1, 1),
    (3, 5, 2),
];

/// Consecutive blocks in memory of the test's.
struct Graph {
    tables: Box<Tables>,
    memory: Vec<u64>,
    taken: usize,
    blocks: BTreeMap<usize, usize>,
    order: Vec<usize>,
    roots: Vec<usize>,
}

impl Graph {
    fn new(bytes: usize) -> Graph {
        let (tables, memory) = (Box::new(Tables::new()), vec![0; bytes / 8]);
        let (blocks, order, roots) = (BTreeMap::new(), Vec::new(), Vec::new());
        Graph { tables, memory, taken: 0, blocks, order, roots }
    }

    /// A block some bytes after the last; returns its address.
    fn block(&mut self, gap: usize, bytes: usize) -> usize {
        let start = self.memory.as_mut_ptr() as usize + self.taken + gap;
        self.taken += gap + bytes;
        assert!(self.taken <= self.memory.len() * 8);
        self.tables.insert(start, bytes).expect("memory");
        self.blocks.insert(start, bytes);
        self.order.push(start);
        start
    }

    /// Writes an address into a block, at any byte.
    fn write(&mut self, at: usize, address: usize) {
        // SAFETY: tests write within their blocks, and no thread reads meanwhile.
        unsafe { (at as *mut usize).write_unaligned(address) };
    }

    fn covering(&self, address: usize) -> Option<(usize, usize)> {
        let (start, bytes) = self.blocks.range(..=address).next_back()?;
        (address < start + bytes).then_some((*start, *bytes))
    }

    /// What is reachable, by the model: words lie at multiples of 4.
    fn reachable(&self) -> BTreeMap<usize, usize> {
        let mut reached = BTreeMap::new();
        let mut open: Vec<usize> = self.roots.clone();
        while let Some(address) = open.pop() {
            let Some((start, bytes)) = self.covering(address) else { continue };
            if reached.insert(start, bytes).is_none() {
                for at in (start..=start + bytes - 8).step_by(4) {
                    // SAFETY: within the block.
                    open.push(unsafe { (at as *const usize).read_unaligned() });
                }
            }
        }
        reached
    }

    fn roots(&self) -> Range<usize> {
        let range = self.roots.as_ptr_range();
        range.start as usize..range.end as usize
    }

    /// Marks in every configuration, and then takes what is dead.
    fn expect(&mut self) {
        let reached = self.reachable();
        for (markers, own, others) in CONFIGURATIONS {
            self.mark(markers, own, others, reached.values().sum());
            // SAFETY: there are no other threads.
            unsafe { self.tables.clear_marks() };
            assert_eq!(self.tables.check(), Ok(()));
        }
        self.mark(1, usize::MAX, usize::MAX, reached.values().sum());
        let mut dead = BTreeMap::new();
        // SAFETY: there are no other threads.
        unsafe { self.tables.dead(|start, bytes| assert_eq!(dead.insert(start, bytes), None)) };
        let expected = self.blocks.iter().filter(|(start, _)| !reached.contains_key(start));
        assert!(dead.iter().eq(expected), "{} dead of {}", dead.len(), self.blocks.len());
        assert_eq!(self.tables.check(), Ok(()));
        let mut left = BTreeMap::new();
        self.tables.for_each(|start, bytes| assert_eq!(left.insert(start, bytes), None));
        assert_eq!(left, reached);
        self.blocks = left;
    }

    fn mark(&mut self, markers: usize, own: usize, others: usize, live: usize) {
        let mut marking = Marking::new();
        marking.configure(Some(markers));
        marking.set_limits(0, own, others);
        assert_eq!(marking.prepare(live), markers);
        let range = self.roots();
        // SAFETY: the test's own words; there are no other threads.
        let (result, marked) = unsafe {
            marking.mark(&self.tables, markers, |roots| {
                roots.range(range);
                11
            })
        };
        assert_eq!((result, marked.live, marked.markers), (11, live, markers), "{markers} {own} {others}");
    }
}

/// Bytes of a block, mostly of objects.
pub fn bytes() -> impl Strategy<Value = usize> {
    prop_oneof![
        20 => (2_usize..9).prop_map(|eights| eights * 8),
        4 => (9_usize..600).prop_map(|eights| eights * 8),
        1 => (600_usize..9000).prop_map(|eights| eights * 8),
        1 => (9000_usize..140_000).prop_map(|eights| eights * 8),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_is_not_reachable_is_dead(
        blocks in proptest::collection::vec((0_usize..3, bytes()), 1..300),
        edges in proptest::collection::vec((any::<usize>(), any::<usize>(), any::<usize>(), any::<usize>()), 0..600),
        roots in proptest::collection::vec((any::<usize>(), any::<usize>()), 1..6),
    ) {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut graph = Graph::new(blocks.iter().map(|(gap, bytes)| gap * 8 + bytes).sum());
        for (gap, bytes) in &blocks {
            graph.block(gap * 8, *bytes);
        }
        let inside = |graph: &Graph, block: usize, at: usize| {
            let start = graph.order[block % graph.order.len()];
            start + at % graph.blocks[&start]
        };
        for (from, at, to, into) in edges {
            let start = graph.order[from % graph.order.len()];
            let at = start + at % (graph.blocks[&start] - 7) / 4 * 4;
            let target = inside(&graph, to, into);
            graph.write(at, target);
        }
        graph.roots = roots.iter().map(|(block, at)| inside(&graph, *block, *at)).collect();
        graph.expect();
        // What is left is marked and collected once more, from less.
        graph.roots.truncate(1);
        graph.expect();
    }
}

#[test]
fn long_lists_need_no_stack_of_calls() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    const LENGTH: usize = 100_000;
    let mut graph = Graph::new(LENGTH * 64);
    let mut last = 0;
    for number in 0..LENGTH {
        let block = graph.block(0, 16 + number % 4 * 16);
        graph.write(block + 8, last);
        last = block;
    }
    graph.roots = vec![last + 3];
    // As a stack of one entry has space for it, this does not overflow.
    graph.expect();
    assert_eq!(graph.blocks.len(), LENGTH);
}

#[test]
fn wide_arrays_overflow_narrow_stacks_and_lose_nothing() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    const WIDTH: usize = 10_000;
    let mut graph = Graph::new(WIDTH * (8 + 32 + 24));
    let array = graph.block(0, WIDTH * 8);
    for number in 0..WIDTH {
        let (child, grandchild) = (graph.block(0, 32), graph.block(0, 24));
        graph.write(array + number * 8, child + 31);
        graph.write(child + 20, grandchild + 8);
    }
    graph.roots = vec![0, array + WIDTH * 8 - 1];
    graph.expect();
    assert_eq!(graph.blocks.len(), 2 * WIDTH + 1);
}

#[test]
fn addresses_in_code_lie_at_any_byte() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for shift in 0..8 {
        let mut graph = Graph::new(4096);
        let (kept, lost) = (graph.block(0, 64), graph.block(0, 64));
        let code = [0_u64; 4];
        // SAFETY: three words lie between.
        unsafe { code.as_ptr().cast::<u8>().cast_mut().add(8 + shift).cast::<usize>().write_unaligned(kept) };
        let mut marking = Marking::new();
        assert_eq!(marking.prepare(0), 1);
        let range = code.as_ptr_range();
        // SAFETY: the test's own words; there are no other threads.
        unsafe {
            marking.mark(&graph.tables, 1, |roots| roots.bytes(range.start as usize..range.end as usize));
        }
        let mut dead = Vec::new();
        // SAFETY: there are no other threads.
        unsafe { graph.tables.dead(|start, _| dead.push(start)) };
        assert_eq!(dead, [lost], "{shift}");
    }
}

#[test]
fn a_heap_that_was_large_once_leaves_nothing_after_it() {
    let tables = Box::new(Tables::new());
    // Nothing is read there: no root, so that nothing is marked.
    let (first, second) = (0x2000_0000_0000_usize, 0x3000_0000_0000_usize);
    let fill = |from: usize| {
        for chunk in 0..300 {
            tables.insert(from + (chunk << 20) + 4080, 48).expect("memory");
        }
        tables.insert(from + (300 << 20), 5 << 20).expect("memory");
    };
    fill(first);
    let own = tables.ranges();
    let mut dead = 0;
    // SAFETY: there are no other threads.
    unsafe { tables.dead(|_, _| dead += 1) };
    assert_eq!((dead, tables.used_pages(), tables.first_in(0..usize::MAX)), (301, 0, None));
    fill(second);
    assert_eq!(tables.check(), Ok(()));
    // Another node and nothing else, as the chunks are used again.
    let grown: usize = tables.ranges().iter().zip(&own).map(|(now, then)| now.len() - then.len()).sum();
    assert!(grown <= 1 << 20, "{grown} bytes more");
    assert_eq!(tables.used_pages_high(), 600 + (5 << 8));
}
