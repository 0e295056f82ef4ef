//! Marking by one thread or by several: from the roots to all that they reach.

use core::ops::Range;

use heaptoll_assertions::assert_internal;
use heaptoll_marking::{Grey, Heap as _, MarkOutcome, MarkStack, Pool, Work, Workers, help};
use heaptoll_roots::{Buffer, Origin, Root, RootKinds, RootsError, StoppedWorld};

use crate::added::AddedRoots;
use crate::mark::{Marker, Marks, Trace};
use crate::readable::{readable, word_at};
use crate::remembered::read_written;
use crate::reservation::HeapReservation;
use crate::unfreed::read_unfreed;

/// The threads that mark the heap.
#[derive(Default)]
pub struct Markers {
    workers: Workers,
}

/// The outcome of marking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marked {
    /// Bytes in blocks that were marked.
    pub live: usize,
    /// Bytes of roots that were read.
    pub roots: usize,
    /// Bytes of old blocks that were read since they may have been written.
    pub reread: usize,
    /// Threads that marked.
    pub markers: usize,
    /// Processor time of the threads that were started for it, ns.
    pub helpers_cpu_ns: u64,
}

impl Markers {
    pub const fn new() -> Markers {
        Markers { workers: Workers::new() }
    }

    /// Sets how many threads mark: as the user requests, or by the cores the process may use.
    pub fn configure(&mut self, wanted: Option<usize>) {
        self.workers.configure(wanted);
    }

    #[cfg(test)]
    /// Sets the live bytes from which several threads mark, and the maximum number of entries of their stacks and of
    /// the pool: for tests.
    pub fn set_limits(&mut self, threshold: usize, limit: usize) {
        self.workers.set_limits(threshold, limit);
    }

    /// Prepares to mark a heap of about `live` bytes; returns how many threads may mark.
    pub fn prepare(&mut self, live: usize) -> usize {
        self.workers.prepare(live)
    }

    /// The address range of its memory.
    pub fn range(&self) -> Range<usize> {
        self.workers.range()
    }

    /// Bytes of it that are in use.
    pub fn mapped_bytes(&self) -> usize {
        self.workers.mapped_bytes()
    }

    /// Marks what the roots reach, by `markers` threads or as many of them as the system gives.
    ///
    /// # Errors
    /// The roots could not be read completely; marks are missing.
    ///
    /// # Safety
    /// All other threads are stopped, or use neither the heap nor the roots; all locks of the heap are held, and
    /// [`Markers::prepare`] has returned `markers` or more.
    pub unsafe fn mark(
        &mut self,
        markers: usize,
        reservation: &HeapReservation,
        stack: &mut MarkStack,
        epoch: u32,
        roots: &Roots<'_>,
    ) -> Result<Marked, RootsError> {
        assert_internal!(markers >= 1, "the thread that collects marks");
        assert_internal!(stack.is_empty(), "marking begins with an empty mark stack");
        let trace = roots.trace;
        if markers == 1 {
            // SAFETY: the heap and the roots do not change, as this function requires.
            let mut marker =
                unsafe { Marker::<false>::new(Marks::new(reservation, epoch, trace), stack, None) };
            let read = roots.read(&mut marker)?;
            let (roots, reread) = read;
            return Ok(Marked { live: marker.marked, roots, reread, markers, helpers_cpu_ns: 0 });
        }
        let lead = |pool: &Pool<Grey>| {
            // SAFETY: the heap and the roots do not change, as this function requires.
            let mut marker =
                unsafe { Marker::<true>::new(Marks::new(reservation, epoch, trace), stack, Some(pool)) };
            (roots.read(&mut marker), finish(&mut marker, pool))
        };
        // SAFETY: the world is stopped, or what is marked does not change, and so many markers were prepared, as this
        // function requires.
        let ((read, mut share), helpers_share, helpers) =
            unsafe { self.workers.run(markers, &MarkingWork { reservation, epoch, trace }, lead) };
        share += helpers_share;
        assert_internal!(helpers < markers, "no more threads mark than were prepared for");
        let (roots, reread) = read?;
        if share.overflowed {
            // SAFETY: the heap and the roots do not change, as this function requires.
            let mut marker =
                unsafe { Marker::<false>::new(Marks::new(reservation, epoch, trace), stack, None) };
            marker.overflowed = true;
            marker.drain();
            assert_internal!(!marker.overflowed, "one marker handles what several had no space for");
            share.marked += marker.marked;
        }
        let MarkOutcome { marked: live, cpu_ns: helpers_cpu_ns, .. } = share;
        Ok(Marked { live, roots, reread, markers: helpers + 1, helpers_cpu_ns })
    }
}

/// What the helping threads need.
struct MarkingWork<'a> {
    reservation: &'a HeapReservation,
    epoch: u32,
    trace: Trace,
}

impl Work for MarkingWork<'_> {
    unsafe fn help(&self, stack: &mut MarkStack, pool: &Pool<Grey>) -> MarkOutcome {
        let marks = Marks::new(self.reservation, self.epoch, self.trace);
        // SAFETY: the world is stopped, as this function requires.
        let mut marker = unsafe { Marker::<true>::new(marks, stack, Some(pool)) };
        finish(&mut marker, pool)
    }
}

