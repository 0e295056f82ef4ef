//! Recordings of heaptrack as traces: its text format, versions 1 to 3, packed by gzip or zstd or plain, as the library in
//! the program writes it (raw) and as `heaptrack_interpret` does. bytehound's `export-heaptrack` writes it too.
//!
//! A recording may be cut off, damaged or made to harm: lines have a limit, tables grow with what was read and count
//! against a limit of memory, and callers of a call stack are always before what they call, so that there is no circle.
//!
//! What the format lacks is stated in the trace ([`heaptoll_trace::Imported`]).

mod budget;
mod code;
mod error;
mod event;
mod fields;
mod import;
mod interpreted;
mod lines;
mod preamble;
mod raw;
mod stacks;
mod unpack;

pub use error::HeaptrackError;
pub use event::Tally;
pub use import::{About, Summary, import};
pub use unpack::{Unpacked, is_damage, unpack};

/// Whether these first bytes of an unpacked file are those of a recording of heaptrack.
pub fn is_heaptrack(first: &[u8]) -> bool {
    let Some(version) = first.strip_prefix(b"v ") else { return false };
    let line = version.split(|&byte| byte == b'\n').next().unwrap_or_default();
    !line.is_empty() && line.len() < 40 && line.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b' ')
}
