//! The result of a drain: how much was delivered, and what is missing.

/// The result of a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drained {
    /// Words read.
    pub words: usize,
    /// Whether nothing more was there.
    pub idle: bool,
    /// Whether events are there, but one before them is not: a thread has been interrupted while recording it.
    pub blocked: bool,
    /// Events that never arrive, or arrive late: their threads died while recording them, or were suspended.
    pub missing: u64,
    /// Places where numbers were overwritten.
    pub(crate) corrupted: u64,
}
