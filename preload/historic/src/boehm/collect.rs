//! A collection: stop the program, mark from its roots, reclaim what is not marked.

use heaptoll_roots::{Origin, Root};
use heaptoll_runtime::{Collected, Phase, Reason, WORD, now_ns, thread_cpu_ns};

use crate::boehm::header::{CHUNK, clear, has, set};
use crate::boehm::stack::MarkEntry;
use crate::boehm::{Boehm, Version, first_bit, is_large, is_pointer_free};
use crate::support::{Aborted, CollectionOutcome, Collector, Mutators, Visitor};

/// Addresses so far after the heap's end are taken for ones that it may grow to: bytes. Ten times the largest growth,
/// as the second version has it for a heap of less than 80 MiB.
const GROWTH_MARGIN: usize = 10 << 20;

/// The marking of one collection.
struct Marking<'a, V: Version> {
    heap: &'a mut Boehm<V>,
    number: u64,
    live: usize,
    roots: usize,
}

impl<V: Version> Boehm<V> {
    /// Collects. A version's policy decides afterwards whether the heap grows.
    ///
    /// # Errors
    /// [`Aborted`], when the program could not be stopped: nothing was reclaimed.
    pub fn collect_for(&mut self, reason: Reason) -> Result<CollectionOutcome, Aborted> {
        let mutators = self.mutators.ok_or(Aborted)?;
        let cpu_ns = thread_cpu_ns();
        self.collections += 1;
        let number = self.collections;
        if let Some(reporter) = self.reporter {
            reporter.collection_starts(number, reason);
        }
        self.phase(number, Phase::Stop);
        if !V::EAGER {
            self.clear_marks();
        }
        let itself = core::ptr::from_ref(self) as usize;
        let [heap, map, table, scratch] = self.chunks.own();
        let left_out = [heap, map, table, scratch, self.stack.range(), itself..itself + size_of::<Self>()];
        let (used, begun) = (self.live + self.allocated, now_ns());
        let mut marking = Marking { heap: self, number, live: 0, roots: 0 };
        let held = mutators.with_world_stopped(&left_out, &mut marking);
        let Marking { live, roots, .. } = marking;
        if let Err(cause) = held {
            self.abort();
            if let Some(reporter) = self.reporter {
                reporter.abandoned(cause);
            }
            return Err(Aborted);
        }
        self.phase(number, Phase::Resume);
        let pause_ns = now_ns() - begun;
        (self.live, self.roots, self.allocated) = (live, roots, 0);
        if !V::EAGER {
            self.black_lists.promote();
            self.queue_all();
        }
        let found = CollectionOutcome { live_bytes: live, reclaimed_bytes: used.saturating_sub(live) };
        if let Some(reporter) = self.reporter {
            reporter.collector_cpu(thread_cpu_ns().saturating_sub(cpu_ns));
            reporter.collection_ends(Collected {
                number,
                live_bytes: live,
                collected_bytes: found.reclaimed_bytes,
                pause_ns,
            });
        }
        // Repeated requests, to take a census, must not make the heap grow.
        if reason != Reason::Requested {
            V::collected(self, found.reclaimed_bytes);
        }
        Ok(found)
    }

    /// Collects because the system gives no more memory.
    ///
    /// # Errors
    /// As [`Boehm::collect_for`].
    pub fn collect_for_memory(&mut self) -> Result<CollectionOutcome, Aborted> {
        self.collect_for(Reason::Pressure)
    }

    fn phase(&self, number: u64, phase: Phase) {
        if let Some(reporter) = self.reporter {
            reporter.phase(number, phase);
        }
    }

    /// Limits the mark stack: for tests of its overflow.
    #[doc(hidden)]
    pub fn limit_stack(&mut self, entries: usize) {
        self.stack.limit(entries);
    }

    /// Clears the marks of an aborted collection. Those of the last one are lost too: what waited to be swept is in use
    /// until the next.
    fn abort(&mut self) {
        self.stack.clear();
        self.black_lists.forget();
        self.clear_marks();
        for class in V::CLASSES.lists() {
            let mut chunk = core::mem::take(&mut self.pending[class]);
            while chunk != 0 {
                // SAFETY: the list of chunks that wait has first chunks of runs in use, which have headers.
                let header = unsafe { &mut *self.chunks.header(chunk) };
                header.pending = false;
                chunk = header.next;
                header.next = 0;
            }
        }
    }

    fn clear_marks(&mut self) {
        for run in self.chunks.runs().filter(|run| !run.free) {
            // SAFETY: a run in use has a header.
            unsafe { (*self.chunks.header(run.chunk)).marks = [0; 8] };
        }
    }

