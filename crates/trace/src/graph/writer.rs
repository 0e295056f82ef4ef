//! The calls of a writer of traces with pointers. Objects are those that [`Writer::allocate`](super::Writer::allocate)
//! numbered and that were not ended since; a reader leaves out what names others.

use super::call::{Access, Allocation, Edge, Root};
use super::encoder::Encoder;
use super::event::{FreeCause, LastTouch};
use super::format::op;
use crate::event_writer::EventWriter;
use crate::format::{CLOCK_MAX, SIZE_MAX};
use crate::output::Output;

impl<W: Output> EventWriter<W, Encoder> {
    /// What follows happens so many µs after the beginning. A trace has times if they are given from the beginning on.
    #[inline]
    pub fn time(&mut self, time_us: u64) {
        self.encoder.time(time_us);
    }

    /// A new object; returns its number.
    pub fn allocate(&mut self, call: &Allocation) -> u64 {
        self.start_chunk_if_full();
        let call = Allocation { size: call.size.min(SIZE_MAX), ..*call };
        let totals = &mut self.totals;
        totals.clock_bytes = (totals.clock_bytes + call.size).min(CLOCK_MAX);
        totals.live_bytes = (totals.live_bytes + call.size).min(CLOCK_MAX);
        totals.max_live_bytes = totals.max_live_bytes.max(totals.live_bytes);
        self.encoder.allocate(&call)
    }

    /// The end of an object of `size` bytes by the program.
    pub fn free(
        &mut self,
        object: u64,
        size: u64,
        thread: u32,
        cause: FreeCause,
        last_touch: Option<LastTouch>,
    ) {
        self.start_chunk_if_full();
        self.totals.live_bytes = self.totals.live_bytes.saturating_sub(size);
        let code = op::FREE | (cause as u8) << op::KIND_SHIFT;
        self.encoder.end(code, object, thread, last_touch, self.totals.clock_bytes);
    }

    /// At the end of the trace: an object that was never freed.
    pub fn kept(&mut self, object: u64, last_touch: Option<LastTouch>) {
        self.start_chunk_if_full();
        let thread = self.encoder.thread();
        self.encoder.end(op::KEPT, object, thread, last_touch, self.totals.clock_bytes);
    }

    /// A word holds a pointer from here on.
    pub fn edge(&mut self, edge: &Edge) {
        self.start_chunk_if_full();
        self.encoder.edge(edge);
    }

    /// A word that held a pointer does not hold it any more.
    pub fn clear(&mut self, from: u64, offset: u64) {
        self.start_chunk_if_full();
        self.encoder.clear(from, offset);
    }

    /// The first touch of an older object since the last root point.
    pub fn touch(&mut self, object: u64) {
        self.start_chunk_if_full();
        self.encoder.touch(object);
    }

    /// A root point: each pair of object and kind once.
    pub fn roots(&mut self, roots: &[Root]) {
        self.start_chunk_if_full();
        self.encoder.mark(op::ROOTS_BEGIN);
        for root in roots {
            self.start_chunk_if_full();
            self.encoder.root(root);
        }
        self.start_chunk_if_full();
        self.encoder.mark(op::ROOTS_END);
    }

    /// A load or store of the program.
    pub fn access(&mut self, access: &Access) {
        self.start_chunk_if_full();
        self.encoder.access(access);
    }

    /// A request begins.
    pub fn request_begin(&mut self, thread: u32) {
        self.start_chunk_if_full();
        self.encoder.mark_on(op::REQUEST_BEGIN, thread);
    }

    /// A request ends.
    pub fn request_end(&mut self, thread: u32) {
        self.start_chunk_if_full();
        self.encoder.mark_on(op::REQUEST_END, thread);
    }

    /// Number of the next object.
    pub fn objects(&self) -> u64 {
        self.encoder.objects()
    }

    /// Bytes of events before compression, of the chunks finished so far.
    pub fn plain_bytes(&self) -> u64 {
        self.encoder.plain_bytes()
    }
}
