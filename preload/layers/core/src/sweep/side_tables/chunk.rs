//! A chunk: the tables of 1 MiB of address space.

use core::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, AtomicUsize};

use super::bitmap;
use super::count::Count;

/// Bytes of address space of a chunk, a cell and a page, as powers of two.
pub const SHIFT: u32 = 20;
pub const CELL_SHIFT: u32 = 16;
pub const PAGE_SHIFT: u32 = 12;
pub const PAGE: usize = 1 << PAGE_SHIFT;
/// How many of them a chunk has.
pub const BITMAPS: usize = 1 << (SHIFT - bitmap::SHIFT);
pub const PAGES: usize = 1 << (SHIFT - PAGE_SHIFT);
pub const CELLS: usize = 1 << (SHIFT - CELL_SHIFT);
/// Bitmaps of a page.
pub const PAGE_BITMAPS: usize = BITMAPS / PAGES;
/// Blocks of so many bytes are in a table of their own: of each 64 KiB of address space, no more than one covers the
/// first byte, and no more than one starts there.
pub const LARGE: usize = 1 << CELL_SHIFT;

/// What a page's bitmaps do not record of the blocks that cross its ends.
#[repr(C)]
pub struct Page {
    /// How far before the page, in 16 bytes, the block starts that covers its first byte; 0 when none does.
    pub before: AtomicU16,
    /// Bytes, in eights, of the block that starts in the page and ends beyond it; 0 when none does.
    pub after: AtomicU16,
    /// Bitmaps that are not empty, and blocks that cover the page from end to end or are large and start or end in it.
    pub count: Count<u16>,
    _rest: u16,
}

/// Which large blocks 64 KiB of address space know: 0, or their number in the table of large blocks and one.
#[repr(C)]
pub struct Cell {
    /// The one that covers the first byte and begins before it.
    pub covering: AtomicU32,
    /// The one that starts here.
    pub starting: AtomicU32,
}

/// Zeros are an empty chunk.
#[repr(C, align(4096))]
pub struct Chunk {
    pub bitmaps: [AtomicU64; BITMAPS],
    pub pages: [Page; PAGES],
    pub cells: [Cell; CELLS],
    /// The next free one, where it is free.
    pub next: AtomicUsize,
}

impl Chunk {
    #[inline(always)]
    pub fn bitmap(&self, address: usize) -> &AtomicU64 {
        // SAFETY: the mask keeps the index below `BITMAPS`, the array's length.
        unsafe { self.bitmaps.get_unchecked(address >> bitmap::SHIFT & (BITMAPS - 1)) }
    }

    #[inline(always)]
    pub fn page(&self, address: usize) -> &Page {
        &self.pages[address >> PAGE_SHIFT & (PAGES - 1)]
    }

    pub fn cell(&self, address: usize) -> &Cell {
        &self.cells[address >> CELL_SHIFT & (CELLS - 1)]
    }
}
