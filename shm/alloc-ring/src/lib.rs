//! The shared-memory rings through which the recording layer tells heaptoll every allocation.
//!
//! Both sides of one file. The producer's side ([`Rings`], [`Producer`]) runs inside `malloc`: it is `no_std`,
//! allocates nothing, takes no lock on the short way and keeps `errno`. The consumer's side ([`Shared`], [`Tap`]; the
//! feature `tool`) makes the file and gives every process's events in one order. docs/recording-ring.md describes
//! the layout and the protocol, with the reasons why it loses nothing and orders rightly.
#![cfg_attr(not(feature = "tool"), no_std)]

mod attach;
mod execs;
mod flags;
pub mod layout;
mod lock;
mod memory;
mod places;
mod producer;
mod rings;
mod state;
mod sys;
mod tell;
#[cfg(feature = "tool")]
mod tool;
mod wait;
pub mod word;

pub use execs::Noted;
pub use flags::Flags;
pub use producer::{FRAMES, Producer};
pub use rings::{FactsHook, Rings, ThreadWord};
#[cfg(feature = "tool")]
pub use tool::{
    Arrival, Drained, LeftOut, Losses, Options, Paused, RingError, Said, Shared, Sink, Tap, Unseen,
};
