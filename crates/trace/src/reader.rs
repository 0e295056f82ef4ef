//! The reader: events in batches, in bounded memory, from anything that gives bytes.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::TraceError;
use crate::decoder::{Decoder, Seen};
use crate::event::Event;
use crate::format::{CHUNK_MAGIC, FILE_HEAD, FILE_MAGIC, VERSION, chunk, u32_at};
use crate::frame::{Found, Framer};
use crate::header::{Ending, Gap, Header, Sample, Sites};
use crate::memory::Memory;
use crate::tables::Tables;

/// Events of a batch, about: they fit into a second-level cache.
const BATCH: u32 = 4096;
/// Events that are counted of a trace that takes too much memory, to say what it takes: a second's work or so.
const COUNTED: u64 = 1 << 28;
/// How far into a file without its first bytes a chunk is looked for.
const LOOK: usize = 64 << 10;

/// Events in order. Kept by the caller and filled again and again.
#[derive(Debug, Default)]
pub struct Batch {
    /// The events. Always a legal sequence: slots are allocated when free, and resized and freed when live.
    pub events: Vec<Event>,
    /// Number of the first event, as the recorder counted.
    pub first_event: u64,
    /// Every slot up to the end of this batch is below it: how large a table by slot must be.
    pub slots: u32,
    /// Before this batch, events are missing (damage, or a gap that the recorder left).
    pub after_gap: bool,
    /// Bytes allocated before the first event of the chunk that this batch is of, by the recorder's clock: how much a
    /// gap has swallowed.
    pub chunk_clock_bytes: u64,
}

/// Reads one trace.
pub struct Reader<R> {
    framer: Framer<R>,
    tables: Tables,
    decoder: Decoder,
    seen: Seen,
    memory: Memory,
    /// What the next chunk must be.
    next_sequence: Option<u64>,
    next_event: u64,
    /// The next batch is the first behind a gap.
    gap: bool,
    /// Events that gaps of the recorder told of since the last chunk of events.
    told: u64,
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
            seen: Seen::default(),
            memory: Memory::default(),
            next_sequence: None,
            next_event: 0,
            gap: false,
            told: 0,
            ended: false,
        };
        begin(&mut reader.framer, &mut reader.tables)?;
        // The header is the first chunk; with anything else, `read` goes on from there.
        reader.advance()?;
        Ok(reader)
    }

    /// Sets what may be taken in memory from here on; before, it is [`Memory::default`].
    pub fn limit(&mut self, memory: Memory) {
        self.memory = memory;
    }

    /// Of what the trace is.
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
        let live = &self.seen.live;
        if self.memory.allows(live.slots(), live.renamed()) { Ok(more) } else { Err(self.too_large(batch)) }
    }

    /// The error for a trace that takes too much, with what it would take.
    #[cold]
    fn too_large(&mut self, batch: &mut Batch) -> TraceError {
        let until = self.seen.events.saturating_add(COUNTED);
        let mut whole = false;
        while self.seen.events < until && self.seen.live.renamed() < COUNTED as usize >> 6 {
            match self.next_batch(batch) {
                Ok(true) => {}
                Ok(false) | Err(_) => {
                    whole = true;
                    break;
                }
            }
        }
        batch.events.clear();
        let live = &self.seen.live;
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
                // What is malformed is behind the events of this batch: the next one is after that gap.
                let after_gap = std::mem::take(&mut self.gap);
                let result = self.decoder.decode(BATCH, &mut self.seen, &mut batch.events);
                self.next_event = self.decoder.head().first_event + u64::from(self.decoder.head().events)
                    - u64::from(self.decoder.left());
                if let Err(malformed) = result {
                    self.malformed(malformed.0);
                }
                if !batch.events.is_empty() {
                    batch.slots = self.seen.live.slots();
                    batch.after_gap = after_gap;
                    return Ok(true);
                }
                self.gap |= after_gap;
            }
            if self.ended {
                batch.slots = self.seen.live.slots();
                batch.after_gap = std::mem::take(&mut self.gap);
                return Ok(false);
            }
            self.advance()?;
        }
    }

    /// What is not as it should be, in words. Complete once [`Reader::read`] gave false.
    pub fn warnings(&self) -> &[String] {
        &self.tables.warnings
    }

    /// How the recording ended; none when it was cut off. Complete once [`Reader::read`] gave false.
    pub fn ending(&self) -> Option<&Ending> {
        self.tables.ending.as_ref()
    }

    /// Call stacks. Complete once [`Reader::read`] gave false.
    pub fn sites(&self) -> Option<&Sites> {
        self.tables.sites.as_ref()
    }

    /// The process seen from outside. Complete once [`Reader::read`] gave false.
    pub fn samples(&self) -> &[Sample] {
        &self.tables.samples
    }

    /// Holes. Complete once [`Reader::read`] gave false.
    pub fn gaps(&self) -> &[Gap] {
        &self.tables.gaps
    }

    /// A table that somebody put into the trace under this name. Complete once [`Reader::read`] gave false.
    pub fn extra<T: DeserializeOwned>(&self, name: &str) -> Option<Result<T, TraceError>> {
        self.tables.extra(name)
    }

    /// Everything but the events. Complete once [`Reader::read`] gave false.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Everything but the events, when they have been read.
    pub fn into_tables(self) -> Tables {
        self.tables
    }

    /// Takes one chunk, or one stretch of damage.
    fn advance(&mut self) -> Result<(), TraceError> {
        let found =
            self.framer.next().map_err(|source| TraceError::system("read", self.tables.name(), source))?;
        match found {
            Found::Chunk(head) => {
                let expected = self.next_sequence;
                if expected.is_some_and(|expected| head.sequence < expected) {
                    self.tables
                        .warn(format!("chunk {} is there twice or out of order: left out", head.sequence));
                    return Ok(());
                }
                if head.sequence > expected.unwrap_or(0) {
                    let first = expected.unwrap_or(0);
                    self.tables.warn(format!("chunks {first} to {} are missing", head.sequence - 1));
                }
                self.next_sequence = Some(head.sequence.saturating_add(1));
                if head.kind == chunk::EVENTS {
                    self.events(head.sequence);
                } else {
                    let gaps = self.tables.gaps.len();
                    self.tables.take(&head, self.framer.payload());
                    let new = self.tables.gaps.get(gaps).filter(|_| head.kind == chunk::GAP);
                    self.told = self.told.saturating_add(new.and_then(|gap| gap.events).unwrap_or(0));
                }
            }
            Found::Damage { bytes, what } => damage(&mut self.tables, bytes, &what),
            Found::End => {
                self.ended = true;
                self.end();
            }
        }
        Ok(())
    }

    fn events(&mut self, sequence: u64) {
        let (slots, _) = self.decoder.place();
        let told = std::mem::take(&mut self.told);
        if let Err(malformed) = self.decoder.load(self.framer.payload(), self.seen.events) {
            self.tables.warn(format!("chunk {sequence} is not as it should be: {}", malformed.0));
            self.tables.miss(format!("chunk {sequence} cannot be read"), None);
            self.seen.live.miss();
            self.gap = true;
            return;
        }
        let head = self.decoder.head();
        if head.first_event != self.next_event || head.slots != slots {
            let lost = head.first_event.checked_sub(self.next_event).filter(|&lost| lost > 0);
            self.seen.live.miss();
            self.gap = true;
            if lost == Some(told) {
                // The recorder said so itself: they are in its gap.
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
            "the chunk of events {} to {} is not as it should be: {what}; the rest of it is left out",
            head.first_event,
            head.first_event + u64::from(head.events)
        ));
        self.tables.miss("a chunk that is not as it should be".to_string(), None);
        self.decoder.drop_rest();
        self.seen.live.miss();
        self.gap = true;
    }

    fn end(&mut self) {
        let told = self.tables.ending.as_ref().map(|ending| ending.events);
        if let Some(told) = told
            && told > self.seen.events
        {
            let missing = told - self.seen.events;
            self.tables.warn(format!("{missing} of {told} events are missing: the file is damaged"));
        }
        self.tables.close();
    }
}

