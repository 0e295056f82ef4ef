//! Reading all that the program has, in order of address: every block that is taken and not freed, reachable or not.
//!
//! Mode `guard` does so (Erdős, Ainsworth and Jones, *MineSweeper*, ASPLOS 2022). What is read was marked before, so that
//! only freed blocks are found, and memory is read as a stream.

use core::ops::Range;

use heaptoll_marking::Grey;
use heaptoll_roots::StoppedWorld;

use crate::ages::words_of;
use crate::class::is_atomic;
use crate::freed::Freed;
use crate::mark::Marker;
use crate::span::Span;

/// Runs of blocks that wait on the mark stack, at most.
const WAITING: usize = 1024;

/// Reads all blocks that are not freed and may hold pointers, but for pages from which the program took all access; returns
/// their bytes.
pub fn read_unfreed<const PARALLEL: bool>(
    marker: &mut Marker<'_, PARALLEL>,
    stopped: Option<&StoppedWorld<'static>>,
) -> usize {
    let reservation = marker.heap.reservation();
    let (mut bytes, mut waiting) = (0, 0);
    reservation.each_span(|first, span| {
        // SAFETY: the descriptor of a span or large block; the world is stopped.
        let span = unsafe { &*span };
        let freed = reservation.freed(first).filter(|_| !is_atomic(span.span_class));
        let Some(freed) = freed else { return };
        let size = span.block_bytes();
        each_run(span, freed, &mut |blocks| {
            let start = reservation.address(first) + blocks.start * size;
            let mut push = |run: Range<usize>| {
                bytes += run.len();
                waiting += 1;
                // SAFETY: what can be accessed of the program's blocks is readable; the world is stopped.
                unsafe { marker.push(Grey { start: run.start, bytes: run.len() }) };
            };
            let run = start..start + blocks.len() * size;
            match stopped {
                Some(stopped) => stopped.accessible(run, &mut push),
                None => push(run),
            }
            if waiting >= WAITING {
                waiting = 0;
                marker.drain();
            }
        });
    });
    marker.drain();
    bytes
}

/// Visits the runs of adjacent blocks that are taken and not freed.
fn each_run(span: &Span, freed: &Freed, visit: &mut dyn FnMut(Range<usize>)) {
    let mut run = 0..0;
    for word in 0..words_of(span.span_class) {
        let mut rest = span.bits[word].taken & !freed.word(word);
        let mut from = word * 64;
        while rest != 0 {
            let gap = rest.trailing_zeros();
            from += gap as usize;
            rest >>= gap;
            let length = rest.trailing_ones();
            if run.end != from {
                if !run.is_empty() {
                    visit(run);
                }
                run = from..from;
            }
            from += length as usize;
            run.end = from;
            rest = rest.checked_shr(length).unwrap_or(0);
        }
    }
    if !run.is_empty() {
        visit(run);
    }
}
