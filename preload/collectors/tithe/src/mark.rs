//! Marking Tithe's blocks: from a word to the span it points into, and from there to its block's bits.
//!
//! [`Marker`] drives the marking of any heap; the part specific to Tithe's is here.

use core::sync::atomic::{AtomicU8, Ordering};

use heaptoll_assertions::assert_internal;
use heaptoll_marking::{Grey, Heap, WORDS, prefetch};

use crate::ages::TAINTED;
use crate::class::{CLASS, FREE, LARGE_ATOMIC, SPAN_CLASSES, UNIT_SHIFT, is_atomic, is_small};
use crate::reservation::{AHEAD, HeapReservation};
use crate::runs::blacklist_mark;
use crate::span::{Bits, Span, UnitIndex};

/// A marker of Tithe's heap.
pub type Marker<'a, const PARALLEL: bool> = heaptoll_marking::Marker<'a, Marks<'a>, PARALLEL>;

/// The block that a word points into.
#[derive(Clone, Copy)]
struct Candidate {
    bits: *mut Bits,
    start: usize,
    bytes: u32,
    bit: u8,
    /// It may hold pointers.
    plain: bool,
}

/// What marking records besides the marks of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trace {
    /// The blacklist.
    Plain,
    /// The blacklist, and the places without a block that words point to: blocks there will be born old.
    Ages,
    /// The blacklist; what the program has is marked before. Mode `guard`.
    Guard,
    /// Nothing: it repeats what another marking has done, to compare the marks.
    Repeated,
}

/// Access to the blocks' marks during a collection.
pub struct Marks<'a> {
    base: usize,
    /// Words below this distance from the base are resolved: the heap, and the addresses it may grow into.
    extent: usize,
    span_classes: *const u8,
    firsts: *const UnitIndex,
    spans: *mut Span,
    blacklist: *mut u8,
    blacklist_mark: u8,
    /// The bits that are marked although no block is taken there: none or all.
    untaken: u64,
    trace: Trace,
    reservation: &'a HeapReservation,
}

impl<'a> Marks<'a> {
    /// The marks of collection `epoch`.
    pub fn new(reservation: &'a HeapReservation, epoch: u32, trace: Trace) -> Marks<'a> {
        Marks {
            base: reservation.base(),
            extent: if reservation.units() == 0 { 0 } else { (reservation.units() + AHEAD) << UNIT_SHIFT },
            span_classes: reservation.span_classes(),
            firsts: reservation.firsts(),
            spans: reservation.spans(),
            blacklist: reservation.blacklist(),
            blacklist_mark: blacklist_mark(epoch),
            untaken: if matches!(trace, Trace::Plain | Trace::Guard) { 0 } else { u64::MAX },
            trace,
            reservation,
        }
    }

    /// The heap whose blocks are marked.
    pub fn reservation(&self) -> &'a HeapReservation {
        self.reservation
    }

    /// A word points into a unit that is free, or into which the heap may grow.
    #[cold]
    fn add_to_blacklist(&self, unit: usize) {
        assert_internal!(unit < self.reservation.units() + AHEAD, "the blacklist has a row for a unit in it");
        self.taint(unit);
        if self.trace != Trace::Repeated {
            // SAFETY: `unit` is below `extent`, which the table covers (`resolve`). Concurrent markers store the same
            // value.
            unsafe { AtomicU8::from_ptr(self.blacklist.add(unit)) }
                .store(self.blacklist_mark, Ordering::Relaxed);
        }
    }

    /// A word points into a unit where there is no block.
    #[cold]
    fn taint(&self, unit: usize) {
        if self.trace == Trace::Ages {
            self.reservation.unit_flags(unit).fetch_or(TAINTED, Ordering::Relaxed);
        }
    }
}

