//! The tables: blocks enter, leave and are found.

use core::fmt;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::chunk::{self, CELL_SHIFT, Chunk, LARGE, PAGE, PAGE_SHIFT, PAGE_STRIPS, PAGES};
use crate::count::Count;
use crate::directory::{Directory, Known, Supply};
use crate::large::{Large, Room};
use crate::lock::Locked;
use crate::strip::{self, HALF, Strip, alone, end_bits, exchange, start_bits};

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

/// A block, and where it is noted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub block: Block,
    /// Its number, if it is large.
    pub large: Option<usize>,
}

/// What changes under the lock.
pub(crate) struct Held {
    pub supply: Supply,
    pub room: Room,
}

/// Every live block by address.
///
/// Blocks begin at multiples of 8, have at least 16 bytes and a multiple of 8, do not overlap, and lie below 2^47.
pub struct Tables {
    pub(crate) directory: Directory,
    pub(crate) large: Large,
    pub(crate) held: Locked<Held>,
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
            held: Locked::new(Held { supply: Supply::new(), room: Room::new() }),
            used: Count::<usize>::new(0),
            high: AtomicUsize::new(0),
        }
    }

    /// Makes every `every`-th request for memory fail from now on, 0 none: for tests.
    pub fn fail_every(&self, every: u64) {
        self.held.with(|held| {
            held.supply.fail_every(every);
            held.room.fail_every(every);
        });
    }

    /// A block of `bytes` from `start` on is live. Blocks below 64 KiB that the tables
    /// know to start there were given back unseen, and are forgotten; one that covers the new block from before, or is
    /// large, is not looked for.
    ///
    /// # Errors
    /// There is no memory for the tables: the block is not in them.
    #[inline]
    pub fn insert(&self, start: usize, bytes: usize) -> Result<(), NoMemory> {
        debug_assert!(start.is_multiple_of(HALF) && bytes >= 2 * HALF && bytes.is_multiple_of(HALF));
        let last = start + bytes - HALF;
        if strip::base(start) == strip::base(last)
            && let Some(chunk) = self.directory.chunk(start)
        {
            let alone = alone();
            let word = chunk.strip(start);
            let mut old = Strip(word.load(Ordering::Relaxed));
            while let Some(new) = old.with(start, last) {
                match exchange(word, old, new, alone) {
                    Ok(()) => {
                        if old.0 == 0 {
                            self.gain(chunk, start);
                        }
                        return Ok(());
                    }
                    Err(now) => old = now,
                }
            }
        }
        self.insert_any(start, bytes)
    }

    /// The block that starts there is live no more; says its bytes. `None` when none starts there.
    #[inline]
    pub fn remove(&self, start: usize) -> Option<usize> {
        if let Some(chunk) = self.directory.chunk(start) {
            let alone = alone();
            let word = chunk.strip(start);
            let mut old = Strip(word.load(Ordering::Relaxed));
            while old.starts(start)
                && let Some(end) = old.end_of(start)
            {
                let new = old.without(start_bits(start) | end_bits(end - HALF));
                match exchange(word, old, new, alone) {
                    Ok(()) => {
                        if new.0 == 0 {
                            self.lose(chunk, start);
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

    /// Lets the most begin anew with what there is.
    pub fn forget_high(&self) {
        self.high.store(self.used_pages(), Ordering::Relaxed);
    }

    /// Where the tables' own memory lies: to be left out of the roots, beside `self`.
    pub fn ranges(&self) -> [Range<usize>; 2] {
        self.held.with(|held| [held.supply.range(), held.room.range()])
    }

    /// Keeps others out over a fork.
    pub fn before_fork(&self) {
        self.held.hold();
    }

    pub fn after_fork_in_parent(&self) {
        self.held.release();
    }

    /// Goes on in the child, whose only thread has come from the one that called [`Tables::before_fork`].
    pub fn after_fork_in_child(&self) {
        self.held.release();
    }

    // --- finding ------------------------------------------------------------------------------------------------

    /// As [`Tables::find`], and where the block is noted.
    pub(crate) fn seek(&self, address: usize) -> Option<Found> {
        let chunk = match self.directory.known(address) {
            Known::Nothing => return None,
            Known::Large(number) => return self.large_if(number, address),
            Known::Chunk(chunk) => chunk,
        };
        if let Some(block) = self.small(chunk, address)
            && address < block.end()
        {
            return Some(Found { block, large: None });
        }
        let cell = chunk.cell(address);
        [&cell.starting, &cell.covering].into_iter().find_map(|number| match number.load(Ordering::Relaxed) {
            0 => None,
            number => self.large_if(number as usize - 1, address),
        })
    }

    /// A large block, if the address lies in it.
    fn large_if(&self, number: usize, address: usize) -> Option<Found> {
        let entry = self.large.entry(number);
        let block =
            Block { start: entry.start.load(Ordering::Relaxed), bytes: entry.bytes.load(Ordering::Relaxed) };
        (address.wrapping_sub(block.start) < block.bytes).then_some(Found { block, large: Some(number) })
    }

    /// The last block that is not large and starts at an address or before it.
    fn small(&self, chunk: &Chunk, address: usize) -> Option<Block> {
        let page = address & !(PAGE - 1);
        let mut at = address;
        loop {
            if let Some(start) = Strip(chunk.strip(at).load(Ordering::Relaxed)).start_of(at) {
                return Some(Block { start, bytes: self.end_of(chunk, start)? - start });
            }
            if strip::base(at) == page {
                break;
            }
            at = strip::base(at) - 1;
        }
        let before = chunk.page(page).before.load(Ordering::Relaxed) as usize;
        if before == 0 {
            return None;
        }
        let start = page - before * 2 * HALF;
        let chunk = self.directory.chunk(start)?;
        let start = Strip(chunk.strip(start).load(Ordering::Relaxed)).start_of(start + HALF)?;
        Some(Block { start, bytes: self.end_of(chunk, start)? - start })
    }

    /// The end of a block that is not large.
    #[inline]
    pub(crate) fn end_of(&self, chunk: &Chunk, start: usize) -> Option<usize> {
        if let Some(end) = Strip(chunk.strip(start).load(Ordering::Relaxed)).end_of(start) {
            return Some(end);
        }
        let first = start >> strip::SHIFT & (PAGE_STRIPS - 1);
        for further in 1..PAGE_STRIPS - first {
            let at = start + (further << strip::SHIFT);
            if let Some(end) = Strip(chunk.strip(at).load(Ordering::Relaxed)).end_before(at) {
                return Some(end);
            }
        }
        match chunk.page(start).after.load(Ordering::Relaxed) as usize {
            0 => None,
            after => Some(start + after * HALF),
        }
    }

    // --- used pages ---------------------------------------------------------------------------------------------

    /// One more of what a page counts.
    #[inline]
    fn gain(&self, chunk: &Chunk, address: usize) {
        if chunk.page(address).count.add(1, alone()) == 0 {
            self.use_pages(1);
        }
    }

    /// One less.
    #[inline]
    pub(crate) fn lose(&self, chunk: &Chunk, address: usize) {
        let alone = alone();
        if chunk.page(address).count.add(u16::MAX, alone) == 1 {
            self.used.add(usize::MAX, alone);
        }
    }

    #[inline]
    fn use_pages(&self, pages: usize) {
        let used = self.used.add(pages, alone()) + pages;
        if used > self.high.load(Ordering::Relaxed) {
            self.high.fetch_max(used, Ordering::Relaxed);
        }
    }

    // --- blocks that are not in one strip -----------------------------------------------------------------------

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
        if strip::base(start) == strip::base(last) {
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
                    self.gain(chunk, page);
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
        if !Strip(chunk.strip(start).load(Ordering::Relaxed)).starts(start) {
            return self.remove_large(chunk, start);
        }
        let bytes = self.end_of(chunk, start)? - start;
        let last = start + bytes - HALF;
        if strip::base(start) == strip::base(last) {
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
                    self.lose(chunk, page);
                }
            }
        }
        Some(bytes)
    }

    /// Whether nothing is known where a block shall lie that is not large.
    fn is_clear(&self, start: usize, last: usize) -> bool {
        let (mut at, mut known) = (start, None);
        while at <= last {
            if known.is_none() || at & ((1 << chunk::SHIFT) - 1) == 0 {
                known = match self.directory.known(at) {
                    Known::Nothing => None,
                    Known::Chunk(chunk) => Some(chunk),
                    Known::Large(_) => return false,
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
            let end = strip::base(at) + (1 << strip::SHIFT);
            if Strip(chunk.strip(at).load(Ordering::Relaxed)).with(at, last.min(end - HALF)).is_none() {
                return false;
            }
            at = end;
        }
        true
    }

    /// Sets bits of a strip, in which they are clear.
    fn set(&self, chunk: &Chunk, address: usize, bits: u64) {
        self.change(chunk, address, |old| Strip(old.0 | bits));
    }

    /// Takes starts and ends out of a strip.
    pub(crate) fn clear(&self, chunk: &Chunk, address: usize, bits: u64) {
        self.change(chunk, address, |old| old.without(bits));
    }

    fn change(&self, chunk: &Chunk, address: usize, change: impl Fn(Strip) -> Strip) {
        let alone = alone();
        let word: &AtomicU64 = chunk.strip(address);
        let mut old = Strip(word.load(Ordering::Relaxed));
        loop {
            let new = change(old);
            match exchange(word, old, new, alone) {
                Ok(()) if old.0 == 0 && new.0 != 0 => return self.gain(chunk, address),
                Ok(()) if old.0 != 0 && new.0 == 0 => return self.lose(chunk, address),
                Ok(()) => return,
                Err(now) => old = now,
            }
        }
    }

    fn make_chunk(&self, address: usize) -> Result<&Chunk, NoMemory> {
        match self.directory.chunk(address) {
            Some(chunk) => Ok(chunk),
            None => self.held.with(|held| self.directory.make_chunk(address, &mut held.supply)),
        }
    }

    // --- large blocks -------------------------------------------------------------------------------------------

    fn insert_large(&self, start: usize, bytes: usize) -> Result<(), NoMemory> {
        let end = start.checked_add(bytes).ok_or(NoMemory)?;
        let last = end - HALF;
        let (chunk, last_chunk) = self.held.with(|held| {
            let supply = &mut held.supply;
            let chunk = self.directory.make_chunk(start, supply)?;
            let last_chunk = self.directory.make_chunk(last, supply)?;
            for between in (start >> chunk::SHIFT) + 1..last >> chunk::SHIFT {
                self.directory.prepare(between << chunk::SHIFT, supply)?;
            }
            let number = self.large.add(&mut held.room, start, bytes)?;
            chunk.cell(start).starting.store(number as u32 + 1, Ordering::Release);
            self.cover(start, last, Some(number));
            Ok((chunk, last_chunk))
        })?;
        self.gain(chunk, start);
        if start >> PAGE_SHIFT != last >> PAGE_SHIFT {
            self.gain(last_chunk, last);
            self.use_pages((last >> PAGE_SHIFT) - (start >> PAGE_SHIFT) - 1);
        }
        Ok(())
    }

    /// Every 64 KiB after the first of a large block knows it, or does no more. By who holds the lock.
    fn cover(&self, start: usize, last: usize, number: Option<usize>) {
        let mut at = ((start >> CELL_SHIFT) + 1) << CELL_SHIFT;
        while at <= last {
            match self.directory.known(at) {
                Known::Chunk(chunk) => {
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
        self.held.with(|held| {
            chunk.cell(start).starting.store(0, Ordering::Relaxed);
            self.cover(start, last, None);
            self.large.forget(&mut held.room, number);
        });
        self.lose(chunk, start);
        if start >> PAGE_SHIFT != last >> PAGE_SHIFT {
            self.lose(self.directory.chunk(last)?, last);
            let between = (last >> PAGE_SHIFT) - (start >> PAGE_SHIFT) - 1;
            self.used.add(between.wrapping_neg(), alone());
        }
        Some(bytes)
    }

    /// Forgets what overlaps a new block: it was given back past us.
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
            let Known::Chunk(chunk) = known else { continue };
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
                let small = (from..page + PAGE).step_by(1 << strip::SHIFT).find_map(|at| {
                    let strip = Strip(chunk.strip(at).load(Ordering::Relaxed));
                    strip.all().map(|start| strip::base(at) + start).find(|start| *start >= from)
                });
                // A step from the middle of a strip passes over the last one.
                let small = small.or_else(|| {
                    let at = page + PAGE - 1;
                    let strip = Strip(chunk.strip(at).load(Ordering::Relaxed));
                    strip.all().map(|start| strip::base(at) + start).find(|start| *start >= from)
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
                Known::Nothing => {}
                Known::Large(_) => add(base..base + (1 << chunk::SHIFT)),
                Known::Chunk(chunk) => {
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
