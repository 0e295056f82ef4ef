//! Live blocks: what the recorder knows of them, and the order in which the ledger reads them.

use crate::freed_blocks::FreedBlocks;

/// A block that the program holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Block {
    /// Address of its first byte.
    pub address: u64,
    /// Bytes the program requested.
    pub requested: u64,
    /// Bytes the manager made usable; less than `requested`, or 0, where unknown.
    pub usable: u64,
    /// The call site that allocated it: an index into the trace's sites; 0 where not recorded.
    pub site: u32,
    /// Bytes that the process had allocated before it.
    pub allocated_at_bytes: u64,
}

impl Block {
    /// Its size: no manager makes less usable than was requested.
    pub fn bytes(&self) -> u64 {
        self.usable.max(self.requested)
    }

    /// Address after it.
    pub fn end(&self) -> u64 {
        self.address.saturating_add(self.bytes())
    }
}

/// The source of a process's live blocks: the recorder's address table.
pub trait Blocks {
    /// Visits every live block, in any order.
    fn each(&self, visit: &mut dyn FnMut(Block));

    /// Number of live blocks, about: space for as many is reserved at once.
    fn count(&self) -> usize {
        0
    }

    /// Visits ranges of addresses, `start..end` in bytes, in which blocks have ever been, in any order and as coarse as
    /// they are known. Without it the ledger knows only where blocks were at the time of a sample.
    fn ever(&self, _visit: &mut dyn FnMut(u64, u64)) {}

    /// What was freed where, if it is known.
    fn freed(&self) -> Option<&FreedBlocks> {
        None
    }
}

impl Blocks for [Block] {
    fn each(&self, visit: &mut dyn FnMut(Block)) {
        self.iter().copied().for_each(visit);
    }

    fn count(&self) -> usize {
        self.len()
    }
}

impl Blocks for Vec<Block> {
    fn each(&self, visit: &mut dyn FnMut(Block)) {
        self.as_slice().each(visit);
    }

    fn count(&self) -> usize {
        self.len()
    }
}

/// The blocks by address, in `all`: 40 bytes a live block, sorted where they are.
pub fn sort(blocks: &dyn Blocks, all: &mut Vec<Block>) {
    all.clear();
    all.reserve(blocks.count());
    blocks.each(&mut |block| all.push(block));
    all.sort_unstable_by_key(|block| block.address);
}
