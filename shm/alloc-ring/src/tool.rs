//! The tool's side: making the file, reading the rings.

mod copied;
mod decode;
mod error;
mod execs;
mod folder;
mod map;
mod merge;
mod proc;
mod shared;
mod tap;

pub use decode::{Said, Sink};
pub use error::RingError;
pub use execs::Unseen;
pub use shared::{Arrival, LeftOut, Options, Paused, Shared};
pub use tap::{Drained, Losses, Tap};
