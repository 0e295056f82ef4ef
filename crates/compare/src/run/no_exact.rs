//! The exact axis of `run` in the build of the demo, which has no tracer and refuses it.

use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_command::full::left_out;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::places::Places;
use heaptoll_experiment::runner::Ending;
use heaptoll_experiment::store::Store;

/// There is none.
pub enum Tracer {}

/// Refuses.
pub fn tracer(_: &Places) -> Result<Tracer, Failure> {
    Err(left_out("--exact"))
}

/// Adds nothing, for there is no tracer.
pub fn add(_: &mut Experiment, _: &Store) -> Result<(), Failure> {
    Ok(())
}

/// Counts nothing.
pub fn count(_: &mut Experiment, _: &Store, tracer: &Tracer, _: &Context) -> Result<Ending, Failure> {
    match *tracer {}
}
