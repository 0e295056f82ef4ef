//! The figures of a comparison of recordings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use heaptoll_gate::sites::SiteDifferences;

/// What the JSON holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiffFigures {
    /// What changes are counted from.
    pub base: Recording,
    /// What is compared with it.
    pub new: Recording,
    /// The changes by call site.
    pub sites: SiteDifferences,
    /// What the reader of the figures must know.
    pub warnings: Vec<String>,
}

/// One of the two.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recording {
    /// Path of the trace.
    pub trace: String,
    /// Program and arguments, as a shell takes them.
    pub program: String,
    /// The manager that it ran over; empty where unknown.
    pub manager: String,
    /// Where it was taken to end, seconds from its beginning; none for all of it.
    pub until_s: Option<f64>,
    /// Whether it is another tool's profile, and no trace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_profile: bool,
}
