//! Sampled heap profiles: a program's run under the sampling layer.
//!
//! The layer keeps its sums in files of shared memory ([`heaptoll_sampling`]); this process, the program's parent, reads
//! them when the program has ended, or when a client of its socket requests it. So the program has neither a thread nor a
//! signal handler nor a descriptor for it: while the layer is dormant it counts bytes, and reads a word where it would
//! sample.

mod client;
mod error;
mod listener;
mod named;
mod protocol;
mod session;

pub use client::{ClientError, exchange};
pub use error::SamplingError;
pub use heaptoll_sampling::tool::Settings;
pub use heaptoll_sampling::{Estimate, MOST_MEAN, interval_within, largest_unseen};
pub use named::{NamedProcess, NamedSite};
pub use protocol::{Answer, Command};
pub use session::{Profiler, SampledOutcome, SamplingOptions, sample};
