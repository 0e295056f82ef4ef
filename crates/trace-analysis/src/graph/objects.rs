//! The live objects and the edges between them, at the reader's position.

use std::collections::{BTreeMap, HashMap};

/// Number of no object.
const NONE: u64 = u64::MAX;

/// A live object, with what an analysis keeps of it.
#[derive(Debug, Default)]
pub struct Node<T> {
    /// Its number.
    pub object: u64,
    /// Requested bytes.
    pub size: u64,
    /// By offset of the word.
    edges: BTreeMap<u64, Target>,
    /// Edges to it of live objects, its own included.
    incoming: u64,
    /// What the analysis keeps.
    pub data: T,
}

/// What a word of an object leads to. The object may have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Where its node is, or was.
    pub slot: u32,
    /// Its number.
    pub object: u64,
    /// Not to its start.
    pub is_interior: bool,
}

impl<T> Node<T> {
    /// Edges to it of other live objects.
    pub fn incoming_of_others(&self) -> u64 {
        let own = self.edges.values().filter(|target| target.object == self.object).count();
        self.incoming.saturating_sub(own as u64)
    }
}

/// Live objects in slots, which are used again.
#[derive(Debug, Default)]
pub struct Objects<T> {
    nodes: Vec<Node<T>>,
    empty: Vec<u32>,
    slots: HashMap<u64, u32>,
    edges: u64,
}

impl<T: Default> Objects<T> {
    /// Adds an object without edges.
    pub fn add(&mut self, object: u64, size: u64, data: T) {
        let node = Node { object, size, edges: BTreeMap::new(), incoming: 0, data };
        let slot = match self.empty.pop() {
            Some(slot) => {
                self.nodes[slot as usize] = node;
                slot
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        self.slots.insert(object, slot);
    }

    /// Removes an object and the edges from it and to it.
    pub fn remove(&mut self, object: u64) -> Option<Node<T>> {
        let slot = self.slots.remove(&object)?;
        // No edge leads to this number.
        let none = Node { object: NONE, ..Node::default() };
        let node = std::mem::replace(&mut self.nodes[slot as usize], none);
        self.empty.push(slot);
        self.edges -= node.incoming;
        for target in node.edges.values().filter(|target| target.object != object) {
            self.forget(*target);
        }
        Some(node)
    }

    /// One edge fewer leads to this target, if it is live.
    fn forget(&mut self, target: Target) {
        let node = &mut self.nodes[target.slot as usize];
        if node.object == target.object && node.incoming > 0 {
            node.incoming -= 1;
            self.edges -= 1;
        }
    }

    /// A word of an object leads to an object (by number, and whether to its start), or to none any more.
    pub fn hold(&mut self, from: u64, offset: u64, to: Option<(u64, bool)>) {
        let Some(&from) = self.slots.get(&from) else { return };
        let target = to.and_then(|(object, is_interior)| {
            Some(Target { slot: *self.slots.get(&object)?, object, is_interior })
        });
        let edges = &mut self.nodes[from as usize].edges;
        let old = match target {
            Some(target) => edges.insert(offset, target),
            None => edges.remove(&offset),
        };
        if let Some(old) = old {
            self.forget(old);
        }
        if let Some(target) = target {
            self.nodes[target.slot as usize].incoming += 1;
            self.edges += 1;
        }
    }

    /// Edges between live objects.
    pub fn edges(&self) -> u64 {
        self.edges
    }

    /// The slot of a live object.
    pub fn slot(&self, object: u64) -> Option<u32> {
        self.slots.get(&object).copied()
    }

    /// What is in a slot.
    pub fn node_mut(&mut self, slot: u32) -> &mut Node<T> {
        &mut self.nodes[slot as usize]
    }

    /// Every live object.
    pub fn for_each(&mut self, mut each: impl FnMut(u32, &mut Node<T>)) {
        for &slot in self.slots.values() {
            each(slot, &mut self.nodes[slot as usize]);
        }
    }

    /// The edges of the object in a slot that lead to live objects.
    pub fn targets(&self, slot: u32) -> impl Iterator<Item = (Target, &T)> {
        self.nodes[slot as usize].edges.values().filter_map(|target| {
            let node = &self.nodes[target.slot as usize];
            (node.object == target.object).then_some((*target, &node.data))
        })
    }
}
