//! A setting that `heaptoll run --vary` varies, as one stack has it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A setting of a stack that an experiment varies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Varied {
    /// The stack of the same manager without it.
    pub manager: String,
    /// Its name: `quarantine`, `sweep,every`, or that of a manager's option.
    pub setting: String,
    /// Its value, as it was written.
    pub value: String,
    /// Its value as a number; sizes in bytes.
    pub at: i64,
}