impl<R> std::fmt::Debug for Reader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("event", &self.next_event).finish_non_exhaustive()
    }
}

/// Says what is in the way.
pub(crate) fn damage(tables: &mut Tables, bytes: u64, what: &str) {
    tables.warn(format!("{what}: {bytes} bytes are left out"));
}

/// Reads what a file begins with.
pub(crate) fn begin<R: Read>(framer: &mut Framer<R>, tables: &mut Tables) -> Result<(), TraceError> {
    let name = tables.name().to_string();
    let error = |source: io::Error| match source.kind() {
        io::ErrorKind::IsADirectory => TraceError::NotATrace { name: name.clone(), looks: "a folder".into() },
        _ => TraceError::system("read", &name, source),
    };
    let seen = framer.peek(FILE_HEAD).map_err(error)?;
    if seen.len() >= FILE_HEAD && seen[..8] == FILE_MAGIC {
        let version = u32_at(seen, 8);
        let whole = crc32fast::hash(&seen[..12]) == u32_at(seen, 12);
        if whole && version > VERSION {
            return Err(TraceError::Newer { name, version, known: VERSION });
        }
        framer.consume(FILE_HEAD);
        if !whole {
            tables.warn("the first bytes of the file are damaged".to_string());
        }
        return Ok(());
    }
    // A trace that lost its first bytes still has chunks.
    let seen = framer.peek(LOOK).map_err(error)?;
    let mut places = seen.windows(CHUNK_MAGIC.len()).enumerate();
    let chunk = places
        .any(|(at, window)| window == CHUNK_MAGIC && crate::format::ChunkHead::parse(&seen[at..]).is_some());
    if chunk {
        tables.warn("the first bytes of the file are damaged".to_string());
        return Ok(());
    }
    let looks = crate::looks::like(seen);
    Err(TraceError::NotATrace { name, looks })
}
