//! The tool's side: makes the file, and reads what the processes of a run left in it.

mod error;
mod file;
mod read;
mod timeline;

pub use error::EventsError;
pub use file::EventsFile;
pub use read::{Collection, Lost, ProcessEvents, Request};
