//! The answer to a claim.

use heaptoll_statistics::NOT_DECIDED;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Does it hold today?
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Yes.
    Holds,
    /// No.
    Fails,
    /// The data do not decide.
    Undecided,
    /// The system is not built, or was left out.
    NotMeasured,
}

impl Answer {
    /// In words.
    pub fn label(self) -> &'static str {
        match self {
            Answer::Holds => "holds",
            Answer::Fails => "fails",
            Answer::Undecided => NOT_DECIDED,
            Answer::NotMeasured => "not measured",
        }
    }
}
