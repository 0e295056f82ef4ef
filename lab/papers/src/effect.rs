//! A ratio between two of the figures, or over many programs, with an interval. Values only, which [`super::outcome`]
//! computes.

use heaptoll_facts::Basis;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One comparison.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Effect {
    /// What over what, on what: `bw16 over kingsley on gawk`, `mean of 6 programs`.
    pub words: String,
    /// Ratio, or plain figure.
    pub value: f64,
    /// Lower end; equal to `value` for exact counts.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// What it rests on.
    pub basis: Basis,
}

/// Why there is nothing to compare.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Missing(pub String);
