//! What exhibits show and claims are tested by: a figure, or the ratio of two.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something measured: a figure, or the ratio of two.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quantity {
    /// Step.
    pub step: String,
    /// Metric.
    pub metric: String,
    /// Programs (without the variant of a side); empty: all that the step ran and both sides have.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Of all, those that it leaves out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// Numerator.
    pub of: Side,
    /// Denominator; none for metrics that are ratios already, and for plain figures.
    #[serde(default)]
    pub over: Option<Side>,
    /// How several managers of `over` count on one program.
    #[serde(default)]
    pub against: Against,
    /// Place, of metrics with many; empty: all, each a comparison of its own.
    #[serde(default)]
    pub at: Vec<f64>,
}

/// One side of a ratio.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// Managers. Empty in a numerator (or a plain figure): every one of the step. Empty in a denominator: the same as
    /// the numerator's, which then differs in variant, program or metric.
    #[serde(default)]
    pub managers: Vec<String>,
    /// Variant of the programs: `cfrac` is `cfrac:gc`. Without it the program as it is named.
    #[serde(default)]
    pub variant: Option<String>,
    /// One program in place of all.
    #[serde(default)]
    pub program: Option<String>,
    /// Another metric than the quantity's.
    #[serde(default)]
    pub metric: Option<String>,
}

/// Several managers in a denominator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Against {
    /// Each is a comparison of its own.
    #[default]
    Each,
    /// The one with the smallest figure on that program.
    Lowest,
    /// The one with the largest.
    Highest,
}
