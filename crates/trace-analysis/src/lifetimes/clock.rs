//! The clocks that ages are measured on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A clock that runs while a program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// Bytes allocated by the whole program: new objects, and what reallocs grow by.
    Bytes,
    /// Wall time, ns.
    Time,
    /// Instructions executed by the program. Only a tracer counts them.
    Instructions,
}

impl Clock {
    /// Ages for which the share of younger objects is reported.
    pub fn thresholds(self) -> &'static [u64] {
        const KIB: u64 = 1 << 10;
        const MIB: u64 = 1 << 20;
        match self {
            Clock::Bytes => &[KIB, 10 * KIB, 100 * KIB, MIB, 10 * MIB, 100 * MIB],
            Clock::Time => &[1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000],
            Clock::Instructions => &[1_000, 10_000, 100_000, 1_000_000, 10_000_000],
        }
    }
}
