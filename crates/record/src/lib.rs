//! Recording: runs a program with the recording layer in front of its memory manager and writes a trace for every
//! process image that it becomes or starts.
//!
//! [`record`] does all of it. The threads of the program record their calls in rings in shared memory; one loop here
//! drains them, finds out which object each address is ([`resolver`]), and passes events to the writer of the trace.
//! docs/questions/recording.md describes it for users.

mod brk;
mod child;
mod error;
mod event_consumer;
mod exits;
mod finisher;
pub mod heaptrack;
mod ignored;
mod interrupt;
mod ledger_sampler;
mod left_out;
mod limits;
mod live;
mod orphans;
mod output;
mod pace;
mod proc;
mod recorded;
mod recorder;
mod request;
mod resolver;
pub mod sampling;
mod session;
mod static_variables;
mod trouble_reporter;
mod uninstrumented;
mod unverified;
mod watch;

pub use error::RecordError;
pub use interrupt::Interrupt;
pub use output::{folder_of_others, others};
pub use recorded::{Progress, Recording, RecordingOutcome, Silent};
pub use recorder::record;
pub use request::{Children, Manager, RecordingOptions, Request, StopPoint};
pub use uninstrumented::inheriting;
