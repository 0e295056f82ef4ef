//! A live block, and the failure to record one.

use core::fmt;

/// The system gives no memory for the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoMemory;

impl fmt::Display for NoMemory {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(
            "the system gives no memory for the tables of live blocks; lift the process's limits (ulimit -v)",
        )
    }
}

impl core::error::Error for NoMemory {}

/// A live block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block {
    pub start: usize,
    pub bytes: usize,
}

impl Block {
    pub const fn end(&self) -> usize {
        self.start + self.bytes
    }
}

/// A block, and where it is recorded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundBlock {
    pub block: Block,
    /// Its number, if it is large.
    pub large: Option<usize>,
}
