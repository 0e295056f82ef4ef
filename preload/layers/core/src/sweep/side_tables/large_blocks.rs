//! Large blocks in the tables: recorded in every 64 KiB that they cover, and removed from there.

use core::sync::atomic::Ordering;

use heaptoll_runtime::single_threaded;

use super::bitmap::HALF;
use super::block::NoMemory;
use super::chunk::{self, CELL_SHIFT, Chunk, PAGE_SHIFT};
use super::directory::DirectoryEntry;
use super::tables::Tables;

impl Tables {
    pub(crate) fn insert_large(&self, start: usize, bytes: usize) -> Result<(), NoMemory> {
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

    pub(crate) fn remove_large(&self, chunk: &Chunk, start: usize) -> Option<usize> {
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
}
