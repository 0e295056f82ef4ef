//! The tracer: breadth first from words to blocks, remembering where each block was found.

use core::ops::Range;
use core::sync::atomic::Ordering;

use crate::class::{CLASS, FREE, is_atomic};
use crate::heap::Heap;
use crate::span::{Bits, UnitIndex};

/// At which distances addresses are looked for in memory that can be executed, bytes: as the collector's marker does.
const CODE_STEP: usize = 1;
/// The same anywhere else.
const STEP: usize = 4;

/// Where a chain begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Source {
    Registers,
    Stack,
    Statics,
    Mapping,
    Code,
    Added,
}

/// A block that is handed out, or in a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    pub start: usize,
    pub bytes: usize,
    is_atomic: bool,
    unit: UnitIndex,
    index: usize,
}

/// The block that an address lies in. The heap stands still and is swept.
pub fn block_at(heap: &Heap, address: usize) -> Option<Block> {
    let reservation = &heap.reservation;
    let span_class = reservation.span_class(reservation.unit_of(address)?);
    if span_class == FREE {
        return None;
    }
    let unit = reservation.first(reservation.unit_of(address)?);
    let offset = address - reservation.address(unit);
    // SAFETY: a span or a large block of the heap, which stands still.
    let span = unsafe { &*reservation.span(unit) };
    let (index, blocks, bytes) = match CLASS.get(span_class as usize) {
        Some(class) => (class.index(offset), class.blocks.into(), class.size as usize),
        None => (offset / span.bytes.max(1), 1, span.bytes),
    };
    if index >= blocks || !span.is_taken(index) {
        return None;
    }
    let start = reservation.address(unit) + index * bytes;
    Some(Block { start, bytes, is_atomic: is_atomic(span_class), unit, index })
}

impl Block {
    fn bits<'a>(&self, heap: &'a Heap) -> &'a Bits {
        // SAFETY: a span or a large block of the heap, and a block of it.
        unsafe { &(*heap.reservation.span(self.unit)).bits[self.index / 64] }
    }

    /// Whether it was reached, or is in a cache.
    pub fn is_marked(&self, heap: &Heap) -> bool {
        self.bits(heap).marked.load(Ordering::Relaxed) >> (self.index % 64) & 1 != 0
    }

    fn mark(&self, heap: &Heap) {
        self.bits(heap).marked.fetch_or(1 << (self.index % 64), Ordering::Relaxed);
    }
}

/// No block before: a root leads here; or none after.
pub const NONE: u32 = u32::MAX;

/// A block that was reached.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Entry {
    pub block: usize,
    /// Where the word lies that led to it.
    pub word: usize,
    /// The entry of the block in which that is; once the chain is turned, the entry of the next block.
    pub link: u32,
    /// If it is in none: where it is.
    pub source: Source,
}

/// One trace.
pub struct Tracer<'a> {
    heap: &'a Heap,
    /// Memory for `capacity` entries; the first `count` are written, those before `next` have been read.
    entries: *mut Entry,
    capacity: usize,
    count: usize,
    next: usize,
    /// The block that is sought, 0: all are.
    target: usize,
    pub found: Option<u32>,
    /// Bytes in the blocks that were reached.
    pub bytes: u64,
    /// There was no room for a block.
    pub overflowed: bool,
}

impl<'a> Tracer<'a> {
    /// A tracer that seeks the block at `target`, or all if 0.
    ///
    /// # Safety
    /// `entries` is memory for `capacity` entries that nobody else uses. No block is marked but those in caches, and
    /// the heap stands still.
    pub unsafe fn new(heap: &'a Heap, entries: *mut Entry, capacity: usize, target: usize) -> Tracer<'a> {
        Tracer {
            heap,
            entries,
            capacity: capacity.min(NONE as usize),
            count: 0,
            next: 0,
            target,
            found: None,
            bytes: 0,
            overflowed: false,
        }
    }

    /// An entry that was written.
    pub fn entry(&self, index: u32) -> Entry {
        assert!((index as usize) < self.count);
        // SAFETY: it was written.
        unsafe { self.entries.add(index as usize).read() }
    }

    /// Looks at the words of a root.
    ///
    /// # Safety
    /// They are readable.
    pub unsafe fn root(&mut self, range: Range<usize>, source: Source) {
        // SAFETY: the caller's word.
        unsafe { self.words(range, NONE, source) };
    }

    /// Goes on from the blocks that were reached, until there are no more or the sought one is found.
    pub fn follow(&mut self) {
        while self.next < self.count && self.found.is_none() {
            let index = self.next;
            self.next += 1;
            let Entry { block, source, .. } = self.entry(index as u32);
            let Some(block) = block_at(self.heap, block) else { continue };
            if !block.is_atomic {
                // SAFETY: a block that is handed out is readable.
                unsafe { self.words(block.start..block.start + block.bytes, index as u32, source) };
            }
        }
    }

    /// # Safety
    /// The words of the range are readable.
    unsafe fn words(&mut self, range: Range<usize>, link: u32, source: Source) {
        if range.len() < size_of::<usize>() {
            return;
        }
        let is_code = link == NONE && source == Source::Code;
        let last = range.end.saturating_sub(size_of::<usize>());
        for word in (range.start..=last).step_by(if is_code { CODE_STEP } else { STEP }) {
            if self.found.is_some() {
                return;
            }
            // SAFETY: the caller's word.
            let value = unsafe { (word as *const usize).read_unaligned() };
            let Some(block) = block_at(self.heap, value) else { continue };
            if block.is_marked(self.heap) {
                continue;
            }
            if self.count == self.capacity {
                self.overflowed = true;
                return;
            }
            block.mark(self.heap);
            self.bytes += block.bytes as u64;
            // SAFETY: there is room for it.
            unsafe { self.entries.add(self.count).write(Entry { block: block.start, word, link, source }) };
            if block.start == self.target {
                self.found = Some(self.count as u32);
            }
            self.count += 1;
        }
    }

    /// Turns the chain that ends at `last` round: links lead on from the root. Says which entry is the first, and how
    /// many there are.
    pub fn turn(&mut self, last: u32) -> (u32, usize) {
        let (mut at, mut after, mut length) = (last, NONE, 0);
        while at != NONE {
            let before = self.entry(at).link;
            // SAFETY: it was written.
            unsafe { (*self.entries.add(at as usize)).link = after };
            (at, after) = (before, at);
            length += 1;
        }
        (after, length)
    }
}
