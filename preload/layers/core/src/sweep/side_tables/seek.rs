//! Finding the block that an address lies in, and where it is recorded.

use core::sync::atomic::Ordering;

use super::bitmap::{self, Bitmap, HALF};
use super::block::{Block, FoundBlock};
use super::chunk::{Chunk, PAGE, PAGE_BITMAPS};
use super::directory::DirectoryEntry;
use super::tables::Tables;

impl Tables {
    /// As [`Tables::find`], and where the block is recorded.
    pub(crate) fn seek(&self, address: usize) -> Option<FoundBlock> {
        let chunk = match self.directory.lookup(address) {
            DirectoryEntry::Empty => return None,
            DirectoryEntry::Large(number) => return self.large_if(number, address),
            DirectoryEntry::Chunk(chunk) => chunk,
        };
        if let Some(block) = self.small(chunk, address)
            && address < block.end()
        {
            return Some(FoundBlock { block, large: None });
        }
        let cell = chunk.cell(address);
        [&cell.starting, &cell.covering].into_iter().find_map(|number| match number.load(Ordering::Relaxed) {
            0 => None,
            number => self.large_if(number as usize - 1, address),
        })
    }

    /// A large block, if the address lies in it.
    fn large_if(&self, number: usize, address: usize) -> Option<FoundBlock> {
        let entry = self.large.entry(number);
        let block =
            Block { start: entry.start.load(Ordering::Relaxed), bytes: entry.bytes.load(Ordering::Relaxed) };
        (address.wrapping_sub(block.start) < block.bytes).then_some(FoundBlock { block, large: Some(number) })
    }

    /// The last block that is not large and starts at an address or before it.
    fn small(&self, chunk: &Chunk, address: usize) -> Option<Block> {
        let page = address & !(PAGE - 1);
        // Under guard most words lead to blocks that are not freed, on pages with no others.
        if chunk.page(page).count.get() == 0 {
            return None;
        }
        let mut at = address;
        loop {
            if let Some(start) = Bitmap(chunk.bitmap(at).load(Ordering::Relaxed)).start_of(at) {
                return Some(Block { start, bytes: self.end_of(chunk, start)? - start });
            }
            if bitmap::base(at) == page {
                break;
            }
            at = bitmap::base(at) - 1;
        }
        let before = chunk.page(page).before.load(Ordering::Relaxed) as usize;
        if before == 0 {
            return None;
        }
        let start = page - before * 2 * HALF;
        let chunk = self.directory.chunk(start)?;
        let start = Bitmap(chunk.bitmap(start).load(Ordering::Relaxed)).start_of(start + HALF)?;
        Some(Block { start, bytes: self.end_of(chunk, start)? - start })
    }

    /// The end of a block that is not large.
    #[inline]
    pub(crate) fn end_of(&self, chunk: &Chunk, start: usize) -> Option<usize> {
        if let Some(end) = Bitmap(chunk.bitmap(start).load(Ordering::Relaxed)).end_of(start) {
            return Some(end);
        }
        let first = start >> bitmap::SHIFT & (PAGE_BITMAPS - 1);
        for further in 1..PAGE_BITMAPS - first {
            let at = start + (further << bitmap::SHIFT);
            if let Some(end) = Bitmap(chunk.bitmap(at).load(Ordering::Relaxed)).end_before(at) {
                return Some(end);
            }
        }
        match chunk.page(start).after.load(Ordering::Relaxed) as usize {
            0 => None,
            after => Some(start + after * HALF),
        }
    }
}
