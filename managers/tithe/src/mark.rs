//! Marking: from words that may be addresses to the blocks they lie in, and on to the words in these.
//!
//! What is read from memory is asked for long before it is needed, and what a processor cannot guess it is not asked
//! to: whether a word points into the heap and whether a block is marked already decide how far an index moves, not
//! where the program goes on. Words are therefore handled in three rounds. The words of some blocks are sifted into
//! `words`; each of these is led to the bits of its block, which are fetched; then the bits are looked at, and blocks
//! that were not marked go on the stack. From there they come in batches, whose first words are fetched before the
//! batch in front is read (Cher, Hosking and Vitek 2004, §3, for a first-in first-out queue before the stack).

use core::ops::Range;
use core::sync::atomic::{AtomicU8, Ordering};

use heaptoll_marking::{Grey, MarkStack, Pool};

use crate::class::{CLASS, FREE, KINDS, LARGE_ATOMIC, UNIT_SHIFT, is_atomic};
use crate::room::{AHEAD, Room};
use crate::runs::shade;
use crate::span::{Bits, Span, UnitIndex};

/// Bytes of a word.
const WORD: usize = size_of::<usize>();
/// Words that may wait to be looked at.
const WORDS: usize = 128;
/// Words read at once: so many always find room, and as many between them.
const SLICE: usize = 32;
/// Blocks that wait for their words.
const FETCHED: usize = 32;
/// So few of them are too few.
const FEW: usize = FETCHED * 7 / 8;
/// Bytes between the places where addresses are looked for.
const HALF: usize = 4;
/// Longer blocks are read in pieces, bytes: others may help, and the stack stays low.
const PIECE: usize = 32 << 10;

/// A block that a word points into.
#[derive(Clone, Copy)]
struct Candidate {
    bits: *mut Bits,
    start: usize,
    bytes: u32,
    bit: u8,
    /// It may hold pointers.
    plain: bool,
}

/// A thread that marks, while all others stand still or mark with it.
pub struct Marker<'a, const PARALLEL: bool> {
    base: usize,
    /// Words below this distance from the base are looked at: the heap, and what it may grow into.
    watched: usize,
    kinds: *const u8,
    firsts: *const UnitIndex,
    spans: *mut Span,
    black: *mut u8,
    shade: u8,
    stack: &'a mut MarkStack,
    /// Where those who mark side by side share what is to be read.
    pool: Option<&'a Pool<Grey>>,
    /// Distances from the base, and how many there are; one place more, where what does not count is written.
    words: [usize; WORDS + 1],
    waiting: usize,
    /// Bytes in blocks that were marked.
    pub marked: usize,
    /// A block was marked that the stack had no room for.
    pub overflowed: bool,
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

impl<'a, const PARALLEL: bool> Marker<'a, PARALLEL> {
    /// A marker for collection `epoch`, over an empty stack. Those that mark side by side have a pool.
    pub fn new(
        room: &'a Room,
        stack: &'a mut MarkStack,
        epoch: u32,
        pool: Option<&'a Pool<Grey>>,
    ) -> Marker<'a, PARALLEL> {
        Marker {
            base: room.base(),
            watched: if room.units() == 0 { 0 } else { (room.units() + AHEAD) << UNIT_SHIFT },
            kinds: room.kinds(),
            firsts: room.firsts(),
            spans: room.spans(),
            black: room.black(),
            shade: shade(epoch),
            stack,
            pool,
            words: [0; WORDS + 1],
            waiting: 0,
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
        let mut start = range.start;
        while start < range.end {
            let bytes = PIECE.min(range.end - start);
            let piece = Grey { start, bytes };
            start += bytes;
            if start < range.end {
                // An address may lie across.
                start -= WORD;
            }
            // The last piece is read here: whoever waits has enough with the others.
            if PARALLEL && start < range.end && self.lend(piece) {
                continue;
            }
            // SAFETY: the caller's word.
            unsafe { self.read(piece) };
            self.drain();
        }
    }

