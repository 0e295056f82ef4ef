//! A collection's first half: what is reached is marked, by one thread or several.

use core::ops::Range;

use heaptoll_marking::{Grey, KEPT, MarkOutcome, MarkStack, Marker, Pool, Work, Workers, help};

use super::mark::LiveBlocks;
use super::tables::Tables;

/// The markers' threads and memory.
pub struct Marking {
    workers: Workers,
    stack: MarkStack,
}

/// The result of marking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marked {
    /// Bytes of blocks that were marked.
    pub live: usize,
    /// Threads that marked.
    pub markers: usize,
    /// Processor time of the helpers, ns: the calling thread knows its own.
    pub helpers_cpu_ns: u64,
}

/// Where marking begins.
pub trait Roots {
    /// Marks what the words of a range point into, and everything from there.
    ///
    /// # Safety
    /// The range is of whole readable words, and no thread writes in it.
    unsafe fn range(&mut self, range: Range<usize>);

    /// As [`Roots::range`], where addresses may lie at any byte, as in code.
    ///
    /// # Safety
    /// As [`Roots::range`].
    unsafe fn bytes(&mut self, range: Range<usize>);
}

impl<const PARALLEL: bool> Roots for Marker<'_, LiveBlocks<'_>, PARALLEL> {
    unsafe fn range(&mut self, range: Range<usize>) {
        // SAFETY: the caller keeps to the contract of `Roots::range`, which is the same.
        unsafe { Marker::range(self, range) };
    }

    unsafe fn bytes(&mut self, range: Range<usize>) {
        // SAFETY: the caller keeps to the contract of `Roots::bytes`, which is the same.
        unsafe { Marker::bytes(self, range) };
    }
}

impl Default for Marking {
    fn default() -> Marking {
        Marking::new()
    }
}

impl Marking {
    pub const fn new() -> Marking {
        Marking { workers: Workers::new(), stack: MarkStack::new() }
    }

    /// Sets how many threads mark: so many, or as the cores allow.
    pub fn configure(&mut self, markers: Option<usize>) {
        self.workers.configure(markers);
    }

    /// From how many live bytes on several threads mark, and how many entries the stacks and the pool have at most:
    /// for tests.
    pub fn set_limits(&mut self, threshold: usize, own: usize, others: usize) {
        self.workers.set_limits(threshold, others);
        self.stack.limit(own);
    }

    /// Prepares to mark about `live` bytes; returns how many threads will, 0 when the system gives no memory for the
    /// stack. To be called while the program still runs.
    pub fn prepare(&mut self, live: usize) -> usize {
        if self.stack.prepare() { self.workers.prepare(live) } else { 0 }
    }

    /// The addresses of its memory: to be left out of the roots.
    pub fn ranges(&self) -> [Range<usize>; 2] {
        [self.stack.range(), self.workers.range()]
    }

    /// Marks what `roots` passes on, and everything that can be reached from there, by as many threads as
    /// [`Marking::prepare`] returned. Also returns the result of `roots`.
    ///
    /// # Safety
    /// All other threads are stopped, none of them within a call into the tables, and live blocks are readable.
    /// [`Marking::prepare`] has returned `markers`.
    pub unsafe fn mark<R>(
        &mut self,
        tables: &Tables,
        markers: usize,
        roots: impl FnOnce(&mut dyn Roots) -> R,
    ) -> (R, Marked) {
        let (result, mut outcome, helpers) = if markers < 2 {
            // SAFETY: all other threads are stopped and live blocks are readable, as this function requires.
            let mut marker =
                unsafe { Marker::<_, false>::new(LiveBlocks::new(tables), &mut self.stack, None) };
            let result = roots(&mut marker);
            (result, MarkOutcome { marked: marker.marked, ..MarkOutcome::default() }, 0)
        } else {
            let stack = &mut self.stack;
            let lead = |pool: &Pool<Grey>| {
                // SAFETY: all other threads are stopped and live blocks are readable, as this function requires.
                let mut marker =
                    unsafe { Marker::<_, true>::new(LiveBlocks::new(tables), stack, Some(pool)) };
                (roots(&mut marker), finish(&mut marker, pool))
            };
            // SAFETY: all other threads are stopped, and `Marking::prepare` has returned `markers`, as this function
            // requires.
            let ((result, mut outcome), others, helpers) =
                unsafe { self.workers.run(markers, &ParallelWork { tables }, lead) };
            outcome += others;
            (result, outcome, helpers)
        };
        if outcome.overflowed {
            // SAFETY: all other threads are stopped and live blocks are readable, as this function requires.
            let mut marker =
                unsafe { Marker::<_, false>::new(LiveBlocks::new(tables), &mut self.stack, None) };
            marker.overflowed = true;
            marker.drain();
            outcome.marked += marker.marked;
        }
        self.stack.shrink(KEPT);
        (result, Marked { live: outcome.marked, markers: helpers + 1, helpers_cpu_ns: outcome.cpu_ns })
    }
}

/// What the helpers need.
struct ParallelWork<'a> {
    tables: &'a Tables,
}

impl Work for ParallelWork<'_> {
    unsafe fn help(&self, stack: &mut MarkStack, pool: &Pool<Grey>) -> MarkOutcome {
        // SAFETY: the world is stopped, as this function requires.
        let mut marker = unsafe { Marker::<_, true>::new(LiveBlocks::new(self.tables), stack, Some(pool)) };
        finish(&mut marker, pool)
    }
}

/// Marks what others leave, until no marker has anything left.
fn finish(marker: &mut Marker<'_, LiveBlocks<'_>, true>, pool: &Pool<Grey>) -> MarkOutcome {
    // SAFETY: parts of roots and marked blocks; the world is stopped.
    help(pool, |grey_objects| unsafe { marker.borrowed(grey_objects) });
    MarkOutcome { marked: marker.marked, overflowed: marker.overflowed, cpu_ns: 0 }
}
