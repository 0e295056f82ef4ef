//! Sampled heap profiles: the arithmetic, and the files that the sampling layer writes and the tool reads.
//!
//! Each allocated byte is a sample point with probability 1 / R, independently of all others (a Poisson process); an
//! allocation is sampled when one of its bytes is. A thread therefore counts down the bytes to its next point
//! ([`Random::gap`]), and an allocation of S bytes is sampled with probability 1 - exp(-S / R). It then stands for the
//! inverse of that many objects ([`Weight`]), so that each sum over samples is an unbiased estimate of the sum over all
//! allocations (Horvitz and Thompson, 1952), whatever the program does; an [`Estimate`] knows its variance, and from it
//! an interval.
//!
//! The layer keeps the sums of a process by call stack in a file of shared memory ([`layout`]), which outlives the
//! process, and reads on a page of the tool's whether it is to sample at all ([`layout::Control`]).
#![no_std]

#[cfg(any(test, feature = "tool"))]
extern crate std;

mod estimate;
pub mod layout;
mod random;
mod sums;
#[cfg(feature = "tool")]
pub mod tool;
mod weight;

pub use estimate::{Estimate, interval, interval_within, largest_unseen};
pub use random::Random;
pub use sums::Sums;
pub use weight::Weight;

/// The largest mean distance between sample points, bytes.
pub const MOST_MEAN: u64 = 1 << 40;
