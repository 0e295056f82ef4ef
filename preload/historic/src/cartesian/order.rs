//! The tree's nodes in order of address, without recursion and without a stack: each free block has a word to spare,
//! in which the walk notes the way back up. Every node is proved to be in its place as it is reached, so that a
//! damaged tree ends the walk and never leads it in a circle.

use heaptoll_runtime::{ALIGNMENT, Damage, WORD};

use crate::cartesian::Block;

/// A walk over the tree. Reading on after a [`Damage`] is not provided for.
#[derive(Debug)]
pub struct InOrder {
    /// Where the first block of the heap may begin, and where the last ends.
    start: usize,
    end: usize,
    /// The node last given, before the first none, and its address, before the first 0.
    node: Block,
    reached: usize,
    /// The root, until it has been visited.
    root: Block,
    depth: u64,
    deepest: u64,
    nodes: u64,
}

impl InOrder {
    /// A walk from the root of a tree whose blocks lie from `start` to `end`, which is a block's end.
    ///
    /// # Safety
    /// That memory is the heap's, and the tree does not change while the walk lasts.
    pub unsafe fn new(root: Block, start: usize, end: usize) -> InOrder {
        InOrder { start, end, node: Block::NONE, reached: 0, root, depth: 0, deepest: 0, nodes: 0 }
    }

    /// Nodes given so far.
    pub fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Nodes from the root to the deepest so far, both counted; 0 for an empty tree.
    pub fn deepest(&self) -> u64 {
        self.deepest
    }

    /// The next node by address, after the last none.
    ///
    /// # Errors
    /// The first thing that is not as it should be.
    pub fn step(&mut self) -> Result<Option<Block>, Damage> {
        // SAFETY: `arrive` has proved that every block that is read here lies in the heap.
        unsafe {
            let last = self.node;
            let next = if last.is_none() {
                let root = core::mem::replace(&mut self.root, Block::NONE);
                if root.is_none() { Block::NONE } else { self.leftmost(root, Block::NONE)? }
            } else if !last.right().is_none() {
                Damage::unless(last.right() > last, last.address(), "what hangs to the right lies above")?;
                self.leftmost(last.right(), last)?
            } else {
                self.climb(last)
            };
            if next.is_none() {
                return Ok(None);
            }
            // A node that hangs on the wrong side of one further up shows here: the order is broken on the way back.
            Damage::unless(next.address() > self.reached, next.address(), "the tree is ordered by address")?;
            let apart = last.is_none() || last.after() < next;
            Damage::unless(apart, next.address(), "free neighbours are coalesced")?;
            (self.node, self.reached) = (next, next.address());
            self.nodes += 1;
            Ok(Some(next))
        }
    }

    /// The first node of the subtree at `node`, which hangs below `parent`.
    ///
    /// # Safety
    /// `parent` is none or was arrived at.
    unsafe fn leftmost(&mut self, mut node: Block, mut parent: Block) -> Result<Block, Damage> {
        // SAFETY: blocks are read after `arrive` has proved that they lie in the heap.
        unsafe {
            loop {
                self.arrive(node, parent)?;
                let left = node.left();
                if left.is_none() {
                    return Ok(node);
                }
                Damage::unless(left < node, node.address(), "what hangs to the left lies below")?;
                Damage::unless(
                    left.address() > self.reached,
                    left.address(),
                    "the tree is ordered by address",
                )?;
                (parent, node) = (node, left);
            }
        }
    }

    /// The first node further up that lies above, or none. Climbing from the right goes down in address, so that
    /// this ends even if the notes of the way were overwritten.
    ///
    /// # Safety
    /// `node` was arrived at.
    unsafe fn climb(&mut self, mut node: Block) -> Block {
        loop {
            // SAFETY: nodes on the way up were arrived at on the way down.
            let up = unsafe { node.up() };
            self.depth = self.depth.saturating_sub(1);
            if up.is_none() || node < up {
                return up;
            }
            node = up;
        }
    }

    /// Proves that a block may hang there, and notes the way back in it.
    ///
    /// # Safety
    /// `parent` is none or was arrived at.
    unsafe fn arrive(&mut self, node: Block, parent: Block) -> Result<(), Damage> {
        let at = node.address();
        let inside = at >= self.start && at < self.end && at % ALIGNMENT == WORD;
        Damage::unless(inside, at, "the tree's links lead to places of blocks in the heap")?;
        // SAFETY: the header is in the heap, and a sound block has the four words.
        unsafe {
            Damage::unless(node.is_sound(self.end), at, "a free block has a valid header")?;
            let ordered = parent.is_none() || node.size() <= parent.size();
            Damage::unless(ordered, at, "no block hangs below a smaller one")?;
            node.set_up(parent);
        }
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        Ok(())
    }
}
