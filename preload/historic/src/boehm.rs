//! What the two collectors of the papers share: the heap of Boehm and Weiser's collector for C (*Garbage collection in
//! an uncooperative environment*, 1988), in the versions that Zorn (1992, version 1.6) and Detlefs, Dosser and Zorn
//! (1994, version 2.6) measured. What sets a version apart is its [`Version`], in its own module.
//!
//! - The heap is made of chunks of 4 KiB. A chunk holds objects of one size, up to half a chunk; a larger object has
//!   chunks of its own. Chunks that are free form runs, listed in order of address, neighbours joined; a search takes
//!   the next that is large enough.
//! - A chunk has a header with a mark bit for each of its words.
//! - Marking follows every word that is an address in an object, to its inside too, from registers, stacks, and all
//!   writable memory of the process.
//! - What is not marked is cleared and goes to the free list of its size, or with its chunk to the free runs.
//!
//! free does nothing, as both papers had it. realloc does give a block back that it has moved.
//!
//! The facts are from the sources of the versions 1.9 and 2.6 and their notes on what changed since 1.6.

mod audit;
mod blacklist;
pub mod bw16;
pub mod bw26;
mod chunks;
mod classes;
mod collect;
mod header;
mod heap;
mod stack;
mod sweep;
mod version;

pub use crate::support::{Aborted, Buffer, CollectionOutcome, Collector, Mutators, Visitor};

pub use blacklist::BlackLists;
pub use classes::{Classes, LARGEST_SMALL, LISTS, MOST_CLASSES, MOST_WORDS};
pub use header::CHUNK;
pub use heap::Boehm;
pub use stack::MarkStack;
pub use version::Version;

use header::Header;

/// The class of large objects.
const LARGE: u8 = u8::MAX;
/// The class of large objects without pointers.
const LARGE_POINTER_FREE: u8 = LARGE - 1;

#[inline(always)]
const fn is_large(header: &Header) -> bool {
    header.class >= LARGE_POINTER_FREE
}

/// Whether the collector need not read a chunk's objects.
#[inline(always)]
const fn is_pointer_free(header: &Header) -> bool {
    header.class >= MOST_CLASSES as u8 && header.class != LARGE
}

/// Bytes of a chunk before its objects.
const fn header_bytes<V: Version>() -> usize {
    chunks::Chunks::<V>::HEADER_BYTES
}

/// The mark bit of a large object.
const fn first_bit<V: Version>() -> usize {
    chunks::Chunks::<V>::first_bit()
}
