//! The reader: events in batches, in bounded memory, from any source of bytes. It reads traces of every kind; a decoder
//! knows the events of one.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::TraceError;
use crate::file_kind::FileKind;
use crate::format::chunk;
use crate::frame::{Framer, StreamItem};
use crate::header::Header;
use crate::malformed::Malformed;
use crate::memory::Memory;
use crate::tables::Tables;

/// Events of a batch, about: they fit into a second-level cache.
const BATCH: u32 = 4096;
/// Events that are counted of a trace that takes too much memory, to state what it takes: about a second's work.
const COUNTED: u64 = 1 << 28;

/// Events in order. Kept by the caller and filled again and again.
#[derive(Debug)]
pub struct EventBatch<E> {
    /// The events. Always a legal sequence: objects are allocated when they are free, and named while they are live.
    /// Offsets are of bytes that an object has; roots lie between the begin and the end of their point.
    pub events: Vec<E>,
    /// Number of the first event, as counted by the recorder, and of the event after the last. Where events were left
    /// out, those of the batch have numbers that only these bound.
    pub first_event: u64,
    /// See `first_event`.
    pub next_event: u64,
    /// Every slot, or every object's number, up to the end of this batch is below it: how large a table must be.
    pub objects: u64,
    /// Before this batch, events are missing (damage, or a gap that the recorder left). Objects may have ended without
    /// an event, and pointers.
    pub after_gap: bool,
    /// `exit` had begun before this batch.
    pub after_exit: bool,
    /// Bytes allocated before the first event of this batch's chunk, by the recorder's clock: it shows how much was
    /// allocated within a gap.
    pub chunk_clock_bytes: u64,
    /// ns from the beginning at which these events happened, to a ms. 0 where events have times of their own, or the
    /// trace has none.
    pub time_ns: u64,
}

impl<E> Default for EventBatch<E> {
    fn default() -> EventBatch<E> {
        EventBatch {
            events: Vec::new(),
            first_event: 0,
            next_event: 0,
            objects: 0,
            after_gap: false,
            after_exit: false,
            chunk_clock_bytes: 0,
            time_ns: 0,
        }
    }
}

/// Where a decoder is in its chunk and in the trace.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Number of the chunk's first event, as counted by the recorder, and of the next.
    pub(crate) first_event: u64,
    pub(crate) next_event: u64,
    /// Events of the chunk that are not yet decoded.
    pub(crate) left: u32,
    /// Events decoded, of the whole trace.
    pub(crate) decoded: u64,
    /// Slots or objects so far, by the file's numbers: the next chunk continues them.
    pub(crate) numbered: u64,
    /// See [`EventBatch`].
    pub(crate) objects: u64,
    pub(crate) chunk_clock_bytes: u64,
    pub(crate) time_ns: u64,
}

/// Decodes the chunks of events of one kind of trace.
pub trait Decode: Default {
    /// What the first bytes of the file show.
    const KIND: FileKind;
    /// What it decodes.
    type Event;

    /// Where it is.
    fn place(&self) -> Place;

    /// Unpacks a chunk.
    ///
    /// # Errors
    /// It is not valid; then it has no events.
    fn load(&mut self, payload: &[u8]) -> Result<(), Malformed>;

    /// Decodes about `count` more events of the chunk.
    ///
    /// # Errors
    /// The chunk is not valid: the events before that are decoded, and the rest is dropped.
    fn decode(&mut self, count: u32, events: &mut Vec<Self::Event>) -> Result<(), Malformed>;

    /// Events are missing here: what is open ends.
    fn miss(&mut self, events: &mut Vec<Self::Event>);

    /// Bytes that the live objects take, with so many for each that the user of the reader keeps.
    fn needs_bytes(&self, each_object_bytes: u64) -> u64;

    /// Most objects live at once so far.
    fn most_live(&self) -> u32;

    /// Whether it takes little memory to read on and count the objects of a trace that takes too much.
    fn can_count(&self) -> bool;

