//! The writer: numbers objects, counts, fills chunks and passes them to the output.
//!
//! While the output refuses chunks, the writer continues to number and to count; [`Writer::flush`] reports it, and
//! [`Writer::loss`] once the output takes chunks again.

use serde::Serialize;

use super::call::{Access, Allocation, Edge, Root};
use super::encoder::Encoder;
use super::event::{FreeCause, LastTouch};
use super::format::{Head, file_head, op};
use crate::chunks::Chunks;
use crate::format::{CLOCK_MAX, EVENTS_MAX, SIZE_MAX, chunk};
use crate::header::{Ending, Exit, Gap, Header, Sites, SitesSoFar};
use crate::output::Output;
use crate::sites::WrittenSites;
use crate::{Settings, TraceError};

/// Writes one trace with pointers. Objects are those that [`Writer::allocate`] numbered and that were not ended since;
/// a reader leaves out what names others.
pub struct Writer<W> {
    chunks: Chunks<W>,
    encoder: Encoder,
    limit: u32,
    /// Where this chunk began.
    head: Head,
    /// Allocations so far.
    objects: u64,
    clock_bytes: u64,
    live_bytes: u64,
    max_live_bytes: u64,
    written_sites: WrittenSites,
}

impl<W: Output> Writer<W> {
    /// Begins a trace. The header's `graph` states what was recorded.
    ///
    /// # Errors
    /// The output does not take the first chunk, or the header is no JSON.
    pub fn new(out: W, header: &Header, settings: &Settings) -> Result<Self, TraceError> {
        let limit = settings.events_per_chunk.clamp(1, EVENTS_MAX);
        Ok(Writer {
            chunks: Chunks::new(out, &file_head(), header)?,
            encoder: Encoder::new(limit, settings.level, header.sites),
            limit,
            head: Head::default(),
            objects: 0,
            clock_bytes: 0,
            live_bytes: 0,
            max_live_bytes: 0,
            written_sites: WrittenSites::default(),
        })
    }

    /// What follows happens so many µs after the beginning. A trace has times if they are given from the beginning on.
    #[inline]
    pub fn time(&mut self, time_us: u64) {
        self.encoder.time(time_us);
    }

    /// A new object; returns its number.
    pub fn allocate(&mut self, call: &Allocation) -> u64 {
        self.start_chunk_if_full();
        let object = self.objects;
        let call = Allocation { size: call.size.min(SIZE_MAX), ..*call };
        self.encoder.allocate(object, &call);
        self.objects += 1;
        self.clock_bytes = (self.clock_bytes + call.size).min(CLOCK_MAX);
        self.live_bytes = (self.live_bytes + call.size).min(CLOCK_MAX);
        self.max_live_bytes = self.max_live_bytes.max(self.live_bytes);
        object
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
        self.live_bytes = self.live_bytes.saturating_sub(size);
        let code = op::FREE | (cause as u8) << op::KIND_SHIFT;
        self.encoder.end(code, object, thread, last_touch, self.clock_bytes);
    }

    /// At the end of the trace: an object that was never freed.
    pub fn kept(&mut self, object: u64, last_touch: Option<LastTouch>) {
        self.start_chunk_if_full();
        let thread = self.encoder.thread();
        self.encoder.end(op::KEPT, object, thread, last_touch, self.clock_bytes);
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

    /// Marks events that were lost before they reached the writer, at this position.
    pub fn gap(&mut self, gap: &Gap) {
        // Events after the gap are in a chunk of their own.
        self.cut();
        self.chunks.put(chunk::GAP, "", gap);
        self.chunks.write_pending();
    }

    /// `exit` begins at this position; a second time counts for nothing.
    pub fn exit_begins(&mut self) {
        // Events after it are in a chunk of their own.
        self.cut();
        self.chunks.put(
            chunk::EXIT,
            "",
            &Exit { event: self.head.first_event, time_ns: self.encoder.time_us() * 1000 },
        );
        self.chunks.write_pending();
    }

    /// All call stacks, in place of those that were written so far.
    pub fn sites(&mut self, sites: &Sites) {
        for part in self.written_sites.all(sites) {
            self.chunks.put(chunk::SITES, "", &part);
        }
    }

    /// Writes call stacks that were defined since the last call: a trace that is cut off has them.
    pub fn sites_so_far(&mut self, more: &SitesSoFar) {
        for part in self.written_sites.more(more) {
            self.chunks.put(chunk::SITES, "", &part);
        }
        self.chunks.write_pending();
    }

    /// A table of the caller under a name of at most 255 bytes; a later one of the same name replaces it.
    pub fn extra(&mut self, name: &str, json: &impl Serialize) {
        self.chunks.put(chunk::EXTRA, name, json);
    }

    /// Number of the next event: that of a [`LastTouch`] which happens now.
    #[inline]
    pub fn position(&self) -> u64 {
        self.encoder.position()
    }

    /// Events in the chunks that the output took: what a reader finds of those so far.
    pub fn written(&self) -> u64 {
        self.chunks.kept()
    }

    /// The first error of the output for which events were lost, even if it has taken chunks since.
    pub fn loss(&self) -> Option<&TraceError> {
        self.chunks.loss()
    }

    /// Number of the next object.
    pub fn objects(&self) -> u64 {
        self.objects
    }

    /// Sum of the requested bytes so far.
    #[inline]
    pub fn clock_bytes(&self) -> u64 {
        self.clock_bytes
    }

    /// Bytes of events before compression, of the chunks finished so far.
    pub fn plain_bytes(&self) -> u64 {
        self.encoder.plain_bytes()
    }

    /// Writes what is buffered as whole chunks: it then survives the end of this process.
    ///
    /// # Errors
    /// The output refuses more, since this or an earlier chunk. The writer may still be used: it tries again.
    pub fn flush(&mut self) -> Result<(), TraceError> {
        self.cut();
        self.chunks.write_pending();
        self.chunks.state()
    }

    /// Ends the trace. Members of `ending` that the writer knows are filled in by it.
    ///
    /// # Errors
    /// Even the last chunk, for which space was reserved, could not be written. Chunks lost before are no error here:
    /// they are a gap in the trace; [`Writer::flush`] reports them.
    pub fn finish(mut self, ending: &Ending) -> Result<W, TraceError> {
        // Its error is stated in a gap, which is what a reader sees.
        let _ = self.flush();
        let mut ending = ending.clone();
        ending.events = self.chunks.kept();
        ending.max_live_bytes = self.max_live_bytes;
        self.chunks.finish(&ending)
    }

    #[inline]
    fn start_chunk_if_full(&mut self) {
        if self.encoder.events() >= self.limit {
            self.cut();
            self.chunks.write_pending();
        }
    }

    /// Ends the chunk of events, if there is one.
    fn cut(&mut self) {
        let events = u64::from(self.encoder.events());
        if events == 0 {
            return;
        }
        let payload = self.encoder.payload(self.head);
        self.head = Head {
            first_event: self.head.first_event + events,
            first_object: self.objects,
            clock_bytes: self.clock_bytes,
            live_bytes: self.live_bytes,
            thread: self.encoder.thread(),
            ..Head::default()
        };
        self.encoder.begin(self.objects);
        self.chunks.events(&payload, events);
    }
}

impl<W> std::fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("objects", &self.objects).finish_non_exhaustive()
    }
}
