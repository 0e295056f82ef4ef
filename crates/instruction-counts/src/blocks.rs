//! The blocks a program holds: the requested size of each, and the most bytes and blocks live at once.

use rustc_hash::FxHashMap;

/// Live blocks by address.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    sizes: FxHashMap<u64, u64>,
    live_bytes: u64,
    /// Most bytes live at once.
    pub most_bytes: u64,
    /// Most blocks live at once.
    pub most_blocks: u64,
}

impl Blocks {
    /// Records a block. A block recorded at this address before was freed unseen.
    pub fn insert(&mut self, address: u64, size: u64) {
        let before = self.sizes.insert(address, size).unwrap_or(0);
        self.live_bytes = self.live_bytes.saturating_sub(before).saturating_add(size);
        self.most_bytes = self.most_bytes.max(self.live_bytes);
        self.most_blocks = self.most_blocks.max(self.sizes.len() as u64);
    }

    /// Forgets a block: its size, if it is known.
    pub fn remove(&mut self, address: u64) -> Option<u64> {
        let size = self.sizes.remove(&address)?;
        self.live_bytes = self.live_bytes.saturating_sub(size);
        Some(size)
    }

    /// Bytes live now.
    pub fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// The size of a block.
    pub fn size(&self, address: u64) -> Option<u64> {
        self.sizes.get(&address).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_is_that_live_at_once() {
        let mut blocks = Blocks::default();
        blocks.insert(16, 100);
        blocks.insert(32, 50);
        assert_eq!((blocks.remove(16), blocks.remove(16), blocks.size(32)), (Some(100), None, Some(50)));
        blocks.insert(16, 60);
        assert_eq!((blocks.most_bytes, blocks.most_blocks), (150, 2));
    }

    #[test]
    fn a_block_recorded_again_was_freed_unseen() {
        let mut blocks = Blocks::default();
        blocks.insert(16, 100);
        blocks.insert(16, 30);
        blocks.insert(48, 40);
        assert_eq!((blocks.most_bytes, blocks.most_blocks), (100, 2));
    }
}
