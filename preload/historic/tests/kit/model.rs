//! The model: what should be live, where, and what it should contain.

use std::collections::{BTreeMap, BTreeSet};
use std::ptr::NonNull;

use heaptoll_runtime::{ALIGNMENT, Heap, PieceKind, tally};

use crate::kit::Operation;

/// The heap is checked and compared with the model after every so many operations.
const CHECK_EVERY: usize = 8;

struct Block {
    address: NonNull<u8>,
    bytes: usize,
    seed: u8,
}

/// A heap and what should be in it.
pub struct Model<H: Heap> {
    heap: H,
    blocks: Vec<Block>,
    /// Given back to a heap whose free does nothing.
    kept: BTreeSet<usize>,
    may_fail: bool,
    operations: usize,
    seed: u8,
}

/// Runs a sequence, checking after every few operations and at the end. `may_fail`: the system may refuse memory.
pub fn replay<H: Heap>(heap: H, may_fail: bool, operations: &[Operation]) {
    let mut model = Model::new(heap, may_fail);
    operations.iter().for_each(|&operation| model.apply(operation));
    model.verify();
}

impl<H: Heap> Model<H> {
    /// A model of a fresh heap.
    pub fn new(heap: H, may_fail: bool) -> Model<H> {
        Model { heap, blocks: Vec::new(), kept: BTreeSet::new(), may_fail, operations: 0, seed: 0 }
    }

    /// The heap itself.
    pub fn heap(&mut self) -> &mut H {
        &mut self.heap
    }

    /// Live blocks.
    pub fn live(&self) -> usize {
        self.blocks.len()
    }

    /// Does one operation on heap and model.
    pub fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Allocate(bytes) => {
                let got = self.heap.allocate(bytes);
                self.hand_out(got, ALIGNMENT, bytes);
            }
            Operation::Aligned(alignment, bytes) => {
                let got = self.heap.allocate_aligned(alignment, bytes);
                self.hand_out(got, alignment, bytes);
            }
            Operation::Free(at) => {
                if let Some(at) = at.checked_rem(self.blocks.len()) {
                    let block = self.blocks.swap_remove(at);
                    self.give_back(block);
                }
            }
            Operation::Resize(at, bytes) => {
                if let Some(at) = at.checked_rem(self.blocks.len()) {
                    self.resize(at, bytes);
                }
            }
        }
        self.operations += 1;
        if self.operations.is_multiple_of(CHECK_EVERY) {
            self.verify();
        }
    }

    fn hand_out(&mut self, got: Option<NonNull<u8>>, alignment: usize, bytes: usize) {
        let Some(address) = got else {
            assert!(self.may_fail, "no memory for {bytes} bytes");
            return;
        };
        assert_eq!(address.as_ptr() as usize % alignment, 0, "{bytes} bytes are not aligned to {alignment}");
        // SAFETY: `address` has just been allocated.
        let usable = unsafe { self.heap.usable(address) };
        assert!(usable >= bytes, "{usable} usable bytes of {bytes}");
        self.seed = self.seed.wrapping_add(37);
        assert!(!self.kept.contains(&(address.as_ptr() as usize)), "a block was used again without a free");
        let block = Block { address, bytes, seed: self.seed };
        // All that may be used is used: a neighbour's header in it would be overwritten, and found to be.
        // SAFETY: `usable` bytes are the block's.
        unsafe { address.as_ptr().write_bytes(block.seed, usable) };
        self.blocks.push(block);
    }

    fn inspect(&self, block: &Block, bytes: usize) {
        // SAFETY: `bytes` are the block's, and were written.
        let contents = unsafe { std::slice::from_raw_parts(block.address.as_ptr(), bytes) };
        let odd = contents.iter().position(|&byte| byte != block.seed);
        assert_eq!(odd, None, "byte changed in the block of {} bytes at {:?}", block.bytes, block.address);
    }

    fn give_back(&mut self, block: Block) {
        self.inspect(&block, block.bytes);
        // SAFETY: it was live, and is forgotten now.
        let freed = unsafe { self.heap.free(block.address) };
        assert_eq!(freed, Ok(()), "free of a live block at {:?}", block.address);
        if !H::FREES {
            self.kept.insert(block.address.as_ptr() as usize);
        }
    }

    /// `realloc` as the shell does it.
    fn resize(&mut self, at: usize, bytes: usize) {
        let block = &self.blocks[at];
        let (address, kept) = (block.address, block.bytes.min(bytes));
        self.inspect(block, block.bytes);
        // SAFETY: `blocks` has live blocks only.
        if unsafe { self.heap.resize(address, bytes) }.expect("a live block can be resized") {
            self.inspect(&self.blocks[at], kept);
            let block = self.blocks.swap_remove(at);
            self.hand_out(Some(block.address), ALIGNMENT, bytes);
            return;
        }
        self.inspect(&self.blocks[at], self.blocks[at].bytes);
        let Some(new) = self.heap.allocate(bytes) else {
            assert!(self.may_fail, "no memory for {bytes} bytes");
            return;
        };
        let old = self.blocks.swap_remove(at);
        self.give_back(old);
        self.hand_out(Some(new), ALIGNMENT, bytes);
    }

    /// The heap's own check, that the pieces tile the region, and that what is live in it is what should be.
    pub fn verify(&self) {
        assert_eq!(self.heap.check(), Ok(()));
        let region = self.heap.region();
        let mut live: BTreeMap<usize, usize> =
            self.blocks.iter().map(|block| (block.address.as_ptr() as usize, block.bytes)).collect();
        assert_eq!(live.len(), self.blocks.len(), "two live blocks at one address");
        let mut end = region.start();
        self.heap.walk(&mut |piece| {
            assert_eq!(piece.address, end, "pieces tile the region: {piece:?}");
            assert!(piece.overhead <= piece.bytes, "overhead is a part: {piece:?}");
            end += piece.bytes;
            if piece.kind == PieceKind::Live && !self.kept.contains(&piece.block) {
                let bytes = live.remove(&piece.block).unwrap_or_else(|| panic!("no live block: {piece:?}"));
                assert!(
                    piece.address <= piece.block && piece.block + bytes <= end,
                    "{bytes} bytes in {piece:?}"
                );
            }
        });
        assert_eq!(end, region.end(), "the last piece ends with the region");
        assert!(live.is_empty(), "live blocks the walk does not know: {live:?}");
        let tally = tally(&self.heap);
        assert_eq!(tally.live + tally.free + tally.metadata + tally.unused, tally.mapped);
        for block in &self.blocks {
            self.inspect(block, block.bytes.min(64));
        }
    }
}
