//! The reader: events in batches, in bounded memory, from any source of bytes.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::TraceError;
use crate::decoder::{Decoder, TraceState};
use crate::event::Event;
use crate::file_kind::FileKind;
use crate::format::chunk;
use crate::frame::{Framer, StreamItem};
use crate::header::{Ending, Exit, Gap, Header, Sample, Sites};
use crate::memory::Memory;
use crate::tables::Tables;

/// Events of a batch, about: they fit into a second-level cache.
const BATCH: u32 = 4096;
/// Events that are counted of a trace that takes too much memory, to state what it takes: about a second's work.
const COUNTED: u64 = 1 << 28;

/// Events in order. Kept by the caller and filled again and again.
#[derive(Debug, Default)]
pub struct Batch {
    /// The events. Always a legal sequence: slots are allocated when free, and resized and freed when live.
    pub events: Vec<Event>,
    /// Number of the first event, as counted by the recorder.
    pub first_event: u64,
    /// Every slot up to the end of this batch is below it: how large a table by slot must be.
    pub slots: u32,
    /// Before this batch, events are missing (damage, or a gap that the recorder left).
    pub after_gap: bool,
    /// `exit` had begun before this batch.
    pub after_exit: bool,
    /// Bytes allocated before the first event of this batch's chunk, by the recorder's clock: it shows how much was
    /// allocated within a gap.
    pub chunk_clock_bytes: u64,
}

/// Reads one trace.
pub struct Reader<R> {
    framer: Framer<R>,
    tables: Tables,
    decoder: Decoder,
    state: TraceState,
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

impl Reader<File> {
    /// Opens a file.
    ///
    /// # Errors
    /// The system refuses; it is no trace, or a newer one.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| TraceError::system("open", &name, source))?;
        Reader::with_name(file, &name)
    }
}

impl<R: Read> Reader<R> {
    /// Begins to read.
    ///
    /// # Errors
    /// The source refuses; it is no trace, or a newer one.
    pub fn new(read: R) -> Result<Self, TraceError> {
        Reader::with_name(read, "the input")
    }

