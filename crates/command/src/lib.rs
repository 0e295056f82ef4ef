//! What the commands of heaptoll share: their context, failures, sources of traces, and documents.
//!
//! Nothing here reads a command line, writes to the terminal or decides an exit status. What a user sees while a command
//! runs goes through [`context::Messages`], whose implementation in [`context::Silent`] shows nothing.

#[cfg(feature = "full")]
pub mod call_stacks;
pub mod callgrind_file;
pub mod collector_options;
pub mod context;
pub mod failure;
#[cfg(feature = "full")]
pub mod foreign;
pub mod full;
pub mod labelled;
pub mod own_input;
#[cfg(feature = "schemas")]
pub mod schema;
#[cfg(feature = "full")]
pub mod subject;
#[cfg(feature = "full")]
pub mod trace_source;
pub mod version;
pub mod writable;

pub use heaptoll_experiment::clock;
