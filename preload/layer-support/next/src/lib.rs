//! The next malloc family: what every layer forwards to.
//!
//! `dlsym(RTLD_NEXT)` looks simple and is not. It may allocate while it answers; it answers for each function apart,
//! so that a manager without `pvalloc` is silently completed with glibc's, whose blocks it cannot free; and it may be
//! called by several threads at once. This crate keeps the three apart: [`arena`] serves whatever is asked for before
//! the answer is known, [`family`] takes functions from one object only and makes up the rest from them, and
//! [`forward`] is the family as a layer calls it.
//!
//! What layers share besides: [`watched`] and [`operators`] are the family and C++'s operators as a layer exports
//! them, with every call told to it, [`tally`] counts calls on the statistics page, [`blocks`] is a table of blocks
//! that needs no heap, and [`settings`] reads a layer's variable.
#![no_std]

pub mod arena;
mod behind;
pub mod blocks;
pub mod family;
pub mod forward;
pub mod operators;
pub mod settings;
pub mod tally;
pub mod watched;

pub use family::{Family, next};
