//! The tables: blocks enter, leave and are found.

use core::fmt;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::bitmap::{self, Bitmap, HALF, end_bits, exchange, single_threaded, start_bits};
use crate::chunk::{self, CELL_SHIFT, Chunk, LARGE, PAGE, PAGE_BITMAPS, PAGE_SHIFT, PAGES};
use crate::count::Count;
use crate::directory::{Directory, DirectoryEntry, Supply};
use crate::large::{Large, LargeSupply};
use crate::lock::Locked;

/// The system gives no memory for the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoMemory;

impl fmt::Display for NoMemory {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(
            "the system gives no memory for the tables of live blocks; lift the process's limits (ulimit -v)",
        )
    }
}

impl core::error::Error for NoMemory {}

/// A live block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block {
    pub start: usize,
    pub bytes: usize,
}

impl Block {
    pub const fn end(&self) -> usize {
        self.start + self.bytes
    }
}

/// A block, and where it is recorded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundBlock {
    pub block: Block,
    /// Its number, if it is large.
    pub large: Option<usize>,
}

/// What the lock guards.
pub(crate) struct Guarded {
    pub supply: Supply,
    pub large_supply: LargeSupply,
}

/// Every live block by address.
///
/// Blocks begin at multiples of 8, have at least 16 bytes and a multiple of 8, do not overlap, and lie below 2^47.
pub struct Tables {
    pub(crate) directory: Directory,
    pub(crate) large: Large,
    pub(crate) guarded: Locked<Guarded>,
    /// Pages that hold a part of a block, and the most that ever did.
    used: Count<usize>,
    high: AtomicUsize,
}

impl Default for Tables {
    fn default() -> Tables {
        Tables::new()
    }
}

impl Tables {
    pub const fn new() -> Tables {
        Tables {
            directory: Directory::new(),
            large: Large::new(),
            guarded: Locked::new(Guarded { supply: Supply::new(), large_supply: LargeSupply::new() }),
            used: Count::<usize>::new(0),
            high: AtomicUsize::new(0),
        }
    }

    /// Makes every `every`-th request for memory fail from now on, 0 none: for tests.
    pub fn fail_every(&self, every: u64) {
        self.guarded.with(|guarded| {
            guarded.supply.fail_every(every);
            guarded.large_supply.fail_every(every);
        });
    }

    /// Records a block of `bytes` from `start` on as live. Blocks below 64 KiB that the tables record as starting there
    /// were freed without the layer, and are forgotten; one that covers the new block from before, or is large, is not
    /// searched for.
    ///
    /// # Errors
    /// There is no memory for the tables: the block is not in them.
    #[inline]
    pub fn insert(&self, start: usize, bytes: usize) -> Result<(), NoMemory> {
        debug_assert!(start.is_multiple_of(HALF) && bytes >= 2 * HALF && bytes.is_multiple_of(HALF));
        let last = start + bytes - HALF;
        if bitmap::base(start) == bitmap::base(last)
            && let Some(chunk) = self.directory.chunk(start)
        {
            let single_threaded = single_threaded();
            let word = chunk.bitmap(start);
            let mut old = Bitmap(word.load(Ordering::Relaxed));
            while let Some(new) = old.with(start, last) {
                match exchange(word, old, new, single_threaded) {
                    Ok(()) => {
                        if old.0 == 0 {
                            self.increment_page(chunk, start);
                        }
                        return Ok(());
                    }
                    Err(now) => old = now,
                }
            }
        }
        self.insert_any(start, bytes)
    }

    /// Removes the block that starts there; returns its bytes. `None` when none starts there.
    #[inline]
    pub fn remove(&self, start: usize) -> Option<usize> {
        if let Some(chunk) = self.directory.chunk(start) {
            let single_threaded = single_threaded();
            let word = chunk.bitmap(start);
            let mut old = Bitmap(word.load(Ordering::Relaxed));
            while old.starts(start)
                && let Some(end) = old.end_of(start)
            {
                let new = old.without(start_bits(start) | end_bits(end - HALF));
                match exchange(word, old, new, single_threaded) {
                    Ok(()) => {
                        if new.0 == 0 {
                            self.decrement_page(chunk, start);
                        }
                        return Some(end - start);
                    }
                    Err(now) => old = now,
                }
            }
        }
        self.remove_any(start)
    }

