//! The writer: assigns slots to objects, counts, fills chunks and passes them to the output.
//!
//! A disk that is full (or an output that fails in another way) must not disturb the program: the writer continues to
//! assign slots and to count, tries again with every chunk, and marks what is lost as a gap. [`Writer::flush`] and
//! [`Writer::trouble`] report it.

use std::io;

use serde::Serialize;

use crate::encoder::{Call, Encoder, op_of};
use crate::event::EventKind;
use crate::format::{self, ChunkHead, EVENTS_MAX, EventsHead, SIZE_MAX, chunk};
use crate::header::{Ending, Gap, Header, Sample, Sites};
use crate::output::{self, Output, RESERVE};
use crate::{TraceError, sites, text};

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
    out: W,
    encoder: Encoder,
    limit: u32,
    /// Requested sizes by slot; [`FREE`] where none is live.
    sizes: Vec<u64>,
    /// Free slots, the last freed on top; the upper `local` of them were freed in this chunk.
    free: Vec<u32>,
    local: usize,
    /// Where this chunk began.
    head: EventsHead,
    /// Chunks written.
    sequence: u64,
    /// Events of the chunks written.
    kept: u64,
    /// Events lost since the last chunk that could be written.
    lost: u64,
    clock_bytes: u64,
    live_bytes: u64,
    max_live_bytes: u64,
    samples: Vec<Sample>,
    /// Payloads of JSON chunks that are not yet written.
    pending: Vec<(u8, Vec<u8>)>,
    trouble: Option<TraceError>,
}