    /// What is odd at the end of the trace.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Reads one trace.
pub struct EventReader<R, D> {
    framer: Framer<R>,
    tables: Tables,
    pub(crate) decoder: D,
    memory: Memory,
    /// Sequence number and first event of the next chunk.
    next_sequence: Option<u64>,
    next_event: u64,
    /// The next batch is the first after a gap.
    gap: bool,
    /// Events that the recorder's own gaps reported lost since the last chunk of events.
    lost_by_recorder: u64,
    ended: bool,
}

impl<D: Decode> EventReader<File, D> {
    /// Opens a file.
    ///
    /// # Errors
    /// The system refuses; it is no trace of this kind, or a newer one.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| TraceError::system("open", &name, source))?;
        EventReader::with_name(file, &name)
    }
}

impl<R: Read, D: Decode> EventReader<R, D> {
    /// Begins to read.
    ///
    /// # Errors
    /// The source refuses; it is no trace of this kind, or a newer one.
    pub fn new(read: R) -> Result<Self, TraceError> {
        EventReader::with_name(read, "the input")
    }

    /// As [`EventReader::new`]; errors call the source `name`.
    ///
    /// # Errors
    /// See [`EventReader::new`].
    pub fn with_name(read: R, name: &str) -> Result<Self, TraceError> {
        let mut reader = EventReader {
            framer: Framer::new(read, 0),
            tables: Tables::new(name),
            decoder: D::default(),
            memory: Memory::default(),
            next_sequence: None,
            next_event: 0,
            gap: false,
            lost_by_recorder: 0,
            ended: false,
        };
        reader.tables.begin(&mut reader.framer, D::KIND)?;
        // The header is the first chunk; with anything else, `read` continues from there.
        reader.advance(&mut Vec::new())?;
        Ok(reader)
    }

    /// Sets how much memory may be taken from here on; before, it is [`Memory::default`].
    pub fn limit(&mut self, memory: Memory) {
        self.memory = memory;
    }

    /// The trace's header.
    pub fn header(&self) -> &Header {
        &self.tables.header
    }

    /// Everything but the events. Complete once [`EventReader::read`] returned false.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Everything but the events, when they have been read.
    pub fn into_tables(self) -> Tables {
        self.tables
    }

    /// The next events. False at the end; then the batch is empty.
    ///
    /// # Errors
    /// The source refuses; the live objects take more memory than is allowed ([`EventReader::limit`]). Damage is none:
    /// see [`Tables::warnings`].
    pub fn read(&mut self, batch: &mut EventBatch<D::Event>) -> Result<bool, TraceError> {
        let more = self.next_batch(batch)?;
        let needs_bytes = self.decoder.needs_bytes(self.memory.each_object_bytes);
        if needs_bytes <= self.memory.limit_bytes { Ok(more) } else { Err(self.too_large(batch)) }
    }

    /// The error for a trace that takes too much memory, with what it would take.
    #[cold]
    fn too_large(&mut self, batch: &mut EventBatch<D::Event>) -> TraceError {
        let until = self.decoder.place().decoded.saturating_add(COUNTED);
        let mut more = "more than ";
        while self.decoder.can_count() && self.decoder.place().decoded < until {
            if !matches!(self.next_batch(batch), Ok(true)) {
                more = "";
                break;
            }
        }
        batch.events.clear();
        TraceError::Memory {
            name: self.tables.name().to_string(),
            more,
            objects: self.decoder.most_live(),
            needs_bytes: self.decoder.needs_bytes(self.memory.each_object_bytes),
            limit_bytes: self.memory.limit_bytes,
        }
    }

    fn next_batch(&mut self, batch: &mut EventBatch<D::Event>) -> Result<bool, TraceError> {
        batch.events.clear();
        let after_gap = loop {
            let place = self.decoder.place();
            if place.left > 0 {
                batch.first_event = place.next_event;
                // Malformed data come after the events of this batch: the next one is after that gap.
                let after_gap = std::mem::take(&mut self.gap);
                let result = self.decoder.decode(BATCH, &mut batch.events);
                self.next_event = self.decoder.place().next_event;
                if let Err(malformed) = result {
                    self.malformed(malformed.0, &mut batch.events);
                }
                if !batch.events.is_empty() {
                    break after_gap;
                }
                self.gap |= after_gap;
            } else if self.ended {
                break std::mem::take(&mut self.gap);
            } else if !batch.events.is_empty() {
                // The end of a root point that the gap cut: what comes after it is in the next batch.
                break false;
            } else {
                self.advance(&mut batch.events)?;
            }
        };
        let place = self.decoder.place();
        batch.next_event = self.next_event;
        batch.objects = place.objects;
        batch.after_gap = after_gap;
        batch.after_exit = self.tables.exit.is_some();
        batch.chunk_clock_bytes = place.chunk_clock_bytes;
        batch.time_ns = place.time_ns;
        Ok(!batch.events.is_empty())
    }