    /// Bytes of the block that starts there.
    #[inline]
    pub fn bytes_of(&self, start: usize) -> Option<usize> {
        let found = self.find(start)?;
        (found.start == start).then_some(found.bytes)
    }

    /// The block that an address lies in, its start or any byte of it.
    #[inline]
    pub fn find(&self, address: usize) -> Option<Block> {
        Some(self.seek(address)?.block)
    }

    /// How many blocks are live. Walks over all.
    pub fn blocks(&self) -> usize {
        let mut blocks = 0;
        self.for_each(|_, _| blocks += 1);
        blocks
    }

    /// Bytes of live blocks. Walks over all.
    pub fn bytes(&self) -> usize {
        let mut sum = 0;
        self.for_each(|_, bytes| sum += bytes);
        sum
    }

    /// Pages of 4096 bytes that hold at least a part of a live block.
    #[inline]
    pub fn used_pages(&self) -> usize {
        self.used.get()
    }

    /// The most that there ever were.
    pub fn used_pages_high(&self) -> usize {
        self.high.load(Ordering::Relaxed)
    }

    /// Resets the high-water mark to the present value.
    pub fn forget_high(&self) {
        self.high.store(self.used_pages(), Ordering::Relaxed);
    }

    /// The addresses of the tables' own memory: to be left out of the roots, with `self`.
    pub fn ranges(&self) -> [Range<usize>; 2] {
        self.guarded.with(|guarded| [guarded.supply.range(), guarded.large_supply.range()])
    }

    /// Keeps others out over a fork.
    pub fn before_fork(&self) {
        self.guarded.hold();
    }

    pub fn after_fork_in_parent(&self) {
        self.guarded.release();
    }

    /// Releases the lock in the child, whose only thread has come from the one that called [`Tables::before_fork`].
    pub fn after_fork_in_child(&self) {
        self.guarded.release();
    }

    // --- finding ------------------------------------------------------------------------------------------------

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

    // --- used pages ---------------------------------------------------------------------------------------------

    /// Adds one to a page's count.
    #[inline]
    fn increment_page(&self, chunk: &Chunk, address: usize) {
        if chunk.page(address).count.add(1, single_threaded()) == 0 {
            self.use_pages(1);
        }
    }

    /// Subtracts one.
    #[inline]
    pub(crate) fn decrement_page(&self, chunk: &Chunk, address: usize) {
        let single_threaded = single_threaded();
        if chunk.page(address).count.add(u16::MAX, single_threaded) == 1 {
            self.used.add(usize::MAX, single_threaded);
        }
    }

    #[inline]
    fn use_pages(&self, pages: usize) {
        let used = self.used.add(pages, single_threaded()) + pages;
        if used > self.high.load(Ordering::Relaxed) {
            self.high.fetch_max(used, Ordering::Relaxed);
        }
    }

    // --- blocks that are not in one bitmap -----------------------------------------------------------------------

    #[cold]
    #[inline(never)]
    fn insert_any(&self, start: usize, bytes: usize) -> Result<(), NoMemory> {
        if bytes >= LARGE {
            self.evict(start, bytes);
            return self.insert_large(start, bytes);
        }
        let last = start + bytes - HALF;
        if !self.is_clear(start, last) {
            self.evict(start, bytes);
        }
        let chunk = self.make_chunk(start)?;
        let last_chunk = self.make_chunk(last)?;
        if bitmap::base(start) == bitmap::base(last) {
            self.set(chunk, start, start_bits(start) | end_bits(last));
            return Ok(());
        }
        let (first_page, last_page) = (start >> PAGE_SHIFT, last >> PAGE_SHIFT);
        if first_page != last_page {
            chunk.page(start).after.store((bytes / HALF) as u16, Ordering::Relaxed);
            for page in first_page + 1..=last_page {
                let page = page << PAGE_SHIFT;
                let chunk = if page >> chunk::SHIFT == start >> chunk::SHIFT { chunk } else { last_chunk };
                let before = (page >> 4) - (start >> 4);
                chunk.page(page).before.store(before as u16, Ordering::Relaxed);
                if page >> PAGE_SHIFT != last_page {
                    self.increment_page(chunk, page);
                }
            }
        }
        self.set(last_chunk, last, end_bits(last));
        self.set(chunk, start, start_bits(start));
        Ok(())
    }

