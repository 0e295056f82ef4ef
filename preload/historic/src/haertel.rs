//! Mike Haertel's GNU malloc: a hybrid of first fit and powers of two (Zorn 1992 §2.1).
//!
//! - The heap is cut into chunks of 4096 bytes. A separate table describes each, so that a search reads the table and
//!   never touches the chunks ([`Table`]).
//! - Requests above half a chunk get a run of chunks: first fit in a list of free runs in order of address, from where
//!   the last search or free ended. A run that is freed is coalesced with its neighbours.
//! - Smaller requests get a fragment: a chunk is cut into fragments of one power of two. Its entry counts those that
//!   are free; when all are, the chunk becomes a free run again.
//! - Blocks have no header. A fragment is aligned to its size, and a run to a page.
//!
//! This also stands for GNU′, which Detlefs, Dosser and Zorn 1994 measured (Table III): an "ancestor/sibling" of this
//! one of July 1993, "smaller and faster". Neither the paper nor any source found describes what it did differently.
//!
//! Facts are from the source of GNU malloc of 1992 (free) and from descriptions of that of 1993 (malloc, the table),
//! which was not available: the list of free runs with its wandering start, the table that doubles and moves to a new
//! run, the free fragments of a chunk standing together in their list.
//!
//! Decided here: the table lives in the one region, in a run of its own, as with `sbrk`. Its entries have 16 bytes,
//! where the original's had 12 (on a machine of 32 bits), because each has its chunk's kind: the original cannot
//! distinguish a free run's entry from another, and so could not be walked. The smallest fragment is 16 bytes, two
//! links, where it was 8. Aligned requests need no list of their own, as in the original: see [`Haertel`]. Memory is
//! never given back to the system, where the original gives back a free end of eight chunks or more: the region only
//! grows.

mod audit;
mod fragments;
mod heap;
mod runs;
mod table;

pub use heap::Haertel;
pub use table::{ChunkEntry, ChunkKind, Table};

/// Bytes in a chunk.
pub const CHUNK: usize = 4096;

/// The smallest fragment's size as a power of two: it holds two links.
pub const SMALLEST: u32 = 4;

/// The largest fragment's: half a chunk.
pub const LARGEST: u32 = 11;
