//! What is counted exactly of one program: both of its builds, and how long they run.

use std::path::Path;

use heaptoll_experiment::experiment::{ProgramInfo, Protocol, StackInfo};

/// What is counted.
pub struct Subject<'a> {
    /// The program.
    pub program: &'a ProgramInfo,
    /// Its base and its new build.
    pub stacks: [&'a StackInfo; 2],
    /// The manager of each that was named.
    pub managers: [Option<&'a String>; 2],
    /// How untraced runs are made. A recording that takes longer than one of them may is given up.
    pub protocol: &'a Protocol,
    /// Wall time of an untraced run, s.
    pub run_s: f64,
    /// Memory that a run takes, bytes.
    pub together_bytes: u64,
    /// Where recordings go.
    pub folder: &'a Path,
}