    #[inline(never)]
    pub(crate) fn remove_any(&self, start: usize) -> Option<usize> {
        let chunk = self.directory.chunk(start)?;
        if !Bitmap(chunk.bitmap(start).load(Ordering::Relaxed)).starts(start) {
            return self.remove_large(chunk, start);
        }
        let bytes = self.end_of(chunk, start)? - start;
        let last = start + bytes - HALF;
        if bitmap::base(start) == bitmap::base(last) {
            self.clear(chunk, start, start_bits(start) | end_bits(last));
            return Some(bytes);
        }
        let last_chunk = self.directory.chunk(last)?;
        self.clear(chunk, start, start_bits(start));
        self.clear(last_chunk, last, end_bits(last));
        let (first_page, last_page) = (start >> PAGE_SHIFT, last >> PAGE_SHIFT);
        if first_page != last_page {
            chunk.page(start).after.store(0, Ordering::Relaxed);
            for page in first_page + 1..=last_page {
                let page = page << PAGE_SHIFT;
                let chunk = if page >> chunk::SHIFT == start >> chunk::SHIFT { chunk } else { last_chunk };
                chunk.page(page).before.store(0, Ordering::Relaxed);
                if page >> PAGE_SHIFT != last_page {
                    self.decrement_page(chunk, page);
                }
            }
        }
        Some(bytes)
    }

    /// Whether no block is recorded where one that is not large is to lie.
    fn is_clear(&self, start: usize, last: usize) -> bool {
        let (mut at, mut known) = (start, None);
        while at <= last {
            if known.is_none() || at & ((1 << chunk::SHIFT) - 1) == 0 {
                known = match self.directory.lookup(at) {
                    DirectoryEntry::Empty => None,
                    DirectoryEntry::Chunk(chunk) => Some(chunk),
                    DirectoryEntry::Large(_) => return false,
                };
            }
            let Some(chunk) = known else {
                at = ((at >> chunk::SHIFT) + 1) << chunk::SHIFT;
                continue;
            };
            if at & (PAGE - 1) == 0 && chunk.page(at).count.get() == 0 {
                at += PAGE;
                continue;
            }
            let end = bitmap::base(at) + (1 << bitmap::SHIFT);
            if Bitmap(chunk.bitmap(at).load(Ordering::Relaxed)).with(at, last.min(end - HALF)).is_none() {
                return false;
            }
            at = end;
        }
        true
    }

    /// Sets bits of a bitmap, in which they are clear.
    fn set(&self, chunk: &Chunk, address: usize, bits: u64) {
        self.change(chunk, address, |old| Bitmap(old.0 | bits));
    }

    /// Takes starts and ends out of a bitmap.
    pub(crate) fn clear(&self, chunk: &Chunk, address: usize, bits: u64) {
        self.change(chunk, address, |old| old.without(bits));
    }

    fn change(&self, chunk: &Chunk, address: usize, change: impl Fn(Bitmap) -> Bitmap) {
        let single_threaded = single_threaded();
        let word: &AtomicU64 = chunk.bitmap(address);
        let mut old = Bitmap(word.load(Ordering::Relaxed));
        loop {
            let new = change(old);
            match exchange(word, old, new, single_threaded) {
                Ok(()) if old.0 == 0 && new.0 != 0 => return self.increment_page(chunk, address),
                Ok(()) if old.0 != 0 && new.0 == 0 => return self.decrement_page(chunk, address),
                Ok(()) => return,
                Err(now) => old = now,
            }
        }
    }

