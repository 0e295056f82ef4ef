//! The bytes of the file around the columns: the heads of file and chunk. docs/reference/trace-format.md is the
//! specification.

/// The first bytes of the file. Not text, so that a conversion of line ends is noticed.
pub(crate) const FILE_MAGIC: [u8; 8] = *b"\x89HTRACE\n";
/// The first bytes of a trace with pointers.
pub(crate) const GRAPH_MAGIC: [u8; 8] = *b"\x89HGRAPH\n";
/// Version of the format that is written, and the newest that is read.
pub const VERSION: u32 = 1;
/// Bytes before the first chunk: magic, version, checksum of both.
pub(crate) const FILE_HEAD: usize = 16;

/// The first bytes of every chunk: what a reader searches for after damage.
pub(crate) const CHUNK_MAGIC: [u8; 8] = *b"\xF5hChunk\xA7";
/// Bytes before a chunk's payload.
pub(crate) const CHUNK_HEAD: usize = 32;
/// Largest payload, bytes: what a reader may have to keep.
pub(crate) const PAYLOAD_MAX: usize = 16 << 20;
/// Largest number of events of a chunk.
pub(crate) const EVENTS_MAX: u32 = 1 << 18;
/// Largest JSON text of one chunk, bytes; larger ones are continued in the next.
pub(crate) const TEXT_MAX: usize = 1 << 20;
/// Bytes before the directory of columns in a chunk of events.
pub(crate) const EVENTS_HEAD: usize = 48;
/// Bytes of an entry of the directory of columns.
pub(crate) const COLUMN_HEAD: usize = 12;
/// Bytes before name and text in a chunk of JSON.
pub(crate) const TEXT_HEAD: usize = 8;
/// In the head of events: each event has a time of its own.
pub(crate) const EVENT_TIMES: u16 = 1;
/// Entries of the table that predicts usable sizes.
pub(crate) const PREDICTED: usize = 2048;
/// Sizes of objects are below this: no address space holds more (57 bits).
pub(crate) const SIZE_MAX: u64 = (1 << 57) - 1;
/// Clocks and times are below this, so that sums of them do not overflow.
pub(crate) const CLOCK_MAX: u64 = 1 << 62;
/// Thread numbers are below the events so far plus this.
pub(crate) const THREAD_SLACK: u64 = 1 << 16;
/// Site numbers are below the events so far plus this: a child of fork continues its parent's.
pub(crate) const SITE_SLACK: u64 = 1 << 22;

/// Kinds of chunks.
pub(crate) mod chunk {
    pub(crate) const HEADER: u8 = 1;
    pub(crate) const EVENTS: u8 = 2;
    pub(crate) const SAMPLES: u8 = 3;
    pub(crate) const GAP: u8 = 4;
    pub(crate) const SITES: u8 = 5;
    pub(crate) const EXTRA: u8 = 6;
    pub(crate) const ENDING: u8 = 7;
    pub(crate) const EXIT: u8 = 8;
}

/// Contents of columns.
pub(crate) mod column {
    pub(crate) const OPS: usize = 0;
    pub(crate) const SIZES: usize = 1;
    pub(crate) const SLOTS: usize = 2;
    pub(crate) const USABLES: usize = 3;
    pub(crate) const SITES: usize = 4;
    pub(crate) const THREADS: usize = 5;
    pub(crate) const TIMES: usize = 6;
    pub(crate) const LATENCIES: usize = 7;
    pub(crate) const ALIGNS: usize = 8;
    pub(crate) const COUNT: usize = 9;
    /// Largest number of bytes an event may have in it.
    pub(crate) const WIDTH: [usize; COUNT] = [3, 9, 5, 9, 5, 5, 9, 5, 1];
}

