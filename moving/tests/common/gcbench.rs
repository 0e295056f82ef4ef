//! GCBench (Boehm, Ellis, Kovac) as a trace: trees of nodes with two references and two numbers, made from the leaves up
//! and from the root down; a tree and an array stay. Nothing is freed.

use heaptoll_trace::Output;

use super::Scenario;

/// Bytes of a node.
const NODE: u64 = 32;
/// Bytes of the array.
const ARRAY: u64 = 4_000_000;

/// The program and its stack.
pub struct Bench<'a, W> {
    scenario: &'a mut Scenario<W>,
    stack: Vec<u64>,
    /// Bytes from one root point to the next, and where the next is.
    every_bytes: u64,
    next_bytes: u64,
}

impl<'a, W: Output> Bench<'a, W> {
    /// With a root point each time that so many bytes were allocated.
    pub fn new(scenario: &'a mut Scenario<W>, every_bytes: u64) -> Bench<'a, W> {
        Bench { scenario, stack: Vec::new(), every_bytes, next_bytes: every_bytes }
    }

    /// Trees of at most this depth; 16 is the usual one.
    pub fn run(&mut self, depth: u32) {
        let first = self.make(depth + 1);
        self.scenario.touch(first);
        let long_lived = self.node();
        self.stack.push(long_lived);
        self.populate(depth, long_lived);
        let array = self.allocate(ARRAY);
        self.stack.push(array);
        self.scenario.touch(array);
        for at in (4..=depth).step_by(2) {
            let trees = 2 * ((1 << (depth + 2)) - 1) / ((1 << (at + 1)) - 1);
            for _ in 0..trees {
                let tree = self.node();
                self.stack.push(tree);
                self.populate(at, tree);
                self.stack.pop();
            }
            for _ in 0..trees {
                self.make(at);
            }
        }
        self.scenario.touch(array);
        self.scenario.touch(long_lived);
    }

    fn allocate(&mut self, size: u64) -> u64 {
        if self.scenario.clock_bytes() >= self.next_bytes {
            self.next_bytes += self.every_bytes;
            let mut roots = self.stack.clone();
            roots.sort_unstable();
            roots.dedup();
            self.scenario.roots(&roots);
        }
        self.scenario.allocate(size)
    }

    fn node(&mut self) -> u64 {
        let node = self.allocate(NODE);
        self.scenario.touch(node);
        node
    }

    /// From the leaves up.
    fn make(&mut self, depth: u32) -> u64 {
        if depth == 0 {
            return self.node();
        }
        for _ in 0..2 {
            let child = self.make(depth - 1);
            self.stack.push(child);
        }
        let node = self.node();
        for word in [1, 0] {
            if let Some(child) = self.stack.pop() {
                self.scenario.set(node, word, child);
            }
        }
        node
    }

    /// From the root down. The root is on the stack.
    fn populate(&mut self, depth: u32, node: u64) {
        if depth == 0 {
            return;
        }
        let children = [0, 1].map(|word| {
            let child = self.node();
            self.scenario.set(node, word, child);
            child
        });
        // The node, which the caller's stack keeps, keeps both.
        for child in children {
            self.stack.push(child);
            self.populate(depth - 1, child);
            self.stack.pop();
        }
    }
}
