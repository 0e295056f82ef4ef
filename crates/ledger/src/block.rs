//! Live blocks: what the recorder knows of them, and in which order the ledger wants them.

/// A block that the program holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Of its first byte.
    pub address: u64,
    /// Bytes the program asked for.
    pub requested: u64,
    /// Bytes the manager gave; less than `requested`, or 0, where unknown.
    pub usable: u64,
}

impl Block {
    /// Bytes of it in all: no manager gives less than was asked for.
    pub fn bytes(&self) -> u64 {
        self.usable.max(self.requested)
    }

    /// Address behind it.
    pub fn end(&self) -> u64 {
        self.address.saturating_add(self.bytes())
    }
}

/// Who knows the live blocks of a process: the recorder's address table.
pub trait Blocks {
    /// Shows every live block, in any order.
    fn each(&self, show: &mut dyn FnMut(Block));

    /// Live blocks, about: room for so many is taken at once.
    fn count(&self) -> usize {
        0
    }

    /// Shows ranges of addresses, `start..end` in bytes, in which blocks have ever been, in any order and as coarse
    /// as they are known. Without it the ledger knows the places of blocks that lived at a moment it looked.
    fn ever(&self, _show: &mut dyn FnMut(u64, u64)) {}
}

impl Blocks for [Block] {
    fn each(&self, show: &mut dyn FnMut(Block)) {
        self.iter().copied().for_each(show);
    }

    fn count(&self) -> usize {
        self.len()
    }
}

impl Blocks for Vec<Block> {
    fn each(&self, show: &mut dyn FnMut(Block)) {
        self.as_slice().each(show);
    }

    fn count(&self) -> usize {
        self.len()
    }
}

/// The blocks by address, in `all`: 24 bytes a live block, sorted where they are.
pub fn sort(blocks: &dyn Blocks, all: &mut Vec<Block>) {
    all.clear();
    all.reserve(blocks.count());
    blocks.each(&mut |block| all.push(block));
    all.sort_unstable_by_key(|block| block.address);
}
