//! Blocks in the order of addresses.

use core::ops::Range;
use core::sync::atomic::Ordering;

use super::bitmap::{self, Bitmap};
use super::block::Block;
use super::chunk::{self, PAGE, PAGE_SHIFT, PAGES};
use super::directory::DirectoryEntry;
use super::tables::Tables;

impl Tables {
    /// The first block that has a byte in a range.
    pub fn first_in(&self, range: Range<usize>) -> Option<Block> {
        self.find(range.start).or_else(|| self.next_from(range))
    }

    /// The first block that starts in a range.
    pub fn next_from(&self, range: Range<usize>) -> Option<Block> {
        let bounds = self.directory.bounds();
        let range = range.start.max(bounds.start)..range.end.min(bounds.end);
        for (base, known) in self.directory.each(range.clone()) {
            let DirectoryEntry::Chunk(chunk) = known else { continue };
            let from = range.start.max(base);
            for page in (from >> PAGE_SHIFT & (PAGES - 1))..PAGES {
                let page = base + (page << PAGE_SHIFT);
                if page >= range.end {
                    return None;
                }
                if chunk.page(page).count.get() == 0 {
                    continue;
                }
                let from = from.max(page);
                let large = match chunk.cell(page).starting.load(Ordering::Relaxed) {
                    0 => None,
                    number => Some(self.large.entry(number as usize - 1).start.load(Ordering::Relaxed)),
                };
                let large = large.filter(|start| *start >= from && start >> PAGE_SHIFT == page >> PAGE_SHIFT);
                let small = (from..page + PAGE).step_by(1 << bitmap::SHIFT).find_map(|at| {
                    let bitmap = Bitmap(chunk.bitmap(at).load(Ordering::Relaxed));
                    bitmap.all().map(|start| bitmap::base(at) + start).find(|start| *start >= from)
                });
                // A step from the middle of a bitmap skips the last one.
                let small = small.or_else(|| {
                    let at = page + PAGE - 1;
                    let bitmap = Bitmap(chunk.bitmap(at).load(Ordering::Relaxed));
                    bitmap.all().map(|start| bitmap::base(at) + start).find(|start| *start >= from)
                });
                if let Some(start) = [small, large].into_iter().flatten().min() {
                    return if start < range.end { self.find(start) } else { None };
                }
            }
        }
        None
    }

    /// Visits every block, in the order of addresses: its start and its bytes. Blocks that other threads insert or
    /// remove meanwhile may be visited or not.
    pub fn for_each(&self, mut visit: impl FnMut(usize, usize)) {
        let mut from = 0;
        while let Some(block) = self.next_from(from..usize::MAX) {
            visit(block.start, block.bytes);
            from = block.end();
        }
    }

    /// Visits, in the order of addresses, the ranges of pages of which each holds a part of a block and that do not
    /// touch each other: where the program's blocks are.
    pub fn heap_ranges(&self, mut visit: impl FnMut(Range<usize>)) {
        let mut run = 0..0;
        let mut add = |range: Range<usize>| {
            if range.start <= run.end {
                run.end = run.end.max(range.end);
            } else {
                if !run.is_empty() {
                    visit(run.clone());
                }
                run = range;
            }
        };
        let page = |page: usize| page..page + PAGE;
        for (base, known) in self.directory.each(self.directory.bounds()) {
            match known {
                DirectoryEntry::Empty => {}
                DirectoryEntry::Large(_) => add(base..base + (1 << chunk::SHIFT)),
                DirectoryEntry::Chunk(chunk) => {
                    for at in (base..base + (1 << chunk::SHIFT)).step_by(PAGE) {
                        let counted = chunk.page(at).count.get() != 0;
                        if counted || self.seek(at).is_some() {
                            add(page(at));
                        }
                    }
                }
            }
        }
        add(usize::MAX..usize::MAX);
    }
}
