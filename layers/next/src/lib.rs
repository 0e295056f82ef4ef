//! The next malloc family: what every layer forwards to.
//!
//! `dlsym(RTLD_NEXT)` looks simple and is not. It may allocate while it answers; it answers for each function apart,
//! so that a manager without `pvalloc` is silently completed with glibc's, whose blocks it cannot free; and it may be
//! called by several threads at once. This crate keeps the three apart: [`arena`] serves whatever is asked for before
//! the answer is known, [`family`] takes functions from one object only and makes up the rest from them, and
//! [`forward`] is the family as a layer calls it.
#![no_std]

pub mod arena;
pub mod family;
pub mod forward;

pub use family::{Family, next};
