//! The parts of the sweep layer that need no process around them: its settings, when it collects, which addresses are
//! the manager's, and lists in mappings of their own.
//!
//! The layer itself is a shared object without std, which has no test harness; what can be wrong by itself is here.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod elf;
pub mod list;
pub mod policy;
pub mod ranges;
pub mod settings;
