//! Random graphs of blocks against a model of what is reachable.

use std::vec::Vec;

use proptest::prelude::*;

use super::*;

/// Root words.
const ROOTS: usize = 8;

/// A block of the graph.
#[derive(Debug, Clone)]
struct Node {
    address: usize,
    usable: usize,
    atomic: bool,
    /// Its words that point to nodes: word and node.
    edges: Vec<(usize, usize)>,
}

/// One operation. Numbers count modulo the number of existing items.
#[derive(Debug, Clone)]
enum Step {
    Node { bytes: usize, atomic: bool, root: Option<usize> },
    Edge { from: usize, word: usize, to: usize, offset: usize },
    Root { root: usize, to: usize, offset: usize },
    Unroot { root: usize },
    Collect { lazily: bool },
    Sweep,
}

fn step() -> impl Strategy<Value = Step> {
    let n = any::<usize>();
    let bytes = prop_oneof![8 => 16..200_usize, 4 => 16..9000_usize, 1 => 16..150_000_usize];
    prop_oneof![
        10 => (bytes, prop::bool::weighted(0.2), prop::option::weighted(0.3, any::<usize>()))
            .prop_map(|(bytes, atomic, root)| Step::Node { bytes, atomic, root }),
        12 => (n, n, n, n)
            .prop_map(|(from, word, to, offset)| Step::Edge { from, word, to, offset }),
        2 => (n, n, n).prop_map(|(root, to, offset)| Step::Root { root, to, offset }),
        1 => n.prop_map(|root| Step::Unroot { root }),
        1 => any::<bool>().prop_map(|lazily| Step::Collect { lazily }),
        1 => Just(Step::Sweep),
    ]
}

struct Graph {
    fixture: HeapFixture,
    roots: Vec<usize>,
    /// The node that each root points to.
    targets: [Option<usize>; ROOTS],
    nodes: Vec<Option<Node>>,
}

impl Graph {
    fn new(mode: Mode, stack: usize) -> Graph {
        Graph::with(HeapFixture::new(mode, 1), stack)
    }

    fn with(fixture: HeapFixture, stack: usize) -> Graph {
        fixture.heap.collector.lock().stack.limit(stack);
        let roots = std::vec![0; ROOTS];
        fixture.add_roots(&roots);
        Graph { fixture, roots, targets: [None; ROOTS], nodes: Vec::new() }
    }

    fn live(&self, at: usize) -> Option<usize> {
        let live: Vec<_> = (0..self.nodes.len()).filter(|&node| self.nodes[node].is_some()).collect();
        at.checked_rem(live.len()).map(|at| live[at])
    }

    /// An address in a node.
    fn inside(&self, node: usize, offset: usize) -> usize {
        let node = self.nodes[node].as_ref().expect("a live node");
        node.address + offset % node.usable
    }

