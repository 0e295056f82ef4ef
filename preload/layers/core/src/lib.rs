//! The parts of layers that can be tested apart from a process: a layer is a shared object without std, which has no test
//! harness.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod findings;
pub mod oracle;
pub mod quarantine;
pub mod sample;
pub mod sweep;
