//! The bytes of a trace with pointers that differ from those of a trace: head of events, columns, ops.

use crate::format::{u32_at, u64_at};

/// Bytes before the directory of columns in a chunk of events.
pub(super) const HEAD: usize = 48;

/// Contents of columns.
pub(super) mod column {
    pub(crate) const OPS: usize = 0;
    pub(crate) const OBJECTS: usize = 1;
    pub(crate) const OFFSETS: usize = 2;
    pub(crate) const TARGETS: usize = 3;
    pub(crate) const TARGET_OFFSETS: usize = 4;
    pub(crate) const SIZES: usize = 5;
    pub(crate) const SITES: usize = 6;
    pub(crate) const THREADS: usize = 7;
    pub(crate) const TOUCH_EVENTS: usize = 8;
    pub(crate) const TOUCH_CLOCKS: usize = 9;
    pub(crate) const ALIGNS: usize = 10;
    pub(crate) const TIMES: usize = 11;
    pub(crate) const COUNT: usize = 12;
    /// Largest number of bytes an event may have in it.
    pub(crate) const WIDTH: [usize; COUNT] = [2, 9, 9, 9, 9, 9, 5, 5, 9, 9, 1, 9];
}

/// The low four bits of an op, and the flags above.
pub(super) mod op {
    pub(crate) const ALLOCATE: u8 = 0;
    pub(crate) const FREE: u8 = 1;
    pub(crate) const KEPT: u8 = 2;
    pub(crate) const EDGE: u8 = 3;
    pub(crate) const CLEAR: u8 = 4;
    pub(crate) const TOUCH: u8 = 5;
    pub(crate) const ROOTS_BEGIN: u8 = 6;
    pub(crate) const ROOT: u8 = 7;
    pub(crate) const ROOTS_END: u8 = 8;
    pub(crate) const ACCESS: u8 = 9;
    pub(crate) const REQUEST_BEGIN: u8 = 10;
    pub(crate) const REQUEST_END: u8 = 11;
    pub(crate) const THREAD: u8 = 12;
    /// Bits 4 and 5: kind of allocation, cause of a free, kind of root.
    pub(crate) const KIND_SHIFT: u8 = 4;
    pub(crate) const KIND: u8 = 3;
    /// Free, kept: there is a last touch.
    pub(crate) const TOUCHED: u8 = 1 << 6;
    /// Edge, root: the pointer does not lead to the start of the object.
    pub(crate) const INTERIOR: u8 = 1 << 6;
    /// Access: a store.
    pub(crate) const STORE: u8 = 1 << 4;
    /// Access: bits 5 to 7 are the binary logarithm of the size; 7: the size is in its column.
    pub(crate) const SIZE_SHIFT: u8 = 5;
    pub(crate) const SIZE_OTHER: u8 = 7;
}

/// The head of a chunk of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) events: u32,
    pub(super) columns: u16,
    pub(super) first_event: u64,
    pub(super) first_object: u64,
    pub(super) clock_bytes: u64,
    pub(super) live_bytes: u64,
    pub(super) thread: u32,
}

impl Head {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.events.to_le_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&self.columns.to_le_bytes());
        for word in [self.first_event, self.first_object, self.clock_bytes, self.live_bytes] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&self.thread.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Head> {
        let head: &[u8; HEAD] = bytes.first_chunk()?;
        Some(Head {
            events: u32_at(head, 0),
            columns: u16::from_le_bytes([head[6], head[7]]),
            first_event: u64_at(head, 8),
            first_object: u64_at(head, 16),
            clock_bytes: u64_at(head, 24),
            live_bytes: u64_at(head, 32),
            thread: u32_at(head, 40),
        })
    }
}
