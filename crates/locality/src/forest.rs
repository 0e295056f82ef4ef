//! Set-associative LRU caches of many set counts and all ways up to [`WAYS`], in one pass.

use serde::{Deserialize, Serialize};

use crate::simulation::Split;

/// The most ways of a cache.
pub const WAYS: usize = 8;

/// Misses of one cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Associative {
    /// Sets: a power of two.
    pub sets: u64,
    /// Ways: 1 (direct-mapped) to [`WAYS`].
    pub ways: u32,
    /// Bytes it holds: sets x ways x line.
    pub bytes: u64,
    /// Misses.
    pub misses: Split<u64>,
}
