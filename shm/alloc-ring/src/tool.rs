//! The consumer's side: makes the file and reads the rings.

mod arrival;
mod counter;
mod decode;
mod drained;
mod error;
mod execs;
mod folder;
mod map;
mod merge;
mod proc;
mod shared;
mod tap;

pub use arrival::Arrival;
pub use decode::{RingEvent, Sink};
pub use drained::Drained;
pub use error::RingError;
pub use execs::Unregistered;
pub use shared::{LeftOut, Options, Paused, Shared};
pub use tap::{Losses, Tap};
