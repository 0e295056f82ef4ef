//! The writer: assigns slots to objects, counts, fills chunks and passes them to the output.
//!
//! While the output refuses chunks, the writer continues to assign slots and to count; [`Writer::flush`] and
//! [`Writer::trouble`] report it.

use serde::Serialize;

use crate::TraceError;
use crate::chunks::Chunks;
use crate::encoder::{Call, Encoder, op_of};
use crate::event::EventKind;
use crate::format::{self, EVENTS_MAX, EventsHead, SIZE_MAX, chunk};
use crate::header::{Ending, Exit, Gap, Header, Sample, Sites, SitesSoFar};
use crate::output::Output;
use crate::sites::WrittenSites;

/// Settings of a writer.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Level of zstd; 0 keeps columns as they are. Negative levels are faster.
    pub level: i32,
    /// Events of a chunk: what is lost at most when heaptoll dies without [`Writer::flush`]. At most 262,144.
    pub events_per_chunk: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { level: 1, events_per_chunk: 65_536 }
    }
}

/// A call that made or resized an object, or failed to.
#[derive(Debug, Clone, Copy)]
pub struct Allocation {
    /// The function called.
    pub kind: EventKind,
    /// The calling thread, an index.
    pub thread: u32,
    /// Bytes requested.
    pub size: u64,
    /// Bytes usable, by `malloc_usable_size`; 0 where unknown.
    pub usable: u64,
    /// Binary logarithm of the alignment requested; 0 for none.
    pub align_log2: u8,
    /// The call stack; kept when the header has `sites` set.
    pub site: u32,
    /// ns that the call took; kept when the header has `latency` set.
    pub latency_ns: u32,
}

/// Marks a slot as free in the table of sizes.
const FREE: u64 = u64::MAX;
/// Sites buffered before they are cut into chunks, and samples likewise.
const SAMPLES_PER_CHUNK: usize = 4096;

/// Writes one trace.
pub struct Writer<W> {
    chunks: Chunks<W>,
    encoder: Encoder,
    limit: u32,
    /// Requested sizes by slot; [`FREE`] where none is live.
    sizes: Vec<u64>,
    /// Free slots, the last freed on top; the upper `local` of them were freed in this chunk.
    free: Vec<u32>,
    local: usize,
    /// Where this chunk began.
    head: EventsHead,
    clock_bytes: u64,
    live_bytes: u64,
    max_live_bytes: u64,
    samples: Vec<Sample>,
    written_sites: WrittenSites,
}

