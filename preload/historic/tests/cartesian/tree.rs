//! The tree alone, against a map of what should be in it: order, shape, and what a descent finds.

use std::collections::BTreeMap;

use heaptoll_historic::cartesian::{Block, InOrder, SMALLEST, Tree};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, prop_oneof};
use proptest::proptest;
use proptest::test_runner::FileFailurePersistence;

/// Places for blocks, so far apart that none touch.
const PLACES: usize = 64;
const APART: usize = 64 << 10;

#[derive(Debug, Clone, Copy)]
enum Change {
    /// Puts a block of a size at a place, if none is there.
    Insert(usize, usize),
    /// Takes the block at or before a place out.
    Delete(usize),
    /// Takes so many bytes from the block that better fit finds, as an allocation does.
    Take(usize),
}

fn size() -> impl Strategy<Value = usize> + Clone {
    // Few sizes make many equals; many make the shape of the tree unique.
    prop_oneof![1 => 0usize..4, 2 => 0usize..4000].prop_map(|units| SMALLEST + 16 * units)
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        4 => (0..PLACES, size()).prop_map(|(place, size)| Change::Insert(place, size)),
        2 => (0..PLACES).prop_map(Change::Delete),
        2 => size().prop_map(Change::Take),
    ];
    vec(change, 1..300)
}

struct Trial {
    memory: Vec<u128>,
    tree: Tree,
    model: BTreeMap<usize, usize>,
}

impl Trial {
    fn new() -> Trial {
        let memory = vec![0u128; PLACES * APART / size_of::<u128>()];
        Trial { memory, tree: Tree::new(), model: BTreeMap::new() }
    }

    /// Headers are at 8 mod 16, as in the heap.
    fn start(&self) -> usize {
        self.memory.as_ptr() as usize + 8
    }

    fn apply(&mut self, change: Change) {
        // SAFETY: blocks are within their places, whose memory this owns; links are used at once.
        unsafe {
            match change {
                Change::Insert(place, size) => {
                    let at = self.start() + place * APART;
                    if self.model.range(at..at + APART).next().is_none() {
                        let block = Block::at(at);
                        block.write(size.min(APART - 64));
                        // Both ways to insert lead to the same place.
                        if size % 32 == 0 {
                            self.tree.insert(block);
                        } else {
                            let place = self.tree.neighbours(block).place;
                            self.tree.insert_at(place, block);
                        }
                        self.model.insert(at, block.size());
                    }
                }
                Change::Delete(place) => {
                    let at = self.start() + place * APART;
                    let expected = self.model.range(..=at).next_back().map(|(&at, _)| at);
                    let above = self.model.range(at + 1..).next().map(|(&at, _)| at);
                    // Where there is no block the word is old or 0, and only the place to insert depends on it.
                    let found = self.tree.neighbours(Block::at(at));
                    assert_eq!(found.below.map(|link| link.node().address()), expected);
                    assert_eq!(found.above.map(|link| link.node().address()), above);
                    if let Some(link) = found.below {
                        self.model.remove(&link.node().address());
                        self.tree.delete(link);
                    }
                }
                Change::Take(size) => {
                    let (found, _) = self.tree.better_fit(size);
                    let found = found.map(|link| (link, link.node()));
                    assert_eq!(found.is_some(), self.model.values().any(|&has| has >= size));
                    if self.sizes_differ() {
                        assert_eq!(found.map(|(_, node)| node.address()), self.reference(size));
                    }
                    let Some((link, node)) = found else { return };
                    let rest = node.size() - size;
                    self.model.remove(&node.address());
                    if rest <= SMALLEST {
                        self.tree.delete(link);
                    } else {
                        let upper = Block::at(node.address() + size);
                        upper.write(rest);
                        self.tree.demote(link, upper);
                        self.model.insert(upper.address(), rest);
                    }
                }
            }
        }
    }

    fn sizes_differ(&self) -> bool {
        let mut sizes: Vec<_> = self.model.values().collect();
        sizes.sort();
        sizes.is_sorted_by(|a, b| a < b)
    }

    /// Better fit by the definition: the root of a range of addresses is its largest block, and the children are the
    /// roots of what lies before and behind it.
    fn reference(&self, size: usize) -> Option<usize> {
        let blocks: Vec<_> = self.model.iter().map(|(&at, &has)| (has, at)).collect();
        let root = |range: &[(usize, usize)]| range.iter().copied().max().filter(|&(has, _)| has >= size);
        let (mut range, mut best) = (&blocks[..], root(&blocks)?);
        loop {
            let split = range.iter().position(|&block| block == best).expect("the root is in its range");
            let (before, after) = (&range[..split], &range[split + 1..]);
            let Some(next) = [root(before), root(after)].into_iter().flatten().min() else {
                return Some(best.1);
            };
            range = if before.contains(&next) { before } else { after };
            best = next;
        }
    }

    /// The walk proves the order by address and size; it must give what the model has.
    fn verify(&self) {
        let end = self.start() + PLACES * APART - 16;
        // SAFETY: the tree's blocks are in that memory, and stay as they are.
        let mut order = unsafe { InOrder::new(self.tree.root(), self.start(), end) };
        let mut blocks = Vec::new();
        while let Some(block) = order.step().expect("a sound tree") {
            // SAFETY: a block of the tree.
            blocks.push((block.address(), unsafe { block.size() }));
        }
        assert_eq!(blocks, self.model.iter().map(|(&at, &size)| (at, size)).collect::<Vec<_>>());
        assert_eq!(order.nodes(), blocks.len() as u64);
        assert_eq!(order.step(), Ok(None), "the end stays the end");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_tree_holds_what_it_should_in_both_orders(changes in changes()) {
        let mut trial = Trial::new();
        for change in changes {
            trial.apply(change);
            trial.verify();
        }
    }
}

#[test]
fn of_equals_the_first_stays_above() {
    let mut trial = Trial::new();
    [3, 1, 5].into_iter().for_each(|place| trial.apply(Change::Insert(place, 64)));
    assert_eq!(trial.tree.root().address(), trial.start() + 3 * APART);
    trial.apply(Change::Insert(0, 80));
    assert_eq!(trial.tree.root().address(), trial.start());
    trial.verify();
}
