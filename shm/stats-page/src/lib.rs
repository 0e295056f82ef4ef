//! The shared statistics page of `include/heaptoll.h`, from both of its sides.
//!
//! Counters that a process keeps in its own memory are lost when it ends by `_exit` or SIGKILL. So managers and layers
//! count in a file that the tool made, mapped shared: the counts remain when the process is gone. The C header fixes
//! the layout; a test compiles that header and compares every offset.
#![no_std]

mod abandon_cause;
mod layout;
mod mapping;
#[cfg(feature = "tool")]
mod page;
pub mod shared;
mod unread_places;
mod writer;

pub use abandon_cause::AbandonCause;
pub use layout::{HEADER_BYTES, Header, IN_USE, MAGIC, SLOT_BYTES, Slot, VARIABLE, VERSION, WriterKind};
#[cfg(feature = "tool")]
pub use page::{PageError, SlotRecord, StatsPage};
pub use unread_places::UnreadPlaces;
pub use writer::Writer;
