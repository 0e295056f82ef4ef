//! A collection's first half: what is reached is marked, by one thread or several.

use core::ops::Range;

use heaptoll_marking::{Grey, KEPT, MarkOutcome, MarkStack, Marker, Pool, Work, Workers, help};

use crate::mark::Live;
use crate::tables::Tables;

/// Those who mark, and their memory.
pub struct Marking {
    workers: Workers,
    stack: MarkStack,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marked {
    /// Bytes of blocks that were marked.
    pub live: usize,
    /// Threads that marked.
    pub markers: usize,
    /// Processor time of those who helped, ns: the calling thread knows its own.
    pub helpers_cpu_ns: u64,
}

/// Where marking begins.
pub trait Roots {
    /// Marks what the words of a range point into, and everything from there.
    ///
    /// # Safety
    /// The range is of whole readable words, and nobody writes in it.
    unsafe fn range(&mut self, range: Range<usize>);

    /// As [`Roots::range`], where addresses may lie at any byte, as in code.
    ///
    /// # Safety
    /// As there.
    unsafe fn bytes(&mut self, range: Range<usize>);
}

impl<const PARALLEL: bool> Roots for Marker<'_, Live<'_>, PARALLEL> {
    unsafe fn range(&mut self, range: Range<usize>) {
        // SAFETY: the caller's word.
        unsafe { Marker::range(self, range) };
    }

    unsafe fn bytes(&mut self, range: Range<usize>) {
        // SAFETY: the caller's word.
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

    /// How many threads shall mark: so many, or as the cores allow.
    pub fn configure(&mut self, markers: Option<usize>) {
        self.workers.configure(markers);
    }

    /// From how many live bytes on several threads mark, and how many entries the stacks and the pool have at most:
    /// for tests.
    pub fn set_limits(&mut self, threshold: usize, own: usize, others: usize) {
        self.workers.set_limits(threshold, others);
        self.stack.limit(own);
    }

    /// Makes ready to mark about `live` bytes; says how many threads will, 0 when the system gives no memory for the
    /// stack. To be called while the program still runs.
    pub fn prepare(&mut self, live: usize) -> usize {
        if self.stack.prepare() { self.workers.prepare(live) } else { 0 }
    }

    /// Where its memory lies: to be left out of the roots.
    pub fn ranges(&self) -> [Range<usize>; 2] {
        [self.stack.range(), self.workers.range()]
    }

    /// Marks what `roots` hands over, and everything that can be reached from there, by as many threads as
    /// [`Marking::prepare`] said. Also says what `roots` said.
    ///
    /// # Safety
    /// All other threads stand still, none in the midst of a call into the tables, and live blocks are readable.
    pub unsafe fn mark<R>(
        &mut self,
        tables: &Tables,
        markers: usize,
        roots: impl FnOnce(&mut dyn Roots) -> R,
    ) -> (R, Marked) {
        let (said, mut share, helpers) = if markers < 2 {
            let mut marker = Marker::<_, false>::new(Live::new(tables), &mut self.stack, None);
            let said = roots(&mut marker);
            (said, MarkOutcome { marked: marker.marked, ..MarkOutcome::default() }, 0)
        } else {
            let stack = &mut self.stack;
            let ((said, mut share), others, helpers) =
                self.workers.run(markers, &Helping { tables }, |pool| {
                    let mut marker = Marker::<_, true>::new(Live::new(tables), stack, Some(pool));
                    (roots(&mut marker), finish(&mut marker, pool))
                });
            share += others;
            (said, share, helpers)
        };
        if share.overflowed {
            let mut marker = Marker::<_, false>::new(Live::new(tables), &mut self.stack, None);
            marker.overflowed = true;
            marker.drain();
            share.marked += marker.marked;
        }
        self.stack.shrink(KEPT);
        (said, Marked { live: share.marked, markers: helpers + 1, helpers_cpu_ns: share.cpu_ns })
    }
}

/// What those who help need to know.
struct Helping<'a> {
    tables: &'a Tables,
}

impl Work for Helping<'_> {
    unsafe fn help(&self, stack: &mut MarkStack, pool: &Pool<Grey>) -> MarkOutcome {
        finish(&mut Marker::<_, true>::new(Live::new(self.tables), stack, Some(pool)), pool)
    }
}

/// Marks what others leave, until nobody has anything left.
fn finish(marker: &mut Marker<'_, Live<'_>, true>, pool: &Pool<Grey>) -> MarkOutcome {
    // SAFETY: parts of roots and marked blocks; the world stands still.
    help(pool, |greys| unsafe { marker.borrowed(greys) });
    MarkOutcome { marked: marker.marked, overflowed: marker.overflowed, cpu_ns: 0 }
}
