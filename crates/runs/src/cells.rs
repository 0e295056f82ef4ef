//! The cells of an experiment: all that it has, and those that it lacks by now.

use heaptoll_experiment::experiment::{Experiment, StackInfo};
use heaptoll_experiment::observation::{Outcome, Phase};
use heaptoll_experiment::plan::{self, Cell};
use heaptoll_experiment::shards::Part;

/// All cells.
pub fn all(experiment: &Experiment) -> Vec<Cell> {
    plan::plan(experiment, &starts(experiment))
}

/// The cells of one shard.
pub fn of_part(experiment: &Experiment, part: &Part) -> Vec<Cell> {
    plan::of_part(experiment, part, &starts(experiment))
}

/// The cells that have no row yet.
pub fn lacking(experiment: &Experiment) -> Vec<Cell> {
    plan::remaining(experiment, all(experiment))
}

/// Whether each stack has start-up runs: those of programs that are no servers have, unless a stack of the program has
/// shown that it cannot be stopped where `main` begins, as static programs cannot.
fn starts(experiment: &Experiment) -> Vec<bool> {
    let starts = |stack: &StackInfo| {
        experiment.program(&stack.program).is_some_and(|program| program.serve.is_none())
            && !experiment.stacks_of(&stack.program).any(|other| cannot_start(experiment, other))
    };
    experiment.stacks.iter().map(starts).collect()
}

/// Whether a stack has start-up runs, and none that worked.
fn cannot_start(experiment: &Experiment, stack: &StackInfo) -> bool {
    let rows = experiment.rows(&stack.program, &stack.name);
    let mut starts = rows.filter(|row| row.phase == Phase::Startup);
    let made = starts.clone().any(|row| row.outcome != Outcome::Interrupted);
    made && !starts.any(|row| row.outcome.is_ok())
}
