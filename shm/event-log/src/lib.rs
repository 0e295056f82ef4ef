//! The file in which the events layer writes a program's requests and its manager's collections, on one clock.
//!
//! The tool makes a sparse file of a limited size and names it in `HEAPTOLL_EVENTS`. Each process into which the layer
//! is loaded maps the whole file shared and claims an entry of the table of processes; each of its threads claims a
//! chunk and appends records to it. So no written record is lost when a process is killed, and no two threads write to
//! the same place. When all chunks are claimed, further events are only counted.
//!
//! [`layout`] is the format of the file, [`mapped`] the writing side, without std; `tool` (with the feature of that
//! name) makes and reads it.
#![no_std]

#[cfg(feature = "tool")]
extern crate std;

pub mod layout;
pub mod mapped;
#[cfg(feature = "tool")]
pub mod tool;

#[cfg(feature = "tool")]
pub use tool::{Collection, EventsError, EventsFile, Lost, ProcessEvents, Request};
