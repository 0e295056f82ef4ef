//! An event as decoded from a ring, and what consumes it.

use crate::word::{KIND_EXIT, note};

/// An event as decoded from a ring. Addresses and sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingEvent<'a> {
    /// A call for a new block returned one. The layer defines `kind`.
    Alloc { address: u64, size: u64, usable: u64, kind: u8, align_log2: u8, site: u32, latency_ns: u32 },
    /// A block is about to be freed.
    Free { address: u64, delete: bool, latency_ns: u32 },
    /// A block is about to be resized.
    ResizeBegin { address: u64 },
    /// The block of this thread's last `ResizeBegin` is now here; 0: the manager returned null.
    ResizeEnd { address: u64, size: u64, usable: u64, site: u32, latency_ns: u32 },
    /// A call for a new block returned null.
    Failed { kind: u8, size: u64, site: u32, latency_ns: u32 },
    /// `exit` begins: what follows are handlers and destructors.
    ExitBegins,
    /// When the following event was recorded, ns since the file was made. Times of different threads may decrease a
    /// little from one event to the next.
    Time { ns: u64 },
    /// The call stack of a site: return addresses, innermost first.
    SiteDefinition { site: u32, frames: &'a [u64] },
    /// The program has mapped memory of its own.
    Mapped { site: u32, address: u64, bytes: u64 },
    /// The program has moved, enlarged or shrunk a mapping of its own. `from_bytes` is 0 where shared memory was mapped a
    /// second time.
    Remapped { site: u32, from: u64, from_bytes: u64, address: u64, bytes: u64 },
}

impl<'a> RingEvent<'a> {
    /// The event of a note of a call stack's number and words that follow it.
    pub(crate) fn of_words(which: u64, site: u32, words: &'a [u64]) -> RingEvent<'a> {
        match *words {
            [address, bytes] if which == note::MAPPED => RingEvent::Mapped { site, address, bytes },
            [from, from_bytes, address, bytes] if which == note::MAPPED => {
                RingEvent::Remapped { site, from, from_bytes, address, bytes }
            }
            _ => RingEvent::SiteDefinition { site, frames: words },
        }
    }

    /// Whether it has a number where events have numbers: a call of the program, or half of a resize.
    #[inline(always)]
    pub fn is_numbered(&self) -> bool {
        use RingEvent::{Mapped, Remapped, SiteDefinition, Time};
        !matches!(self, Time { .. } | SiteDefinition { .. } | Mapped { .. } | Remapped { .. })
    }
}

impl RingEvent<'static> {
    /// What an `ALLOC_LONG` without an address stands for.
    pub(crate) fn without_block(kind: u8, size: u64, site: u32, latency_ns: u32) -> RingEvent<'static> {
        match kind {
            KIND_EXIT => RingEvent::ExitBegins,
            kind => RingEvent::Failed { kind, size, site, latency_ns },
        }
    }
}

/// Consumes decoded events.
pub trait Sink {
    /// Consumes an event of a thread. `thread` counts the process's threads by arrival.
    fn event(&mut self, thread: u32, event: RingEvent<'_>);
    /// Reports a new thread; `tid` is the kernel's number as the thread sees it, 0 when not known. Called before any
    /// event of this thread; perhaps twice for one that shares a ring. Numbers of threads that could not be recorded
    /// are skipped.
    fn thread(&mut self, thread: u32, tid: i32);
}
