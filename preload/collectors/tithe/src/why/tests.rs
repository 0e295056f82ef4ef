//! Chains and shares against a model: a graph whose roots are added ranges.

extern crate std;

use std::boxed::Box;
use std::collections::VecDeque;
use std::string::{String, ToString};
use std::sync::{Mutex, MutexGuard};
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::cache::Cache;
use crate::mode::Mode;
use crate::settings::Settings;

/// One heap at a time: a process has address space for some tens of regions.
static HEAP_PERMIT: Mutex<()> = Mutex::new(());

struct HeapFixture {
    heap: Box<Heap>,
    cache: *mut Cache,
    _permit: MutexGuard<'static, ()>,
}

impl HeapFixture {
    fn new() -> HeapFixture {
        let permit = HEAP_PERMIT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let heap = Box::new(Heap::new());
        heap.configure(&Settings { mode: Mode::Hybrid, min_headroom: 1 << 40, ..Settings::new() }, None);
        let cache = heap.open_cache(1).expect("a cache");
        HeapFixture { heap, cache, _permit: permit }
    }

    fn allocate(&self, bytes: usize, is_atomic: bool) -> usize {
        // SAFETY: the heap's cache, used by this thread alone.
        let block = self.heap.allocate(unsafe { &mut *self.cache }, bytes, is_atomic);
        assert!(!block.is_null());
        // SAFETY: the block was just allocated with this many bytes.
        unsafe { block.write_bytes(0, self.heap.usable(block)) };
        block as usize
    }

    fn free(&self, block: usize) {
        // SAFETY: the heap's cache, used by this thread alone, which does not use the block again.
        unsafe { self.heap.free(&mut *self.cache, block as *mut u8) }.expect("a block");
    }

    fn why(&self, address: usize) -> String {
        let mut text = std::vec![0; 1 << 16];
        let length = self.heap.why(address, &mut text, 0).expect("an answer");
        String::from_utf8(text[..length].to_vec()).expect("text")
    }

    fn check(&self) {
        self.heap.check().expect("the heap is consistent");
    }
}

fn set_word(place: usize, value: usize) {
    // SAFETY: tests pass addresses of words in live blocks.
    unsafe { (place as *mut usize).write(value) };
}

#[derive(Debug, Clone)]
struct Node {
    bytes: usize,
    is_atomic: bool,
    /// The nodes its words point to, and how many bytes into them.
    edges: Vec<(prop::sample::Index, usize)>,
    is_root: bool,
    is_freed: bool,
}

prop_compose! {
    fn node()(
        bytes in prop_oneof![24..2000_usize, Just(40_000_usize)],
        is_atomic in prop::bool::weighted(0.1),
        edges in prop::collection::vec((any::<prop::sample::Index>(), 0..24_usize), 0..4),
        is_root in prop::bool::weighted(0.15),
        is_freed in prop::bool::weighted(0.1),
    ) -> Node {
        Node { bytes: bytes.max(edges.len() * 8), is_atomic, edges, is_root, is_freed }
    }
}

/// How many blocks the shortest chain to each node has; `None` if there is no chain.
fn distances(nodes: &[Node]) -> Vec<Option<usize>> {
    let mut distances = std::vec![None; nodes.len()];
    let mut queue = VecDeque::new();
    let reach = |node: usize, distance, distances: &mut Vec<Option<usize>>, queue: &mut VecDeque<usize>| {
        if distances[node].is_none() && !nodes[node].is_freed {
            distances[node] = Some(distance);
            queue.push_back(node);
        }
    };
    for (node, what) in nodes.iter().enumerate() {
        if what.is_root {
            reach(node, 1, &mut distances, &mut queue);
        }
    }
    while let Some(node) = queue.pop_front() {
        if nodes[node].is_atomic {
            continue;
        }
        let after = distances[node].unwrap_or(0) + 1;
        for (to, _) in &nodes[node].edges {
            reach(to.index(nodes.len()), after, &mut distances, &mut queue);
        }
    }
    distances
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn chains_are_the_shortest_and_shares_are_what_is_reached(nodes in prop::collection::vec(node(), 1..40)) {
        let fixture = HeapFixture::new();
        let blocks: Vec<usize> = nodes.iter().map(|node| fixture.allocate(node.bytes, node.is_atomic)).collect();
        for (node, &block) in nodes.iter().zip(&blocks) {
            for (at, (to, inside)) in node.edges.iter().enumerate() {
                set_word(block + at * 8, blocks[to.index(nodes.len())] + inside);
            }
        }
        let rooted = |(node, &block): (&Node, &usize)| if node.is_root { block + 5 } else { 0 };
        let mut roots: Vec<usize> = nodes.iter().zip(&blocks).map(rooted).collect();
        let range = roots.as_mut_ptr_range();
        prop_assert_eq!(fixture.heap.add_roots(range.start as usize, range.end as usize), 0);
        for (node, &block) in nodes.iter().zip(&blocks) {
            if node.is_freed {
                fixture.free(block);
            }
        }
        let distances = distances(&nodes);
        let mut bytes = 0;
        for ((node, &block), distance) in nodes.iter().zip(&blocks).zip(&distances) {
            prop_assert_eq!(fixture.heap.is_live(block + 7), c_int::from(!node.is_freed));
            let chain_text = fixture.why(block + 7);
            let lines: Vec<&str> = chain_text.lines().collect();
            match distance {
                None => prop_assert_eq!(&chain_text, ""),
                Some(distance) => {
                    prop_assert_eq!(lines.len(), distance + 1, "{}", chain_text);
                    prop_assert!(lines[0].starts_with("added root at 0x"));
                    prop_assert!(lines[*distance].ends_with(", queried at + 7"));
                    bytes += fixture.heap.usable(block as *const u8) as u64;
                }
            }
            // Each line's word points into the block of the next line, and lies at the offset in the line.
            for pair in lines.windows(2) {
                let number = |text: &str| usize::from_str_radix(text.trim_start_matches("0x"), 16).expect("an address");
                let value = number(pair[0].rsplit(' ').next().expect("a word"));
                let mut next = pair[1].split(' ').skip(1);
                let start = number(next.next().expect("an address"));
                let size: usize = next.nth(1).expect("a size").parse().expect("a number");
                prop_assert!((start..start + size).contains(&value), "{}", chain_text);
                prop_assert_eq!(fixture.heap.usable(start as *const u8), size);
                if let Some((_, offset)) = pair[1].split_once("word at + ") {
                    let offset: usize = offset.split(' ').next().expect("an offset").parse().expect("a number");
                    // SAFETY: a word in a live block.
                    let word = unsafe { ((start + offset) as *const usize).read() };
                    let shown = pair[1].rsplit(' ').next().expect("a word");
                    prop_assert_eq!(number(shown), word);
                }
            }
        }
        let shares = fixture.heap.held(0).expect("an answer");
        prop_assert_eq!(shares, Shares { mappings: bytes, ..Shares::default() });
        fixture.check();
        prop_assert_eq!(roots.len(), nodes.len());
    }
}

