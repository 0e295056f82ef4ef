//! A program under heaptoll's tracer: started, and its references and events decoded.
//!
//! The tracer is a tool of Valgrind's, a process of its own ([`Tracer::find`]). It records what every process image of
//! the program does as words in a ring of shared memory ([`ring`]); [`trace`] starts it through the launcher, as any
//! measured program is, drains the rings of all images on the calling thread, and passes each image's references and
//! events to a sink of its own. An image that is not recorded to its end is marked; nothing is dropped silently.
//!
//! Three things end a recording before the program ends, and all keep what was recorded: Ctrl-C and the time limit (the
//! launcher ends the program; see [`Traced::finished`]), a sink that is full ([`heaptoll_reftrace::Sink::full`]) and
//! memory that runs out ([`Traced::stopped`]).

pub mod allocator_symbols;
mod error;
mod family_calls;
mod find;
mod fitness;
mod image;
mod image_reader;
mod log;
mod memory;
mod options;
mod program_reader;
pub mod ring;
mod scratch;
pub mod syscalls;
mod trace;

#[cfg(test)]
mod testing;

pub use error::TracerError;
pub use family_calls::FamilyCalls;
pub use find::Tracer;
pub use fitness::{Fitness, fitness};
pub use image::{Calls, FunctionCount, Image, ImageEnding, Traced, TracedImage};
pub use options::Options;
pub use trace::{Progress, trace, trace_with};
