//! How many programs gain from longer periods, as Sareen and Blackburn (2022, §5) report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::published::records;

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
    records(TABLE).map(|line: (String, String, u64, u64, f64, u32)| {
        let (_, manager, every_bytes, over_every_bytes, beyond_percent, programs) = line;
        Gain { manager, every_bytes, over_every_bytes, beyond_percent, programs }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::rows;

    #[test]
    fn every_line_of_the_table_is_read() {
        assert!(gains().count() > 0 && gains().count() == rows(TABLE).count());
    }
}