#[test]
fn an_empty_heap_has_no_answers() {
    let fixture = HeapFixture::new();
    assert_eq!((fixture.heap.is_live(0), fixture.heap.is_live(usize::MAX)), (0, 0));
    assert_eq!(fixture.why(0x1234), "");
    assert_eq!(fixture.heap.held(0), Ok(Shares::default()));
    fixture.check();
}

#[test]
fn unswept_spans_are_swept_before_a_chain_is_sought() {
    let fixture = HeapFixture::new();
    let (kept, lost) = (fixture.allocate(100, false), fixture.allocate(100, false));
    let roots = [kept];
    let range = roots.as_ptr_range();
    assert_eq!(fixture.heap.add_roots(range.start as usize, range.end as usize), 0);
    assert_eq!(fixture.heap.collect(crate::log::Reason::Called), Ok(()));
    assert_eq!((fixture.heap.is_live(kept), fixture.heap.is_live(lost)), (1, 0));
    assert!(!fixture.why(kept).is_empty() && fixture.why(lost).is_empty());
    fixture.check();
}

#[test]
fn a_long_chain_has_its_middle_omitted_where_a_limit_is_given() {
    let fixture = HeapFixture::new();
    let blocks: Vec<usize> = (0..200).map(|_| fixture.allocate(32, false)).collect();
    for pair in blocks.windows(2) {
        set_word(pair[0], pair[1]);
    }
    let roots = [blocks[0]];
    let range = roots.as_ptr_range();
    assert_eq!(fixture.heap.add_roots(range.start as usize, range.end as usize), 0);
    assert_eq!(fixture.why(blocks[199]).lines().count(), 201);
    let chain_text = |most: usize, last: usize| {
        let mut place = std::vec![0; 1 << 15];
        let mut text = Text::new(&mut place);
        let mut collector = fixture.heap.collector.lock();
        let chained = with_stopped_heap(&fixture.heap, &mut collector, Query::Chains, 0, |stopped_heap| {
            chain(stopped_heap, blocks[last], most, &mut text)
        });
        assert_eq!(chained, Ok(Ok(true)));
        String::from_utf8_lossy(text.finish()).to_string()
    };
    let text = chain_text(10, 199);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1 + 10 + 1 + 10, "{text}");
    let omission = lines.iter().position(|line| line.starts_with("...")).expect("a line for the omission");
    assert!(lines[omission].ends_with(": 180"), "{text}");
    assert_eq!(omission, 10, "{text}");
    let count = |last: usize| chain_text(10, last).lines().count();
    // Up to twice as many there is nothing to leave out.
    assert_eq!((count(18), count(19), count(20), count(21)), (20, 21, 22, 22));
    fixture.check();
}

#[test]
fn pages_that_cannot_be_read_are_skipped() {
    const PAGE: usize = heaptoll_runtime::PAGE;
    // SAFETY: a new mapping of the test's own, of which only addresses are used.
    let start = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let start = libc::mmap(std::ptr::null_mut(), 4 * PAGE, libc::PROT_READ, flags, -1, 0) as usize;
        // Protected and not unmapped: another test could map into the hole, and this one's end would unmap that.
        assert_eq!(libc::mprotect((start + PAGE) as *mut _, 2 * PAGE, libc::PROT_NONE), 0);
        start
    };
    let shown = |range| {
        let mut ranges = Vec::new();
        crate::readable::readable(range, &mut |range| ranges.push(range));
        ranges
    };
    let end = start + 4 * PAGE;
    assert_eq!(shown(start + 8..end - 8), [start + 8..start + PAGE, start + 3 * PAGE..end - 8]);
    assert!(shown(0..PAGE).is_empty(), "the first page");
    assert!(shown(usize::MAX - 4095..usize::MAX - 7).is_empty(), "the last page");
    // SAFETY: the test's own mapping.
    unsafe { libc::munmap(start as *mut _, 4 * PAGE) };
}