impl Heap for Marks<'_> {
    #[inline(always)]
    fn base(&self) -> usize {
        self.base
    }

    #[inline(always)]
    fn extent(&self) -> usize {
        self.extent
    }

    #[inline(always)]
    unsafe fn resolve<const PARALLEL: bool>(
        marker: &mut heaptoll_marking::Marker<'_, Self, PARALLEL>,
        count: usize,
    ) {
        let uninit = core::mem::MaybeUninit::<Candidate>::uninit();
        let mut candidates = [uninit; WORDS];
        let mut found = 0;
        for word in 0..count {
            // SAFETY: `words` holds distances below `extent`. The tables of span classes and of the blacklist have a
            // row for each such unit, the others for every unit that is not free; a span's blocks have bits.
            unsafe {
                let offset = marker.word(word);
                assert_internal!(
                    offset < marker.heap.extent,
                    "words to be resolved are distances in the heap"
                );
                let unit = offset >> UNIT_SHIFT;
                let span_class = *marker.heap.span_classes.add(unit);
                if span_class as usize >= SPAN_CLASSES {
                    large(marker, offset, span_class);
                    continue;
                }
                let class = CLASS.get_unchecked(span_class as usize);
                // Free units have no first unit, and those beyond the heap's end no row in that table.
                let first = if class.units <= 1 { unit } else { *marker.heap.firsts.add(unit) as usize };
                assert_internal!(
                    first <= unit && unit - first < (class.units as usize).max(1),
                    "a unit lies in the span of its first unit"
                );
                let block = class.index(offset - (first << UNIT_SHIFT));
                if block >= class.blocks as usize {
                    // A free unit has no blocks; other spans have unused bytes after the last.
                    if span_class == FREE {
                        marker.heap.add_to_blacklist(unit);
                    } else {
                        marker.heap.taint(unit);
                    }
                    continue;
                }
                assert_internal!(
                    unit < marker.heap.reservation.units()
                        && (*marker.heap.spans.add(first)).span_class == span_class,
                    "a span's descriptor has its span class"
                );
                let candidate = Candidate {
                    bits: &raw mut *(*marker.heap.spans.add(first)).bits.get_unchecked_mut(block / 64),
                    start: marker.heap.base + (first << UNIT_SHIFT) + block * class.size as usize,
                    bytes: class.size,
                    bit: (block % 64) as u8,
                    plain: !is_atomic(span_class),
                };
                prefetch(candidate.bits);
                candidates.get_unchecked_mut(found).write(candidate);
                found += 1;
            }
        }
        assert_internal!(found <= count && count <= WORDS, "a word points into one block at most");
        let reserved = marker.stack.reserve(WORDS);
        let mut marked = 0;
        for candidate in &candidates[..found] {
            // SAFETY: the first `found` elements were written above.
            let candidate = unsafe { candidate.assume_init() };
            // SAFETY: the bits of a block, from the loop above; concurrent markers use atomic instructions too.
            let new = unsafe { mark::<PARALLEL>(candidate.bits, candidate.bit, marker.heap.untaken) };
            marked += candidate.bytes as usize & (new as usize).wrapping_neg();
            let grey = Grey { start: candidate.start, bytes: candidate.bytes as usize };
            if reserved {
                // SAFETY: `reserve(WORDS)` succeeded, and at most `WORDS` entries are pushed.
                unsafe { marker.stack.push_if(grey, new & candidate.plain) };
            } else if new & candidate.plain {
                // SAFETY: a block of the heap, whose world is stopped.
                unsafe { marker.push(grey) };
            }
        }
        marker.marked += marked;
    }

    unsafe fn scan_marked<const PARALLEL: bool>(marker: &mut heaptoll_marking::Marker<'_, Self, PARALLEL>) {
        let reservation = marker.heap.reservation;
        reservation.each_span(|first, span| {
            let span_class = reservation.span_class(first as usize);
            // SAFETY: the descriptor of a span or large block; all other threads are stopped.
            if is_atomic(span_class) || unsafe { is_dropped(reservation, first, &*span) } {
                return;
            }
            let (blocks, size) = match CLASS.get(span_class as usize) {
                Some(class) => (class.blocks as usize, class.size as usize),
                // SAFETY: `first` is the first unit of a large block; all other threads are stopped.
                None => (1, unsafe { (*span).bytes }),
            };
            for block in 0..blocks {
                // SAFETY: `span` is the descriptor read above, and `block` is one of its blocks.
                if unsafe { (*span).is_taken(block) && (*span).is_marked(block) } {
                    // SAFETY: a marked block is readable, and the world is stopped. Blocks in caches are marked too:
                    // their old contents may keep dead blocks, which does no harm.
                    unsafe {
                        marker.rescan(Grey { start: reservation.address(first) + block * size, bytes: size })
                    };
                }
            }
        });
    }
}

/// A word points into a large block, or into the unused bytes after it.
#[inline(never)]
fn large<const PARALLEL: bool>(
    marker: &mut heaptoll_marking::Marker<'_, Marks<'_>, PARALLEL>,
    offset: usize,
    span_class: u8,
) {
    // SAFETY: `offset` lies in a unit of a large block (the caller read its span class), so its tables' rows are valid.
    unsafe {
        let first = *marker.heap.firsts.add(offset >> UNIT_SHIFT) as usize;
        let span = marker.heap.spans.add(first);
        let (bytes, units) = ((*span).bytes, ((*span).units as usize) << UNIT_SHIFT);
        assert_internal!((*span).span_class == span_class, "a large block's descriptor has its span class");
        assert_internal!(
            bytes > 0 && offset - (first << UNIT_SHIFT) < units,
            "a large block's units point to its first"
        );
        // The end of a block that has shrunk is still its own in mode `guard`, and words lead there.
        let end = if marker.heap.trace == Trace::Guard { units } else { bytes };
        if offset - (first << UNIT_SHIFT) >= end {
            // The block may grow where it is.
            marker.heap.taint(offset >> UNIT_SHIFT);
            return;
        }
        if !mark::<PARALLEL>(&raw mut (*span).bits[0], 0, 0) {
            return;
        }
        marker.marked += bytes;
        if span_class != LARGE_ATOMIC && !is_dropped(marker.heap.reservation, first as UnitIndex, &*span) {
            marker.push(Grey { start: marker.heap.base + (first << UNIT_SHIFT), bytes });
        }
    }
}

/// Whether the pages of a large block were given back when it was freed: it is not to be read.
pub fn is_dropped(reservation: &HeapReservation, first: UnitIndex, span: &Span) -> bool {
    !is_small(span.span_class)
        && (span.clean || span.inaccessible)
        && reservation.freed(first).is_some_and(|freed| freed.has(0))
}

/// Marks a block if it is taken; returns whether this marked it. Places without a block are marked where `untaken` has
/// their bit.
///
/// # Safety
/// `bits` points to the bits of a span of the heap.
#[inline(always)]
unsafe fn mark<const PARALLEL: bool>(bits: *mut Bits, bit: u8, untaken: u64) -> bool {
    // SAFETY: a span's bits (this function's contract); only `marked`, an atomic, changes during marking.
    let bits = unsafe { &*bits };
    let marked = bits.marked.load(Ordering::Relaxed);
    assert_internal!(marked & !(bits.taken | untaken) == 0, "only taken blocks are marked");
    let wanted = (bits.taken | untaken) & !marked & 1 << bit;
    if PARALLEL {
        return wanted != 0
            && bits.marked.fetch_or(wanted, Ordering::Relaxed) & wanted == 0
            && bits.taken & wanted != 0;
    }
    bits.marked.store(marked | wanted, Ordering::Relaxed);
    bits.taken & wanted != 0
}
