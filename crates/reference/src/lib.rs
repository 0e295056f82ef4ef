//! What the tracer tells of a program: every data reference and what happens around them, as 64-bit words.
//!
//! [`word`] is the format, the contract with `tracer/words.h`; [`decoder`] turns words into runs of references with their
//! owner and into events; a [`Sink`] takes them. Nothing here touches the world: words may come from a ring or a test.

pub mod decoder;
pub mod event;
pub mod routine;
pub mod word;

pub use decoder::{Decoder, Sink};
pub use event::{Clock, Event, Owner};
pub use routine::Routine;
pub use word::Reference;
