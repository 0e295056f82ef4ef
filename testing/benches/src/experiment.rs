//! An experiment made for a bench: one program of the catalog under stacks given by hand, planned, interleaved and run by
//! `heaptoll_experiment` like any other, but without preflight and without a file that is kept.

use std::ffi::OsString;
use std::path::PathBuf;

use heaptoll_catalog::Prepared;
use heaptoll_experiment::experiment::{Experiment, ProgramInfo, Protocol, StackInfo};
use heaptoll_experiment::observation::Observation;
use heaptoll_experiment::plan::{self, Cell};
use heaptoll_experiment::runner::{self, Progress, RunContext, RunError};
use heaptoll_experiment::store::Store;

/// A stack: its name, what it preloads, its environment.
#[derive(Debug, Clone, Default)]
pub struct Stack {
    /// Name in rows.
    pub name: String,
    /// Objects to preload, in order; none for plain glibc.
    pub preload: Vec<PathBuf>,
    /// Environment.
    pub environment: Vec<(String, String)>,
    /// Whether its manager reports on the statistics page.
    pub reports_statistics: bool,
}

impl Stack {
    /// Plain glibc under a name.
    pub fn plain(name: impl Into<String>) -> Stack {
        Stack { name: name.into(), ..Stack::default() }
    }

    /// What `LD_PRELOAD` has to be.
    pub fn ld_preload(&self) -> OsString {
        let objects: Vec<_> = self.preload.iter().map(|object| object.as_os_str()).collect();
        objects.join(":".as_ref())
    }
}

/// Shows nothing.
#[derive(Debug)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn begins(&mut self, _: &Cell, _: &StackInfo) {}
    fn ended(&mut self, _: &Cell, _: Option<&Observation>) {}
}

/// Runs `program`, which is no server, under the stacks, of which the first is the baseline.
///
/// # Errors
/// No scratch folder can be made, the experiment's file cannot be written, or the baseline itself fails. A run of
/// another stack that fails is a row that is marked.
pub fn run(
    program: &Prepared,
    stacks: &[Stack],
    protocol: Protocol,
    context: &RunContext,
    progress: &mut dyn Progress,
) -> Result<Experiment, RunError> {
    let folder = tempfile::tempdir().map_err(RunError::Scratch)?;
    let mut experiment = describe(program, stacks, protocol);
    let mut store = Store::create(&folder.path().join("experiment.db"), &experiment)?;
    let cells = plan::plan(&experiment, &vec![true; stacks.len()]);
    runner::execute(&mut experiment, &cells, &mut store, context, progress)?;
    Ok(experiment)
}

/// The experiment before its first row.
fn describe(program: &Prepared, stacks: &[Stack], protocol: Protocol) -> Experiment {
    let stack = |stack: &Stack| StackInfo {
        program: program.name.clone(),
        name: stack.name.clone(),
        preload: stack.preload.iter().map(|path| path.display().to_string()).collect(),
        environment: stack.environment.clone(),
        reports_statistics: stack.reports_statistics,
        ..StackInfo::default()
    };
    let programs = vec![ProgramInfo {
        name: program.name.clone(),
        about: program.about.clone(),
        command: program.command.clone(),
        environment: program.environment.clone(),
        stdin: program.stdin.as_ref().map(|path| path.display().to_string()),
        expected_digest: program.expected_digest.clone(),
        figures: program.figures.clone(),
        scratch: true,
        ..ProgramInfo::default()
    }];
    let baseline = stacks.first().map(|stack| stack.name.clone()).unwrap_or_default();
    Experiment {
        stacks: stacks.iter().map(stack).collect(),
        ..Experiment::begun(protocol, baseline, programs)
    }
}
