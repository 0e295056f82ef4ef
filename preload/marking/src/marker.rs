//! Marking: from words that may be addresses to the blocks they lie in, and on to the words in these.
//!
//! What is read from memory is asked for long before it is needed, and what a processor cannot guess it is not asked
//! to: whether a word points into the heap and whether a block is marked already decide how far an index moves, not
//! where the program goes on. Words are therefore handled in three rounds. The words of some blocks are sifted into
//! `words`; each of these is led to the bits of its block, which are fetched; then the bits are looked at, and blocks
//! that were not marked go on the stack. From there they come in batches, whose first words are fetched before the
//! batch in front is read (Cher, Hosking and Vitek 2004, §3, for a first-in first-out queue before the stack).
//!
//! Which block a word lies in, and where its bits are, the heap says; everything else is here.

use core::ops::Range;

use crate::pool::Pool;
use crate::stack::{Grey, MarkStack};

/// Bytes of a word.
const WORD: usize = size_of::<usize>();
/// Words that may wait to be looked at.
pub const WORDS: usize = 128;
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

/// What is marked.
pub trait Heap: Sized {
    /// Words are looked at that are less than `extent` from `base`.
    fn base(&self) -> usize;
    fn extent(&self) -> usize;

    /// Leads the marker's first `count` words to their blocks, marks these, and puts those that were not marked on the
    /// stack.
    ///
    /// # Safety
    /// The heap stands still, and there are as many words, at most [`WORDS`].
    unsafe fn resolve<const PARALLEL: bool>(marker: &mut Marker<'_, Self, PARALLEL>, count: usize);

    /// Calls [`Marker::rescan`] with every marked block.
    ///
    /// # Safety
    /// The heap stands still.
    unsafe fn scan_marked<const PARALLEL: bool>(marker: &mut Marker<'_, Self, PARALLEL>);
}

/// A thread that marks, while all others stand still or mark with it.
pub struct Marker<'a, H, const PARALLEL: bool> {
    pub heap: H,
    pub stack: &'a mut MarkStack,
    /// Where those who mark side by side share what is to be read.
    pool: Option<&'a Pool<Grey>>,
    /// Distances from the base, and how many there are; one place more, where what does not count is written.
    words: [usize; WORDS + 1],
    waiting: usize,
    /// Bytes in blocks that were marked.
    pub marked: usize,
    /// A block was marked that the stack had no room for.
    pub overflowed: bool,
}

/// Asks for the line of the cache that an address lies in.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    // SAFETY: a hint, valid for any address.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

impl<'a, H: Heap, const PARALLEL: bool> Marker<'a, H, PARALLEL> {
    /// A marker over an empty stack. Those that mark side by side have a pool.
    pub fn new(heap: H, stack: &'a mut MarkStack, pool: Option<&'a Pool<Grey>>) -> Marker<'a, H, PARALLEL> {
        Marker { heap, stack, pool, words: [0; WORDS + 1], waiting: 0, marked: 0, overflowed: false }
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
            unsafe { self.scan(piece) };
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
                unsafe {
                    sift(between, self.heap.base(), self.heap.extent(), self.words.as_mut_ptr(), &mut waiting)
                };
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
            // SAFETY: as what was marked before.
            unsafe { H::scan_marked(self) };
        }
    }

    /// As [`Marker::range`] for what another marker lent.
    ///
    /// # Safety
    /// As there, for each.
    pub unsafe fn borrowed(&mut self, grey_objects: &[Grey]) {
        for &grey in grey_objects {
            self.push(grey);
        }
        self.drain();
    }

    /// Reads the words of a block or range.
    ///
    /// # Safety
    /// As [`Marker::range`].
    #[inline(always)]
    unsafe fn scan(&mut self, grey: Grey) {
        let (base, extent) = (self.heap.base(), self.heap.extent());
        // The upper half of an address in the heap: a word between two others ends with the lower half of the second.
        let upper = (base >> 32) as u32;
        let spread = ((base + extent) >> 32) as u32 - upper;
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
                    sift(at.read(), base, extent, words, &mut waiting);
                    if ends_address(at, upper, spread) && at > begin {
                        sift(across(at.byte_sub(HALF)), base, extent, words, &mut waiting);
                    }
                    at = at.add(1);
                }
                while at < stop {
                    sift(at.read(), base, extent, words, &mut waiting);
                    sift(at.add(1).read(), base, extent, words, &mut waiting);
                    if ends_address(at, upper, spread) && at > begin {
                        sift(across(at.byte_sub(HALF)), base, extent, words, &mut waiting);
                    }
                    if ends_address(at.add(1), upper, spread) {
                        sift(across(at.byte_add(HALF)), base, extent, words, &mut waiting);
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
        let waiting = core::mem::take(&mut self.waiting);
        // SAFETY: as many words were sifted.
        unsafe { H::resolve(self, waiting) };
    }

    /// A word that is to be led to its block: how far it is from the base, less than `extent`.
    ///
    /// # Safety
    /// There are more than `index`, as the heap was told.
    #[inline(always)]
    pub unsafe fn word(&self, index: usize) -> usize {
        // SAFETY: the caller's word.
        unsafe { *self.words.get_unchecked(index) }
    }

    /// Reads a marked block once more.
    ///
    /// # Safety
    /// It is readable, and nobody writes.
    pub unsafe fn rescan(&mut self, grey: Grey) {
        // SAFETY: the caller's word.
        unsafe { self.scan(grey) };
        self.empty();
    }

    /// Puts a block that was marked where it will be read.
    #[inline]
    pub fn push(&mut self, grey: Grey) {
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
                prefetch(grey.start as *const u8);
                prefetch((grey.start + grey.bytes.min(128) - 1) as *const u8);
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
            unsafe { self.scan(fetched[head % FETCHED]) };
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
}

/// Notes how far from the base a word points if that is below `extent`. There is room for one more, whatever it is.
///
/// # Safety
/// `waiting` is a place in `words`.
#[inline(always)]
unsafe fn sift(word: usize, base: usize, extent: usize, words: *mut usize, waiting: &mut usize) {
    // SAFETY: the caller's word.
    unsafe {
        let offset = word.wrapping_sub(base);
        words.add(*waiting).write(offset);
        *waiting += usize::from(offset < extent);
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