    fn root(&mut self, root: usize, node: usize, offset: usize) {
        self.roots[root % ROOTS] = self.inside(node, offset);
        self.targets[root % ROOTS] = Some(node);
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Node { bytes, atomic, root } => {
                let address = self.fixture.allocate_clear(bytes, atomic);
                let usable = self.fixture.usable(address);
                let ends = |node: &Node| (node.address, node.address + node.usable);
                let apart = self
                    .nodes
                    .iter()
                    .flatten()
                    .map(ends)
                    .all(|(start, end)| end <= address || address + usable <= start);
                assert!(apart, "a reachable block is not handed out again");
                self.nodes.push(Some(Node { address, usable, atomic, edges: Vec::new() }));
                if let Some(root) = root {
                    self.root(root, self.nodes.len() - 1, bytes / 3);
                }
            }
            Step::Edge { from, word, to, offset } => {
                if let (Some(from), Some(to)) = (self.live(from), self.live(to)) {
                    let target = self.inside(to, offset);
                    let node = self.nodes[from].as_mut().expect("a live node");
                    let word = word % (node.usable / 8);
                    node.edges.retain(|&(at, _)| at != word);
                    node.edges.push((word, to));
                    set_word(node.address + 8 * word, target);
                }
            }
            Step::Root { root, to, offset } => {
                if let Some(to) = self.live(to) {
                    self.root(root, to, offset);
                }
            }
            Step::Unroot { root } => {
                self.roots[root % ROOTS] = 0;
                self.targets[root % ROOTS] = None;
            }
            Step::Collect { lazily } => {
                if lazily {
                    self.fixture.collect_lazily();
                } else {
                    self.fixture.collect();
                }
                self.forget_unreachable();
            }
            Step::Sweep => self.fixture.heap.sweep_all(),
        }
    }

    fn reachable(&self) -> Vec<bool> {
        let mut reached = std::vec![false; self.nodes.len()];
        let mut grey: Vec<_> = self.targets.iter().flatten().copied().collect();
        while let Some(node) = grey.pop() {
            if core::mem::replace(&mut reached[node], true) {
                continue;
            }
            let node = self.nodes[node].as_ref().expect("what is reachable is live");
            if !node.atomic {
                grey.extend(node.edges.iter().map(|&(_, to)| to));
            }
        }
        reached
    }

    /// Removes from the model what a collection reclaims, and returns it.
    fn forget_unreachable(&mut self) -> Vec<Node> {
        let reached = self.reachable();
        let mut gone = Vec::new();
        for (node, reached) in self.nodes.iter_mut().zip(reached) {
            if !reached {
                gone.extend(node.take());
            }
        }
        // Words of pointer-free nodes may have pointed there.
        let live: Vec<_> = self.nodes.iter().map(Option::is_some).collect();
        for node in self.nodes.iter_mut().flatten() {
            node.edges.retain(|&(_, to)| live[to]);
        }
        gone
    }

    fn verify(&self) {
        for node in self.nodes.iter().flatten() {
            assert!(self.fixture.is_taken(node.address), "{node:?}");
            let words = bytes_at(node.address, node.usable).chunks_exact(8);
            for (at, bytes) in words.enumerate() {
                let word = usize::from_ne_bytes(bytes.try_into().expect("eight bytes"));
                match node.edges.iter().find(|&&(edge, _)| edge == at) {
                    None => assert!(word == 0 || node.atomic, "word {at} of {node:?}"),
                    Some(&(_, to)) => {
                        let to = self.nodes[to].as_ref().expect("a live node");
                        assert!((to.address..to.address + to.usable).contains(&word));
                    }
                }
            }
        }
    }

    fn run(mut self, steps: &[Step]) {
        for step in steps {
            self.step(step);
        }
        self.fixture.audit();
        self.fixture.collect_lazily();
        let gone = self.forget_unreachable();
        self.fixture.check();
        self.fixture.heap.sweep_all();
        self.verify();
        for node in &gone {
            assert!(!self.fixture.is_taken(node.address), "unreachable, and kept: {node:?}");
            assert!(self.fixture.is_spoilt(node.address, node.usable), "{node:?}");
        }
        let live: usize = self.nodes.iter().flatten().map(|node| node.usable).sum();
        assert_eq!(self.fixture.census().live_bytes, live as u64);
        self.fixture.audit();
        // The next collection finds the same.
        self.fixture.collect();
        self.verify();
        assert_eq!(self.fixture.census().live_bytes, live as u64);
        // And without roots nothing is left.
        self.roots.fill(0);
        self.fixture.close();
        self.fixture.collect();
        assert_eq!(self.fixture.census().live_bytes, 0);
        self.fixture.audit();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn exactly_what_is_reachable_is_kept(
        steps in prop::collection::vec(step(), 1..400),
        mode in prop::sample::select(std::vec![Mode::Hybrid, Mode::Collect]),
    ) {
        Graph::new(mode, usize::MAX).run(&steps);
    }

    #[test]
    fn exactly_what_is_reachable_is_kept_by_eager_sweeps_whatever_only_marks_between_them(
        steps in prop::collection::vec(step(), 1..400),
        mode in prop::sample::select(std::vec![Mode::Hybrid, Mode::Collect]),
        every in prop::option::of(1..100_000_usize),
        eager in any::<bool>(),
    ) {
        // So large that collections due by `every` never reclaim; the model covers the others.
        let reclaim = 1 << 32;
        let min_headroom = 1 << 40;
        let settings = Settings { mode, every, reclaim, eager, min_headroom, poison: true, ..Settings::new() };
        Graph::with(HeapFixture::with(&settings, 1), usize::MAX).run(&steps);
    }

    #[test]
    fn a_mark_stack_that_overflows_changes_nothing(
        steps in prop::collection::vec(step(), 1..400),
        stack in 1..6_usize,
    ) {
        Graph::new(Mode::Collect, stack).run(&steps);
    }
}

#[test]
fn a_long_list_is_marked_whatever_the_stack() {
    for stack in [1, 2, 1000, usize::MAX] {
        let fixture = HeapFixture::new(Mode::Collect, 1);
        fixture.heap.collector.lock().stack.limit(stack);
        let mut roots = std::vec![0];
        fixture.add_roots(&roots);
        for _ in 0..3000 {
            let node = fixture.allocate_clear(47, false);
            set_word(node + 40, roots[0]);
            roots[0] = node;
        }
        fixture.collect();
        assert_eq!(fixture.census().live_bytes, 3000 * 48, "stack of {stack}");
        // Cut in the middle.
        let mut node = roots[0];
        (0..1499).for_each(|_| node = word(node + 40));
        set_word(node + 40, 0);
        fixture.collect();
        assert_eq!(fixture.census().live_bytes, 1500 * 48, "stack of {stack}");
        fixture.audit();
    }
}

#[test]
fn a_wide_block_is_marked_whatever_the_stack() {
    for stack in [1, 3, usize::MAX] {
        let fixture = HeapFixture::new(Mode::Hybrid, 1);
        fixture.heap.collector.lock().stack.limit(stack);
        let wide = fixture.allocate_clear(400_000, false);
        let roots = std::vec![wide + 17];
        fixture.add_roots(&roots);
        for at in 0..2000 {
            let leaf = fixture.allocate_clear(63, false);
            set_word(leaf + 8, fixture.allocate_clear(200, at % 2 == 0));
            set_word(wide + 8 * (at * 20), leaf);
        }
        fixture.collect();
        let leaves = 2000 * (64 + CLASS[class_of(200)].size as u64);
        assert_eq!(fixture.census().live_bytes, 401_408 + leaves, "stack of {stack}");
        fixture.audit();
    }
}
