//! Marking live blocks: from a word to its strip, and from there to its block.
//!
//! The strips are fetched for all words that wait before the first is looked at. Nearly all blocks that hold pointers
//! start and end in one strip; who does not is looked for from strip to strip.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU64, Ordering};

use heaptoll_marking::{Grey, Heap, Marker, WORDS, prefetch};

use crate::directory::Known;
use crate::strip::Strip;
use crate::tables::Tables;

/// So few words waiting are few.
const LONELY: usize = 8;

/// The blocks of some tables, while they stand still.
pub struct Live<'a> {
    tables: &'a Tables,
    base: usize,
    extent: usize,
}

impl<'a> Live<'a> {
    pub fn new(tables: &'a Tables) -> Live<'a> {
        let bounds = tables.directory.bounds();
        Live { tables, base: bounds.start, extent: bounds.len() }
    }
}

/// A word that lies in a chunk.
#[derive(Clone, Copy)]
struct Candidate {
    strip: *const AtomicU64,
    address: usize,
}

impl Heap for Live<'_> {
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
        // Where little waits, as in a list, the block is needed before anything else can go on.
        let lonely = count <= LONELY;
        for word in 0..count {
            // SAFETY: the caller's word.
            let address = marker.heap.base + unsafe { marker.word(word) };
            match tables.directory.known(address) {
                Known::Chunk(chunk) => {
                    let strip = chunk.strip(address);
                    prefetch(strip);
                    if lonely {
                        prefetch(address as *const u8);
                    }
                    // SAFETY: there are no more than words.
                    unsafe { candidates.get_unchecked_mut(found) }.write(Candidate { strip, address });
                    found += 1;
                }
                Known::Large(_) => apart(marker, address),
                Known::Nothing => {}
            }
        }
        let ample = marker.stack.reserve(WORDS);
        let mut marked = 0;
        for candidate in &candidates[..found] {
            // SAFETY: written above.
            let Candidate { strip, address } = unsafe { candidate.assume_init() };
            // SAFETY: a chunk's, which stays.
            let word = unsafe { &*strip };
            let bits = Strip(word.load(Ordering::Relaxed));
            let Some(start) = bits.start_of(address) else {
                apart(marker, address);
                continue;
            };
            let Some(end) = bits.end_of(start) else {
                apart(marker, address);
                continue;
            };
            if address >= end {
                apart(marker, address);
                continue;
            }
            let new = set::<PARALLEL>(word, bits, Strip::mark(start));
            let bytes = end - start;
            marked += bytes & (new as usize).wrapping_neg();
            let grey = Grey { start, bytes };
            if ample {
                // SAFETY: room was reserved.
                unsafe { marker.stack.push_if(grey, new) };
            } else if new {
                marker.push(grey);
            }
        }
        marker.marked += marked;
    }

    unsafe fn scan_marked<const PARALLEL: bool>(marker: &mut Marker<'_, Self, PARALLEL>) {
        let tables = marker.heap.tables;
        tables.each_marked(|start, bytes| {
            // SAFETY: a marked block is readable; all others stand still.
            unsafe { marker.rescan(Grey { start, bytes }) };
        });
    }
}

/// A word whose block is large, or not in the word's own strip, or nowhere.
#[inline(never)]
fn apart<const PARALLEL: bool>(marker: &mut Marker<'_, Live<'_>, PARALLEL>, address: usize) {
    let tables = marker.heap.tables;
    let Some(found) = tables.seek(address) else { return };
    let (start, bytes) = (found.block.start, found.block.bytes);
    let new = match found.large {
        Some(number) => tables.large.entry(number).mark.swap(1, Ordering::Relaxed) == 0,
        None => tables.directory.chunk(start).is_some_and(|chunk| {
            let word = chunk.strip(start);
            set::<PARALLEL>(word, Strip(word.load(Ordering::Relaxed)), Strip::mark(start))
        }),
    };
    if new {
        marker.marked += bytes;
        // The stack may have no room left for what follows: room that was reserved is not this block's.
        marker.push(Grey { start, bytes });
    }
}

/// Sets a mark; says whether it was not set.
#[inline(always)]
fn set<const PARALLEL: bool>(word: &AtomicU64, bits: Strip, mark: u64) -> bool {
    if PARALLEL {
        return bits.0 & mark == 0 && word.fetch_or(mark, Ordering::Relaxed) & mark == 0;
    }
    word.store(bits.0 | mark, Ordering::Relaxed);
    bits.0 & mark == 0
}
