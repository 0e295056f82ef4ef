//! What is requested of `heaptoll lab oracle`.

use std::path::PathBuf;

use heaptoll_experiment::experiment::Protocol;
use heaptoll_runs::workload::Workload;

/// What to record.
#[derive(Debug, Clone)]
pub struct OracleRequest {
    /// The programs.
    pub workload: Workload,
    /// The file; of several programs the folder.
    pub output: PathBuf,
    /// Whether a file that exists is overwritten.
    pub force: bool,
    /// Whether it is recorded when objects can be reached no more.
    pub graph: bool,
    /// Whether early frees are proved safe.
    pub prove: bool,
    /// How runs are made.
    pub protocol: Protocol,
}