    /// As [`Reader::new`]; errors call the source `name`.
    ///
    /// # Errors
    /// See [`Reader::new`].
    pub fn with_name(read: R, name: &str) -> Result<Self, TraceError> {
        let mut reader = Reader {
            framer: Framer::new(read, 0),
            tables: Tables::new(name),
            decoder: Decoder::new(),
            state: TraceState::default(),
            memory: Memory::default(),
            next_sequence: None,
            next_event: 0,
            gap: false,
            lost_by_recorder: 0,
            ended: false,
        };
        reader.tables.begin(&mut reader.framer, FileKind::Trace)?;
        // The header is the first chunk; with anything else, `read` continues from there.
        reader.advance()?;
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

    /// The next events. False at the end; then the batch is empty.
    ///
    /// # Errors
    /// The source refuses; the trace takes more memory than is allowed ([`Reader::limit`]). Damage is none: see
    /// [`Reader::warnings`].
    pub fn read(&mut self, batch: &mut Batch) -> Result<bool, TraceError> {
        let more = self.next_batch(batch)?;
        let live = &self.state.live;
        if self.memory.allows(live.slots(), live.renamed()) { Ok(more) } else { Err(self.too_large(batch)) }
    }

    /// The error for a trace that takes too much memory, with what it would take.
    #[cold]
    fn too_large(&mut self, batch: &mut Batch) -> TraceError {
        let until = self.state.events.saturating_add(COUNTED);
        let mut whole = false;
        while self.state.events < until && self.state.live.renamed() < COUNTED as usize >> 6 {
            match self.next_batch(batch) {
                Ok(true) => {}
                Ok(false) | Err(_) => {
                    whole = true;
                    break;
                }
            }
        }
        batch.events.clear();
        let live = &self.state.live;
        TraceError::Memory {
            name: self.tables.name().to_string(),
            more: if whole { "" } else { "more than " },
            objects: live.slots(),
            needs_bytes: self.memory.needs_bytes(live.slots(), live.renamed()),
            limit_bytes: self.memory.limit_bytes,
        }
    }

    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, TraceError> {
        batch.events.clear();
        loop {
            while self.decoder.left() > 0 {
                let head = self.decoder.head();
                batch.first_event = head.first_event + u64::from(head.events - self.decoder.left());
                batch.chunk_clock_bytes = head.clock_bytes;
                // Malformed data come after the events of this batch: the next one is after that gap.
                let after_gap = std::mem::take(&mut self.gap);
                let result = self.decoder.decode(BATCH, &mut self.state, &mut batch.events);
                self.next_event = self.decoder.head().first_event + u64::from(self.decoder.head().events)
                    - u64::from(self.decoder.left());
                if let Err(malformed) = result {
                    self.malformed(malformed.0);
                }
                if !batch.events.is_empty() {
                    batch.slots = self.state.live.slots();
                    batch.after_gap = after_gap;
                    batch.after_exit = self.tables.exit.is_some();
                    return Ok(true);
                }
                self.gap |= after_gap;
            }
            if self.ended {
                batch.slots = self.state.live.slots();
                batch.after_gap = std::mem::take(&mut self.gap);
                return Ok(false);
            }
            self.advance()?;
        }
    }

    /// Damage and omissions, as messages. Complete once [`Reader::read`] returned false.
    pub fn warnings(&self) -> &[String] {
        &self.tables.warnings
    }

    /// How the recording ended; none when it was cut off. Complete once [`Reader::read`] returned false.
    pub fn ending(&self) -> Option<&Ending> {
        self.tables.ending.as_ref()
    }

    /// When `exit` began. Known once [`Reader::read`] returned false.
    pub fn exit(&self) -> Option<Exit> {
        self.tables.exit
    }

    /// Call stacks. Complete once [`Reader::read`] returned false.
    pub fn sites(&self) -> Option<&Sites> {
        self.tables.sites.as_ref()
    }

    /// Samples of the process. Complete once [`Reader::read`] returned false.
    pub fn samples(&self) -> &[Sample] {
        &self.tables.samples
    }

    /// Holes. Complete once [`Reader::read`] returned false.
    pub fn gaps(&self) -> &[Gap] {
        &self.tables.gaps
    }

    /// A table that was put into the trace under this name. Complete once [`Reader::read`] returned false.
    pub fn extra<T: DeserializeOwned>(&self, name: &str) -> Option<Result<T, TraceError>> {
        self.tables.extra(name)
    }

    /// Everything but the events. Complete once [`Reader::read`] returned false.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Everything but the events, when they have been read.
    pub fn into_tables(self) -> Tables {
        self.tables
    }

    /// Consumes one chunk, or one range of damage.
    fn advance(&mut self) -> Result<(), TraceError> {
        let found =
            self.framer.next().map_err(|source| TraceError::system("read", self.tables.name(), source))?;
        match found {
            StreamItem::Chunk(head) => {
                if !self.tables.follows(&mut self.next_sequence, head.sequence) {
                    return Ok(());
                }
                if head.kind == chunk::EVENTS {
                    self.events(head.sequence);
                } else {
                    let gaps = self.tables.gaps.len();
                    self.tables.take(&head, self.framer.payload());
                    let new = self.tables.gaps.get(gaps).filter(|_| head.kind == chunk::GAP);
                    self.lost_by_recorder =
                        self.lost_by_recorder.saturating_add(new.and_then(|gap| gap.events).unwrap_or(0));
                }
            }
            StreamItem::Damage { bytes, what } => self.tables.damage(bytes, &what),
            StreamItem::End => {
                self.ended = true;
                self.end();
            }
        }
        Ok(())
    }

    fn events(&mut self, sequence: u64) {
        let (slots, _) = self.decoder.position();
        let lost_by_recorder = std::mem::take(&mut self.lost_by_recorder);
        if let Err(malformed) = self.decoder.load(self.framer.payload(), self.state.events) {
            self.tables.warn(format!("chunk {sequence} is not valid: {}", malformed.0));
            self.tables.miss(format!("chunk {sequence} cannot be read"), None);
            self.state.live.miss();
            self.gap = true;
            return;
        }
        let head = self.decoder.head();
        if head.first_event != self.next_event || head.slots != slots {
            let lost = head.first_event.checked_sub(self.next_event).filter(|&lost| lost > 0);
            self.state.live.miss();
            self.gap = true;
            if lost == Some(lost_by_recorder) {
                // The recorder's own gap counts them.
                return;
            }
            if let Some(lost) = lost {
                self.tables.warn(format!("{lost} events are missing before event {}", head.first_event));
            } else {
                self.tables.warn(format!("chunk {sequence} does not continue what is before it"));
            }
            self.tables.miss(format!("events are missing before chunk {sequence}"), lost);
        }
    }

    fn malformed(&mut self, what: &str) {
        let head = self.decoder.head();
        self.tables.warn(format!(
            "the chunk of events {} to {} is not valid: {what}; its rest is left out",
            head.first_event,
            head.first_event + u64::from(head.events)
        ));
        self.tables.miss("an invalid chunk".to_string(), None);
        self.decoder.drop_rest();
        self.state.live.miss();
        self.gap = true;
    }

    fn end(&mut self) {
        let expected = self.tables.ending.as_ref().map(|ending| ending.events);
        if let Some(expected) = expected
            && expected > self.state.events
        {
            let missing = expected - self.state.events;
            self.tables.warn(format!("{missing} of {expected} events are missing: the file is damaged"));
        }
        self.tables.close();
    }
}

impl<R> std::fmt::Debug for Reader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("event", &self.next_event).finish_non_exhaustive()
    }
}
