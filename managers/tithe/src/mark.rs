//! Marking: from words that may be addresses to the blocks they lie in, and on to the words in these.
//!
//! Three things wait in turn, so that memory has time to arrive: a word that looks like an address waits in a short
//! queue while the bits of its block are fetched (Cher, Hosking and Vitek 2004, §3); a block just marked waits on the
//! stack; and a block from the stack waits once more while its first words are fetched.

use core::ops::Range;
use core::sync::atomic::Ordering;

use crate::class::{CLASS, FREE, KINDS, LARGE_ATOMIC, UNIT_SHIFT, is_atomic};
use crate::room::{AHEAD, Room};
use crate::runs::shade;
use crate::span::{Bits, Span, UnitIndex};
use crate::stack::{Grey, MarkStack};

/// Words that wait for their bits.
const QUEUE: usize = 8;
/// Blocks that wait for their words.
const FETCHED: usize = 16;

/// A block that a word may point into.
#[derive(Clone, Copy)]
struct Candidate {
    bits: *mut Bits,
    start: usize,
    bytes: u32,
    bit: u8,
    atomic: bool,
}

/// A thread that marks, while all others stand still.
pub struct Marker<'a> {
    base: usize,
    /// Words below this distance from the base are looked at: the heap, and what it may grow into.
    watched: usize,
    kinds: *const u8,
    firsts: *const UnitIndex,
    spans: *mut Span,
    black: *mut u8,
    shade: u8,
    stack: &'a mut MarkStack,
    queue: [Candidate; QUEUE],
    queued: usize,
    fetched: [Grey; FETCHED],
    /// Bytes in blocks that were marked.
    pub marked: usize,
    /// A block was marked that the stack had no room for.
    overflowed: bool,
    /// Where the word lies that is looked at, for who asks why.
    room: &'a Room,
}

