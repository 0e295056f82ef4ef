//! The tracer: breadth first from words to blocks, recording where each block was found.

use core::ops::Range;
use core::sync::atomic::Ordering;

use heaptoll_assertions::assert_internal;

use crate::class::{CLASS, FREE, is_atomic};
use crate::heap::Heap;
use crate::mark::is_dropped;
use crate::readable::word_at;
use crate::span::{Bits, UnitIndex};

/// The step at which executable memory is scanned for addresses, bytes: as the collector's marker does.
const CODE_STEP: usize = 1;
/// The same in other memory.
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
    Kernel,
}

/// A block that is allocated, or in a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    pub start: usize,
    pub bytes: usize,
    is_atomic: bool,
    unit: UnitIndex,
    index: usize,
}

/// The block that contains an address. The heap must be stopped and swept.
pub fn block_at(heap: &Heap, address: usize) -> Option<Block> {
    let reservation = &heap.reservation;
    let span_class = reservation.span_class(reservation.unit_of(address)?);
    if span_class == FREE {
        return None;
    }
    let unit = reservation.first(reservation.unit_of(address)?);
    let offset = address - reservation.address(unit);
    // SAFETY: the first unit of a span or large block of the heap, which is stopped.
    let span = unsafe { &*reservation.span(unit) };
    let (index, blocks, bytes) = match CLASS.get(span_class as usize) {
        Some(class) => (class.index(offset), class.blocks.into(), class.size as usize),
        None => (offset / span.bytes.max(1), 1, span.bytes),
    };
    if index >= blocks || !span.is_taken(index) {
        return None;
    }
    let start = reservation.address(unit) + index * bytes;
    let is_unread = is_atomic(span_class) || is_dropped(reservation, unit, span);
    Some(Block { start, bytes, is_atomic: is_unread, unit, index })
}

impl Block {
    fn bits<'a>(&self, heap: &'a Heap) -> &'a Bits {
        // SAFETY: `unit` is the first unit of a span or large block, and `index` is one of its blocks (`block_at`).
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

/// No previous block: a root points here; or no next one.
pub const NONE: u32 = u32::MAX;

/// A block that was reached.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Entry {
    pub block: usize,
    /// The address of the word that points to it.
    pub word: usize,
    /// The entry of the block that contains that word; once the chain is reversed, the entry of the next block.
    pub link: u32,
    /// The sort of root from which the chain begins.
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
    /// The block that is sought; 0: all blocks.
    target: usize,
    pub found: Option<u32>,
    /// Bytes in the blocks that were reached.
    pub bytes: u64,
    /// There was no entry left for a block.
    pub overflowed: bool,
}

impl<'a> Tracer<'a> {
    /// A tracer that seeks the block at `target`, or all if 0.
    ///
    /// # Safety
    /// `entries` is memory for `capacity` entries that no other code uses. Only blocks in caches are marked, and the
    /// heap is stopped.
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
        // SAFETY: entries below `count` were written by `scan`.
        unsafe { self.entries.add(index as usize).read() }
    }

    /// Scans the words of a root.
    ///
    /// # Safety
    /// The range is readable.
    pub unsafe fn root(&mut self, range: Range<usize>, source: Source) {
        // SAFETY: the range is readable (this function's contract).
        unsafe { self.scan(range, NONE, source) };
    }

    /// Scans the blocks that were reached, until there are no more or the sought one is found.
    pub fn follow(&mut self) {
        while self.next < self.count && self.found.is_none() {
            let index = self.next;
            self.next += 1;
            assert_internal!(
                self.next <= self.count && self.count <= self.capacity,
                "entries that are read are written"
            );
            let Entry { block, source, .. } = self.entry(index as u32);
            let Some(block) = block_at(self.heap, block) else { continue };
            if !block.is_atomic {
                // SAFETY: an allocated block is readable.
                unsafe { self.scan(block.start..block.start + block.bytes, index as u32, source) };
            }
        }
    }

    /// # Safety
    /// The words of the range are readable.
    unsafe fn scan(&mut self, range: Range<usize>, link: u32, source: Source) {
        if range.len() < size_of::<usize>() {
            return;
        }
        let is_code = link == NONE && source == Source::Code;
        let last = range.end.saturating_sub(size_of::<usize>());
        for word in (range.start..=last).step_by(if is_code { CODE_STEP } else { STEP }) {
            if self.found.is_some() {
                return;
            }
            // SAFETY: the word lies in the range, which is readable (this function's contract).
            let value = unsafe { word_at(word) };
            let Some(block) = block_at(self.heap, value) else { continue };
            if block.is_marked(self.heap) {
                continue;
            }
            if self.count == self.capacity {
                self.overflowed = true;
                return;
            }
            assert_internal!(
                block.start <= value && value < block.start + block.bytes,
                "a word leads to the block that it points into"
            );
            block.mark(self.heap);
            self.bytes += block.bytes as u64;
            // SAFETY: `count` is below `capacity`, as checked above.
            unsafe { self.entries.add(self.count).write(Entry { block: block.start, word, link, source }) };
            if block.start == self.target {
                self.found = Some(self.count as u32);
            }
            self.count += 1;
        }
    }

    /// Reverses the chain that ends at `last`: links then lead from the root to it. Returns the first entry, and the
    /// number of entries.
    pub fn reverse(&mut self, last: u32) -> (u32, usize) {
        let (mut at, mut after, mut length) = (last, NONE, 0);
        while at != NONE {
            let before = self.entry(at).link;
            // SAFETY: `entry` has checked that `at` is below `count`.
            unsafe { (*self.entries.add(at as usize)).link = after };
            assert_internal!(
                before == NONE || before < at,
                "a block is reached from one that was reached before it"
            );
            (at, after) = (before, at);
            length += 1;
        }
        assert_internal!(
            (1..=self.count).contains(&length),
            "a chain has each block that was reached once at most"
        );
        (after, length)
    }
}
