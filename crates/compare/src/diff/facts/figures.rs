//! The figures of a comparison of two results.

use heaptoll_facts::{Basis, Fact, Known, Value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the JSON holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiffFactsFigures {
    /// The command that wrote both.
    pub command: String,
    /// The file from which changes are counted.
    pub base: String,
    /// The file that is compared with it.
    pub new: String,
    /// What both have, the largest change first.
    pub rows: Vec<Row>,
    /// What the reader of the figures must know.
    pub warnings: Vec<String>,
}

/// One fact that both have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// The base's.
    #[serde(flatten)]
    pub base: Fact,
    /// The value in the new file.
    pub new: Value,
    /// The new value over the base, with the widest interval that the two allow; null where a ratio means nothing.
    pub change: Option<Known>,
}

impl Row {
    /// Whether the two differ for certain.
    pub fn has_changed(&self) -> bool {
        self.change
            .is_some_and(|change| change.basis != Basis::None && !(change.low..=change.high).contains(&1.0))
    }

    /// By what factor, whichever way.
    pub fn factor(&self) -> f64 {
        self.change.map_or(0.0, |change| change.value.ln().abs())
    }
}