#[inline(always)]
fn fetch<T>(address: *const T) {
    // SAFETY: a hint, valid for any address.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

impl<'a> Marker<'a> {
    /// A marker for collection `epoch`, over an empty stack.
    pub fn new(room: &'a Room, stack: &'a mut MarkStack, epoch: u32) -> Marker<'a> {
        let nobody = Candidate { bits: core::ptr::null_mut(), start: 0, bytes: 0, bit: 0, atomic: true };
        Marker {
            base: room.base(),
            watched: if room.units() == 0 { 0 } else { (room.units() + AHEAD) << UNIT_SHIFT },
            kinds: room.kinds(),
            firsts: room.firsts(),
            spans: room.spans(),
            black: room.black(),
            shade: shade(epoch),
            stack,
            queue: [nobody; QUEUE],
            queued: 0,
            fetched: [Grey { start: 0, bytes: 0 }; FETCHED],
            marked: 0,
            overflowed: false,
            room,
        }
    }

    /// Marks what the words of a range point into, and everything from there.
    ///
    /// # Safety
    /// The range is of whole readable words, nobody writes in it, and the marker's heap stands still.
    pub unsafe fn range(&mut self, range: Range<usize>) {
        // SAFETY: the caller's word.
        unsafe { self.read(Grey { start: range.start, bytes: range.end.saturating_sub(range.start) }) };
        self.drain();
    }

    /// Reads the words of a block or range.
    ///
    /// # Safety
    /// As [`Marker::range`].
    #[inline(always)]
    unsafe fn read(&mut self, grey: Grey) {
        let mut at = grey.start;
        let end = grey.start + grey.bytes;
        while at < end {
            // SAFETY: the caller's word.
            let word = unsafe { (at as *const usize).read() };
            let offset = word.wrapping_sub(self.base);
            if offset < self.watched {
                self.candidate(offset);
            }
            at += size_of::<usize>();
        }
    }

    /// A word points `offset` bytes into the heap, or close behind it.
    #[inline(always)]
    fn candidate(&mut self, offset: usize) {
        let unit = offset >> UNIT_SHIFT;
        // SAFETY: the tables of kinds and of the black list have a row for every watched unit, the others for every
        // unit that is not free; a span's blocks have bits.
        unsafe {
            let kind = *self.kinds.add(unit) as usize;
            let candidate = if kind < KINDS {
                if kind == FREE as usize {
                    self.black.add(unit).write(self.shade);
                    return;
                }
                let class = CLASS.get_unchecked(kind);
                let first = if class.units == 1 { unit } else { *self.firsts.add(unit) as usize };
                let block = class.index(offset - (first << UNIT_SHIFT));
                if block >= class.blocks as usize {
                    return;
                }
                Candidate {
                    bits: &raw mut *(*self.spans.add(first)).bits.get_unchecked_mut(block / 64),
                    start: self.base + (first << UNIT_SHIFT) + block * class.size as usize,
                    bytes: class.size,
                    bit: (block % 64) as u8,
                    atomic: is_atomic(kind as u8),
                }
            } else {
                let first = *self.firsts.add(unit) as usize;
                let span = self.spans.add(first);
                if offset - (first << UNIT_SHIFT) >= (*span).bytes {
                    return;
                }
                Candidate {
                    bits: &raw mut (*span).bits[0],
                    start: self.base + (first << UNIT_SHIFT),
                    // Too long for the field: read again from the descriptor.
                    bytes: 0,
                    bit: 0,
                    atomic: kind == LARGE_ATOMIC as usize,
                }
            };
            fetch(candidate.bits);
            let place = self.queue.get_unchecked_mut(self.queued % QUEUE);
            self.queued = self.queued.wrapping_add(1);
            let due = core::mem::replace(place, candidate);
            self.mark(due);
        }
    }

    /// Marks a block, unless it is marked or free.
    #[inline(always)]
    fn mark(&mut self, candidate: Candidate) {
        if candidate.bits.is_null() {
            return;
        }
        // SAFETY: the bits of a block; all other threads stand still.
        unsafe {
            let bits = &*candidate.bits;
            let bit = 1u64 << candidate.bit;
            let marked = bits.marked.load(Ordering::Relaxed);
            if bits.taken & !marked & bit == 0 {
                return;
            }
            bits.marked.store(marked | bit, Ordering::Relaxed);
            let bytes = if candidate.bytes != 0 {
                candidate.bytes as usize
            } else {
                let unit = (candidate.start - self.base) >> UNIT_SHIFT;
                (*self.spans.add(unit)).bytes
            };
            self.marked += bytes;
            if candidate.atomic {
                return;
            }
            if !self.stack.push(Grey { start: candidate.start, bytes }) {
                self.overflowed = true;
            }
        }
    }

    /// Marks everything that is reachable from what waits.
    fn drain(&mut self) {
        loop {
            self.empty();
            if !core::mem::take(&mut self.overflowed) {
                return;
            }
            self.read_marked();
        }
    }

    fn empty(&mut self) {
        let mut turn = 0;
        loop {
            while let Some(next) = self.stack.pop() {
                fetch(next.start as *const u8);
                fetch((next.start + 64) as *const u8);
                let place = &mut self.fetched[turn % FETCHED];
                turn += 1;
                let due = core::mem::replace(place, next);
                // SAFETY: a marked block, which is readable; nobody writes.
                unsafe { self.read(due) };
            }
            for place in 0..FETCHED {
                let due = core::mem::replace(&mut self.fetched[place], Grey { start: 0, bytes: 0 });
                // SAFETY: as above.
                unsafe { self.read(due) };
            }
            for place in 0..QUEUE {
                let nobody = Candidate { bits: core::ptr::null_mut(), ..self.queue[place] };
                let due = core::mem::replace(&mut self.queue[place], nobody);
                self.mark(due);
            }
            if self.stack.is_empty() {
                return;
            }
        }
    }

    /// The stack was too small: reads every marked block again. Each round marks more than the one before, as the
    /// stack holds one block at least.
    #[cold]
    fn read_marked(&mut self) {
        let mut unit = 0;
        while unit < self.room.units() {
            let kind = self.room.kind(unit);
            if kind == FREE {
                unit += 1;
                continue;
            }
            let first = self.room.first(unit);
            // SAFETY: the first unit of a span or block; all other threads stand still.
            let (units, span) = unsafe { ((*self.room.span(first)).units, self.room.span(first)) };
            unit = first as usize + units as usize;
            if is_atomic(kind) {
                continue;
            }
            let (blocks, size) = match CLASS.get(kind as usize) {
                Some(class) => (class.blocks as usize, class.size as usize),
                // SAFETY: as above.
                None => (1, unsafe { (*span).bytes }),
            };
            for block in 0..blocks {
                // SAFETY: as above.
                if unsafe { (*span).is_taken(block) && (*span).is_marked(block) } {
                    // SAFETY: a marked block is readable. Blocks in caches are too, and lead to free blocks only.
                    unsafe { self.read(Grey { start: self.room.address(first) + block * size, bytes: size }) };
                    self.empty_some();
                }
            }
        }
    }

    /// Keeps the stack low while blocks are read again.
    fn empty_some(&mut self) {
        while let Some(next) = self.stack.pop() {
            // SAFETY: a marked block, which is readable; nobody writes.
            unsafe { self.read(next) };
        }
    }
}
