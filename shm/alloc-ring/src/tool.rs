//! The consumer's side: makes the file and reads the rings.

mod counter;
mod decode;
mod error;
mod execs;
mod folder;
mod map;
mod merge;
mod proc;
mod shared;
mod tap;

pub use decode::{RingEvent, Sink};
pub use error::RingError;
pub use execs::Unregistered;
pub use shared::{Arrival, LeftOut, Options, Paused, Shared};
pub use tap::{Drained, Losses, Tap};
