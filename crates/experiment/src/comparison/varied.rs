//! Costs over the values of one setting; [`crate::varied`] computes them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ratios::Ratios;

/// A manager with the setting at one value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariedPoint {
    /// Stack name.
    pub stack: String,
    /// The value, as it was written.
    pub value: String,
    /// The value as a number; sizes in bytes.
    pub at: i64,
    /// Good runs; of means, programs in it.
    pub good: u32,
    /// Over the same manager without the setting.
    pub ratios: Ratios,
}

/// A manager over the values of a setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariedCurve {
    /// Program; `None` for geometric means over programs.
    pub program: Option<String>,
    /// The stack without the setting.
    pub manager: String,
    /// Name of the setting.
    pub setting: String,
    /// By value, the smallest first.
    pub points: Vec<VariedPoint>,
}
