//! The directory: from an address to the entry of the chunk that it lies in.
//!
//! Two levels, 16 GiB for an entry of the first. Its memory comes from one region of the process's and is not returned
//! while there are tables; chunks that have no block any more are used again.

use core::ops::Range;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use heaptoll_runtime::Region;

use super::block::NoMemory;
use super::chunk::{self, Chunk};

/// Bits of an address, and of the index in a node.
const ADDRESS_BITS: u32 = 47;
const NODE_BITS: u32 = 14;
const TOP_BITS: u32 = ADDRESS_BITS - chunk::SHIFT - NODE_BITS;
const NODES: usize = 1 << TOP_BITS;
const ENTRIES: usize = 1 << NODE_BITS;
const NODE_SHIFT: u32 = chunk::SHIFT + NODE_BITS;
/// What the region grows by, bytes: some chunks at once.
const STEP: usize = 512 << 10;

/// The second level. Zeros are an empty one.
#[repr(C)]
struct Node {
    /// How many entries there are from the first that was used to the end, and from the start to the last one.
    from_first: AtomicUsize,
    to_last: AtomicUsize,
    /// 0, a chunk's address, or where a large block covers all of the chunk its number, twice, and one.
    entries: [AtomicUsize; ENTRIES],
}

/// The entry of 1 MiB of address space.
#[derive(Clone, Copy)]
pub enum DirectoryEntry<'a> {
    Empty,
    Chunk(&'a Chunk),
    /// All of it is one large block, of this number.
    Large(usize),
}

/// Supplies chunks and nodes. Only the holder of the tables' lock reaches it.
pub struct Supply {
    region: Region,
    /// The rest of the last growth.
    left: Range<usize>,
    free: *const Chunk,
}

// SAFETY: the chunks are the tables', whichever thread holds the lock.
unsafe impl Send for Supply {}

impl Supply {
    pub const fn new() -> Supply {
        Supply { region: Region::new(), left: 0..0, free: core::ptr::null() }
    }

    pub fn range(&self) -> Range<usize> {
        self.region.start()..self.region.end()
    }

    pub fn fail_every(&mut self, every: u64) {
        self.region.fail_every(every);
    }

    /// Zeroed memory for one of a kind, on a page's boundary.
    fn take<T>(&mut self) -> Result<*mut T, NoMemory> {
        let bytes = size_of::<T>().next_multiple_of(heaptoll_runtime::PAGE);
        if self.left.len() < bytes {
            let needs = bytes - self.left.len();
            let (start, got) =
                self.region.grow_within(needs, needs.next_multiple_of(STEP)).ok_or(NoMemory)?;
            if self.left.is_empty() {
                self.left.start = start.as_ptr() as usize;
            }
            self.left.end = start.as_ptr() as usize + got;
        }
        let place = self.left.start;
        self.left.start += bytes;
        Ok(place as *mut T)
    }

    fn chunk(&mut self) -> Result<*const Chunk, NoMemory> {
        if self.free.is_null() {
            return Ok(self.take::<Chunk>()?.cast_const());
        }
        let chunk = self.free;
        // SAFETY: a free chunk, to which nothing but this list refers.
        self.free = unsafe { &*chunk }.next.swap(0, Ordering::Relaxed) as *const Chunk;
        Ok(chunk)
    }
}

/// Both levels.
pub struct Directory {
    top: [AtomicPtr<Node>; NODES],
    /// Chunks' numbers, the address by the bytes of a chunk: the lowest that ever had an entry, and one more than the
    /// highest. Nothing yet: the first is not below the second.
    low: AtomicUsize,
    high: AtomicUsize,
}

impl Directory {
    pub const fn new() -> Directory {
        Directory {
            top: [const { AtomicPtr::new(core::ptr::null_mut()) }; NODES],
            low: AtomicUsize::new(usize::MAX),
            high: AtomicUsize::new(0),
        }
    }

    #[inline(always)]
    fn node(&self, address: usize) -> Option<&Node> {
        let node = self.top.get(address >> NODE_SHIFT)?.load(Ordering::Acquire);
        // SAFETY: nodes are never given back.
        unsafe { node.as_ref() }
    }

    #[inline(always)]
    fn entry(&self, address: usize) -> Option<&AtomicUsize> {
        let node = self.node(address)?;
        // SAFETY: the mask keeps the index below `ENTRIES`, the array's length.
        Some(unsafe { node.entries.get_unchecked(address >> chunk::SHIFT & (ENTRIES - 1)) })
    }

