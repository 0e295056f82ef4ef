//! Doug Lea's malloc of 1993, version 2.5, which Detlefs, Dosser and Zorn 1994 measured as G++ (Table III): boundary
//! tags, free lists in bins of sizes, and a free that does nothing but link the block.
//!
//! - `free` puts the block on the *returned list* and is done: eight instructions in the paper (Table V). It reads
//!   neither its size nor its neighbours ([`Lea`]).
//! - `malloc` settles what was returned. If the last returned block fits exactly, it is the answer. Blocks that do
//!   not fit go to the bin of their size, as *dirty* ones: whole, uncoalesced, of a size that the program is known to
//!   use. What is split off or coalesced is *clean*. No two clean blocks are neighbours, so only dirty ones ever need
//!   to be coalesced, and that is done when nothing else helps ([`Bins`]).
//! - Bins are a quarter of a power of two wide, and exact for small sizes: first fit in a bin is nearly best fit.
//!
//! Facts are from the head comment and the text of malloc.c 2.5 (1992 to 1994), whose comment states that it was tested
//! for the Detlefs and Zorn study. Where the paper has bins "with a roving pointer", that version's rover goes around
//! the bins whose dirty blocks are coalesced, not around blocks.
//!
//! Decided here: the original's unit of 8 bytes (two words of 1993) is 16 here, with all that is counted in it: sizes,
//! exact bins (up to 16 units), the smallest block (4 words). The bin of a large size comes from a count of leading
//! zeros, where the original shifts in a loop. A realloc that cannot be done in place leaves the block as it is, where
//! the original has it swallow its free neighbours first.

mod audit;
mod bins;
mod heap;
pub mod quickfit;
mod space;

pub use crate::blocks::tags::{SMALLEST, TAGS};
pub use bins::Bins;
pub use heap::Lea;

/// A block with its state in the header.
pub type Block = crate::blocks::tags::Block<crate::blocks::tags::InHeader>;
