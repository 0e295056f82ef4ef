//! Numbers of misses, exact or estimated: a curve has both, exact ones up to the seam and estimates from the sample
//! beyond.

use serde::{Deserialize, Serialize};

use crate::split::Split;

/// A number of misses: exact, or estimated with an interval that contains the true number 95 times in 100.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// Best estimate.
    pub value: u64,
    /// Lower end; the value itself if it is exact.
    pub low: u64,
    /// Upper end; the value itself if it is exact.
    pub high: u64,
}

impl Estimate {
    /// A value known exactly.
    pub fn exact(value: u64) -> Estimate {
        Estimate { value, low: value, high: value }
    }

    /// Whether it is known exactly.
    pub fn is_exact(&self) -> bool {
        self.low == self.high
    }
}

/// Misses in a memory of one size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misses {
    /// By accessor.
    pub by: Split<Estimate>,
    /// Of all accessors.
    pub total: Estimate,
}
