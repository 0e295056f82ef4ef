//! The history of a program's gates, by commit: an SQLite file that each gate adds its rows to, and a document that draws
//! it.

mod commit;
mod document;
mod error;
mod store;

pub use commit::Commit;
pub use document::document;
pub use error::HistoryError;
pub use store::{HistoryRow, append, check, read};

#[cfg(test)]
mod tests;
