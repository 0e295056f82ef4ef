//! What `heaptoll-mmtk` answers, a line of JSON a command: the program and the tool that starts it have one definition of
//! it. The program is a workspace of its own (`moving/`), so nothing of MMTk is here.

mod collections;
pub mod plans;
mod prepared;
mod replayed;
mod simulated;

pub use collections::Collections;
pub use prepared::Prepared;
pub use replayed::Replayed;
pub use simulated::{ByAccessor, Caches, Simulated, SimulatedRequest};

/// Bytes of a page: heaps are whole pages.
pub const PAGE: u64 = 4096;
