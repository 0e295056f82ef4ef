//! What heaptoll's commands measure, decide and show, as a library: the plan of an experiment, its runs, its figures,
//! what they mean, and the document that shows them. One folder an experiment.
//!
//! Nothing here reads a command line, writes to the terminal or decides an exit status. What a user sees while an
//! experiment runs goes through [`context::Messages`], whose implementation in [`context::Silent`] shows nothing.

pub mod added_managers;
pub mod artifact;
pub mod attempt;
pub mod bound;
mod call_stacks;
pub mod callgrind_file;
pub mod cells;
pub mod choose;
pub mod clock;
pub mod cluster;
pub mod collector_options;
pub mod conservatism;
pub mod context;
pub mod corpus;
pub mod delay;
pub mod diff;
pub mod drag;
pub mod export;
pub mod failure;
pub mod foreign;
pub mod frequency;
pub mod gate;
pub mod graph;
pub mod import;
pub mod instructions;
pub mod labelled;
pub mod leaks;
pub mod ledger;
pub mod lifetimes;
pub mod locality;
pub mod managers;
pub mod measurement;
pub mod minheap;
pub mod oracle;
pub mod originals;
pub mod own_input;
pub mod preparation;
pub mod programs;
pub mod proximity;
pub mod published;
pub mod reclamation;
pub mod record;
pub mod replay;
pub mod run;
pub mod same_work;
pub mod sampled;
#[cfg(feature = "schemas")]
pub mod schema;
pub mod sealed;
pub mod siblings;
pub mod simulated_machine;
pub mod standard_input;
pub mod stat;
pub mod studied;
pub mod subject;
pub mod tables;
pub mod tailor;
#[cfg(test)]
mod testing;
pub mod trace_source;
pub mod traced;
pub mod version;
pub mod workload;
pub mod writable;
