//! Random graphs of objects: what is reachable stays as it is, what is not goes.

use std::collections::BTreeSet;

use heaptoll_historic::support::Collector;
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};

use super::program::{GivenRoots, collect, live, read, write};

/// What a program does to a graph of objects.
#[derive(Debug, Clone)]
enum Step {
    /// Allocates an object of so many bytes and holds it in a root.
    Allocate(usize),
    /// Writes a pointer into an object, with an offset, to a word of another.
    Link(usize, usize, usize, usize),
    /// Forgets a root.
    Drop(usize),
    Collect,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![8 => 8usize..200, 2 => 200usize..2100, 1 => 2100usize..20_000];
    let step = prop_oneof![
        6 => size.prop_map(Step::Allocate),
        6 => (any::<usize>(), any::<usize>(), any::<usize>(), any::<usize>())
            .prop_map(|(from, word, to, offset)| Step::Link(from, word, to, offset)),
        4 => any::<usize>().prop_map(Step::Drop),
        1 => Just(Step::Collect),
    ];
    vec(step, 1..300)
}

/// An object of the model: where it is, how long, and the words that were written to it.
struct Node {
    address: usize,
    bytes: usize,
    words: Vec<usize>,
}

pub fn random_graphs_keep_exactly_what_is_reachable<C: Collector>() {
    proptest!(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() },
        |(steps in steps())| play::<C>(&steps, 0));
}

/// Found as a block that overlapped another: growth by nothing after a refused growth was entered as a free run. And
/// as a malloc without end: version 2.6 collected again and again where the first growth of all was refused.
pub fn random_graphs_stay_whole_while_memory_is_refused<C: Collector>() {
    proptest!(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() },
        |(steps in steps(), every in 1u64..5)| play::<C>(&steps, every));
}

fn play<C: Collector>(steps: &[Step], fail_every: u64) {
    let given = GivenRoots::new();
    let mut heap = C::of(given);
    heap.region_mut().fail_every(fail_every);
    let (mut nodes, mut roots): (Vec<Node>, Vec<usize>) = (Vec::new(), Vec::new());
    for step in steps {
        match *step {
            Step::Allocate(bytes) => {
                let Some(block) = heap.allocate(bytes) else {
                    assert!(fail_every != 0, "no memory for {bytes} bytes");
                    continue;
                };
                let address = block.as_ptr() as usize;
                let words = vec![0; bytes / 8];
                assert!((0..bytes / 8).all(|at| read(address + 8 * at) == 0), "a fresh block is zero");
                assert!(nodes.iter().all(|node| node.address != address), "{address:#x} is live");
                nodes.push(Node { address, bytes, words });
                roots.push(address);
            }
            Step::Link(from, word, to, offset) if !nodes.is_empty() => {
                let target = &nodes[to % nodes.len()];
                let pointer = target.address + offset % target.bytes;
                let count = nodes.len();
                let source = &mut nodes[from % count];
                let word = word % source.words.len();
                source.words[word] = pointer;
                write(source.address + 8 * word, pointer);
            }
            Step::Drop(at) if !roots.is_empty() => {
                roots.swap_remove(at % roots.len());
            }
            Step::Collect => {
                given.set(&roots);
                collect(&mut heap);
                nodes = reachable(nodes, &roots);
                let expected: BTreeSet<usize> = nodes.iter().map(|node| node.address).collect();
                assert_eq!(live(&heap), expected);
                for node in &nodes {
                    let whole =
                        node.words.iter().enumerate().all(|(at, &word)| read(node.address + 8 * at) == word);
                    assert!(whole, "the contents of {:#x}", node.address);
                }
            }
            Step::Link(..) | Step::Drop(_) => {}
        }
        // Any allocation may collect.
        given.set(&nodes.iter().map(|node| node.address).collect::<Vec<_>>());
    }
    assert_eq!(heap.check(), Ok(()));
}

fn reachable(nodes: Vec<Node>, roots: &[usize]) -> Vec<Node> {
    let of = |pointer: usize| {
        nodes.iter().position(|node| (node.address..node.address + node.bytes).contains(&pointer))
    };
    let mut seen = BTreeSet::new();
    let mut open: Vec<usize> = roots.iter().filter_map(|&root| of(root)).collect();
    while let Some(node) = open.pop() {
        if seen.insert(node) {
            open.extend(nodes[node].words.iter().filter_map(|&word| of(word)));
        }
    }
    nodes.into_iter().enumerate().filter(|(at, _)| seen.contains(at)).map(|(_, node)| node).collect()
}