    /// As [`Marker::range`], where addresses may lie at any byte, as in code.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn bytes(&mut self, range: Range<usize>) {
        let mut before = 0;
        for at in range.step_by(WORD) {
            // SAFETY: the caller's word.
            let word = unsafe { (at as *const usize).read() };
            let mut waiting = self.waiting;
            for shift in (0..usize::BITS).step_by(8) {
                // The bytes of two words side by side; where none is of the first, the second itself.
                let between = if shift == 0 { word } else { before >> shift | word << (usize::BITS - shift) };
                // SAFETY: there is room for eight.
                unsafe { sift(between, self.base, self.watched, self.words.as_mut_ptr(), &mut waiting) };
            }
            before = word;
            self.waiting = waiting;
            if waiting > WORDS - 2 * SLICE {
                self.resolve();
            }
        }
        self.drain();
    }

    /// Marks everything that is reachable from what waits.
    pub fn drain(&mut self) {
        self.empty();
        // Those who mark side by side leave it to the one who comes last.
        while !PARALLEL && core::mem::take(&mut self.overflowed) {
            self.read_marked();
        }
    }

    /// As [`Marker::range`] for what another marker lent.
    ///
    /// # Safety
    /// As there, for each.
    pub unsafe fn borrowed(&mut self, greys: &[Grey]) {
        for &grey in greys {
            self.push(grey);
        }
        self.drain();
    }

    /// Reads the words of a block or range.
    ///
    /// # Safety
    /// As [`Marker::range`].
    #[inline(always)]
    unsafe fn read(&mut self, grey: Grey) {
        let (base, watched) = (self.base, self.watched);
        // The upper half of an address in the heap: a word between two others ends with the lower half of the second.
        let upper = (base >> 32) as u32;
        let spread = ((base + watched) >> 32) as u32 - upper;
        let begin = grey.start as *const usize;
        let mut at = begin;
        let end = (grey.start + grey.bytes) as *const usize;
        while at < end {
            let stop = if end as usize - at as usize > SLICE * WORD { at.wrapping_add(SLICE) } else { end };
            let mut waiting = self.waiting;
            // SAFETY: the caller's word; there is room for a slice, and words of blocks come in pairs.
            unsafe {
                let words = self.words.as_mut_ptr();
                if (stop as usize - at as usize) & WORD != 0 {
                    sift(at.read(), base, watched, words, &mut waiting);
                    if ends_address(at, upper, spread) && at > begin {
                        sift(across(at.byte_sub(HALF)), base, watched, words, &mut waiting);
                    }
                    at = at.add(1);
                }
                while at < stop {
                    sift(at.read(), base, watched, words, &mut waiting);
                    sift(at.add(1).read(), base, watched, words, &mut waiting);
                    if ends_address(at, upper, spread) && at > begin {
                        sift(across(at.byte_sub(HALF)), base, watched, words, &mut waiting);
                    }
                    if ends_address(at.add(1), upper, spread) {
                        sift(across(at.byte_add(HALF)), base, watched, words, &mut waiting);
                    }
                    at = at.add(2);
                }
            }
            self.waiting = waiting;
            if waiting > WORDS - 2 * SLICE {
                self.resolve();
            }
        }
    }

    /// Leads the words that wait to their blocks, and marks these.
    #[inline(never)]
    fn resolve(&mut self) {
        let nobody = core::mem::MaybeUninit::<Candidate>::uninit();
        let mut candidates = [nobody; WORDS];
        let mut found = 0;
        for word in 0..core::mem::take(&mut self.waiting) {
            // SAFETY: `words` holds distances below `watched`. The tables of kinds and of the black list have a row
            // for each such unit, the others for every unit that is not free; a span's blocks have bits.
            unsafe {
                let offset = *self.words.get_unchecked(word);
                let unit = offset >> UNIT_SHIFT;
                let kind = *self.kinds.add(unit);
                if kind as usize >= KINDS {
                    self.large(offset, kind);
                    continue;
                }
                let class = CLASS.get_unchecked(kind as usize);
                // Free units have none, and those beyond the heap's end no row in the table of firsts either.
                let first = if class.units <= 1 { unit } else { *self.firsts.add(unit) as usize };
                let block = class.index(offset - (first << UNIT_SHIFT));
                if block >= class.blocks as usize {
                    // What is free has no blocks, and other spans have a rest behind the last.
                    if kind == FREE {
                        self.blacken(unit);
                    }
                    continue;
                }
                let candidate = Candidate {
                    bits: &raw mut *(*self.spans.add(first)).bits.get_unchecked_mut(block / 64),
                    start: self.base + (first << UNIT_SHIFT) + block * class.size as usize,
                    bytes: class.size,
                    bit: (block % 64) as u8,
                    plain: !is_atomic(kind),
                };
                fetch(candidate.bits);
                candidates.get_unchecked_mut(found).write(candidate);
                found += 1;
            }
        }
        let ample = self.stack.reserve(WORDS);
        let mut marked = 0;
        for candidate in &candidates[..found] {
            // SAFETY: written above.
            let candidate = unsafe { candidate.assume_init() };
            // SAFETY: the bits of a block; who else marks does it by atomic instructions too.
            let new = unsafe { mark::<PARALLEL>(candidate.bits, candidate.bit) };
            marked += candidate.bytes as usize & (new as usize).wrapping_neg();
            let grey = Grey { start: candidate.start, bytes: candidate.bytes as usize };
            if ample {
                // SAFETY: room was reserved.
                unsafe { self.stack.push_if(grey, new & candidate.plain) };
            } else if new & candidate.plain {
                self.push(grey);
            }
        }
        self.marked += marked;
    }

    /// A word points into a large block, or what is left over behind it.
    #[inline(never)]
    fn large(&mut self, offset: usize, kind: u8) {
        // SAFETY: as in `resolve`.
        unsafe {
            let first = *self.firsts.add(offset >> UNIT_SHIFT) as usize;
            let span = self.spans.add(first);
            let bytes = (*span).bytes;
            if offset - (first << UNIT_SHIFT) >= bytes || !mark::<PARALLEL>(&raw mut (*span).bits[0], 0) {
                return;
            }
            self.marked += bytes;
            if kind != LARGE_ATOMIC {
                self.push(Grey { start: self.base + (first << UNIT_SHIFT), bytes });
            }
        }
    }

    /// A word points into a unit that is free, or will be of the heap.
    #[cold]
    fn blacken(&self, unit: usize) {
        // SAFETY: as in `resolve`. Markers write the same.
        unsafe { AtomicU8::from_ptr(self.black.add(unit)) }.store(self.shade, Ordering::Relaxed);
    }

    fn push(&mut self, grey: Grey) {
        if !self.stack.push(grey) && !self.lend(grey) {
            self.overflowed = true;
        }
    }

    /// Marks until nothing is left to read.
    fn empty(&mut self) {
        let mut fetched = [Grey { start: 0, bytes: 0 }; FETCHED];
        let (mut head, mut tail) = (0_usize, 0_usize);
        loop {
            while tail.wrapping_sub(head) < FETCHED
                && let Some(mut grey) = self.stack.pop()
            {
                if grey.bytes > PIECE {
                    // An address may lie across: the piece's last word is read again.
                    let rest = Grey { start: grey.start + PIECE - WORD, bytes: grey.bytes - PIECE + WORD };
                    if self.stack.push(rest) {
                        grey.bytes = PIECE;
                    }
                }
                fetch(grey.start as *const u8);
                fetch((grey.start + grey.bytes.min(128) - 1) as *const u8);
                fetched[tail % FETCHED] = grey;
                tail = tail.wrapping_add(1);
            }
            if PARALLEL {
                self.share();
            }
            if tail.wrapping_sub(head) < FEW && self.waiting > 0 {
                // Little is on its way: see first whether more can be.
                self.resolve();
                continue;
            }
            if head == tail {
                return;
            }
            // SAFETY: a marked block, which is readable; nobody writes.
            unsafe { self.read(fetched[head % FETCHED]) };
            head = head.wrapping_add(1);
        }
    }

    /// Leaves a range to another marker; false when nobody has time or there is no room.
    fn lend(&self, grey: Grey) -> bool {
        self.pool.is_some_and(|pool| pool.is_wanted() && pool.give(&[grey]) == 1)
    }

    /// Gives half of the stack, the oldest, to those who wait.
    #[inline(always)]
    fn share(&mut self) {
        if let Some(pool) = self.pool
            && self.stack.len() >= 2
            && pool.is_wanted()
        {
            self.stack.give(pool);
        }
    }

    /// The stack was too small: reads every marked block again. Each round marks more than the one before, or nothing
    /// is left to mark.
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
                    unsafe {
                        self.read(Grey { start: self.room.address(first) + block * size, bytes: size })
                    };
                    self.empty();
                }
            }
        }
    }
}

