//! A ratio between two of the figures, or over many programs, with an interval. Values only, which [`super::outcome`]
//! computes.

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

/// What an effect's interval is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Pairs of repetitions, so many; repetitions, of a plain figure.
    Pairs(u32),
    /// Programs, so many: Student's t on log ratios.
    Programs(u32),
    /// Points of a line, so many: Student's t on the slope.
    Points(u32),
    /// Exact counts.
    Exact,
    /// The command's own interval.
    Estimate,
    /// Too few: there is a value, and no interval.
    None,
}

impl Basis {
    /// What several effects rest on together.
    pub(super) fn weakest(bases: impl Iterator<Item = Basis>) -> Basis {
        bases
            .reduce(|a, b| match (a, b) {
                (Basis::None, _) | (_, Basis::None) => Basis::None,
                (Basis::Pairs(a), Basis::Pairs(b)) => Basis::Pairs(a.min(b)),
                (Basis::Exact, other) | (other, Basis::Exact) => other,
                (a, b) if a == b => a,
                _ => Basis::Estimate,
            })
            .unwrap_or(Basis::None)
    }
}

/// Why there is nothing to compare.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Missing(pub String);
