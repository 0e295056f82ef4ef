//! A ratio and how far it is certain.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A ratio to the baseline with its interval; simultaneous over all ratios of its table (family-wise 95 %).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Trimmed geometric mean of the paired ratios (with fewer than six pairs the plain one).
    pub ratio: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Whether the interval excludes 1: only then is a difference claimed.
    pub differs: bool,
    /// Number of pairs it rests on.
    pub pairs: u32,
}
