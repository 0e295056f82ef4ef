//! Recording: runs a program with the recording layer in front of its memory manager and writes a trace for every
//! process image that it becomes or starts.
//!
//! [`record`] does all of it. The threads of the program tell their calls through rings in shared memory; one loop here
//! empties them, finds out which object each address is ([`resolver`]), and hands events to the writer of the trace.
//! docs/recording.md says what a user sees of it.

mod books;
mod brk;
mod child;
mod deaths;
mod endings;
mod error;
mod ignored;
mod interrupt;
mod limits;
mod live;
mod output;
mod pace;
mod proc;
mod recorded;
mod recorder;
mod request;
mod resolver;
mod session;
mod strangers;
mod strays;
mod symbols;
mod told;
mod watch;

pub use error::RecordError;
pub use interrupt::Interrupt;
pub use output::{folder_of_others, others};
pub use recorded::{Progress, Recorded, Recording, Silent};
pub use recorder::record;
pub use request::{Children, Manager, Request};
