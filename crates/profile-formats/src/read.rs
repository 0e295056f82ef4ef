//! Heap profiles that other programs wrote: sums by call stack, as a profile. They have no events, so they are no
//! traces: nothing can be replayed, and there are no single lifetimes.
//!
//! A file may be damaged or made to harm: what is read is bounded by the limit of memory, not by what a length promises.

use crate::bounded::{ReadError, ReadProfile};
use crate::heap_text::Names;
use crate::{dhat, heap_text, pprof, pprof_fields};

/// A format that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Protocol buffers, without gzip.
    Pprof,
    /// JSON of Valgrind's DHAT, and of the Rust crate of that name.
    Dhat,
    /// Text that jemalloc, gperftools and Go write.
    HeapText,
}

impl Kind {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Pprof => "pprof",
            Kind::Dhat => "DHAT",
            Kind::HeapText => "jemalloc, gperftools or Go",
        }
    }
}

/// The format of a file that is not compressed, or not any more, by its first bytes: some kilobytes are enough.
pub fn kind(first: &[u8]) -> Option<Kind> {
    if heap_text::is_heap_text(first) {
        return Some(Kind::HeapText);
    }
    if dhat::is_dhat(first) { Some(Kind::Dhat) } else { pprof_fields::is_pprof(first).then_some(Kind::Pprof) }
}

/// Reads a heap profile, whose bytes are plain, into so much memory. `names` looks up addresses of one that has no names.
///
/// # Errors
/// It is not whole, of another version, of no heap, or too large.
pub fn read(kind: Kind, bytes: &[u8], limit_bytes: u64, names: &mut Names) -> Result<ReadProfile, ReadError> {
    match kind {
        Kind::Pprof => pprof::read(bytes, limit_bytes, names),
        Kind::Dhat => dhat::read(bytes, limit_bytes),
        Kind::HeapText => heap_text::read(bytes, limit_bytes, names),
    }
}

#[cfg(test)]
mod tests;
