//! Everything that was counted and measured of one program, before it is judged.

use heaptoll_experiment::runner::RunError;

use super::exact::Exact;
use super::figures::Outputs;
use super::measured::Measured;

/// Everything that was counted and measured of a program.
pub struct Evidence {
    /// The paired runs.
    pub measured: Measured,
    /// What was counted.
    pub exact: Exact,
    /// How the outputs compare.
    pub outputs: Outputs,
    /// Why the paired runs were broken off, where they were.
    pub trouble: Option<RunError>,
    /// Whether Ctrl-C ended it early.
    pub interrupted: bool,
}