    /// Consumes one chunk, or one range of damage.
    fn advance(&mut self, events: &mut Vec<D::Event>) -> Result<(), TraceError> {
        let found =
            self.framer.next().map_err(|source| TraceError::system("read", self.tables.name(), source))?;
        match found {
            StreamItem::Chunk(head) => {
                if !self.tables.follows(&mut self.next_sequence, head.sequence) {
                    return Ok(());
                }
                if head.kind == chunk::EVENTS {
                    self.load(head.sequence, events);
                    return Ok(());
                }
                let gaps = self.tables.gaps.len();
                self.tables.take(&head, self.framer.payload());
                if let Some(gap) = self.tables.gaps.get(gaps).filter(|_| head.kind == chunk::GAP) {
                    self.lost_by_recorder = self.lost_by_recorder.saturating_add(gap.events.unwrap_or(0));
                    // Slots are right even so: the recorder gives them to what it knows.
                    if D::KIND == FileKind::Graph {
                        self.miss(events);
                    }
                }
            }
            StreamItem::Damage { bytes, what } => self.tables.damage(bytes, &what),
            StreamItem::End => {
                self.ended = true;
                self.decoder.miss(events);
                self.end();
            }
        }
        Ok(())
    }

    /// Begins a chunk of events.
    fn load(&mut self, sequence: u64, events: &mut Vec<D::Event>) {
        let numbered = self.decoder.place().numbered;
        let lost_by_recorder = std::mem::take(&mut self.lost_by_recorder);
        if let Err(malformed) = self.decoder.load(self.framer.payload()) {
            self.tables.warn(format!("chunk {sequence} is not valid: {}", malformed.0));
            self.tables.miss(format!("chunk {sequence} cannot be read"), None);
            return self.miss(events);
        }
        let place = self.decoder.place();
        let first = place.first_event;
        if first == self.next_event && place.numbered == numbered {
            return;
        }
        self.miss(events);
        let lost = first.checked_sub(self.next_event).filter(|&lost| lost > 0);
        match lost {
            // The recorder's own gap counts them.
            Some(lost) if lost == lost_by_recorder => return,
            Some(lost) => {
                self.tables.warn(format!("{lost} events are missing before event {first}"));
            }
            None => self.tables.warn(format!("chunk {sequence} does not continue what is before it")),
        }
        self.tables.miss(format!("events are missing before chunk {sequence}"), lost);
    }

    /// Events are missing here.
    fn miss(&mut self, events: &mut Vec<D::Event>) {
        self.gap = true;
        self.decoder.miss(events);
    }

    fn malformed(&mut self, what: &str, events: &mut Vec<D::Event>) {
        let first = self.decoder.place().first_event;
        let which = match D::KIND {
            FileKind::Trace => format!("events {first} to {}", self.next_event),
            FileKind::Graph => format!("events from event {first} on"),
        };
        self.tables.warn(format!("the chunk of {which} is not valid: {what}; its rest is left out"));
        self.tables.miss("an invalid chunk".to_string(), None);
        self.miss(events);
    }

    fn end(&mut self) {
        let expected = self.tables.ending.as_ref().map(|ending| ending.events);
        let decoded = self.decoder.place().decoded;
        if let Some(expected) = expected
            && expected > decoded
        {
            let missing = expected - decoded;
            self.tables.warn(format!("{missing} of {expected} events are missing: the file is damaged"));
        }
        self.decoder.warnings().into_iter().for_each(|warning| self.tables.warn(warning));
        self.tables.close();
    }
}

impl<R, D> std::fmt::Debug for EventReader<R, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("event", &self.next_event).finish_non_exhaustive()
    }
}
