//! The heap: which requests are fragments and which are runs.

use core::ptr::NonNull;

use heaptoll_runtime::{Damage, Heap, Misuse, Piece, Region, Search, round_up};

use crate::haertel::fragments::{Fragment, class_of, place_of};
use crate::haertel::{CHUNK, ChunkEntry, ChunkKind, LARGEST, Table};

/// Haertel's heap.
///
/// Aligned requests cost a header-less heap nothing of its own: up to half a chunk they are fragments of at least their
/// alignment, up to a chunk they are runs, and beyond it runs that are larger by the alignment and trimmed.
#[derive(Debug)]
pub struct Haertel {
    pub(crate) region: Region,
    pub(crate) table: Table,
    /// The free run where the next search begins, or the list's head.
    pub(crate) rover: u32,
    /// The lists of free fragments, by their sizes as powers of two.
    pub(crate) classes: [Fragment; LARGEST as usize + 1],
    pub(crate) search: Search,
}

impl Haertel {
    /// An empty heap.
    pub const fn new() -> Haertel {
        Haertel {
            region: Region::new(),
            table: Table::none(),
            rover: 0,
            classes: [Fragment::NONE; LARGEST as usize + 1],
            search: Search::new(),
        }
    }

    #[cold]
    #[inline(never)]
    fn allocate_run(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let run = self.take_run(bytes.div_ceil(CHUNK))?;
        NonNull::new(self.address(run) as *mut u8)
    }

    /// The chunk in which an address lies.
    #[inline(always)]
    fn locate(&self, block: NonNull<u8>) -> Result<u32, Misuse> {
        let address = block.as_ptr() as usize;
        if self.region.contains(address) { Ok(self.chunk_of(address)) } else { Err(Misuse::Foreign) }
    }

    /// That the address is a live run's.
    fn live_run(&self, chunk: u32, address: usize) -> Result<(), Misuse> {
        // An address inside a run is that of a block only if the run was one, and was freed and coalesced.
        let mut run = chunk;
        while self.table[run].kind == ChunkKind::INSIDE && run > 1 {
            run -= 1;
        }
        match self.table[run].kind {
            ChunkKind::FREE => Err(Misuse::DoubleFree),
            ChunkKind::LIVE if run == chunk && address.is_multiple_of(CHUNK) => Ok(()),
            ChunkKind::LIVE => Err(Misuse::Damaged),
            _ => Err(Misuse::Foreign),
        }
    }

    #[cold]
    #[inline(never)]
    fn free_at(&mut self, chunk: u32, address: usize) -> Result<(), Misuse> {
        self.live_run(chunk, address)?;
        self.free_run(chunk);
        Ok(())
    }

    /// Whether a fragment of a class can be had without the system.
    fn has_fragment(&self, class: u32) -> bool {
        self.classes[class as usize] != Fragment::NONE || self.table[0].next != 0
    }
}

impl Default for Haertel {
    fn default() -> Haertel {
        Haertel::new()
    }
}

impl Heap for Haertel {
    const NAME: &'static str = "haertel";

    heaptoll_runtime::region_of_heap!(region);

    #[inline(always)]
    fn allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        if bytes > 1 << LARGEST {
            return self.allocate_run(bytes);
        }
        NonNull::new(self.take_fragment(class_of(bytes))? as *mut u8)
    }

    fn allocate_aligned(&mut self, alignment: usize, bytes: usize) -> Option<NonNull<u8>> {
        let larger = bytes.max(alignment);
        if larger <= 1 << LARGEST {
            return self.allocate(larger);
        }
        let chunks = bytes.div_ceil(CHUNK).max(1);
        if alignment <= CHUNK {
            return self.allocate_run(chunks * CHUNK);
        }
        let mut run = self.take_run(chunks.checked_add(alignment / CHUNK - 1)?)?;
        let address = self.address(run);
        let lead = ((round_up(address, alignment) - address) / CHUNK) as u32;
        if lead != 0 {
            // What lies before the aligned chunk becomes a run of its own, and is freed.
            let whole = self.table[run].count;
            self.table[run].count = lead;
            self.table[run + lead] = ChunkEntry::run(ChunkKind::LIVE, whole - lead);
            self.free_run(run);
            run += lead;
        }
        self.trim(run, chunks as u32);
        NonNull::new(self.address(run) as *mut u8)
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: NonNull<u8>) -> Result<(), Misuse> {
        let (chunk, address) = (self.locate(block)?, block.as_ptr() as usize);
        if self.table[chunk].kind == ChunkKind::FRAGMENTS {
            // SAFETY: the chunk is one of fragments.
            return unsafe { self.free_fragment(chunk, address) };
        }
        self.free_at(chunk, address)
    }

    unsafe fn resize(&mut self, block: NonNull<u8>, bytes: usize) -> Result<bool, Misuse> {
        let (chunk, address) = (self.locate(block)?, block.as_ptr() as usize);
        let entry = self.table[chunk];
        let small = bytes <= 1 << LARGEST;
        if entry.kind == ChunkKind::FRAGMENTS {
            place_of(&entry, address)?;
            if bytes > 1 << entry.log {
                return Ok(false);
            }
            // A smaller class is moved to, but never at the price of a failure.
            let class = class_of(bytes);
            return Ok(class == entry.log as u32 || !self.has_fragment(class));
        }
        self.live_run(chunk, address)?;
        if small && self.has_fragment(class_of(bytes)) {
            return Ok(false);
        }
        let chunks = bytes.div_ceil(CHUNK).max(1);
        if chunks > entry.count as usize {
            return Ok(self.enlarge(chunk, chunks));
        }
        self.trim(chunk, chunks as u32);
        Ok(true)
    }

    unsafe fn usable(&self, block: NonNull<u8>) -> usize {
        let entry = self.table[self.chunk_of(block.as_ptr() as usize)];
        match entry.kind {
            ChunkKind::FRAGMENTS => 1 << entry.log,
            _ => entry.count as usize * CHUNK,
        }
    }

    fn walk(&self, visit: &mut dyn FnMut(Piece)) {
        self.show(visit);
    }

    fn check(&self) -> Result<(), Damage> {
        self.audit()
    }

    fn search(&self) -> Option<Search> {
        Some(self.search)
    }
}
