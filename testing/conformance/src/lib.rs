//! One conformance suite over every manager, heaptoll's own and its peers, through the malloc symbols.
//!
//! The cases are C (`c/`), compiled when the suite is run, since they test what a C program sees: each is a process of
//! its own with the manager preloaded, so that a crash or a hang costs one case. This crate compiles them, runs them,
//! and judges the ends against the list of known deviations.

pub mod deviation;
pub mod error;
pub mod exceptions;
pub mod glibc;
pub mod misuse;
pub mod outputs;
pub mod process;
pub mod proof;
pub mod security;
pub mod suite;
pub mod table;
pub mod verdict;
