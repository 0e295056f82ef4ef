//! A ratio between two of the figures, or over many programs, with an interval.

use serde::{Deserialize, Serialize};

use super::definition::{Quantity, Study};
use super::figures::Figures;

/// One comparison.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Pairs of repetitions, so many.
    Pairs(u32),
    /// Programs, so many: Student's t on log ratios.
    Programs(u32),
    /// Points of a line, so many: Student's t on the slope.
    Points(u32),
    /// Exact counts.
    Exact,
    /// The command's own interval.
    Estimate,
    /// Too few to say: there is a value, and no interval.
    None,
}

/// Why there is nothing to compare.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Missing(pub String);

/// Every comparison of a quantity, each with its interval; intervals of repetitions hold together.
pub fn compare(quantity: &Quantity, study: &Study, figures: &Figures) -> Result<Vec<Effect>, Missing> {
    let _ = (study, figures);
    Err(Missing(format!("{} is not compared yet", quantity.metric)))
}
