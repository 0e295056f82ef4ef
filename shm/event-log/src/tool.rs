//! The tool's side: making the file, and reading what the processes of a run left in it.

mod error;
mod file;
mod read;
mod timeline;

pub use error::EventsError;
pub use file::EventsFile;
pub use read::{Collection, Lost, ProcessEvents, Request};