    /// Clears the marks of free objects that got one by accident, or by a false pointer. Returns how many bytes they
    /// have.
    fn unmark_free(&mut self) -> usize {
        let mut bytes = 0;
        for class in V::CLASSES.lists() {
            let mut address = self.lists[class];
            while address != 0 {
                let chunk = address & !(CHUNK - 1);
                let bit = (address - chunk) / WORD;
                // SAFETY: a free object of a chunk of small ones; its first word links to the next.
                unsafe {
                    let header = &mut *self.chunks.header(chunk);
                    if has(&header.marks, bit) {
                        clear(&mut header.marks, bit);
                        bytes += header.size;
                    }
                    address = (address as *const usize).read();
                }
            }
        }
        bytes
    }
}

impl<V: Version> Collector for Boehm<V> {
    fn of(mutators: &'static dyn Mutators) -> Boehm<V> {
        Boehm::of(mutators)
    }

    fn collections(&self) -> u64 {
        self.collections
    }

    fn collect_by_itself(&mut self) -> Result<CollectionOutcome, Aborted> {
        self.collect_for(Reason::Allocation)
    }
}

impl<V: Version> Marking<'_, V> {
    /// Marks the object that a word points into, if it does.
    #[inline(always)]
    fn consider(&mut self, word: usize) {
        let region = &self.heap.chunks.region;
        let beyond = if V::BLACK_LISTS { GROWTH_MARGIN } else { 0 };
        if word.wrapping_sub(region.start()) >= region.end() - region.start() + beyond {
            return;
        }
        let Some(object) = self.heap.chunks.find(word) else {
            if V::BLACK_LISTS {
                let nothing = !region.contains(word) || self.heap.chunks.is_nothing(word & !(CHUNK - 1));
                self.heap.black_lists.add(word, nothing);
            }
            return;
        };
        // SAFETY: `find` returned the first chunk of a run in use, which has a header.
        let header = unsafe { &mut *self.heap.chunks.header(object.chunk) };
        if !set(&mut header.marks, object.bit) {
            self.live += header.size;
            if !is_pointer_free(header) {
                self.heap.stack.push(MarkEntry { start: object.address, end: object.address + header.size });
            }
        }
    }

    /// Considers all words of a range.
    ///
    /// # Safety
    /// They are readable; both ends are multiples of a word.
    #[inline(always)]
    unsafe fn scan(&mut self, start: usize, end: usize) {
        let mut at = start;
        while at < end {
            // SAFETY: they are readable; both ends are multiples of a word, as this function requires. Others may write
            // to it, for example by a DMA into the program's memory.
            self.consider(unsafe { (at as *const usize).read_volatile() });
            at += WORD;
        }
    }

    fn drain(&mut self) {
        while let Some(MarkEntry { start, end }) = self.heap.stack.pop() {
            // SAFETY: entries are whole objects of the heap, as `consider` and `remark` push them.
            unsafe { self.scan(start, end) };
        }
    }

    /// Marks what marked objects point to, of which the stack dropped some.
    fn remark(&mut self) {
        let mut at = self.heap.chunks.region.start();
        while at < self.heap.chunks.region.end() {
            let chunk = at;
            // SAFETY: `chunk` is the first of a run, as the steps are whole runs; it has a header.
            let (size, offset, extent, large, pointer_free) = unsafe {
                let head = &*self.heap.chunks.header(chunk);
                (head.size, head.offset as usize, head.extent, is_large(head), is_pointer_free(head))
            };
            at += extent;
            if !self.heap.chunks.is_head(chunk) || pointer_free {
                continue;
            }
            let mut object = offset;
            while object + size <= extent {
                let bit = if large { first_bit::<V>() } else { object / WORD };
                // SAFETY: `chunk` is the first of a run, as the steps are whole runs; it has a header.
                if unsafe { has(&(*self.heap.chunks.header(chunk)).marks, bit) } {
                    self.heap.stack.push(MarkEntry { start: chunk + object, end: chunk + object + size });
                    self.drain();
                }
                object += size;
            }
        }
    }
}

impl<V: Version> Visitor for Marking<'_, V> {
    fn root(&mut self, root: Root) {
        if self.roots == 0 {
            self.heap.phase(self.number, Phase::Mark);
        }
        let bytes = root.range.end - root.range.start;
        self.roots += if root.origin == Origin::Stack { 2 * bytes } else { bytes };
        // SAFETY: the visitor is shown roots, whose words are readable while the threads are stopped.
        unsafe { self.scan(root.range.start, root.range.end) };
        self.drain();
    }

    fn finish(&mut self) {
        while self.heap.stack.overflowed() {
            self.remark();
        }
        self.live -= self.heap.unmark_free();
        if V::EAGER {
            self.heap.phase(self.number, Phase::Sweep);
            self.heap.sweep_all();
        }
    }
}
