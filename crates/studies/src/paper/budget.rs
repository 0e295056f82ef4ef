//! Which programs and how many repetitions of each step fit into a time, and what that costs in precision.

use serde::{Deserialize, Serialize};

/// A step as it is to be run.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Planned {
    /// Study and step.
    pub study: String,
    /// Step's id.
    pub step: String,
    /// Programs, the first of the step's list.
    pub programs: usize,
    /// Of so many.
    pub of_programs: usize,
    /// Repetitions.
    pub repetitions: u32,
    /// Of so many.
    pub of_repetitions: u32,
    /// Size of the inputs.
    pub size: String,
    /// Guess, seconds.
    pub seconds: f64,
    /// It is interrupted after so many seconds, and what it has is kept.
    pub deadline_s: f64,
}
