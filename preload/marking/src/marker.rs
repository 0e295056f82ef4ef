//! Marking: from words that may be addresses to the blocks they lie in, and on to the words in these.
//!
//! Memory is prefetched long before it is needed, and branches that a processor cannot predict are avoided: whether a
//! word points into the heap and whether a block is marked already decide how far an index moves, not which code runs
//! next. Words are therefore handled in three rounds. The words of some blocks are sifted into `words`; each of these
//! is resolved to the bits of its block, which are prefetched; then the bits are read, and blocks that were not marked
//! go on the stack. From there they come in batches, whose first words are prefetched before the previous batch is
//! scanned (Cher, Hosking and Vitek 2004, §3, for a first-in first-out queue before the stack).
//!
//! The heap determines which block a word lies in, and where its bits are; everything else is here.

use core::ops::Range;

use heaptoll_assertions::assert_internal;

use crate::pool::Pool;
use crate::stack::{Grey, MarkStack};

/// Bytes of a word.
const WORD: usize = size_of::<usize>();
/// Words that may wait to be resolved.
pub const WORDS: usize = 128;
/// Words scanned at once: there is always space for so many, and for as many that lie across two of them.
const SLICE: usize = 32;
/// Blocks whose first words are being prefetched, at most.
const FETCHED: usize = 32;
/// With fewer blocks than this being prefetched, the waiting words are resolved first, which may add blocks.
const FEW: usize = FETCHED * 7 / 8;
/// Half a word, bytes: pointers are searched for at its multiples.
const HALF: usize = 4;
/// Words that are looked at together, at first only for whether one of them may be an address.
const GROUP: usize = 8;
/// Longer blocks are scanned in pieces, bytes: others may help, and the stack stays low.
const PIECE: usize = 32 << 10;

const _: () = {
    // A slice's words, and those that lie across two of them, fit what is left when words are resolved.
    assert!(WORDS >= 4 * SLICE && SLICE.is_multiple_of(2) && SLICE >= 8);
    assert!(FEW < FETCHED && FETCHED.is_power_of_two());
    assert!(PIECE > 2 * WORD && PIECE.is_multiple_of(WORD) && HALF * 2 == WORD);
};

/// What is marked.
pub trait Heap: Sized {
    /// Words are considered that are less than `extent` from `base`.
    fn base(&self) -> usize;
    fn extent(&self) -> usize;

