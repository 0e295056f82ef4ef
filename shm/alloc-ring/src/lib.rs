//! The shared-memory rings through which the recording layer reports every allocation to heaptoll.
//!
//! Both sides of one file. The producer's side ([`Rings`], [`Producer`]) runs inside `malloc`: it is `no_std`,
//! allocates nothing, takes no lock on the fast path and preserves `errno`. The consumer's side ([`Shared`], [`Tap`];
//! the feature `tool`) makes the file and delivers the events of each process in one order.
//! docs/contributing/recording-ring.md describes the layout and the protocol, and why they lose nothing and order
//! events correctly.
#![cfg_attr(not(feature = "tool"), no_std)]

mod address_space;
mod atomic;
mod attach;
mod attachment;
mod bounds;
mod emit;
mod execs;
pub mod facts;
mod flags;
pub mod layout;
mod lock;
mod memory;
mod pointers;
mod producer;
mod rings;
mod state;
mod sys;
mod thread_word;
#[cfg(feature = "tool")]
mod tool;
mod wait;
pub mod word;

pub use attachment::FactsHook;
pub use execs::ExecNote;
pub use flags::Flags;
pub use layout::StopPoint;
pub use producer::{FRAMES, Producer};
pub use rings::Rings;
pub use thread_word::ThreadWord;
#[cfg(feature = "tool")]
pub use tool::{
    Arrival, Drained, LeftOut, Losses, Options, Paused, RingError, RingEvent, Shared, Sink, Tap, Unregistered,
};
