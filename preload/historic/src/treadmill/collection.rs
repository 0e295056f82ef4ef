//! A collection: stop the program, shade what its roots point to, blacken until nothing is grey, flip.

use core::mem::size_of;

use heaptoll_assertions::{assert_expensive, assert_internal, assert_sound};
use heaptoll_roots::Root;
use heaptoll_runtime::{Collected, Heap, Phase, Reason, WORD, now_ns, thread_cpu_ns};
use heaptoll_wheel::Segment;

use crate::support::{Aborted, CollectionOutcome, Collector, Mutators, Visitor};
use crate::treadmill::Treadmill;
use crate::treadmill::blocks::{SCANNED, WHEELS, is_large, is_scanned};

/// The marking of one collection.
struct Marking<'a> {
    heap: &'a mut Treadmill,
    number: u64,
    /// Bytes in objects that were reached.
    live: usize,
    has_roots: bool,
}

impl Treadmill {
    /// Collects.
    ///
    /// # Errors
    /// [`Aborted`], when the program could not be stopped: nothing was reclaimed.
    pub(crate) fn collect_for(&mut self, reason: Reason) -> Result<CollectionOutcome, Aborted> {
        let mutators = self.mutators.ok_or(Aborted)?;
        if self.pages.count() == 0 {
            return Ok(CollectionOutcome { live_bytes: 0, reclaimed_bytes: 0 });
        }
        let (cpu_ns, begun) = (thread_cpu_ns(), now_ns());
        self.collections += 1;
        let number = self.collections;
        if let Some(reporter) = self.reporter {
            reporter.collection_starts(number, reason);
        }
        self.phase(number, Phase::Stop);
        self.begin();
        let itself = core::ptr::from_ref(self) as usize;
        let region = self.pages.region.start()..self.pages.region.end();
        let left_out = [region, self.pages.table_range(), itself..itself + size_of::<Treadmill>()];
        let mut marking = Marking { heap: self, number, live: 0, has_roots: false };
        let held = mutators.with_world_stopped(&left_out, &mut marking);
        let live = marking.live;
        if let Err(cause) = held {
            self.abort();
            if let Some(reporter) = self.reporter {
                reporter.abandoned(cause);
            }
            return Err(Aborted);
        }
        self.phase(number, Phase::Resume);
        let pause_ns = now_ns() - begun;
        let found = CollectionOutcome { live_bytes: live, reclaimed_bytes: self.used - live };
        (self.used, self.live, self.given_back) = (live, live, false);
        if let Some(reporter) = self.reporter {
            reporter.collector_cpu(thread_cpu_ns().saturating_sub(cpu_ns));
            let collected_bytes = found.reclaimed_bytes;
            reporter.collection_ends(Collected { number, live_bytes: live, collected_bytes, pause_ns });
        }
        assert_sound!(self.check());
        Ok(found)
    }

    fn phase(&self, number: u64, phase: Phase) {
        if let Some(reporter) = self.reporter {
            reporter.phase(number, phase);
        }
    }

    /// Black is ecru from here on. Free cells are parked, since no colour shows them.
    fn begin(&mut self) {
        self.colour = !self.colour;
        for number in 0..WHEELS {
            self.wheel(number).settle(self.links());
            self.wheel(number).begin(self.links());
        }
        assert_expensive!(self.has_parked_all(), "every free cell is parked when marking begins");
    }

    /// Whether every free cell is parked: for assertions.
    fn has_parked_all(&self) -> bool {
        let links = self.links();
        // SAFETY: they are cells of a wheel.
        let parked = |cell: usize| unsafe { links.is_parked(cell) };
        (0..WHEELS).all(|number| self.wheel(number).cells(links, Segment::Free).all(parked))
    }

    /// An aborted collection has reached everything.
    fn abort(&mut self) {
        let links = self.links();
        for number in 0..WHEELS {
            let wheel = self.wheel(number);
            // SAFETY: they are cells of the wheel.
            wheel.cells(links, Segment::Ecru).for_each(|cell| unsafe { links.paint(cell, self.colour) });
            wheel.abort(links);
        }
        self.grey = 0;
        assert_sound!(self.check());
    }

