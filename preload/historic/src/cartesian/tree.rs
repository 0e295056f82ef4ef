//! The Cartesian tree of the free blocks (Vuillemin 1980, Stephenson 1983): by address from left to right, by size
//! from the root down.
//!
//! ```text
//!                      320 at F            each block is as large as any below it;
//!                    ╱         ╲           read from left to right, the addresses ascend:
//!             192 at C          256 at H
//!            ╱       ╲         ╱            A      C    D    F      G   H
//!      96 at A     64 at D   32 at G       [96]..[192].[64].[320]..[32].[256]
//! ```
//!
//! Of equals the one that came first stays above. All steps of a descent are counted, those of restructuring too.

use core::ptr;

use crate::cartesian::Block;
use crate::cartesian::block::{LEFT, RIGHT};

/// The tree. Its nodes are the free blocks themselves.
#[derive(Debug)]
pub struct Tree {
    root: Block,
}

/// The place that a node hangs from: the root's, or a child's of a free block. Good until the tree changes above.
#[derive(Debug, Clone, Copy)]
pub struct Link(*mut Block);

impl Link {
    #[inline(always)]
    fn new(place: *mut Block) -> Option<Link> {
        if place.is_null() { None } else { Some(Link(place)) }
    }

    /// The node that hangs there.
    ///
    /// # Safety
    /// The link is of a tree that has not changed above it.
    #[inline(always)]
    pub unsafe fn node(self) -> Block {
        // SAFETY: the link is of a tree that has not changed above it, as this function requires.
        unsafe { *self.0 }
    }
}

/// Between which free blocks an address lies, and where a block of its size would hang.
#[derive(Debug, Clone, Copy)]
pub struct Neighbours {
    /// Where it would hang: the first smaller node on the way.
    pub place: Link,
    /// The last free block that begins at or below the address.
    pub below: Option<Link>,
    /// The first that begins above it.
    pub above: Option<Link>,
    /// One of them hangs below the other: whether it is `below`.
    pub below_is_deeper: bool,
    /// Nodes visited.
    pub steps: u64,
}

impl Tree {
    /// No free blocks.
    pub const fn new() -> Tree {
        Tree { root: Block::NONE }
    }

    /// The largest free block, or none.
    #[inline(always)]
    pub const fn root(&self) -> Block {
        self.root
    }

    /// Better fit: descends from the root to the smaller child that still suffices, else to the larger one if that
    /// suffices, and stops where neither does. Of two equal children it takes the left one, as SunOS did. `None` when
    /// the root is too small, as then all are. Also the nodes it stood on.
    ///
    /// # Safety
    /// Here and below: the tree's nodes are free blocks of a sound heap.
    #[inline(always)]
    pub unsafe fn better_fit(&mut self, size: usize) -> (Option<Link>, u64) {
        let want = Block::header_for(size);
        let mut link = &raw mut self.root;
        let mut node = self.root;
        // SAFETY: the tree's nodes are free blocks of a sound heap, as this function requires; a node that suffices is
        // one.
        unsafe {
            if node.weight() < want {
                return (None, !node.is_none() as u64);
            }
            let mut steps = 1;
            loop {
                let (left, right) = (node.left(), node.right());
                let (left_weight, right_weight) = (left.weight(), right.weight());
                if left_weight.max(right_weight) < want {
                    return (Some(Link(link)), steps);
                }
                // The left one, if it suffices and the right one is no smaller or does not.
                if left_weight >= want && (left_weight <= right_weight || right_weight < want) {
                    (link, node) = (node.child(LEFT), left);
                } else {
                    (link, node) = (node.child(RIGHT), right);
                }
                steps += 1;
            }
        }
    }

    /// The free blocks next to a block on both sides, by a descent to a leaf. Each node on the way is the closest yet
    /// on its side.
    ///
    /// # Safety
    /// As [`Tree::better_fit`]; the block's header is written.
    #[inline(always)]
    pub unsafe fn neighbours(&mut self, block: Block) -> Neighbours {
        let mut link = &raw mut self.root;
        let mut place = link;
        let (mut below, mut above) = (ptr::null_mut(), ptr::null_mut());
        let mut below_is_deeper = false;
        let mut steps = 0;
        // SAFETY: the tree's nodes are free blocks of a sound heap, as this function requires.
        unsafe {
            let weight = block.weight();
            loop {
                let node = *link;
                if node.is_none() {
                    let (below, above) = (Link::new(below), Link::new(above));
                    return Neighbours { place: Link(place), below, above, below_is_deeper, steps };
                }
                steps += 1;
                below_is_deeper = block >= node;
                if block >= node {
                    below = link;
                    link = node.child(RIGHT);
                } else {
                    above = link;
                    link = node.child(LEFT);
                }
                if node.weight() >= weight {
                    place = link;
                }
            }
        }
    }

