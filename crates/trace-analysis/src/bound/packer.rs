//! One packing of a trace: an address for every block at its allocation, by a rule that may know when it will be freed.

use super::gaps::Gaps;

/// The rule by which a block is placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// The lowest place.
    FirstFit,
    /// The tightest place.
    BestFit,
    /// Blocks that live for at least `threshold` events from the bottom up, the others from the limit down; where
    /// nothing is free below the limit, the lowest address.
    TwoEnds {
        /// Events.
        threshold: u32,
        /// Bytes.
        limit: u64,
        /// Long-lived blocks go to the tightest place, not the lowest.
        tight: bool,
    },
}

/// A heap being packed.
#[derive(Debug)]
pub(super) struct Packer {
    rule: Rule,
    gaps: Gaps,
    /// Start of the block of each slot.
    places: Vec<u64>,
    /// Highest end of a block so far.
    heap: u64,
    /// A block fitted nowhere: beyond any address.
    failed: bool,
}

/// A block to be placed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    /// Bytes, rounded up.
    pub(super) length: u64,
    /// Its address is a multiple of this.
    pub(super) align: u64,
    /// Its lifetime in events.
    pub(super) lifetime: u32,
}

impl Packer {
    pub(super) fn new(rule: Rule) -> Packer {
        let tightest = matches!(rule, Rule::BestFit | Rule::TwoEnds { tight: true, .. });
        Packer { rule, gaps: Gaps::new(tightest), places: Vec::new(), heap: 0, failed: false }
    }

    pub(super) fn rule(&self) -> Rule {
        self.rule
    }

    /// Bytes of the smallest heap that holds all; none when no address was high enough.
    pub(super) fn heap_bytes(&self) -> Option<u64> {
        (!self.failed).then_some(self.heap)
    }

    /// Places a block; returns its start.
    pub(super) fn place(&mut self, slot: u32, block: &Block) -> u64 {
        let Block { length, align, lifetime } = *block;
        let start = match self.rule {
            Rule::FirstFit => self.gaps.lowest(length, align),
            Rule::BestFit => self.gaps.tightest(length, align),
            Rule::TwoEnds { threshold, limit, .. } if lifetime < threshold => {
                self.gaps.highest(length, align, limit).or_else(|| self.gaps.lowest(length, align))
            }
            Rule::TwoEnds { tight: true, .. } => self.gaps.tightest(length, align),
            Rule::TwoEnds { .. } => self.gaps.lowest(length, align),
        };
        let Some(start) = start else {
            self.failed = true;
            return 0;
        };
        self.settle(slot, start, length);
        start
    }

    /// The block of a slot is freed.
    pub(super) fn release(&mut self, slot: u32, length: u64) {
        if !self.failed {
            self.gaps.give(self.places[slot as usize], length);
        }
    }

    /// The block of a slot gets another length: it stays where it is when that fits, otherwise it is moved, and its old
    /// range counts as free (as with `memmove`).
    pub(super) fn resize(&mut self, slot: u32, old: u64, block: &Block) -> u64 {
        if self.failed {
            return 0;
        }
        let start = self.places[slot as usize];
        self.gaps.give(start, old);
        if start.is_multiple_of(block.align) && self.gaps.is_free(start, block.length) {
            self.settle(slot, start, block.length);
            return start;
        }
        self.place(slot, block)
    }

    fn settle(&mut self, slot: u32, start: u64, length: u64) {
        self.gaps.take(start, length);
        self.heap = self.heap.max(start + length);
        let index = slot as usize;
        if index >= self.places.len() {
            self.places.resize(index + 1, 0);
        }
        self.places[index] = start;
    }
}
