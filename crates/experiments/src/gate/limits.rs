//! By how much a metric may grow from the base to the new build.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A limit on one metric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// The share by which it may grow: .01 is 1 %.
    pub share: f64,
    /// An absolute growth, in the metric's unit, that never breaks the limit.
    pub floor: f64,
}
