//! A collection's second half: what was not marked is dead.
//!
//! Only pages that hold blocks are scanned, and chunks without any are dropped, so that a heap that was large once
//! costs no more than one that was not.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

use super::bitmap::{self, Bitmap, HALF, Starts, end_bits};
use super::chunk::{CELLS, Chunk, PAGE, PAGES};
use super::directory::DirectoryEntry;
use super::tables::Tables;

/// Most bytes between two blocks that are read as one range: a manager's header, on pages of theirs.
const GAP: usize = 2 * HALF;

impl Tables {
    /// Takes every block that is not marked out of the tables, and then visits it: its start and its bytes. Large
    /// blocks come last, the others in the order of addresses. No block is marked after.
    ///
    /// # Safety
    /// All other threads are stopped, none of them within a call into the tables, and marking is complete.
    pub unsafe fn dead(&self, mut visit: impl FnMut(usize, usize)) {
        for (base, known) in self.directory.each(self.directory.bounds()) {
            if let DirectoryEntry::Chunk(chunk) = known {
                self.dead_in(base, chunk, &mut visit);
            }
        }
        for entry in self.large.entries() {
            let (start, bytes) = (entry.start.load(Ordering::Relaxed), entry.bytes.load(Ordering::Relaxed));
            if bytes != 0 && entry.mark.swap(0, Ordering::Relaxed) == 0 && self.remove_any(start).is_some() {
                visit(start, bytes);
            }
        }
        for (base, known) in self.directory.each(self.directory.bounds()) {
            if let DirectoryEntry::Chunk(chunk) = known
                && (0..PAGES).all(|page| chunk.pages[page].count.get() == 0)
                && (0..CELLS).all(|cell| chunk.cells[cell].covering.load(Ordering::Relaxed) == 0)
            {
                self.guarded.with(|guarded| self.directory.drop_chunk(base, &mut guarded.supply));
            }
        }
        self.directory.narrow();
    }

    /// The dead blocks of a chunk that are not large.
    fn dead_in(&self, base: usize, chunk: &Chunk, visit: &mut impl FnMut(usize, usize)) {
        each_bitmap(base, chunk, |at, word| {
            let bitmap = Bitmap(word.load(Ordering::Relaxed));
            let dead = bitmap.unmarked();
            word.store(bitmap.without_marks().0, Ordering::Relaxed);
            if !dead.is_empty() {
                self.dead_of(chunk, at, bitmap, visit);
            }
        });
    }

    /// The dead blocks of a bitmap, whose marks are gone.
    fn dead_of(&self, chunk: &Chunk, at: usize, bitmap: Bitmap, visit: &mut impl FnMut(usize, usize)) {
        let mut bits = 0;
        let mut beyond = None;
        for start in bitmap.unmarked() {
            match bitmap.end_of(at + start) {
                Some(end) => bits |= bitmap::start_bits(at + start) | end_bits(end - HALF),
                None => beyond = Some(at + start),
            }
        }
        if bits != 0 {
            self.clear(chunk, at, bits);
        }
        let beyond = beyond.map(|start| (start, self.remove_any(start)));
        for start in bitmap.unmarked() {
            if let Some(end) = bitmap.end_of(at + start) {
                visit(at + start, end - at - start);
            }
        }
        if let Some((start, Some(bytes))) = beyond {
            visit(start, bytes);
        }
    }

    /// Clears all marks: blocks that are not marked stay.
    ///
    /// # Safety
    /// As [`Tables::dead`], but that marking need not be complete.
    pub unsafe fn clear_marks(&self) {
        for (base, known) in self.directory.each(self.directory.bounds()) {
            let DirectoryEntry::Chunk(chunk) = known else { continue };
            each_bitmap(base, chunk, |_, word| {
                word.store(Bitmap(word.load(Ordering::Relaxed)).without_marks().0, Ordering::Relaxed);
            });
        }
        for entry in self.large.entries() {
            if entry.bytes.load(Ordering::Relaxed) != 0 {
                entry.mark.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Visits every marked block that is read on, while all other threads are stopped.
    pub(crate) fn each_marked(&self, visit: impl FnMut(usize, usize)) {
        self.each_of(Bitmap::marked, |mark| mark != 0 && self.reads_large, visit);
    }

    /// Visits all blocks as ranges to be read, some of them empty, while all other threads are stopped.
    /// Neighbours lie in one range. Large blocks come last, the others in the order of addresses.
    pub fn runs(&self, mut visit: impl FnMut(Range<usize>)) {
        let mut run = 0..0;
        self.each_of(
            Bitmap::all,
            |_| true,
            |start, bytes| {
                if start.wrapping_sub(run.end) > GAP {
                    visit(core::mem::replace(&mut run, start..start));
                }
                run.end = start + bytes;
            },
        );
        visit(run);
    }

    /// Visits blocks by their starts in each bitmap and by the mark of each large one. Large blocks come last.
    fn each_of(
        &self,
        starts: impl Fn(Bitmap) -> Starts,
        large: impl Fn(u32) -> bool,
        mut visit: impl FnMut(usize, usize),
    ) {
        for (base, known) in self.directory.each(self.directory.bounds()) {
            let DirectoryEntry::Chunk(chunk) = known else { continue };
            each_bitmap(base, chunk, |at, word| {
                for start in starts(Bitmap(word.load(Ordering::Relaxed))) {
                    if let Some(end) = self.end_of(chunk, at + start) {
                        visit(at + start, end - at - start);
                    }
                }
            });
        }
        for entry in self.large.entries() {
            let (start, bytes) = (entry.start.load(Ordering::Relaxed), entry.bytes.load(Ordering::Relaxed));
            if bytes != 0 && large(entry.mark.load(Ordering::Relaxed)) {
                visit(start, bytes);
            }
        }
    }
}

/// Visits the bitmaps of a chunk, of pages that hold blocks: the address that each begins with, and its word.
#[inline(always)]
fn each_bitmap(base: usize, chunk: &Chunk, mut visit: impl FnMut(usize, &AtomicU64)) {
    for page in (0..PAGES).filter(|page| chunk.pages[*page].count.get() != 0) {
        let page = base + page * PAGE;
        for at in (page..page + PAGE).step_by(1 << bitmap::SHIFT) {
            visit(at, chunk.bitmap(at));
        }
    }
}
