//! The reader: events in batches, in bounded memory, from any source of bytes.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::decoder::Decoder;
use super::event::Event;
use crate::file_kind::FileKind;
use crate::format::chunk;
use crate::frame::{Framer, StreamItem};
use crate::header::Header;
use crate::tables::Tables;
use crate::{Memory, TraceError};

/// Events of a batch, about: they fit into a second-level cache.
const BATCH: u32 = 4096;

/// Events in order. Kept by the caller and filled again and again.
#[derive(Debug, Default)]
pub struct Batch {
    /// The events. Always a legal sequence: objects are allocated once, and named while live, by bytes that they have;
    /// roots lie between the begin and the end of their point.
    pub events: Vec<Event>,
    /// Number of the event after the last of this batch, as counted by the recorder: last touches refer to it. Where
    /// events were left out, those of the batch have numbers that only this bounds.
    pub next_event: u64,
    /// Every object named so far has a number below it.
    pub objects: u64,
    /// Before this batch, events are missing (damage, or a gap that the recorder left): edges may have ended, and
    /// objects, without an event.
    pub after_gap: bool,
    /// ns from the beginning, by the tracer's clock, at which these events happened, to a ms; 0 where the trace has no
    /// times.
    pub time_ns: u64,
    /// `exit` had begun before this batch.
    pub after_exit: bool,
}

/// Reads one trace with pointers.
pub struct Reader<R> {
    framer: Framer<R>,
    tables: Tables,
    decoder: Decoder,
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
    /// The system refuses; it is no trace with pointers, or a newer one.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| TraceError::system("open", &name, source))?;
        Reader::with_name(file, &name)
    }
}

impl<R: Read> Reader<R> {
    /// Begins to read; errors call the source `name`.
    ///
    /// # Errors
    /// The source refuses; it is no trace with pointers, or a newer one.
    pub fn with_name(read: R, name: &str) -> Result<Self, TraceError> {
        let mut reader = Reader {
            framer: Framer::new(read, 0),
            tables: Tables::new(name),
            decoder: Decoder::new(),
            memory: Memory::default(),
            next_sequence: None,
            next_event: 0,
            gap: false,
            lost_by_recorder: 0,
            ended: false,
        };
        reader.tables.begin(&mut reader.framer, FileKind::Graph)?;
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

    /// The next events. False at the end; then the batch is empty.
    ///
    /// # Errors
    /// The source refuses; the live objects take more memory than is allowed ([`Reader::limit`]). Damage is none: see
    /// [`Tables::warnings`].
    pub fn read(&mut self, batch: &mut Batch) -> Result<bool, TraceError> {
        batch.events.clear();
        let after_gap = loop {
            if self.decoder.left() > 0 {
                // Malformed data come after the events of this batch: the next one is after that gap.
                let after_gap = std::mem::take(&mut self.gap);
                if let Err(malformed) = self.decoder.decode(BATCH, &mut batch.events) {
                    self.malformed(malformed.0, &mut batch.events);
                }
                self.next_event = self.decoder.position();
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
        batch.next_event = self.next_event;
        batch.objects = self.decoder.objects();
        batch.after_gap = after_gap;
        batch.time_ns = self.decoder.batch_us() * 1000;
        batch.after_exit = self.tables.exit.is_some();
        self.check_memory()?;
        Ok(!batch.events.is_empty())
    }

    fn check_memory(&self) -> Result<(), TraceError> {
        let live = &self.decoder.live;
        let needs_bytes = live.bytes() + live.most().saturating_mul(self.memory.each_object_bytes);
        if needs_bytes <= self.memory.limit_bytes {
            return Ok(());
        }
        Err(TraceError::Memory {
            name: self.tables.name().to_string(),
            more: "more than ",
            objects: u32::try_from(live.most()).unwrap_or(u32::MAX),
            needs_bytes,
            limit_bytes: self.memory.limit_bytes,
        })
    }

    /// Everything but the events. Complete once [`Reader::read`] returned false.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Everything but the events, when they have been read.
    pub fn into_tables(self) -> Tables {
        self.tables
    }

    /// Bytes of the events before compression, so far.
    pub fn plain_bytes(&self) -> u64 {
        self.decoder.plain_bytes()
    }

    /// Consumes one chunk, or one range of damage.
    fn advance(&mut self, events: &mut Vec<Event>) -> Result<(), TraceError> {
        let found =
            self.framer.next().map_err(|source| TraceError::system("read", self.tables.name(), source))?;
        match found {
            StreamItem::Chunk(head) => {
                if !self.tables.follows(&mut self.next_sequence, head.sequence) {
                    return Ok(());
                }
                if head.kind == chunk::EVENTS {
                    self.events(head.sequence, events);
                } else {
                    let gaps = self.tables.gaps.len();
                    self.tables.take(&head, self.framer.payload());
                    if let Some(gap) = self.tables.gaps.get(gaps).filter(|_| head.kind == chunk::GAP) {
                        self.lost_by_recorder = self.lost_by_recorder.saturating_add(gap.events.unwrap_or(0));
                        self.gap = true;
                        self.decoder.miss(events);
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

    fn events(&mut self, sequence: u64, events: &mut Vec<Event>) {
        let objects = self.decoder.objects();
        let lost_by_recorder = std::mem::take(&mut self.lost_by_recorder);
        if let Err(malformed) = self.decoder.load(self.framer.payload()) {
            self.tables.warn(format!("chunk {sequence} is not valid: {}", malformed.0));
            self.tables.miss(format!("chunk {sequence} cannot be read"), None);
            self.gap = true;
            self.decoder.miss(events);
            return;
        }
        let first = self.decoder.first_event();
        if first == self.next_event && self.decoder.objects() == objects {
            return;
        }
        self.gap = true;
        self.decoder.miss(events);
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

    fn malformed(&mut self, what: &str, events: &mut Vec<Event>) {
        let first = self.decoder.first_event();
        self.tables.warn(format!(
            "the chunk of events from event {first} on is not valid: {what}; its rest is left out"
        ));
        self.tables.miss("an invalid chunk".to_string(), None);
        self.decoder.drop_rest();
        self.decoder.miss(events);
        self.gap = true;
    }

    fn end(&mut self) {
        let expected = self.tables.ending.as_ref().map(|ending| ending.events);
        let decoded = self.decoder.decoded();
        if let Some(expected) = expected
            && expected > decoded
        {
            let missing = expected - decoded;
            self.tables.warn(format!("{missing} of {expected} events are missing: the file is damaged"));
        }
        let (unknown, open) = (self.decoder.unknown(), self.decoder.live.len());
        if unknown > 0 {
            self.tables.warn(format!("{unknown} events name objects that are not live: left out"));
        }
        if open > 0 {
            self.tables.warn(format!("the end of {open} objects is missing, and their last touch with it"));
        }
        self.tables.close();
    }
}

impl<R> std::fmt::Debug for Reader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("event", &self.next_event).finish_non_exhaustive()
    }
}
