//! A program under heaptoll's tracer: started, followed, heard.
//!
//! The tracer is a tool of Valgrind's, a process of its own ([`Tracer::find`]). It tells what every process image of the
//! program does as words in a ring of shared memory ([`ring`]); [`trace`] starts it through the launcher, as any
//! measured program is, empties the rings of all images on the calling thread, and hands each image's references and
//! events to a sink of its own. What it cannot hear to the end it marks; nothing is dropped in silence.
//!
//! An end before the program's has three forms, and all keep what was heard: Ctrl-C and the time limit (the launcher
//! ends the program; see [`Traced::finished`]), a sink that has had enough ([`heaptoll_reference::Sink::full`]) and
//! memory that runs out ([`Traced::stopped`]).

mod error;
mod find;
mod fitness;
mod follow;
mod hearing;
mod image;
mod log;
mod options;
pub mod ring;
mod room;
mod scratch;
pub mod syscalls;
mod trace;

#[cfg(test)]
mod testing;

pub use error::TracerError;
pub use find::Tracer;
pub use fitness::{Fitness, fitness};
pub use image::{Calls, Image, ImageEnding, Traced, TracedImage};
pub use options::Options;
pub use trace::{Progress, trace, trace_with};
