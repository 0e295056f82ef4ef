//! What Sareen and Blackburn (2022, §6) report of requests near a collection.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::published::rows;

/// Its file in `studies/published`.
const TABLE: &str = "sareen2022-proximity.csv";

/// A line of it: by how much requests differ for their distance to a collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Nearness {
    /// Under which collectors.
    pub collectors: String,
    /// On which of the paper's machines.
    pub machine: String,
    /// Collections a run; `None` where the text states it of all.
    pub collections: Option<u64>,
    /// Which requests: `first 10 %`, or `any`.
    pub requests: String,
    /// Longer by this many percent, the least.
    pub low_percent: f64,
    /// The most.
    pub high_percent: f64,
    /// How long after a collection, µs, where the text states it.
    pub lasts_us: Option<u64>,
}

/// What the paper reports of requests near a collection.
pub fn nearness() -> impl Iterator<Item = Nearness> {
    rows(TABLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::are_all;

    #[test]
    fn every_line_of_the_table_is_read() {
        assert!(are_all(TABLE, nearness()));
    }
}
