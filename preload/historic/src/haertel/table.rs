//! The chunk table: what each chunk is.
//!
//! Chunks are numbered from 1. Entry 0 is the head of the list of free runs, a run of no chunks.

use core::ops::{Index, IndexMut};

use crate::haertel::CHUNK;

/// The kind of an entry's chunk. A number and not an enumeration: the table is memory that a program can overwrite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct ChunkKind(u16);

impl ChunkKind {
    /// It is not the first of its run.
    pub const INSIDE: ChunkKind = ChunkKind(0);
    /// It begins a free run. Also the head of their list.
    pub const FREE: ChunkKind = ChunkKind(1);
    /// It begins a run that the program holds.
    pub const LIVE: ChunkKind = ChunkKind(2);
    /// It begins the table.
    pub const TABLE: ChunkKind = ChunkKind(3);
    /// It is cut into fragments.
    pub const FRAGMENTS: ChunkKind = ChunkKind(4);
}

/// A chunk's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct ChunkEntry {
    /// What the chunk is.
    pub kind: ChunkKind,
    /// Of fragments: their size as a power of two.
    pub log: u16,
    /// Of a run: its chunks. Of fragments: those that are free.
    pub count: u32,
    /// Of a free run: the next. Of fragments: the first free one in their list, by its place in the chunk.
    pub next: u32,
    /// Of a free run: the one before.
    pub previous: u32,
}

impl ChunkEntry {
    /// A chunk that is not the first of its run.
    pub const INSIDE: ChunkEntry =
        ChunkEntry { kind: ChunkKind::INSIDE, log: 0, count: 0, next: 0, previous: 0 };

    /// The first of a run that is in no list.
    pub const fn run(kind: ChunkKind, count: u32) -> ChunkEntry {
        ChunkEntry { kind, count, ..ChunkEntry::INSIDE }
    }

    /// Of fragments: how many the chunk has.
    #[inline(always)]
    pub const fn fragments(&self) -> u32 {
        CHUNK as u32 >> self.log
    }
}

/// Where the table is and how many entries it has.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    address: usize,
    capacity: u32,
}

impl Table {
    /// None yet.
    pub const fn none() -> Table {
        Table { address: 0, capacity: 0 }
    }

    /// A table in zeroed memory.
    ///
    /// # Safety
    /// The memory holds `capacity` entries and is used for nothing else.
    pub const unsafe fn at(address: usize, capacity: u32) -> Table {
        Table { address, capacity }
    }

    /// Where it is.
    #[inline(always)]
    pub const fn address(&self) -> usize {
        self.address
    }

    /// The number of entries that it has space for.
    #[inline(always)]
    pub const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Chunks that a table of so many entries takes.
    pub const fn chunks_for(capacity: u32) -> u32 {
        (capacity as usize * size_of::<ChunkEntry>()).div_ceil(CHUNK) as u32
    }

    /// The entries, copied.
    ///
    /// # Safety
    /// `to` has space for them, and lies elsewhere.
    pub unsafe fn copy_to(&self, to: &Table) {
        // SAFETY: `to` has space for them, and lies elsewhere, as this function requires.
        unsafe {
            core::ptr::copy_nonoverlapping(
                self.address as *const ChunkEntry,
                to.address as *mut ChunkEntry,
                self.capacity as usize,
            );
        }
    }
}

impl Index<u32> for Table {
    type Output = ChunkEntry;

    #[inline(always)]
    fn index(&self, chunk: u32) -> &ChunkEntry {
        debug_assert!(chunk < self.capacity);
        // SAFETY: the table has an entry for every chunk of the heap, and numbers are the heap's.
        unsafe { &*(self.address as *const ChunkEntry).add(chunk as usize) }
    }
}

impl IndexMut<u32> for Table {
    #[inline(always)]
    fn index_mut(&mut self, chunk: u32) -> &mut ChunkEntry {
        debug_assert!(chunk < self.capacity);
        // SAFETY: the table has an entry for every chunk of the heap, and numbers are the heap's.
        unsafe { &mut *(self.address as *mut ChunkEntry).add(chunk as usize) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_16_bytes_and_256_of_them_fill_a_chunk() {
        assert_eq!(size_of::<ChunkEntry>(), 16);
        assert_eq!([1, 256, 257, 1024].map(Table::chunks_for), [1, 1, 2, 4]);
    }

    #[test]
    fn a_copied_table_is_equal() {
        let (mut old, mut new) = ([ChunkEntry::INSIDE; 4], [ChunkEntry::INSIDE; 8]);
        // SAFETY: memory for so many entries.
        let (mut from, to) =
            unsafe { (Table::at(&raw mut old as usize, 4), Table::at(&raw mut new as usize, 8)) };
        from[3] = ChunkEntry::run(ChunkKind::LIVE, 7);
        // SAFETY: `to` has space for the entries of `from`.
        unsafe { from.copy_to(&to) };
        assert_eq!((to[3], to[4]), (ChunkEntry::run(ChunkKind::LIVE, 7), ChunkEntry::INSIDE));
    }
}
