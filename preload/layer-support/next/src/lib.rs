//! The next malloc family, to which every layer forwards.
//!
//! `dlsym(RTLD_NEXT)` appears simple and is not. It may allocate while it runs; it looks up each function separately,
//! so that a manager without `pvalloc` is silently completed with glibc's, whose blocks it cannot free; and several
//! threads may call it at once. This crate separates the concerns: [`arena`] serves requests until the next family is
//! known, [`family`] takes functions from one object only, and [`forward`] is the family as a layer calls it, with
//! missing functions emulated; [`inside`] knows when a layer may not query the manager.
//!
//! Layers also share: [`watched`] and [`operators`], the family and C++'s operators as a layer exports them, with a
//! hook for every call; [`export_copies!`], what a manager may export beside them; [`tally`], which counts calls on the
//! statistics page; [`blocks`], a table of blocks that needs no heap; [`settings`], which parses a layer's variable;
//! [`memory`] of a layer's own, and [`stderr_line`], what it reports; [`controls`], the events of managers; [`ending`], the
//! program's end.
#![no_std]

pub mod arena;
pub mod blocks;
pub mod controls;
pub mod copies;
pub mod ending;
pub mod family;
pub mod forward;
pub mod inside;
pub mod loader;
pub mod memory;
pub mod operators;
mod preflight_report;
pub mod settings;
pub mod stderr_line;
pub mod tally;
pub mod watched;

pub use family::{Family, next};
pub use heaptoll_runtime::export_sized_frees;

#[cfg(test)]
extern crate std;
