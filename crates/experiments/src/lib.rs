//! What heaptoll's commands measure, decide and show, as a library: the plan of an experiment, its runs, its figures,
//! what they mean, and the document that shows them. One folder an experiment.
//!
//! Nothing here reads a command line, writes to the terminal or decides an exit status. What a user sees while an
//! experiment runs goes through [`context::Messages`], whose implementation in [`context::Silent`] shows nothing.

pub mod clock;
pub mod context;
pub mod failure;
pub mod quantities;
pub mod subject;
pub mod tables;
pub mod trace_source;
