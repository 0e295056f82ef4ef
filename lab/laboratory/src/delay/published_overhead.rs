//! The overheads of a quarantine that Sareen and Blackburn (2022, §7) report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::published::{is_version_of, rows};

/// Its file in `studies/published`.
const TABLE: &str = "sareen2022-delay.csv";

/// What a published overhead is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Time over that with a quarantine of one byte.
    Time,
    /// Maximum resident memory over that with a quarantine of one byte.
    Space,
    /// Time with a quarantine of one byte over that without a quarantine.
    LayerTime,
}

/// A published overhead of a quarantine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overhead {
    /// `SPEC CPU2006` or `mimalloc-bench`.
    pub suite: String,
    /// Program; `None` for the suite's mean.
    pub program: Option<String>,
    /// The manager, by the paper's name.
    pub manager: String,
    /// Bytes of the quarantine.
    pub size_bytes: u64,
    /// What of.
    pub quantity: Quantity,
    /// Percent.
    pub percent: f64,
}

impl Overhead {
    /// As a ratio.
    pub fn ratio(&self) -> f64 {
        1.0 + self.percent / 100.0
    }

    /// Whether a manager of ours is, in some version, the one that this was measured with.
    pub fn is_of(&self, manager: &str) -> bool {
        is_version_of(&self.manager, manager)
    }
}

/// Every published overhead of a quarantine.
pub fn overheads() -> impl Iterator<Item = Overhead> {
    // A suite's mean is in the column of programs.
    rows(TABLE).map(|one: Overhead| Overhead { program: one.program.filter(|name| name != "mean"), ..one })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::are_all;

    #[test]
    fn every_line_of_the_table_is_read() {
        assert!(are_all(TABLE, overheads()));
    }

    #[test]
    fn the_paper_found_tcmalloc_the_most_sensitive() {
        let mean = |manager: &str| {
            overheads()
                .find(|one| {
                    one.manager == manager
                        && one.program.is_none()
                        && one.suite == "mimalloc-bench"
                        && one.quantity == Quantity::Time
                })
                .map(|one| one.percent)
        };
        assert!(mean("TCMalloc") > mean("snmalloc") && mean("snmalloc") > mean("mimalloc"));
    }

    #[test]
    fn versions_of_a_manager_are_the_papers() {
        let one = |name: &str| overheads().find(|one| one.manager == name).expect("it is there");
        assert!(one("mimalloc").is_of("mimalloc3") && one("mimalloc").is_of("debian-mimalloc2"));
        assert!(one("TCMalloc").is_of("tcmalloc") && !one("TCMalloc").is_of("debian-gperftools"));
        assert!(!one("snmalloc").is_of("mimalloc3"));
    }
}