impl<W: Output> Writer<W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// The output does not take the first chunk, or the header is no JSON.
    pub fn new(mut out: W, header: &Header, settings: &Settings) -> Result<Self, TraceError> {
        let limit = settings.events_per_chunk.clamp(1, EVENTS_MAX);
        let encoder = Encoder::new(limit, settings.level, header.sites, header.latency, header.event_time);
        let payload = text::json("", header).map_err(|source| table(&out, "header", source))?;
        let mut first = format::file_head().to_vec();
        for (sequence, payload) in payload.iter().enumerate() {
            first.extend_from_slice(&ChunkHead::of(chunk::HEADER, sequence as u64, payload).bytes());
            first.extend_from_slice(payload);
        }
        out.add(&first).map_err(|source| TraceError::system("write", &out.name(), source))?;
        Ok(Writer {
            out,
            encoder,
            limit,
            sizes: Vec::new(),
            free: Vec::new(),
            local: 0,
            head: EventsHead::default(),
            sequence: payload.len() as u64,
            kept: 0,
            lost: 0,
            clock_bytes: 0,
            live_bytes: 0,
            max_live_bytes: 0,
            samples: Vec::new(),
            pending: Vec::new(),
            trouble: None,
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
        self.put(chunk::GAP, "", gap);
        self.write_pending();
    }

    /// Call stacks; may be called again with more.
    pub fn sites(&mut self, sites: &Sites) {
        for part in sites::parts(sites) {
            self.put(chunk::SITES, "", &part);
        }
    }

    /// A table of the caller under a name of at most 255 bytes; a later one of the same name replaces it.
    pub fn extra(&mut self, name: &str, json: &impl Serialize) {
        self.put(chunk::EXTRA, name, json);
    }

    /// Writes what is buffered as whole chunks: it then survives the end of this process.
    ///
    /// # Errors
    /// The output refuses more, since this or an earlier chunk. The writer may still be used: it tries again.
    pub fn flush(&mut self) -> Result<(), TraceError> {
        self.cut();
        self.put_samples();
        self.write_pending();
        match &self.trouble {
            Some(error) => Err(error.copy()),
            None => Ok(()),
        }
    }

    /// The last error of the output; none once it takes chunks again.
    pub fn trouble(&self) -> Option<&TraceError> {
        self.trouble.as_ref()
    }

    /// Events lost so far because the output refused chunks, and not yet marked by a gap.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Events in the chunks that the output took: what a reader finds of those so far.
    pub fn kept(&self) -> u64 {
        self.kept
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
        // Its error is stated in the gap, which is what a reader sees.
        let refused = self.flush();
        let mut ending = ending.clone();
        ending.slots = self.sizes.len() as u32;
        ending.events = self.kept;
        ending.max_live_bytes = self.max_live_bytes;
        let last_chunks = |ending: &Ending, this: &Self| -> Result<Vec<u8>, TraceError> {
            let mut bytes = Vec::new();
            let mut sequence = this.sequence;
            let mut put = |kind, payloads: Vec<Vec<u8>>| {
                for payload in payloads {
                    bytes.extend_from_slice(&ChunkHead::of(kind, sequence, &payload).bytes());
                    bytes.extend_from_slice(&payload);
                    sequence += 1;
                }
            };
            if let Err(error) = &refused {
                let mut gap = Gap { why: reason(error), events: Some(this.lost) };
                if this.lost == 0 {
                    gap.why += ": samples, sites or tables are missing";
                }
                put(chunk::GAP, text::json("", &gap).map_err(|source| table(&this.out, "gap", source))?);
            }
            put(chunk::ENDING, text::json("", ending).map_err(|source| table(&this.out, "ending", source))?);
            Ok(bytes)
        };
        let bytes = last_chunks(&ending, &self)?;
        let mut result = self.out.conclude(&bytes);
        if result.is_err() && bytes.len() > RESERVE {
            // Only the threads' numbers can be that long.
            ending.threads.clear();
            let bytes = last_chunks(&ending, &self)?;
            result = self.out.conclude(&bytes);
        }
        match result {
            Ok(()) => Ok(self.out),
            Err(source) => Err(TraceError::system("write", &self.out.name(), source)),
        }
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
        self.write_pending();
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
        // After a refusal, the gap goes before the chunk, and only together with it: a chunk that does not fit leaves
        // space for gaps, one a chunk.
        let gap = if self.lost == 0 { Vec::new() } else { self.gap_of_loss() };
        let mut chunks: Vec<(u8, &[u8])> = gap.iter().map(|payload| (chunk::GAP, &payload[..])).collect();
        chunks.push((chunk::EVENTS, &payload));
        if self.write(&chunks) {
            self.kept += events;
            self.lost = 0;
            self.trouble = None;
        } else {
            self.lost += events;
        }
    }

    fn gap_of_loss(&self) -> Vec<Vec<u8>> {
        let why = self.trouble.as_ref().map_or_else(String::new, reason);
        // A string and a number are always JSON.
        text::json("", &Gap { why, events: Some(self.lost) }).unwrap_or_default()
    }

    fn put_samples(&mut self) {
        if !self.samples.is_empty() {
            let samples = std::mem::take(&mut self.samples);
            self.put(chunk::SAMPLES, "", &samples);
        }
    }

    fn put(&mut self, kind: u8, name: &str, value: &impl Serialize) {
        match text::json(name, value) {
            Ok(payloads) => self.pending.extend(payloads.into_iter().map(|payload| (kind, payload))),
            Err(source) => self.trouble = Some(table(&self.out, name, source)),
        }
    }

    fn write_pending(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        let mut rest = pending.into_iter();
        while let Some((kind, payload)) = rest.next() {
            if !self.write(&[(kind, &payload)]) {
                self.pending.push((kind, payload));
                self.pending.extend(rest);
                return;
            }
        }
        if self.lost == 0 && matches!(self.trouble, Some(TraceError::System { .. })) {
            self.trouble = None;
        }
    }

    fn write(&mut self, chunks: &[(u8, &[u8])]) -> bool {
        let length = chunks.iter().map(|(_, payload)| format::CHUNK_HEAD + payload.len()).sum();
        let mut bytes = Vec::with_capacity(length);
        for ((kind, payload), sequence) in chunks.iter().zip(self.sequence..) {
            bytes.extend_from_slice(&ChunkHead::of(*kind, sequence, payload).bytes());
            bytes.extend_from_slice(payload);
        }
        match self.out.add(&bytes) {
            Ok(()) => {
                self.sequence += chunks.len() as u64;
                true
            }
            Err(source) => {
                self.trouble = Some(TraceError::system("write", &self.out.name(), source));
                false
            }
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
            .field("chunks", &self.sequence)
            .field("lost", &self.lost)
            .finish_non_exhaustive()
    }
}

fn table(out: &impl Output, table: &str, source: serde_json::Error) -> TraceError {
    TraceError::Table { name: out.name(), table: table.to_string(), source }
}

/// The reason of a gap, as text.
fn reason(error: &TraceError) -> String {
    match error {
        TraceError::System { source, .. } if output::is_full(source) => "disk full".to_string(),
        TraceError::System { source, .. } => no_number(source),
        other => other.to_string(),
    }
}

fn no_number(error: &io::Error) -> String {
    format!("the file could not be written: {error}")
}
