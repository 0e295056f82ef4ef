//! The remembered set of a young collection: what of old blocks lies on pages that were written, or that no collection has
//! read. Old blocks are marked by then, so that only what they point to is left to find.

use core::ops::Range;
use core::sync::atomic::Ordering;

use heaptoll_assertions::assert_internal;
use heaptoll_marking::Grey;
use heaptoll_runtime::PAGE;

use crate::ages::{ALL_WRITTEN, REREAD, WRITTEN};
use crate::class::{CLASS, FREE, UNIT, is_atomic};
use crate::mark::Marker;
use crate::reservation::HeapReservation;
use crate::span::UnitIndex;

/// Bytes of a word.
const WORD: usize = size_of::<usize>();
/// Pieces that wait on the mark stack, at most.
const WAITING: usize = 1024;

/// Reads what of old blocks was written; returns its bytes.
pub fn read_written<const PARALLEL: bool>(marker: &mut Marker<'_, PARALLEL>) -> usize {
    let reservation = marker.heap.reservation();
    let (mut unit, mut bytes, mut waiting) = (0, 0, 0);
    while unit < reservation.units() {
        let span_class = reservation.span_class(unit);
        if span_class == FREE {
            unit += 1;
            continue;
        }
        let first = reservation.first(unit);
        // SAFETY: the first unit of a span or large block; the world is stopped.
        let units = unsafe { (*reservation.span(first)).units };
        unit = (first + units) as usize;
        if is_atomic(span_class) {
            continue;
        }
        each_written(reservation, first, units, &mut |pages| {
            each_old(reservation, first, &pages, &mut |piece| {
                bytes += piece.len();
                waiting += 1;
                // SAFETY: the piece is part of an old block, which is readable; the world is stopped.
                unsafe { marker.push(Grey { start: piece.start, bytes: piece.len() }) };
                if waiting == WAITING {
                    waiting = 0;
                    marker.drain();
                }
            });
        });
    }
    marker.drain();
    bytes
}

/// Visits the runs of pages of a span or large block that are to be read.
fn each_written(
    reservation: &HeapReservation,
    first: UnitIndex,
    units: u32,
    visit: &mut dyn FnMut(Range<usize>),
) {
    let start = reservation.address(first);
    let mut run = start..start;
    for unit in 0..units {
        let flags = reservation.unit_flags((first + unit) as usize).load(Ordering::Relaxed);
        let pages = if flags & REREAD != 0 { ALL_WRITTEN } else { flags & ALL_WRITTEN };
        for page in 0..UNIT / PAGE {
            let at = start + unit as usize * UNIT + page * PAGE;
            if pages & WRITTEN << page != 0 {
                if run.end != at {
                    if !run.is_empty() {
                        visit(run);
                    }
                    run = at..at;
                }
                run.end = at + PAGE;
            }
        }
    }
    if !run.is_empty() {
        visit(run);
    }
}

/// Visits the parts of the old blocks of a span or large block that lie on some pages; those of blocks that follow each
/// other are joined. An address may lie across two pages, at a multiple of half a word: the words around are read too.
fn each_old(
    reservation: &HeapReservation,
    first: UnitIndex,
    pages: &Range<usize>,
    visit: &mut dyn FnMut(Range<usize>),
) {
    let start = reservation.address(first);
    // SAFETY: the first unit of a span or large block, and its row of ages; the world is stopped.
    let (span, age) = unsafe { (&*reservation.span(first), &*reservation.age(first)) };
    let (blocks, size) = match CLASS.get(span.span_class as usize) {
        Some(class) => (class.blocks as usize, class.size as usize),
        None => (1, span.bytes),
    };
    let pages = pages.start - WORD..pages.end + WORD;
    let from = pages.start.saturating_sub(start) / size;
    let to = (pages.end.saturating_sub(start)).div_ceil(size).min(blocks);
    let mut piece = 0..0;
    for block in from..to {
        if age.old[block / 64] >> (block % 64) & 1 == 0 || !span.is_taken(block) {
            continue;
        }
        assert_internal!(span.is_marked(block), "old blocks are marked before marking begins");
        let begin = (start + block * size).max(pages.start);
        let end = (start + (block + 1) * size).min(pages.end);
        if begin >= end {
            continue;
        }
        if piece.end != begin {
            if !piece.is_empty() {
                visit(piece);
            }
            piece = begin..begin;
        }
        piece.end = end;
    }
    if !piece.is_empty() {
        visit(piece);
    }
}
