//! The floor: what every manager of ours stands on, so that a manager's own crate holds nothing but its algorithm.
//!
//! A manager is a [`Heap`]: single-threaded, without a word about C. The floor adds the rest, each in a file of its
//! own: memory from the system as one growing [`Region`], the [`Lock`] that is also safe to fork under, the malloc
//! family with the C standard's corner cases ([`Shell`]), the control contract and the statistics page of
//! `include/heaptoll.h`, and [`preload!`], which turns a heap into a shared object.
//!
//! Nothing here allocates, and std is not linked.
#![no_std]

mod census;
mod contract;
mod family;
mod heap;
mod lock;
mod message;
mod preload;
mod region;
mod search;
mod sizes;

pub use census::{Tally, tally};
pub use contract::{Control, EventFunction, RawCensus, RawClass};
pub use family::Shell;
pub use heap::{Damage, Heap, Misuse, Piece, PieceKind};
pub use lock::{Guard, Lock, prepare_barriers};
pub use message::Message;
pub use region::{PAGE, Region};
pub use search::Search;
pub use sizes::{ALIGNMENT, WORD, round_up};

// For the expansion of `preload!`.
#[doc(hidden)]
pub use libc;
