//! Why a chunk cannot be decoded.

/// The defect of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub(crate) &'static str);
