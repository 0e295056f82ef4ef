//! The remembered set: what lies on pages that were written, of old blocks in a young collection, of marked blocks in an
//! incremental one. They are marked by then, so that only what they point to is left to find.

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

/// Which blocks are read where they were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remembered {
    /// Old ones: all of them are marked.
    Old,
    Marked,
}

/// Reads what of old blocks was written; returns its bytes.
pub fn read_written<const PARALLEL: bool>(marker: &mut Marker<'_, PARALLEL>) -> usize {
    let reservation = marker.heap.reservation();
    let (mut unit, mut bytes, mut waiting) = (0, 0, 0);
    while unit < reservation.units() {
        let span_class = reservation.span_class(unit);
        if span_class == FREE || !is_to_be_read(reservation, unit) {
            unit += 1;
            continue;
        }
        let first = reservation.first(unit);
        // SAFETY: the first unit of a span or large block; the world is stopped.
        let part = unit as UnitIndex..first + unsafe { (*reservation.span(first)).units };
        unit = part.end as usize;
        if is_atomic(span_class) {
            continue;
        }
        each_written(reservation, part, &mut |pages| {
            each_piece(reservation, first, &pages, Remembered::Old, &mut |piece| {
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

/// Reads what of marked blocks was written, from a unit on, until about so many bytes were read; what it points to is left
/// on the marker's stack. Pages that were read no longer count as written. Returns the unit to go on with, or the first
/// beyond the heap, and the bytes.
pub fn gather_written(marker: &mut Marker<'_, false>, from: usize, most: usize) -> (usize, usize) {
    let reservation = marker.heap.reservation();
    let (mut unit, mut bytes) = (from, 0);
    while unit < reservation.units() && bytes < most {
        if !is_to_be_read(reservation, unit) {
            unit += 1;
            continue;
        }
        let span_class = reservation.span_class(unit);
        if span_class == FREE {
            reservation.unit_flags(unit).fetch_and(!(ALL_WRITTEN | REREAD), Ordering::Relaxed);
            unit += 1;
            continue;
        }
        let first = reservation.first(unit);
        // SAFETY: the first unit of a span or large block; the world is stopped.
        let end = (first + unsafe { (*reservation.span(first)).units }) as usize;
        // A large block may be too much to read at once.
        let part = unit..end.min(unit + ((most - bytes) / UNIT).max(1));
        unit = part.end;
        if !is_atomic(span_class) {
            each_written(reservation, part.start as UnitIndex..part.end as UnitIndex, &mut |pages| {
                each_piece(reservation, first, &pages, Remembered::Marked, &mut |piece| {
                    bytes += piece.len();
                    // SAFETY: the piece is part of a taken block, which is readable; the world is stopped.
                    unsafe { marker.gather(piece) };
                });
            });
        }
        for unit in part {
            reservation.unit_flags(unit).fetch_and(!(ALL_WRITTEN | REREAD), Ordering::Relaxed);
        }
    }
    (unit, bytes)
}

/// Whether something in a unit was written, or was not read.
fn is_to_be_read(reservation: &HeapReservation, unit: usize) -> bool {
    reservation.unit_flags(unit).load(Ordering::Relaxed) & (ALL_WRITTEN | REREAD) != 0
}

/// Visits the runs of pages of some units of a span or large block that are to be read.
fn each_written(reservation: &HeapReservation, units: Range<UnitIndex>, visit: &mut dyn FnMut(Range<usize>)) {
    let start = reservation.address(units.start);
    let mut run = start..start;
    for unit in units {
        let flags = reservation.unit_flags(unit as usize).load(Ordering::Relaxed);
        let pages = if flags & REREAD != 0 { ALL_WRITTEN } else { flags & ALL_WRITTEN };
        for page in 0..UNIT / PAGE {
            let at = reservation.address(unit) + page * PAGE;
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

/// Visits the parts of the remembered blocks of a span or large block that lie on some pages; those of blocks that follow
/// each other are joined. An address may lie across two pages, at a multiple of half a word: the words around are read too.
fn each_piece(
    reservation: &HeapReservation,
    first: UnitIndex,
    pages: &Range<usize>,
    remembered: Remembered,
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
        let is_remembered = match remembered {
            Remembered::Old => age.old[block / 64] >> (block % 64) & 1 != 0,
            Remembered::Marked => span.is_marked(block),
        };
        if !is_remembered || !span.is_taken(block) {
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