/// Marks what other threads leave in the pool, until no thread has work left.
fn finish(marker: &mut Marker<'_, true>, pool: &Pool<Grey>) -> MarkOutcome {
    // SAFETY: the pool holds parts of roots and marked blocks, which are readable while the world is stopped.
    help(pool, |work| unsafe { marker.borrowed(work) });
    MarkOutcome { marked: marker.marked, overflowed: marker.overflowed, cpu_ns: 0 }
}

/// The roots from which marking begins.
pub struct Roots<'a> {
    pub added: &'a AddedRoots,
    pub stopped: Option<&'a StoppedWorld<'static>>,
    pub excluded_ranges: &'a [Range<usize>],
    /// Words that were gathered from the roots, to be read in their place.
    pub gathered: Option<&'a [usize]>,
    /// Old blocks are marked already, and read where they were written.
    pub young: bool,
    pub trace: Trace,
}

impl Roots<'_> {
    /// Whether a part of a range is excluded.
    fn is_excluded(&self, range: &Range<usize>) -> bool {
        self.excluded_ranges.iter().any(|own| own.start.max(range.start) < own.end.min(range.end))
    }

    /// Scans all roots, and what of old blocks was written, and marks from there; returns the bytes of both.
    fn read<const PARALLEL: bool>(
        &self,
        marker: &mut Marker<'_, PARALLEL>,
    ) -> Result<(usize, usize), RootsError> {
        // SAFETY: `each_range` yields readable ranges of whole words; the world is stopped.
        let bytes = self.each_range(&mut |range, is_code| unsafe {
            if is_code { marker.bytes(range) } else { marker.range(range) }
        })?;
        let blocks = match self.trace {
            Trace::Guard => read_unfreed(marker, self.stopped),
            _ if self.young => read_written(marker),
            _ => 0,
        };
        Ok((bytes, blocks))
    }

    /// Marks what all roots point to, and leaves it on the marker's stack; returns the bytes of the roots.
    ///
    /// # Errors
    /// The roots could not be read completely; marks are missing.
    pub fn gather_on(&self, marker: &mut Marker<'_, false>) -> Result<usize, RootsError> {
        // SAFETY: `each_range` yields readable ranges of whole words; the world is stopped.
        self.each_range(&mut |range, is_code| unsafe {
            if is_code { marker.gather_bytes(range) } else { marker.gather(range) }
        })
    }

    /// Visits the roots, or the words that were gathered from them, each with whether addresses may lie at any byte of it;
    /// returns their bytes.
    fn each_range(&self, visit: &mut dyn FnMut(Range<usize>, bool)) -> Result<usize, RootsError> {
        if let Some(words) = self.gathered {
            let range = words.as_ptr_range();
            visit(range.start as usize..range.end as usize, false);
            return Ok(size_of_val(words));
        }
        let mut bytes = 0;
        self.visit(&mut |root| {
            bytes += root.range.len();
            visit(root.range, root.origin == Origin::Code);
        })?;
        Ok(bytes)
    }

    /// Visits all roots: readable ranges of whole words.
    fn visit(&self, visit: &mut dyn FnMut(Root)) -> Result<(), RootsError> {
        let mut visit = |root: Root| {
            assert_internal!(
                root.range.start.is_multiple_of(size_of::<usize>())
                    && root.range.end.is_multiple_of(size_of::<usize>()),
                "roots are whole words"
            );
            visit(root);
        };
        for range in self.added.ranges() {
            readable(range, &mut |range| visit(Root { range, origin: Origin::Mapping }));
        }
        if let Some(stopped) = self.stopped {
            stopped.roots(RootKinds::ALL, self.excluded_ranges, &mut |root| {
                assert_internal!(
                    root.origin == Origin::Registers || !self.is_excluded(&root.range),
                    "no root that was found lies in what the heap excludes"
                );
                visit(root);
            })?;
        }
        Ok(())
    }

    /// Gathers all words of roots that point into the heap, or into the addresses that it may grow into: what a marker
    /// would take from them, at the same places.
    ///
    /// # Errors
    /// The roots could not be read completely, or there is no memory for the list.
    pub fn gather(&self, reservation: &HeapReservation, words: &mut Buffer<usize>) -> Result<(), RootsError> {
        words.clear();
        let marks = Marks::new(reservation, 0, Trace::Repeated);
        let (base, extent) = (marks.base(), marks.extent());
        let mut complete = true;
        self.visit(&mut |root| {
            let step = if root.origin == Origin::Code { 1 } else { size_of::<u32>() };
            for at in root.range.clone().step_by(step) {
                if at + size_of::<usize>() > root.range.end {
                    break;
                }
                // SAFETY: `visit` yields readable ranges; the world is stopped.
                let word = unsafe { word_at(at) };
                if word.wrapping_sub(base) < extent {
                    complete &= words.push(word).is_ok();
                }
            }
        })?;
        if complete { Ok(()) } else { Err(RootsError::NoMemory) }
    }
}

#[cfg(test)]
mod tests;
