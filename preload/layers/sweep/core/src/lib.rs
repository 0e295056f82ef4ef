//! The parts of the sweep layer that need no process around them: its settings, when it collects, and which addresses
//! are the manager's.
//!
//! The layer itself is a shared object without std, which has no test harness; what can be wrong by itself is here.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod elf;
pub mod policy;
pub mod ranges;
pub mod settings;