/// Notes how far from the base a word points if that is below `watched`. There is room for one more, whatever it is.
///
/// # Safety
/// `waiting` is a place in `words`.
#[inline(always)]
unsafe fn sift(word: usize, base: usize, watched: usize, words: *mut usize, waiting: &mut usize) {
    // SAFETY: the caller's word.
    unsafe {
        let offset = word.wrapping_sub(base);
        words.add(*waiting).write(offset);
        *waiting += usize::from(offset < watched);
    }
}

/// What lies between two words. Not an unaligned read, which copies: the stack that is read may be this one.
///
/// # Safety
/// It is readable, at a multiple of 4.
#[inline(always)]
unsafe fn across(at: *const usize) -> usize {
    let halves = at.cast::<u32>();
    // SAFETY: the caller's word.
    unsafe { halves.read() as usize | (halves.add(1).read() as usize) << 32 }
}

/// Whether the lower half of a word may be the upper half of an address in the heap. Programs keep addresses in packed
/// structures (Ruby's buffers), at multiples of 4.
///
/// # Safety
/// The word is readable.
#[inline(always)]
unsafe fn ends_address(at: *const usize, upper: u32, spread: u32) -> bool {
    // SAFETY: the caller's word.
    unsafe { at.cast::<u32>().read() }.wrapping_sub(upper) <= spread
}

/// Marks a block that is taken; says whether it is that and was not marked before.
///
/// # Safety
/// The bits are a span's.
#[inline(always)]
unsafe fn mark<const PARALLEL: bool>(bits: *mut Bits, bit: u8) -> bool {
    // SAFETY: the caller's word; only `marked` changes while there is marking.
    let bits = unsafe { &*bits };
    let marked = bits.marked.load(Ordering::Relaxed);
    let new = bits.taken & !marked & 1 << bit;
    if PARALLEL {
        return new != 0 && bits.marked.fetch_or(new, Ordering::Relaxed) & new == 0;
    }
    bits.marked.store(marked | new, Ordering::Relaxed);
    new != 0
}
