//! The cells of an experiment: all that it has, and those that it lacks by now.

use heaptoll_experiment::experiment::{Experiment, StackInfo};
use heaptoll_experiment::plan::{self, Cell};

/// All cells.
pub fn all(experiment: &Experiment) -> Vec<Cell> {
    plan::plan(experiment, &starts(experiment))
}

/// The cells that have no row yet.
pub fn lacking(experiment: &Experiment) -> Vec<Cell> {
    plan::remaining(experiment, all(experiment))
}

/// Whether each stack has start-up runs: those of programs that are no servers have.
fn starts(experiment: &Experiment) -> Vec<bool> {
    let starts = |stack: &StackInfo| {
        experiment.programs.iter().any(|program| program.name == stack.program && program.serve.is_none())
    };
    experiment.stacks.iter().map(starts).collect()
}
