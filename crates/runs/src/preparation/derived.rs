//! Stacks that a command makes of a proved one: the same objects with other settings, which are not proved again.

use heaptoll_experiment::experiment::{Experiment, ProgramInfo, StackInfo};
use heaptoll_experiment::manager::Manager;

use heaptoll_command::context::{Context, Progress};
use heaptoll_command::failure::Failure;

/// A stack that serves the program, with its manager.
pub struct Proved<'a> {
    /// The manager.
    pub manager: &'a Manager,
    /// What the preflight proved of it.
    pub stack: &'a StackInfo,
}

/// Makes further stacks.
pub trait DerivedStacks {
    /// The further stacks of a program, by the stack that they are made of, in the order of `proved`. Why there are none
    /// of one is added to the experiment.
    ///
    /// # Errors
    /// Ctrl-C, or heaptoll's own machinery failed.
    fn of_program(
        &self,
        experiment: &mut Experiment,
        program: &ProgramInfo,
        proved: &[Proved],
        context: &Context,
        progress: &dyn Progress,
    ) -> Result<Vec<Vec<StackInfo>>, Failure>;
}

/// The proof of one stack, for another of the same objects under `manager`; `with` states what differs.
pub fn proved_as(proved: &StackInfo, manager: &Manager, name: &str, with: &str) -> StackInfo {
    StackInfo {
        name: name.into(),
        environment: manager.environment_for(&proved.program),
        proof: format!("{} (observed under {}, the same objects {with})", proved.proof, proved.name),
        ..proved.clone()
    }
}