    /// Resolves the marker's first `count` words to their blocks, marks these, and pushes those that were not marked.
    ///
    /// # Safety
    /// The world is stopped, and there are `count` words, at most [`WORDS`].
    unsafe fn resolve<const PARALLEL: bool>(marker: &mut Marker<'_, Self, PARALLEL>, count: usize);

    /// Calls [`Marker::rescan`] with every marked block.
    ///
    /// # Safety
    /// The world is stopped.
    unsafe fn scan_marked<const PARALLEL: bool>(marker: &mut Marker<'_, Self, PARALLEL>);
}

/// A thread that marks, while all others are stopped or mark with it.
pub struct Marker<'a, H, const PARALLEL: bool> {
    pub heap: H,
    pub stack: &'a mut MarkStack,
    /// Where parallel markers share what is to be scanned.
    pool: Option<&'a Pool<Grey>>,
    /// Distances from the base, and how many there are; one slot more, where words that do not count are written.
    words: [usize; WORDS + 1],
    waiting: usize,
    /// Bytes in blocks that were marked.
    pub marked: usize,
    /// A block was marked for which the stack had no space.
    pub overflowed: bool,
}

/// Prefetches the cache line that an address lies in.
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
    /// A marker that goes on with what is on the stack. Parallel markers have a pool.
    ///
    /// # Safety
    /// As long as the marker is used the world of the heap is stopped: its blocks are readable and do not change, and
    /// markers alone change marks.
    pub unsafe fn new(
        heap: H,
        stack: &'a mut MarkStack,
        pool: Option<&'a Pool<Grey>>,
    ) -> Marker<'a, H, PARALLEL> {
        assert_internal!(PARALLEL == pool.is_some(), "parallel markers, and no others, have a pool");
        Marker { heap, stack, pool, words: [0; WORDS + 1], waiting: 0, marked: 0, overflowed: false }
    }

    /// Marks what the words of a range point into, and everything from there.
    ///
    /// # Safety
    /// The range is of whole readable words, no thread writes in it, and the world of the marker's heap is stopped.
    pub unsafe fn range(&mut self, range: Range<usize>) {
        assert_internal!(
            range.start.is_multiple_of(WORD) && range.end.is_multiple_of(WORD),
            "what is scanned is of whole words"
        );
        let mut start = range.start;
        while start < range.end {
            let bytes = PIECE.min(range.end - start);
            let piece = Grey { start, bytes };
            start += bytes;
            if start < range.end {
                // An address may lie across two pieces.
                start -= WORD;
            }
            // The last piece is scanned here: waiting markers have enough with the others.
            if PARALLEL && start < range.end && self.lend(piece) {
                continue;
            }
            // SAFETY: the piece is part of `range`, which is readable and unchanged, as this function requires.
            unsafe { self.scan(piece) };
            self.drain();
        }
    }

    /// As [`Marker::range`], where addresses may lie at any byte, as in code.
    ///
    /// # Safety
    /// As [`Marker::range`].
    pub unsafe fn bytes(&mut self, range: Range<usize>) {
        // SAFETY: this function requires the same.
        unsafe { self.gather_bytes(range) };
        self.drain();
    }

    /// Marks what the words of a range point into, and leaves it on the stack to be scanned.
    ///
    /// # Safety
    /// As [`Marker::range`].
    pub unsafe fn gather(&mut self, range: Range<usize>) {
        // SAFETY: the range is readable and unchanged, as this function requires.
        unsafe { self.scan(Grey { start: range.start, bytes: range.len() }) };
        self.resolve();
    }

    /// As [`Marker::gather`], where addresses may lie at any byte.
    ///
    /// # Safety
    /// As [`Marker::range`].
    pub unsafe fn gather_bytes(&mut self, range: Range<usize>) {
        let mut before = 0;
        for at in range.step_by(WORD) {
            // SAFETY: the word is part of `range`, which is readable, as this function requires.
            let word = unsafe { (at as *const usize).read() };
            let mut waiting = self.waiting;
            for shift in (0..usize::BITS).step_by(8) {
                // The bytes of two consecutive words; where none is of the first, the second itself.
                let between = if shift == 0 { word } else { before >> shift | word << (usize::BITS - shift) };
                // SAFETY: there is space for eight: `waiting` is at most `WORDS - 2 * SLICE` here.
                unsafe {
                    sift(between, self.heap.base(), self.heap.extent(), self.words.as_mut_ptr(), &mut waiting)
                };
            }
            before = word;
            assert_internal!(waiting <= WORDS, "waiting words fit their array");
            self.waiting = waiting;
            if waiting > WORDS - 2 * SLICE {
                self.resolve();
            }
        }
        self.resolve();
    }

    /// Marks what is reachable from what waits, until about so many bytes were scanned; returns whether nothing is left. An
    /// overflow of the stack is left to [`Marker::drain`].
    pub fn drain_within(&mut self, bytes: usize) -> bool {
        self.empty_within::<true>(bytes)
    }

    /// Marks everything that is reachable from what waits.
    pub fn drain(&mut self) {
        self.empty();
        // Parallel markers only report an overflow: one that marks alone handles it after them.
        while !PARALLEL && core::mem::take(&mut self.overflowed) {
            // SAFETY: the world is stopped as long as the marker is used (`Marker::new`).
            unsafe { H::scan_marked(self) };
        }
        assert_internal!(
            self.stack.is_empty() && self.waiting == 0,
            "nothing is left to scan when all is marked"
        );
    }

    /// As [`Marker::range`] for what another marker lent.
    ///
    /// # Safety
    /// As [`Marker::range`], for each.
    pub unsafe fn borrowed(&mut self, grey_objects: &[Grey]) {
        for &grey in grey_objects {
            // SAFETY: it is readable and unchanged, as this function requires.
            unsafe { self.push(grey) };
        }
        self.drain();
    }

    /// Scans the words of a block or range.
    ///
    /// # Safety
    /// As [`Marker::range`].
    #[inline(always)]
    unsafe fn scan(&mut self, grey: Grey) {
        let (base, extent) = (self.heap.base(), self.heap.extent());
        assert_internal!(
            grey.start.is_multiple_of(WORD) && grey.bytes.is_multiple_of(WORD),
            "what is scanned is of whole words"
        );
        assert_internal!(self.waiting <= WORDS - 2 * SLICE, "words of a slice find space");
        assert_internal!(base.checked_add(extent).is_some(), "the heap ends below the highest address");
        // The upper half of an address in the heap: a word between two others ends with the lower half of the second.
        let upper = (base >> 32) as u32;
        let spread = ((base + extent) >> 32) as u32 - upper;
        let begin = grey.start as *const usize;
        let mut at = begin;
        let end = (grey.start + grey.bytes) as *const usize;
        while at < end {
            // SAFETY: the words are readable and unchanged, as this function requires.
            if end as usize - at as usize >= GROUP * WORD && unsafe { is_without(at, upper, spread) } {
                at = at.wrapping_add(GROUP);
                continue;
            }
            let stop = if end as usize - at as usize > SLICE * WORD { at.wrapping_add(SLICE) } else { end };
            let mut waiting = self.waiting;
            // SAFETY: the words are readable and unchanged, as this function requires; there is space for a slice, and
            // words of blocks come in pairs.
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
            assert_internal!(at == stop, "a slice is scanned to its end");
            assert_internal!(waiting <= WORDS, "waiting words fit their array");
            self.waiting = waiting;
            if waiting > WORDS - 2 * SLICE {
                self.resolve();
            }
        }
    }

    /// Resolves the waiting words to their blocks, and marks these.
    #[inline(never)]
    fn resolve(&mut self) {
        let waiting = core::mem::take(&mut self.waiting);
        assert_internal!(
            self.words[..waiting].iter().all(|&offset| offset < self.heap.extent()),
            "words to be resolved are distances in the heap"
        );
        // SAFETY: `sift` has written `waiting` words; the world is stopped as long as the marker is used
        // (`Marker::new`).
        unsafe { H::resolve(self, waiting) };
    }

    /// A word that is to be resolved to its block: its distance from the base, less than `extent`.
    ///
    /// # Safety
    /// `index` is less than the count that [`Heap::resolve`] received.
    #[inline(always)]
    pub unsafe fn word(&self, index: usize) -> usize {
        // SAFETY: `index` is below the number of words, as this function requires.
        unsafe { *self.words.get_unchecked(index) }
    }

    /// Scans a marked block once more.
    ///
    /// # Safety
    /// It is readable, and no thread writes to it.
    pub unsafe fn rescan(&mut self, grey: Grey) {
        // SAFETY: the block is readable and unchanged, as this function requires.
        unsafe { self.scan(grey) };
        self.empty();
    }

    /// Pushes a block that was marked, or a part of a root, to be scanned.
    ///
    /// # Safety
    /// As [`Marker::range`], for its words.
    #[inline]
    pub unsafe fn push(&mut self, grey: Grey) {
        if !self.stack.push(grey) && !self.lend(grey) {
            self.overflowed = true;
        }
    }

    /// Marks until nothing is left to scan.
    fn empty(&mut self) {
        self.empty_within::<false>(0);
    }

    /// Marks until nothing is left to scan or, if `BOUNDED`, so many bytes were scanned; returns whether nothing is left.
    #[inline(always)]
    fn empty_within<const BOUNDED: bool>(&mut self, mut bytes: usize) -> bool {
        let mut fetched = [Grey { start: 0, bytes: 0 }; FETCHED];
        let (mut head, mut tail) = (0_usize, 0_usize);
        loop {
            while tail.wrapping_sub(head) < FETCHED
                && let Some(mut grey) = self.stack.pop()
            {
                if grey.bytes > PIECE {
                    // An address may lie across two pieces: the piece's last word is scanned again.
                    let rest = Grey { start: grey.start + PIECE - WORD, bytes: grey.bytes - PIECE + WORD };
                    assert_internal!(
                        rest.start + rest.bytes == grey.start + grey.bytes && rest.bytes < grey.bytes,
                        "the rest of a block ends where the block does"
                    );
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
                // Few blocks are being fetched: resolve first, which may add more.
                self.resolve();
                continue;
            }
            assert_internal!(tail.wrapping_sub(head) <= FETCHED, "blocks that are fetched have a slot each");
            if head == tail {
                assert_internal!(self.stack.is_empty(), "nothing is left to scan when all is marked");
                return true;
            }
            let grey = fetched[head % FETCHED];
            // SAFETY: `push` requires that what is on the stack is readable and unchanged.
            unsafe { self.scan(grey) };
            head = head.wrapping_add(1);
            if BOUNDED {
                let Some(left) = bytes.checked_sub(grey.bytes) else {
                    self.resolve();
                    while head != tail {
                        // SAFETY: it was popped from the stack, so that it is readable and unchanged as `push` requires.
                        unsafe { self.push(fetched[head % FETCHED]) };
                        head = head.wrapping_add(1);
                    }
                    return self.stack.is_empty();
                };
                bytes = left;
            }
        }
    }

    /// Leaves a range to another marker; false when none waits or the pool is full.
    fn lend(&self, grey: Grey) -> bool {
        self.pool.is_some_and(|pool| pool.is_wanted() && pool.give(&[grey]) == 1)
    }

    /// Gives half of the stack, the oldest, to waiting markers.
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

/// Appends the distance of a word from the base if that is below `extent`. There is space for one more in any case.
///
/// # Safety
/// `waiting` is an index of `words`.
#[inline(always)]
unsafe fn sift(word: usize, base: usize, extent: usize, words: *mut usize, waiting: &mut usize) {
    // SAFETY: `waiting` is an index of `words`, as this function requires.
    unsafe {
        let offset = word.wrapping_sub(base);
        words.add(*waiting).write(offset);
        *waiting += usize::from(offset < extent);
    }
}

/// What lies across two words. Not an unaligned read, which copies: the stack that is scanned may be this one.
///
/// # Safety
/// It is readable, at a multiple of 4.
#[inline(always)]
unsafe fn across(at: *const usize) -> usize {
    let halves = at.cast::<u32>();
    // SAFETY: both halves are readable and aligned, as this function requires.
    unsafe { halves.read() as usize | (halves.add(1).read() as usize) << 32 }
}

/// Whether no half of a group of words may be the upper half of an address in the heap. There is no branch for each, and
/// compilers make a few vector instructions of it.
///
/// # Safety
/// The words are readable.
#[inline(always)]
unsafe fn is_without(at: *const usize, upper: u32, spread: u32) -> bool {
    let halves = at.cast::<u32>();
    // SAFETY: the words are readable, as this function requires.
    let half = |index| unsafe { halves.add(index).read() };
    !(0..GROUP * 2).fold(false, |found, index| found | (half(index).wrapping_sub(upper) <= spread))
}

/// Whether the lower half of a word may be the upper half of an address in the heap. Programs keep addresses in packed
/// structures (Ruby's buffers), at multiples of 4.
///
/// # Safety
/// The word is readable.
#[inline(always)]
unsafe fn ends_address(at: *const usize, upper: u32, spread: u32) -> bool {
    // SAFETY: the word is readable, as this function requires.
    unsafe { at.cast::<u32>().read() }.wrapping_sub(upper) <= spread
}