    /// The entry of the chunk that an address lies in.
    #[inline(always)]
    pub fn lookup(&self, address: usize) -> DirectoryEntry<'_> {
        let entry = self.entry(address).map_or(0, |entry| entry.load(Ordering::Acquire));
        if entry == 0 {
            return DirectoryEntry::Empty;
        }
        if entry & 1 != 0 {
            return DirectoryEntry::Large(entry >> 1);
        }
        // SAFETY: chunks are never given back to the system.
        DirectoryEntry::Chunk(unsafe { &*(entry as *const Chunk) })
    }

    /// The chunk that an address lies in, if it has one.
    #[inline(always)]
    pub fn chunk(&self, address: usize) -> Option<&Chunk> {
        match self.lookup(address) {
            DirectoryEntry::Chunk(chunk) => Some(chunk),
            _ => None,
        }
    }

    /// The entry of an address, with its node if need be. The caller holds the lock.
    fn make_entry(&self, address: usize, supply: &mut Supply) -> Result<&AtomicUsize, NoMemory> {
        let top = self.top.get(address >> NODE_SHIFT).ok_or(NoMemory)?;
        if top.load(Ordering::Relaxed).is_null() {
            top.store(supply.take::<Node>()?, Ordering::Release);
        }
        self.entry(address).ok_or(NoMemory)
    }

    /// The chunk of an address, made if need be. The caller holds the lock.
    pub fn make_chunk(&self, address: usize, supply: &mut Supply) -> Result<&Chunk, NoMemory> {
        let entry = self.make_entry(address, supply)?;
        match entry.load(Ordering::Relaxed) {
            0 => {
                let chunk = supply.chunk()?;
                entry.store(chunk as usize, Ordering::Release);
                self.widen(address);
                // SAFETY: chunks are never given back to the system.
                Ok(unsafe { &*chunk })
            }
            // The large block that was here was freed without the layer: the caller has searched for it.
            chunk if chunk & 1 == 0 => {
                // SAFETY: chunks are never given back to the system.
                Ok(unsafe { &*(chunk as *const Chunk) })
            }
            _ => Err(NoMemory),
        }
    }

    /// Makes the entry of a chunk that a large block will cover. The caller holds the lock.
    pub fn prepare(&self, address: usize, supply: &mut Supply) -> Result<(), NoMemory> {
        self.make_entry(address, supply)?;
        Ok(())
    }

    /// Records that a large block covers all of a chunk that has no tables, or no longer does. The caller holds the
    /// lock.
    pub fn cover(&self, address: usize, number: Option<usize>) {
        if let Some(entry) = self.entry(address) {
            entry.store(number.map_or(0, |number| number << 1 | 1), Ordering::Release);
            self.widen(address);
        }
    }

    fn widen(&self, address: usize) {
        self.low.fetch_min(address >> chunk::SHIFT, Ordering::Relaxed);
        self.high.fetch_max((address >> chunk::SHIFT) + 1, Ordering::Relaxed);
        if let Some(node) = self.node(address) {
            let index = address >> chunk::SHIFT & (ENTRIES - 1);
            node.from_first.fetch_max(ENTRIES - index, Ordering::Relaxed);
            node.to_last.fetch_max(index + 1, Ordering::Relaxed);
        }
    }

    /// Addresses between which everything lies that is known.
    pub fn bounds(&self) -> Range<usize> {
        let (low, high) = (self.low.load(Ordering::Relaxed), self.high.load(Ordering::Relaxed));
        if low >= high { 0..0 } else { low << chunk::SHIFT..high << chunk::SHIFT }
    }

    /// Takes the chunk of an address out, for another use. Called while all other threads are stopped, or by the holder
    /// of the lock when no thread reads the chunk; the chunk is empty.
    pub fn drop_chunk(&self, address: usize, supply: &mut Supply) {
        if let Some(entry) = self.entry(address)
            && let DirectoryEntry::Chunk(chunk) = self.lookup(address)
        {
            entry.store(0, Ordering::Relaxed);
            chunk.next.store(supply.free as usize, Ordering::Relaxed);
            supply.free = chunk;
        }
    }

    /// Computes the bounds again, after chunks were dropped. Called while all other threads are stopped.
    pub fn narrow(&self) {
        let bounds = self.bounds();
        self.low.store(usize::MAX, Ordering::Relaxed);
        self.high.store(0, Ordering::Relaxed);
        let mut at = bounds.start;
        while at < bounds.end {
            if let Some(node) = self.node(at) {
                let is_used = |index: &usize| node.entries[*index].load(Ordering::Relaxed) != 0;
                let within =
                    ENTRIES - node.from_first.load(Ordering::Relaxed)..node.to_last.load(Ordering::Relaxed);
                let (first, last) = (within.clone().find(is_used), within.rev().find(is_used));
                node.from_first.store(first.map_or(0, |first| ENTRIES - first), Ordering::Relaxed);
                node.to_last.store(last.map_or(0, |last| last + 1), Ordering::Relaxed);
                for index in [first, last].into_iter().flatten() {
                    self.widen((at >> NODE_SHIFT << NODE_SHIFT) + (index << chunk::SHIFT));
                }
            }
            at = (at | ((1 << NODE_SHIFT) - 1)) + 1;
        }
    }

    /// All entries within bounds, in the order of addresses: the first address of each chunk.
    pub fn each(&self, bounds: Range<usize>) -> Each<'_> {
        Each { directory: self, at: bounds.start & !((1 << chunk::SHIFT) - 1), end: bounds.end }
    }
}

/// See [`Directory::each`].
pub struct Each<'a> {
    directory: &'a Directory,
    at: usize,
    end: usize,
}

impl<'a> Iterator for Each<'a> {
    type Item = (usize, DirectoryEntry<'a>);

    fn next(&mut self) -> Option<(usize, DirectoryEntry<'a>)> {
        while self.at < self.end {
            let at = self.at;
            let index = at >> chunk::SHIFT & (ENTRIES - 1);
            let Some(node) =
                self.directory.node(at).filter(|node| index < node.to_last.load(Ordering::Relaxed))
            else {
                self.at = (at | ((1 << NODE_SHIFT) - 1)) + 1;
                continue;
            };
            let first = ENTRIES - node.from_first.load(Ordering::Relaxed);
            if index < first {
                self.at = at + ((first - index) << chunk::SHIFT);
                continue;
            }
            self.at += 1 << chunk::SHIFT;
            match self.directory.lookup(at) {
                DirectoryEntry::Empty => {}
                lookup => return Some((at, lookup)),
            }
        }
        None
    }
}
