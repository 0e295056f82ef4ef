//! The words that the tracer writes: every data reference of a program and the events between them, as 64-bit words.
//!
//! [`word`] is the format, the contract with `tracer/words.h`; [`decoder`] turns words into runs of references with
//! their owner and into events; a [`Sink`] takes them. This crate does no input or output: words may come from a ring
//! or a test.

pub mod decoder;
pub mod event;
mod numbered;
pub mod routine;
pub mod word;

pub use decoder::{Decoder, Sink};
pub use event::{Clock, Event, Owner};
pub use routine::Routine;
pub use word::Reference;
