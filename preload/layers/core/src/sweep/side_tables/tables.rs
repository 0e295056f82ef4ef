//! The tables: blocks enter, leave and are found.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use heaptoll_runtime::single_threaded;

use super::bitmap::{self, Bitmap, HALF, end_bits, exchange, start_bits};
use super::block::{Block, NoMemory};
use super::chunk::{self, Chunk, LARGE, PAGE, PAGE_SHIFT};
use super::count::Count;
use super::directory::{Directory, DirectoryEntry, Supply};
use super::large::{Large, LargeSupply};
use super::lock::Locked;

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
    pub(crate) used: Count<usize>,
    high: AtomicUsize,
    /// Large blocks that are marked are read on; not where their pages were given back.
    pub(crate) reads_large: bool,
}

impl Default for Tables {
    fn default() -> Tables {
        Tables::new()
    }
}

impl Tables {
    pub const fn new() -> Tables {
        Tables::with(true)
    }

    /// Tables of freed blocks ([`crate::sweep::held`]).
    pub const fn of_freed() -> Tables {
        Tables::with(false)
    }

    const fn with(reads_large: bool) -> Tables {
        Tables {
            directory: Directory::new(),
            large: Large::new(),
            guarded: Locked::new(Guarded { supply: Supply::new(), large_supply: LargeSupply::new() }),
            used: Count::<usize>::new(0),
            high: AtomicUsize::new(0),
            reads_large,
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

    // --- used pages ---------------------------------------------------------------------------------------------

    /// Adds one to a page's count.
    #[inline]
    pub(crate) fn increment_page(&self, chunk: &Chunk, address: usize) {
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
    pub(crate) fn use_pages(&self, pages: usize) {
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

    /// Forgets what overlaps a new block: it was freed without the layer.
    fn evict(&self, start: usize, bytes: usize) {
        let end = start.saturating_add(bytes);
        while let Some(block) = self.first_in(start..end) {
            if self.remove_any(block.start).is_none() {
                return;
            }
        }
    }
}
