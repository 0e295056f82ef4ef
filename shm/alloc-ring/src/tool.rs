//! The consumer's side: makes the file and reads the rings.

mod arrival;
mod counter;
mod decode;
mod drained;
mod error;
mod event;
mod execs;
mod folder;
mod head;
mod map;
mod merge;
mod proc;
mod shared;
mod tap;
mod usable;

pub use arrival::Arrival;
pub use drained::Drained;
pub use error::RingError;
pub use event::{RingEvent, Sink};
pub use execs::Unregistered;
pub use shared::{LeftOut, Options, Paused, Shared};
pub use tap::{Losses, Tap};