    /// Puts a block in: in the place of the first smaller one on the way to its address. Returns the nodes visited.
    ///
    /// # Safety
    /// As [`Tree::better_fit`]; `block` is free, its header written, and not in the tree.
    #[inline(always)]
    pub unsafe fn insert(&mut self, block: Block) -> u64 {
        let mut link = &raw mut self.root;
        let mut steps = 0;
        // SAFETY: the tree's nodes are free blocks of a sound heap, as this function requires; what weighs as much as a
        // block is a node.
        unsafe {
            while (*link).weight() >= block.weight() {
                let node = *link;
                link = node.child(block > node);
                steps += 1;
            }
            steps + self.insert_at(Link(link), block)
        }
    }

    /// Puts a block in at the place found for it, and splits the subtree that hung there into what lies below it in
    /// address and what lies above. Returns the nodes visited.
    ///
    /// # Safety
    /// As [`Tree::insert`]; the place is [`Neighbours::place`], and the tree is as it was then.
    #[inline(always)]
    pub unsafe fn insert_at(&mut self, place: Link, block: Block) -> u64 {
        let mut steps = 0;
        // SAFETY: the tree's nodes are free blocks of a sound heap, as this function requires.
        unsafe {
            let mut displaced = place.node();
            *place.0 = block;
            // The places where the next node of either side is to hang. They close in on the block's address.
            let (mut below, mut above) = (block.child(LEFT), block.child(RIGHT));
            while !displaced.is_none() {
                if displaced < block {
                    *below = displaced;
                    below = displaced.child(RIGHT);
                    displaced = *below;
                } else {
                    *above = displaced;
                    above = displaced.child(LEFT);
                    displaced = *above;
                }
                steps += 1;
            }
            *below = Block::NONE;
            *above = Block::NONE;
        }
        steps
    }

    /// Takes a node out and merges its children in its place. Returns the nodes visited.
    ///
    /// # Safety
    /// As [`Tree::better_fit`]; the link is of this tree.
    #[inline(always)]
    pub unsafe fn delete(&mut self, link: Link) -> u64 {
        // SAFETY: the tree's nodes are free blocks of a sound heap, as this function requires.
        unsafe {
            let node = link.node();
            let (place, rest, _, steps) = merge(link.0, node.left(), node.right(), 0);
            *place = rest;
            steps
        }
    }

    /// Puts `block`, which is smaller, in the place of the node it is a part of; it hangs deeper then if children are
    /// larger: they are merged until neither is. Returns the nodes visited.
    ///
    /// # Safety
    /// As [`Tree::delete`]; `block`'s header is written, its links do not overlap those of the node, and no other
    /// free block lies between them.
    #[inline(always)]
    pub unsafe fn demote(&mut self, link: Link, block: Block) -> u64 {
        // SAFETY: the tree's nodes are free blocks of a sound heap, as this function requires.
        unsafe {
            let node = link.node();
            let (place, left, right, steps) = merge(link.0, node.left(), node.right(), block.weight());
            *block.child(LEFT) = left;
            *block.child(RIGHT) = right;
            *place = block;
            steps
        }
    }
}

/// Merges two neighbouring subtrees from `place` down, the larger root on top (of equals the left one), as long as
/// one of them weighs more than `weight`. Returns the place reached and what is to hang below it: left, right, and
/// how many nodes were visited. With weight 0 nothing is left but none and none.
///
/// # Safety
/// The subtrees' nodes are free blocks, those of `left` below those of `right`.
#[inline(always)]
unsafe fn merge(
    mut place: *mut Block,
    mut left: Block,
    mut right: Block,
    weight: usize,
) -> (*mut Block, Block, Block, u64) {
    let mut steps = 0;
    // SAFETY: the subtrees' nodes are free blocks, those of `left` below those of `right`, as this function requires;
    // what weighs more than something is a node.
    unsafe {
        let (mut left_weight, mut right_weight) = (left.weight(), right.weight());
        while left_weight.max(right_weight) > weight {
            // Of the one that goes on top, the side that faces the other subtree is merged on.
            if left_weight >= right_weight {
                *place = left;
                place = left.child(RIGHT);
                left = *place;
                left_weight = left.weight();
            } else {
                *place = right;
                place = right.child(LEFT);
                right = *place;
                right_weight = right.weight();
            }
            steps += 1;
        }
    }
    (place, left, right, steps)
}

impl Default for Tree {
    fn default() -> Tree {
        Tree::new()
    }
}
