//! How many programs gain from longer periods, as Sareen and Blackburn (2022, §5) report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::published::rows;

/// Its file in `studies/published`.
const TABLE: &str = "sareen2022-frequency.csv";

/// How many programs of the paper gained from a longer period.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gain {
    /// The manager, by the paper's name.
    pub manager: String,
    /// Period, bytes allocated.
    pub every_bytes: u64,
    /// The period it is compared with.
    pub over_every_bytes: u64,
    /// A gain counts beyond this many percent.
    pub beyond_percent: f64,
    /// Programs that gained.
    pub programs: u32,
}

/// What the paper reports of periods.
pub fn gains() -> impl Iterator<Item = Gain> {
    rows(TABLE).map(|(_, gain): (String, Gain)| gain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::are_all;

    #[test]
    fn every_line_of_the_table_is_read() {
        assert!(are_all(TABLE, gains()));
    }
}
