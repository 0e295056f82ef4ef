//! Instructions that an allocator spends a call, counted by Valgrind's callgrind, and the C compiler and other tools
//! that such a count needs. Counts repeat where times are noisy; they do not cover caches and stalls.
//!
//! [`profile`] reads what callgrind wrote, [`outermost`] finds the calls in it that no other contains, [`cachegrind`]
//! what cachegrind wrote, [`tools`] runs the compiler and Valgrind itself.

pub mod cachegrind;
mod error;
pub mod outermost;
pub mod profile;
pub mod tools;

pub use error::Error;
