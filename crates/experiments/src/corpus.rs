//! A corpus of recorded traces: twenty programs of the catalog, each recorded with its call sites at a bounded size, with an
//! index of what was recorded where. Traces are data of who records them; heaptoll brings none along.

pub mod check;
mod error;
pub mod figures;
mod licence;
pub mod make;
mod origin;
mod page;
mod selection;

pub use error::CorpusError;
pub use selection::{SELECTION, Selected};

/// The schema of the index.
pub const SCHEMA: &str = "heaptoll-corpus/1";
/// Name of the index in the folder.
pub const INDEX: &str = "corpus.json";
/// Name of the page that people read.
pub const PAGE: &str = "README.md";
/// The largest traces of one program where nothing else is requested, bytes.
pub const MOST_BYTES: u64 = 64 << 20;
