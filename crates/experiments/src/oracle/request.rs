//! What is requested of `heaptoll lab oracle`.

use std::path::PathBuf;

use heaptoll_runs::workload::Workload;

/// What to record.
#[derive(Debug, Clone)]
pub struct Request {
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
    /// Time limit of a run, s.
    pub timeout_s: f64,
    /// Exit status of success.
    pub expect_status: i32,
    /// The words of the command that began it.
    pub command: Vec<String>,
}
