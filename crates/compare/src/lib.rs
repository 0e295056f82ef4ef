//! What heaptoll's commands measure, decide and show, as a library: the plan of an experiment, its runs, its figures,
//! what they mean, and the document that shows them. One folder an experiment.
//!
//! Nothing here reads a command line, writes to the terminal or decides an exit status. What a user sees while an
//! experiment runs goes through [`context::Messages`], whose implementation in [`context::Silent`] shows nothing.

pub mod added_managers;
pub mod artifact;
pub mod choose;
pub mod cluster;
pub mod comparative;
pub mod delay;
pub mod diff;
pub mod drag;
pub mod export;
pub mod frequency;
pub mod import;
pub mod instructions;
mod layered;
pub mod ledger;
pub mod locality;
pub mod managers;
pub mod minheap;
pub mod oracle;
pub mod originals;
pub mod programs;
pub mod proximity;
pub mod published;
pub mod reclamation;
pub mod replay;
pub mod run;
pub mod same_work;
pub mod sealed;
pub mod simulated_machine;
mod sweep;
#[cfg(test)]
mod testing;
