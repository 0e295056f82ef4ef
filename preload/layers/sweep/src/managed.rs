//! Which addresses are not read for roots: the manager's memory, determined at each collection.
//!
//! A manager that is preloaded maps its memory through the layer ([`crate::mappings`]). The C library's own malloc does
//! not; there the headers in front of the blocks show it: whether a block lies in the heap at the break, in an arena of
//! 64 MiB, or has a mapping to itself. Only what holds a live block now is taken for the manager's: what it has
//! released may be the program's by now. Blocks anywhere else are left out one by one.

use core::ops::Range;

use heaptoll_layer_core::sweep::ranges::Ranges;
use heaptoll_layer_core::sweep::side_tables::Tables;
use heaptoll_roots::NoMemory;

use crate::freed::FREED;
use crate::mappings::{MAPPED, break_now};
use crate::shared::TABLES;

/// What a collection knows of the manager's memory.
pub struct Managed {
    /// Where the break was at the process's start.
    pub break_start: usize,
    /// The manager is the C library's.
    pub glibc: bool,
    found: Ranges,
}

/// glibc's: bits in a chunk's size (malloc.c, "chunk size bits").
const IS_MMAPPED: usize = 2;
const NON_MAIN_ARENA: usize = 4;
const SIZE_BITS: usize = 7;
/// Bytes between a block and its chunk's beginning.
const HEADER: usize = 16;
/// The alignment and the most of an arena's heap (arena.c, HEAP_MAX_SIZE), bytes.
const ARENA: usize = 64 << 20;

/// glibc's `heap_info`, its beginning.
#[repr(C)]
struct HeapInfo {
    arena: usize,
    previous: usize,
    bytes: usize,
}

impl Managed {
    pub const fn new() -> Managed {
        Managed { break_start: 0, glibc: false, found: Ranges::new() }
    }

    /// Finds the addresses that are the manager's now, as start and end, in order. Called while all threads are
    /// stopped.
    pub fn find(&mut self) -> Result<&[(usize, usize)], NoMemory> {
        self.found.clear();
        MAPPED
            .with(|mapped| {
                for &(start, end) in mapped.managers.as_slice() {
                    self.found.add(start..end)?;
                }
                if self.glibc && !mapped.break_lost {
                    self.found.add(self.break_start..break_now())?;
                    for &(start, end) in mapped.program_break.as_slice() {
                        self.found.remove(start..end)?;
                    }
                }
                Ok(())
            })
            .unwrap_or(Ok(()))?;
        self.find_around(&TABLES)?;
        self.find_around(&FREED)?;
        Ok(self.found.as_slice())
    }

    /// Finds those around blocks that the manager has handed out.
    fn find_around(&mut self, blocks: &Tables) -> Result<(), NoMemory> {
        let mut at = 0;
        while let Some(block) = blocks.first_in(at..usize::MAX) {
            let range = block.start..block.start + block.bytes;
            if let Some(known) = self.found.containing(block.start).filter(|known| known.end >= range.end) {
                at = known.end;
                continue;
            }
            // SAFETY: the tables have blocks only that the manager has not got back, and where `glibc` is true they are
            // glibc's.
            let mapping_around = if self.glibc { unsafe { mapping_around(&range) } } else { None };
            let mapping_around = mapping_around.unwrap_or(range);
            at = mapping_around.end;
            self.found.add(mapping_around)?;
        }
        Ok(())
    }

    /// The addresses of its own memory.
    pub fn memory(&self) -> [Range<usize>; 3] {
        let mapped = MAPPED.with(|mapped| (mapped.managers.memory(), mapped.program_break.memory()));
        let (managers, program) = mapped.unwrap_or((0..0, 0..0));
        [self.found.memory(), managers, program]
    }
}

/// What glibc has mapped around a block, if its header shows it.
///
/// # Safety
/// The block is live and glibc's.
unsafe fn mapping_around(block: &Range<usize>) -> Option<Range<usize>> {
    let chunk = block.start - HEADER;
    // SAFETY: glibc keeps two words in front of a block of its own, which this function requires.
    let (before, size) = unsafe { ((chunk as *const usize).read(), (chunk as *const usize).add(1).read()) };
    let found = if size & IS_MMAPPED != 0 {
        chunk.checked_sub(before)?..chunk.checked_add(size & !SIZE_BITS)?
    } else if size & NON_MAIN_ARENA != 0 {
        let heap = block.start & !(ARENA - 1);
        // SAFETY: an arena's heap begins with this, and the block lies in one.
        let bytes = unsafe { (*(heap as *const HeapInfo)).bytes };
        heap..heap.checked_add(bytes)?
    } else {
        return None;
    };
    // A program that has written over the header is not believed.
    let plausible = found.start <= block.start
        && found.end >= block.end
        && found.start.is_multiple_of(4096)
        && found.end.is_multiple_of(4096);
    plausible.then_some(found)
}
