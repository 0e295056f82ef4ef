//! What a command adds to runs of its own: files that a run writes into its scratch folder, and what they hold.

use std::path::Path;

use heaptoll_stats_page::StatsPage;

use super::error::RunError;
use crate::launch::{Finished, Invocation};
use crate::observation::Observation;

/// What a command adds to its own runs. Nothing, in the engine's.
pub trait Around {
    /// Before a run, with its scratch folder, the invocation of its program, and those of a server's loads.
    ///
    /// # Errors
    /// What the run needs cannot be made.
    fn begins(
        &mut self,
        _scratch: &Path,
        _program: &mut Invocation,
        _loads: &mut [Invocation],
    ) -> Result<(), RunError> {
        Ok(())
    }

    /// After it. What this gives is kept with the row.
    ///
    /// # Errors
    /// What the run left cannot be read.
    fn ended(&mut self, _left: &Left, _row: &mut Observation) -> Result<Option<Vec<u8>>, RunError> {
        Ok(None)
    }
}

impl Around for () {}

/// What a run left.
pub struct Left<'a> {
    /// Its scratch folder.
    pub scratch: &'a Path,
    /// The statistics of its manager and layers, where they report any.
    pub page: Option<&'a StatsPage>,
    /// The launcher's report.
    pub finished: &'a Finished,
}
