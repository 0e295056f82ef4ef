//! The file that the oracle layer follows: a program's allocations in their order, and when each object may be freed.
//!
//! The tool writes it from a traced run; the layer reads it while the program runs (Hertz and Berger 2005). An object is
//! known by its *allocation index*: 0 for the first allocation in `main` that succeeded, and so on; `realloc` counts as a free and
//! an allocation. All integers are little-endian. After the [`Header`], and [`Unreachable`] where the header has it, come
//!
//! - `words`, of 8 bytes: one an allocation, see [`AllocationWord`]; after that of a `realloc` one more, the size of the
//!   object that it ends,
//! - `schedule`, of 4 bytes: for each allocation, in order, the slots of the objects that are freed before it, each with
//!   [`FREE`], then the slot in which the layer keeps its own block,
//! - `sites`, of 8 bytes: where allocations are called from, see [`SiteWord`],
//! - `objects`, of 8 bytes: an object file each, see [`NameWord`]; the first is the program itself,
//! - `text`: names of object files,
//! - `about`: JSON,
//! - `frees`, of 4 bytes: for each allocation how many had been made when the program freed its object, or [`NEVER`],
//! - `unreachable`, of 4 bytes: where it is there, words as those of `schedule`, by which each object is freed at the
//!   first root point at which it could not be reached any more, at the earliest after its last use.
//!
//! The layer reads neither `about` nor `frees`.
#![no_std]

mod header;
mod word;

pub use header::{
    HEADER_BYTES, Header, HeaderError, MAGIC, MAGIC_UNREACHABLE, Section, UNREACHABLE_BYTES, Unreachable,
};
pub use word::{AllocationWord, FREE, LARGEST, MOST_SITES, MOST_SLOTS, NEVER, NameWord, SiteWord};