/// The low four bits of an op.
pub(crate) mod op {
    pub(crate) const MALLOC: u8 = 0;
    pub(crate) const FREE: u8 = 1;
    pub(crate) const CALLOC: u8 = 2;
    pub(crate) const ALIGNED: u8 = 3;
    pub(crate) const NEW: u8 = 4;
    pub(crate) const REALLOC: u8 = 5;
    pub(crate) const REALLOC_MOVED: u8 = 6;
    pub(crate) const DELETE: u8 = 7;
    pub(crate) const REALLOC_FREE: u8 = 8;
    pub(crate) const FAILED: u8 = 9;
    pub(crate) const FOREIGN: u8 = 10;
    pub(crate) const LOST: u8 = 11;
    pub(crate) const STAMP: u8 = 12;
    pub(crate) const THREAD: u8 = 13;
    /// The slot of an allocation is not the predicted one.
    pub(crate) const SLOT: u8 = 1 << 4;
    /// The usable size is not the predicted one.
    pub(crate) const USABLE: u8 = 1 << 5;
    /// An alignment was requested.
    pub(crate) const ALIGN: u8 = 1 << 6;
}

/// How the bytes of a column or text are stored.
pub(crate) const PLAIN: u8 = 0;
/// See [`PLAIN`].
pub(crate) const ZSTD: u8 = 1;

/// The head of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkHead {
    pub(crate) kind: u8,
    pub(crate) length: u32,
    pub(crate) sequence: u64,
    pub(crate) payload_sum: u32,
}

impl ChunkHead {
    pub(crate) fn of(kind: u8, sequence: u64, payload: &[u8]) -> ChunkHead {
        let payload_sum = crc32fast::hash(payload);
        ChunkHead { kind, length: payload.len() as u32, sequence, payload_sum }
    }

    pub(crate) fn bytes(&self) -> [u8; CHUNK_HEAD] {
        let mut head = [0; CHUNK_HEAD];
        head[..8].copy_from_slice(&CHUNK_MAGIC);
        head[8] = self.kind;
        head[12..16].copy_from_slice(&self.length.to_le_bytes());
        head[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        head[24..28].copy_from_slice(&self.payload_sum.to_le_bytes());
        let sum = crc32fast::hash(&head[..28]);
        head[28..].copy_from_slice(&sum.to_le_bytes());
        head
    }

    /// `None` when these bytes are no head, or a damaged one.
    pub(crate) fn parse(bytes: &[u8]) -> Option<ChunkHead> {
        let head: &[u8; CHUNK_HEAD] = bytes.first_chunk()?;
        let length = u32_at(head, 12);
        let whole = head[..8] == CHUNK_MAGIC
            && crc32fast::hash(&head[..28]) == u32_at(head, 28)
            && length as usize <= PAYLOAD_MAX;
        whole.then(|| ChunkHead {
            kind: head[8],
            length,
            sequence: u64_at(head, 16),
            payload_sum: u32_at(head, 24),
        })
    }
}

/// The head of a chunk of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EventsHead {
    pub(crate) events: u32,
    pub(crate) flags: u16,
    pub(crate) columns: u16,
    pub(crate) first_event: u64,
    pub(crate) clock_bytes: u64,
    pub(crate) live_bytes: u64,
    pub(crate) time_ns: u64,
    pub(crate) thread: u32,
    pub(crate) slots: u32,
}

impl EventsHead {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.events.to_le_bytes());
        out.extend_from_slice(&self.flags.to_le_bytes());
        out.extend_from_slice(&self.columns.to_le_bytes());
        for word in [self.first_event, self.clock_bytes, self.live_bytes, self.time_ns] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&self.thread.to_le_bytes());
        out.extend_from_slice(&self.slots.to_le_bytes());
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<EventsHead> {
        let head: &[u8; EVENTS_HEAD] = bytes.first_chunk()?;
        Some(EventsHead {
            events: u32_at(head, 0),
            flags: u16::from_le_bytes([head[4], head[5]]),
            columns: u16::from_le_bytes([head[6], head[7]]),
            first_event: u64_at(head, 8),
            clock_bytes: u64_at(head, 16),
            live_bytes: u64_at(head, 24),
            time_ns: u64_at(head, 32),
            thread: u32_at(head, 40),
            slots: u32_at(head, 44),
        })
    }
}

/// A little-endian number; the caller has checked the bounds.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// See [`u32_at`].
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
