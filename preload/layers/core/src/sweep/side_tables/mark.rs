//! Marking live blocks: from a word to its bitmap, and from there to its block.
//!
//! The bitmaps are prefetched for all waiting words before the first is read. Nearly all blocks that hold pointers
//! start and end in one bitmap; for others the search goes from bitmap to bitmap.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU64, Ordering};

use heaptoll_marking::{Grey, Heap, Marker, WORDS, prefetch};

use super::bitmap::Bitmap;
use super::directory::DirectoryEntry;
use super::tables::Tables;

/// Up to so many waiting words are few.
const FEW: usize = 8;

/// The blocks of some tables, while the world is stopped.
pub struct LiveBlocks<'a> {
    tables: &'a Tables,
    base: usize,
    extent: usize,
}

impl<'a> LiveBlocks<'a> {
    pub fn new(tables: &'a Tables) -> LiveBlocks<'a> {
        let bounds = tables.directory.bounds();
        LiveBlocks { tables, base: bounds.start, extent: bounds.len() }
    }
}

/// A word that lies in a chunk.
#[derive(Clone, Copy)]
struct Candidate {
    bitmap: *const AtomicU64,
    address: usize,
}

impl Heap for LiveBlocks<'_> {
    #[inline(always)]
    fn base(&self) -> usize {
        self.base
    }

    #[inline(always)]
    fn extent(&self) -> usize {
        self.extent
    }

    #[inline(always)]
    unsafe fn resolve<const PARALLEL: bool>(marker: &mut Marker<'_, Self, PARALLEL>, count: usize) {
        let tables = marker.heap.tables;
        let mut candidates = [MaybeUninit::<Candidate>::uninit(); WORDS];
        let mut found = 0;
        // Where few words wait, as in a list, the block is needed before anything else can continue.
        let few = count <= FEW;
        for word in 0..count {
            // SAFETY: `word` is below `count`, the number of words that `resolve` requires.
            let address = marker.heap.base + unsafe { marker.word(word) };
            match tables.directory.lookup(address) {
                DirectoryEntry::Chunk(chunk) => {
                    let bitmap = chunk.bitmap(address);
                    prefetch(bitmap);
                    if few {
                        prefetch(address as *const u8);
                    }
                    // SAFETY: `found` is at most `word`, and `resolve` requires that `count` is at most `WORDS`.
                    unsafe { candidates.get_unchecked_mut(found) }.write(Candidate { bitmap, address });
                    found += 1;
                }
                DirectoryEntry::Large(_) => mark_elsewhere(marker, address),
                DirectoryEntry::Empty => {}
            }
        }
        let ample = marker.stack.reserve(WORDS);
        let mut marked = 0;
        for candidate in &candidates[..found] {
            // SAFETY: the loop above wrote the first `found` candidates.
            let Candidate { bitmap, address } = unsafe { candidate.assume_init() };
            // SAFETY: the bitmap is part of a chunk, and chunks are never given back.
            let word = unsafe { &*bitmap };
            let bits = Bitmap(word.load(Ordering::Relaxed));
            let Some(start) = bits.start_of(address) else {
                mark_elsewhere(marker, address);
                continue;
            };
            let Some(end) = bits.end_of(start) else {
                mark_elsewhere(marker, address);
                continue;
            };
            if address >= end {
                mark_elsewhere(marker, address);
                continue;
            }
            let new = set::<PARALLEL>(word, bits, Bitmap::mark(start));
            let bytes = end - start;
            marked += bytes & (new as usize).wrapping_neg();
            let grey = Grey { start, bytes };
            if ample {
                // SAFETY: `reserve` has made space for `WORDS` entries.
                unsafe { marker.stack.push_if(grey, new) };
            } else if new {
                // SAFETY: a live block, and the world is stopped.
                unsafe { marker.push(grey) };
            }
        }
        marker.marked += marked;
    }

    unsafe fn scan_marked<const PARALLEL: bool>(marker: &mut Marker<'_, Self, PARALLEL>) {
        let tables = marker.heap.tables;
        tables.each_marked(|start, bytes| {
            // SAFETY: a marked block is readable; all other threads are stopped.
            unsafe { marker.rescan(Grey { start, bytes }) };
        });
    }
}

/// Marks the block of a word that is large, or not in the word's own bitmap, or does not exist.
#[inline(never)]
fn mark_elsewhere<const PARALLEL: bool>(marker: &mut Marker<'_, LiveBlocks<'_>, PARALLEL>, address: usize) {
    let tables = marker.heap.tables;
    let Some(found) = tables.seek(address) else { return };
    let (start, bytes) = (found.block.start, found.block.bytes);
    let new = match found.large {
        Some(number) => tables.large.entry(number).mark.swap(1, Ordering::Relaxed) == 0,
        None => tables.directory.chunk(start).is_some_and(|chunk| {
            let word = chunk.bitmap(start);
            set::<PARALLEL>(word, Bitmap(word.load(Ordering::Relaxed)), Bitmap::mark(start))
        }),
    };
    if new {
        marker.marked += bytes;
        if found.large.is_some() && !tables.reads_large {
            return;
        }
        // The stack may have no space left for what follows: space that was reserved is not this block's.
        // SAFETY: a live block, and the world is stopped, as `Marker::new` requires of the marker.
        unsafe { marker.push(Grey { start, bytes }) };
    }
}

/// Sets a mark; returns whether it was not set.
#[inline(always)]
fn set<const PARALLEL: bool>(word: &AtomicU64, bits: Bitmap, mark: u64) -> bool {
    if PARALLEL {
        return bits.0 & mark == 0 && word.fetch_or(mark, Ordering::Relaxed) & mark == 0;
    }
    word.store(bits.0 | mark, Ordering::Relaxed);
    bits.0 & mark == 0
}
