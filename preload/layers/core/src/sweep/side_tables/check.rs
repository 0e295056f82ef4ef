//! Checks the whole structure: everything that the tables store twice must agree.

use core::fmt;
use core::sync::atomic::Ordering;

use super::bitmap::{self, Bitmap, HALF};
use super::block::Block;
use super::chunk::{Chunk, LARGE, PAGE, PAGE_SHIFT, SHIFT};
use super::directory::DirectoryEntry;
use super::tables::Tables;

/// What is wrong, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    pub what: &'static str,
    pub address: usize,
}

impl fmt::Display for Damage {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "the tables of live blocks are damaged: {} at {:#x}", self.what, self.address)
    }
}

impl core::error::Error for Damage {}

impl Tables {
    /// Checks everything. Other threads are stopped, none of them within a call, and nothing is marked.
    ///
    /// # Errors
    /// The first damage that is found.
    pub fn check(&self) -> Result<(), Damage> {
        let mut used = 0;
        for (base, known) in self.directory.each(self.directory.bounds()) {
            match known {
                DirectoryEntry::Empty => {}
                DirectoryEntry::Chunk(chunk) => used += self.check_chunk(base, chunk)?,
                DirectoryEntry::Large(number) => {
                    let block = self.large_block(number);
                    verify(
                        block.start < base && base + (1 << SHIFT) < block.end(),
                        "a chunk that no large block covers",
                        base,
                    )?;
                }
            }
        }
        for number in 0..self.large.entries().len() {
            let block = self.large_block(number);
            if block.bytes == 0 {
                continue;
            }
            verify(block.bytes >= LARGE, "a large block that is small", block.start)?;
            verify(self.large.entry(number).mark.load(Ordering::Relaxed) == 0, "a mark", block.start)?;
            for at in (block.start..block.end()).step_by(LARGE / 2).chain([block.end() - 1]) {
                let known = self.seek(at).is_some_and(|found| found.large == Some(number));
                verify(known, "a large block's byte that is not its own", at)?;
            }
            used += ((block.end() - 1) >> PAGE_SHIFT) - (block.start >> PAGE_SHIFT) - 1;
        }
        verify(used == self.used_pages(), "a wrong count of used pages", used)?;
        verify(used <= self.used_pages_high(), "fewer used pages at most than now", used)
    }

    fn large_block(&self, number: usize) -> Block {
        let entry = self.large.entry(number);
        Block { start: entry.start.load(Ordering::Relaxed), bytes: entry.bytes.load(Ordering::Relaxed) }
    }

    /// Returns how many pages count something.
    fn check_chunk(&self, base: usize, chunk: &Chunk) -> Result<usize, Damage> {
        let mut used = 0;
        for page in (base..base + (1 << SHIFT)).step_by(PAGE) {
            let (before, after) = (&chunk.page(page).before, &chunk.page(page).after);
            let (before, after) = (before.load(Ordering::Relaxed), after.load(Ordering::Relaxed));
            let mut count = 0;
            // The block that is open as the page begins, and its end.
            let mut open = None;
            if before != 0 {
                let start = page - before as usize * 2 * HALF;
                let found = self.seek(page);
                verify(
                    found.is_some_and(|found| {
                        found.large.is_none() && found.block.start & !HALF == start & !HALF
                    }),
                    "a page that misses the block before it",
                    page,
                )?;
                open = found.map(|found| found.block.end());
                count += u16::from(open.is_some_and(|end| end > page + PAGE));
            }
            let mut crosses = false;
            for at in (page..page + PAGE).step_by(1 << bitmap::SHIFT) {
                let bitmap = Bitmap(chunk.bitmap(at).load(Ordering::Relaxed));
                count += u16::from(bitmap.0 != 0);
                let (starts, ends, loose) = bitmap.counts();
                verify(!loose, "a mark or a half of nothing", at)?;
                let mut ended = 0;
                let next = at + (1 << bitmap::SHIFT);
                if let Some(end) = open.filter(|end| *end <= next) {
                    verify(bitmap.end_before(at) == Some(end), "a block without its end", at)?;
                    (open, ended) = (None, 1);
                }
                let mut last = at;
                for start in bitmap.all().map(|start| at + start) {
                    verify(open.is_none() && start >= last, "two blocks that overlap", start)?;
                    let end = self.end_of(chunk, start);
                    let Some(end) = end.filter(|end| *end >= start + 2 * HALF && *end < start + LARGE) else {
                        return Err(Damage { what: "a block without an end", address: start });
                    };
                    last = end;
                    if end > next {
                        open = Some(end);
                    } else {
                        ended += 1;
                    }
                    if end > page + PAGE {
                        crosses = true;
                        verify(after as usize * HALF == end - start, "a wrong length", start)?;
                        let known = self.seek(end - HALF).is_some_and(|found| found.block.start == start);
                        verify(known, "a block whose last bytes are not its own", start)?;
                    }
                }
                verify(ended == ends && starts <= 16, "an end without a start", at)?;
            }
            verify(crosses || after == 0, "a length without a block", page)?;
            verify(open.is_none_or(|end| end > page + PAGE), "a block that ends nowhere", page)?;
            // Large blocks count in the pages where they start and end.
            let cell = chunk.cell(page);
            for number in [&cell.starting, &cell.covering] {
                let number = number.load(Ordering::Relaxed);
                if number != 0 {
                    let block = self.large_block(number as usize - 1);
                    let ends = [block.start, block.end() - HALF];
                    count += ends.iter().filter(|at| *at >> PAGE_SHIFT == page >> PAGE_SHIFT).count() as u16;
                }
            }
            verify(count == chunk.page(page).count.get(), "a page's wrong count", page)?;
            used += usize::from(count != 0);
        }
        Ok(used)
    }
}

fn verify(holds: bool, what: &'static str, address: usize) -> Result<(), Damage> {
    if holds { Ok(()) } else { Err(Damage { what, address }) }
}
