//! Everything that was counted and measured of one program, before it is judged.

use heaptoll_experiment::runner::RunError;

use super::counted::Counted;
use super::figures::Outputs;
use super::recorded::Recordings;
use super::timed::Timed;

/// Everything that was counted and measured of a program.
pub struct Evidence {
    /// The paired runs.
    pub timed: Timed,
    /// The traced runs; `None` without the tracer.
    pub counted: Option<Counted>,
    /// The recordings.
    pub recordings: Recordings,
    /// How the outputs compare.
    pub outputs: Outputs,
    /// Why the paired runs were broken off, where they were.
    pub trouble: Option<RunError>,
    /// Whether Ctrl-C ended it early.
    pub interrupted: bool,
}