impl<W: Output> Writer<W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// The output does not take the first chunk, or the header is no JSON.
    pub fn new(out: W, header: &Header, settings: &Settings) -> Result<Self, TraceError> {
        let limit = settings.events_per_chunk.clamp(1, EVENTS_MAX);
        let encoder = Encoder::new(limit, settings.level, header.sites, header.latency, header.event_time);
        Ok(Writer {
            chunks: Chunks::new(out, &format::file_head(), header)?,
            encoder,
            limit,
            sizes: Vec::new(),
            free: Vec::new(),
            local: 0,
            head: EventsHead::default(),
            clock_bytes: 0,
            live_bytes: 0,
            max_live_bytes: 0,
            samples: Vec::new(),
            written_sites: WrittenSites::default(),
        })
    }

    /// A new object; returns its slot.
    ///
    /// # Errors
    /// The caller's: a kind that makes no object, a number of live objects beyond 2^32.
    #[inline]
    pub fn allocate(&mut self, call: &Allocation) -> Result<u32, TraceError> {
        if !call.kind.allocates() {
            return Err(TraceError::WrongKind { kind: call.kind, call: "allocate" });
        }
        let op = op_of(call.kind);
        self.start_chunk_if_full();
        let size = call.size.min(SIZE_MAX);
        let (slot, predicted) = match self.free.pop() {
            Some(slot) => {
                let predicted = self.local > 0;
                self.local -= usize::from(predicted);
                self.sizes[slot as usize] = size;
                (slot, predicted)
            }
            None => (self.new_slot(size)?, true),
        };
        self.clock_bytes += size;
        self.live_bytes += size;
        self.max_live_bytes = self.max_live_bytes.max(self.live_bytes);
        let fields = fields(op, size, call);
        self.encoder.allocate(fields, call.thread, call.latency_ns, slot, predicted);
        Ok(slot)
    }

    #[cold]
    fn new_slot(&mut self, size: u64) -> Result<u32, TraceError> {
        let slot = u32::try_from(self.sizes.len()).ok().filter(|&slot| slot < u32::MAX - 1);
        let slot = slot.ok_or(TraceError::TooManyObjects)?;
        self.sizes.push(size);
        Ok(slot)
    }

    /// An object gets another size and keeps its slot; `moved`: and another address.
    ///
    /// # Errors
    /// The caller's: the kind is not [`EventKind::Realloc`], the object is not live.
    #[inline]
    pub fn resize(&mut self, slot: u32, call: &Allocation, moved: bool) -> Result<(), TraceError> {
        if call.kind != EventKind::Realloc {
            return Err(TraceError::WrongKind { kind: call.kind, call: "resize" });
        }
        let op = if moved { format::op::REALLOC_MOVED } else { format::op::REALLOC };
        let size = call.size.min(SIZE_MAX);
        let Some(old) = self.sizes.get_mut(slot as usize).filter(|old| **old != FREE) else {
            return Err(TraceError::NotLive { slot });
        };
        let before = std::mem::replace(old, size);
        self.start_chunk_if_full();
        self.clock_bytes += size.saturating_sub(before);
        self.live_bytes = self.live_bytes - before + size;
        self.max_live_bytes = self.max_live_bytes.max(self.live_bytes);
        let fields = fields(op, size, call);
        self.encoder.resize(fields, call.thread, call.latency_ns, slot);
        Ok(())
    }

    /// The end of an object.
    ///
    /// # Errors
    /// The caller's: the kind frees nothing, the object is not live.
    #[inline]
    pub fn free(
        &mut self,
        slot: u32,
        kind: EventKind,
        thread: u32,
        latency_ns: u32,
    ) -> Result<(), TraceError> {
        if !kind.frees() {
            return Err(TraceError::WrongKind { kind, call: "free" });
        }
        let op = op_of(kind);
        let Some(size) = self.sizes.get_mut(slot as usize).filter(|size| **size != FREE) else {
            return Err(TraceError::NotLive { slot });
        };
        let before = std::mem::replace(size, FREE);
        self.start_chunk_if_full();
        self.live_bytes -= before;
        self.free.push(slot);
        self.local += 1;
        self.encoder.free(op, thread, latency_ns, slot);
        Ok(())
    }

    /// A call that changed nothing: [`EventKind::Failed`] (size, thread, site and latency are kept) or
    /// [`EventKind::Foreign`] (thread and latency are kept).
    ///
    /// # Errors
    /// The caller's: another kind.
    pub fn note(&mut self, kind: EventKind, call: &Allocation) -> Result<(), TraceError> {
        if !matches!(kind, EventKind::Failed | EventKind::Foreign) {
            return Err(TraceError::WrongKind { kind, call: "note" });
        }
        self.start_chunk_if_full();
        if kind == EventKind::Failed {
            self.encoder.failed(call.size, call.site, call.thread, call.latency_ns);
        } else {
            self.encoder.foreign(call.thread, call.latency_ns);
        }
        Ok(())
    }

    /// The time of what follows, ns from the beginning; one that lies before the last is taken as the last.
    #[inline]
    pub fn stamp(&mut self, time_ns: u64) {
        self.encoder.stamp(time_ns);
    }

    /// Adds a sample of the process.
    pub fn sample(&mut self, sample: &Sample) {
        self.samples.push(*sample);
        if self.samples.len() >= SAMPLES_PER_CHUNK {
            self.put_samples();
        }
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
            &Exit { event: self.head.first_event, time_ns: self.encoder.now_ns() },
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

    /// Writes what is buffered as whole chunks: it then survives the end of this process.
    ///
    /// # Errors
    /// The output refuses more, since this or an earlier chunk. The writer may still be used: it tries again.
    pub fn flush(&mut self) -> Result<(), TraceError> {
        self.cut();
        self.put_samples();
        self.chunks.write_pending();
        self.chunks.state()
    }

    /// The last error of the output; none once it takes chunks again.
    pub fn trouble(&self) -> Option<&TraceError> {
        self.chunks.trouble()
    }

    /// The first error of the output for which events were lost, even if it has taken chunks since.
    pub fn loss(&self) -> Option<&TraceError> {
        self.chunks.loss()
    }

    /// Events lost so far because the output refused chunks, and not yet marked by a gap.
    pub fn lost(&self) -> u64 {
        self.chunks.lost()
    }

    /// Events in the chunks that the output took: what a reader finds of those so far.
    pub fn kept(&self) -> u64 {
        self.chunks.kept()
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.head.first_event + u64::from(self.encoder.events())
    }

    /// Sum of the requested bytes so far.
    pub fn clock_bytes(&self) -> u64 {
        self.clock_bytes
    }

    /// Requested bytes of live objects.
    pub fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Requested bytes of a live object.
    pub fn size(&self, slot: u32) -> Option<u64> {
        self.sizes.get(slot as usize).copied().filter(|&size| size != FREE)
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
        ending.slots = self.sizes.len() as u32;
        ending.events = self.chunks.kept();
        ending.max_live_bytes = self.max_live_bytes;
        self.chunks.finish(&ending)
    }

    #[inline(always)]
    fn start_chunk_if_full(&mut self) {
        if self.encoder.events() >= self.limit {
            self.next_chunk();
        }
    }

    #[cold]
    fn next_chunk(&mut self) {
        self.cut();
        self.chunks.write_pending();
    }

    /// Ends the chunk of events, if there is one.
    fn cut(&mut self) {
        let events = u64::from(self.encoder.events());
        if events == 0 {
            return;
        }
        let payload = self.encoder.payload(self.head);
        let (thread, time_ns) = self.encoder.position();
        self.head = EventsHead {
            first_event: self.head.first_event + events,
            clock_bytes: self.clock_bytes,
            live_bytes: self.live_bytes,
            time_ns,
            thread,
            slots: self.sizes.len() as u32,
            ..EventsHead::default()
        };
        self.local = 0;
        self.chunks.events(&payload, events);
    }

    fn put_samples(&mut self) {
        if !self.samples.is_empty() {
            let samples = std::mem::take(&mut self.samples);
            self.chunks.put(chunk::SAMPLES, "", &samples);
        }
    }
}

#[inline(always)]
fn fields(op: u8, size: u64, call: &Allocation) -> Call {
    let usable = call.usable.min(SIZE_MAX);
    Call { op, size, usable, align_log2: call.align_log2.min(63), site: call.site }
}

impl<W> std::fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("chunks", &self.chunks.sequence())
            .field("lost", &self.chunks.lost())
            .finish_non_exhaustive()
    }
}