    fn make_chunk(&self, address: usize) -> Result<&Chunk, NoMemory> {
        match self.directory.chunk(address) {
            Some(chunk) => Ok(chunk),
            None => self.guarded.with(|guarded| self.directory.make_chunk(address, &mut guarded.supply)),
        }
    }

    // --- large blocks -------------------------------------------------------------------------------------------

    fn insert_large(&self, start: usize, bytes: usize) -> Result<(), NoMemory> {
        let end = start.checked_add(bytes).ok_or(NoMemory)?;
        let last = end - HALF;
        let (chunk, last_chunk) = self.guarded.with(|guarded| {
            let supply = &mut guarded.supply;
            let chunk = self.directory.make_chunk(start, supply)?;
            let last_chunk = self.directory.make_chunk(last, supply)?;
            for between in (start >> chunk::SHIFT) + 1..last >> chunk::SHIFT {
                self.directory.prepare(between << chunk::SHIFT, supply)?;
            }
            let number = self.large.add(&mut guarded.large_supply, start, bytes)?;
            chunk.cell(start).starting.store(number as u32 + 1, Ordering::Release);
            self.cover(start, last, Some(number));
            Ok((chunk, last_chunk))
        })?;
        self.increment_page(chunk, start);
        if start >> PAGE_SHIFT != last >> PAGE_SHIFT {
            self.increment_page(last_chunk, last);
            self.use_pages((last >> PAGE_SHIFT) - (start >> PAGE_SHIFT) - 1);
        }
        Ok(())
    }

    /// Records a large block in every 64 KiB after its first, or removes it there. The caller holds the lock.
    fn cover(&self, start: usize, last: usize, number: Option<usize>) {
        let mut at = ((start >> CELL_SHIFT) + 1) << CELL_SHIFT;
        while at <= last {
            match self.directory.lookup(at) {
                DirectoryEntry::Chunk(chunk) => {
                    let covering = number.map_or(0, |number| number as u32 + 1);
                    chunk.cell(at).covering.store(covering, Ordering::Release);
                    at += 1 << CELL_SHIFT;
                }
                // The block begins in an earlier chunk and ends in a later one: both have tables.
                _ => {
                    self.directory.cover(at, number);
                    at = ((at >> chunk::SHIFT) + 1) << chunk::SHIFT;
                }
            }
        }
    }

    fn remove_large(&self, chunk: &Chunk, start: usize) -> Option<usize> {
        let starting = chunk.cell(start).starting.load(Ordering::Acquire);
        let number = (starting as usize).checked_sub(1)?;
        let entry = self.large.entry(number);
        let bytes = entry.bytes.load(Ordering::Relaxed);
        if bytes == 0 || entry.start.load(Ordering::Relaxed) != start {
            return None;
        }
        let last = start + bytes - HALF;
        self.guarded.with(|guarded| {
            chunk.cell(start).starting.store(0, Ordering::Relaxed);
            self.cover(start, last, None);
            self.large.forget(&mut guarded.large_supply, number);
        });
        self.decrement_page(chunk, start);
        if start >> PAGE_SHIFT != last >> PAGE_SHIFT {
            self.decrement_page(self.directory.chunk(last)?, last);
            let between = (last >> PAGE_SHIFT) - (start >> PAGE_SHIFT) - 1;
            self.used.add(between.wrapping_neg(), single_threaded());
        }
        Some(bytes)
    }

    /// Forgets what overlaps a new block: it was freed without the layer.
    fn evict(&self, start: usize, bytes: usize) {
        let end = start.saturating_add(bytes);
        while let Some(block) = self.first_in(start..end) {
            if self.remove_any(block.start).is_none() {
                return;
            }
        }
    }

    // --- in the order of addresses ------------------------------------------------------------------------------

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
