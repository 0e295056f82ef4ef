//! The runtime that every manager uses, so that a manager's own crate holds nothing but its algorithm.
//!
//! An algorithm is a [`Heap`]: single-threaded, without C's interface. [`Shell`] makes a [`Manager`] of it, with one
//! [`Lock`] that is also safe to fork under; a manager with caches per thread implements it directly, with
//! [`thread_word!`] and [`ThreadEnd`]. This crate adds the rest, each in a file of its own: memory from the system as
//! one growing [`Region`], the malloc [`family`] with the C standard's corner cases, glibc's [`statistics`], the
//! control contract and the statistics page of `include/heaptoll.h` ([`StatsReporter`]), and [`preload!`], which turns
//! a manager into a shared object.
//!
//! Nothing here allocates, and std is not linked.
#![no_std]

mod census;
mod contract;
mod defect;
pub mod execs;
pub mod family;
mod fault;
mod forks;
pub mod futex;
mod heap;
mod lock;
mod manager;
mod maps_entry;
mod message;
mod next;
mod optional;
mod preload;
mod region;
mod search;
mod shell;
mod signal_mask;
mod sizes;
pub mod statistics;
mod stats_reporter;
mod thread_end;
mod thread_word;

pub use census::{Tally, tally};
pub use contract::{
    COLLECTION_END, COLLECTION_START, Control, EventFunction, HEAP_GROWN, HEAP_SHRUNK, PHASE, Phase,
    RawCensus, RawClass, RawEvent, Reason,
};
pub use defect::report_defect;
pub use fault::fail_every;
pub use forks::{AtFork, at_fork};
pub use heap::{Damage, Heap, Misuse, Piece, PieceKind};
pub use heaptoll_process::system_call;
pub use heaptoll_stats_page::AbandonCause;
pub use lock::{Guard, Lock, prepare_barriers, single_threaded};
pub use manager::{ADDRESSES, LARGEST, Manager};
pub use maps_entry::MapsEntry;
pub use message::Message;
pub use next::{Next, missing};
pub use region::{PAGE, Region};
pub use search::Search;
pub use shell::Shell;
pub use signal_mask::SignalMaskGuard;
pub use sizes::{ALIGNMENT, WORD, aligned_after_block, round_up};
pub use stats_reporter::{Collected, StatsReporter, now_ns, thread_cpu_ns};
pub use thread_end::{NoKeys, ThreadEnd};
pub use thread_word::thread_pointer;

// For the expansion of `preload!`.
#[doc(hidden)]
pub use libc;
