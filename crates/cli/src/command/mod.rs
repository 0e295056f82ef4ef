//! One file a command. Commands gather arguments, call `heaptoll_experiment`, and hand values to the report. No command
//! uses another: what several need is a module of the crate.

pub mod bound;
pub mod choose;
pub mod compare;
pub mod conservatism;
pub mod delay;
pub mod diff;
pub mod drag;
pub mod export;
pub mod frequency;
pub mod gate;
pub mod import;
pub mod instructions;
pub mod leaks;
pub mod ledger;
pub mod lifetimes;
pub mod locality;
pub mod managers;
pub mod merge;
pub mod minheap;
pub mod oracle;
pub mod plan;
pub mod programs;
pub mod proximity;
pub mod reclamation;
pub mod record;
pub mod replay;
pub mod report;
pub mod run;
pub mod sample;
pub mod shell_files;
pub mod stat;
pub mod study;
pub mod submit;
pub mod tailor;
pub mod work;