    /// Nothing is grey: what is ecru is free. Large objects give their pages back.
    fn flip(&mut self) {
        let links = self.links();
        for number in 0..WHEELS {
            assert_internal!(
                self.wheel(number).cells(links, Segment::Grey).next().is_none(),
                "a collection ends with nothing grey"
            );
            if is_large(number) {
                self.free_large(number);
            }
            self.wheel(number).free_ecru(links);
        }
    }

    fn free_large(&mut self, number: usize) {
        let (links, wheel) = (self.links(), self.wheel(number));
        while let Some(cell) = wheel.cells(links, Segment::Ecru).next() {
            // SAFETY: the cell is in the wheel, and dead.
            unsafe { links.unlink(cell) };
            self.pages.release(self.pages.number(cell));
        }
    }
}

impl Marking<'_> {
    /// Shades the object that a word points into, if it does: it is grey, unless it was before.
    #[inline(always)]
    fn consider(&mut self, word: usize) {
        let Some(cell) = self.heap.pages.find(word) else { return };
        let (links, colour) = (self.heap.links(), self.heap.colour);
        // SAFETY: `find` returned a cell of the heap. One of the other colour that is not parked is ecru.
        unsafe {
            if links.colour(cell.address) == colour || links.is_parked(cell.address) {
                return;
            }
            links.paint(cell.address, colour);
            let wheel = self.heap.wheel(cell.wheel);
            wheel.shade(links, cell.address);
            match is_scanned(cell.wheel) {
                true => self.heap.grey |= 1 << cell.wheel,
                // Its words are no pointers: it is black at once.
                false => _ = wheel.blacken(links),
            }
        }
        self.live += cell.size;
        assert_internal!(self.live <= self.heap.used, "bytes in objects are no fewer than are reached");
    }

    /// Considers all words of a range.
    ///
    /// # Safety
    /// They are readable; both ends are multiples of a word.
    #[inline(always)]
    unsafe fn scan(&mut self, start: usize, end: usize) {
        let mut at = start;
        while at < end {
            // SAFETY: the precondition of this function. Others may write to it, for example by a DMA into the
            // program's memory.
            self.consider(unsafe { (at as *const usize).read_volatile() });
            at += WORD;
        }
    }

    /// Scans grey objects until there is none.
    fn drain(&mut self) {
        while self.heap.grey != 0 {
            let number = self.heap.grey.trailing_zeros() as usize;
            debug_assert!(number < SCANNED);
            let Some(address) = self.heap.wheel(number).blacken(self.heap.links()) else {
                self.heap.grey &= self.heap.grey - 1;
                continue;
            };
            if let Some(cell) = self.heap.pages.find(address + WORD) {
                // SAFETY: grey cells hold objects of so many bytes.
                unsafe { self.scan(cell.object(), cell.object() + cell.usable() / WORD * WORD) };
            }
        }
    }
}

impl Visitor for Marking<'_> {
    fn root(&mut self, root: Root) {
        if !self.has_roots {
            self.has_roots = true;
            self.heap.phase(self.number, Phase::Mark);
        }
        // SAFETY: the visitor is shown roots, whose words are readable while the threads are stopped.
        unsafe { self.scan(root.range.start, root.range.end) };
        self.drain();
    }

    fn finish(&mut self) {
        self.heap.phase(self.number, Phase::Sweep);
        self.heap.flip();
    }
}

impl Collector for Treadmill {
    fn of(mutators: &'static dyn Mutators) -> Treadmill {
        Treadmill::of(mutators)
    }

    fn collections(&self) -> u64 {
        self.collections
    }

    fn collect_by_itself(&mut self) -> Result<CollectionOutcome, Aborted> {
        self.collect_for(Reason::Allocation)
    }
}
