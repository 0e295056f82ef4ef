//! The protocol between heaptoll and its launcher.
//!
//! The launcher is a process of its own because `ru_maxrss` of a child starts from the memory its parent had when
//! it forked: a tool that holds 500 MB and forks the program itself reports at least 500 MB. The launcher holds a
//! few hundred KiB. It also adopts orphans (`PR_SET_CHILD_SUBREAPER`), so that a program which forks and leaves is
//! still accounted for and never outlives its measurement.

pub mod affinity;
pub mod counters;
mod message;
pub mod slice;
mod spec;
mod usage;

pub use message::{Ended, Message, MessageError};
pub use spec::{Spec, SpecError, Thp};
pub use usage::Usage;

/// Number of hardware counters a report carries: instructions, cycles, LLC misses, data-TLB misses.
pub const COUNTERS: usize = 4;
