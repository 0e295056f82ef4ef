//! What the commands of heaptoll share: their context, failures, sources of traces, and documents.
//!
//! Nothing here reads a command line, writes to the terminal or decides an exit status. What a user sees while a command
//! runs goes through [`context::Messages`], whose implementation in [`context::Silent`] shows nothing.

pub mod call_stacks;
pub mod callgrind_file;
pub mod collector_options;
pub mod context;
pub mod failure;
pub mod foreign;
pub mod labelled;
pub mod own_input;
#[cfg(feature = "schemas")]
pub mod schema;
pub mod subject;
pub mod trace_source;
pub mod version;
pub mod writable;

pub use heaptoll_experiment::clock;
