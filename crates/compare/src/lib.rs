//! What compares memory managers, as a library: the plan of an experiment, its runs, its figures, what they mean, and the
//! document that shows them. A folder a command, but for `smallest_heap` and `sweep`, which several share.
//!
//! Nothing here reads a command line, writes to the terminal or decides an exit status. What a user sees while an
//! experiment runs goes through [`heaptoll_command::context::Messages`], whose implementation in
//! [`heaptoll_command::context::Silent`] shows nothing.

pub mod choose;
#[cfg(feature = "full")]
pub mod comparative;
#[cfg(feature = "full")]
pub mod diff;
pub mod managers;
pub mod merged;
pub mod programs;
#[cfg(feature = "full")]
pub mod result;
pub mod run;
pub mod same_work;
pub mod smallest_heap;
