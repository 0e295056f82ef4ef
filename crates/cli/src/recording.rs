//! A program's run under the recording layer, as `heaptoll record` and `heaptoll ledger` make it.

use heaptoll_command::failure::Failure;
use heaptoll_experiment::places::Places;
use heaptoll_runs::record::{self, Request};
use heaptoll_runs::sampled;
use heaptoll_scratch::Scratch;

use crate::messages::TerminalMessages;
use crate::{exit, interrupt, terminal};

/// A temporary folder for a trace that is not kept.
///
/// # Errors
/// None can be made.
pub fn scratch_for_trace() -> Result<Scratch, Failure> {
    Scratch::make().map_err(|error| {
        Failure::Usage(format!("no temporary folder for the trace: {error}; name a file by -o"))
    })
}

/// Records a program to its end. Gives the exit status of `heaptoll record`.
///
/// # Errors
/// It cannot be recorded.
pub fn record(request: &Request, places: &Places) -> Result<u8, Failure> {
    let messages = TerminalMessages::default();
    let mut prepared = record::prepare(request, places, &messages)?;
    if terminal::is_output_reserved() {
        prepared = prepared.with_output_on_errors();
    }
    interrupt::pass_on(prepared.interrupt())?;
    let recorded = prepared.record(&messages)?;
    Ok(match recorded.status {
        None => exit::INTERRUPTED,
        Some(0) if !recorded.is_whole() || recorded.is_empty() => exit::TROUBLE,
        Some(status) => status,
    })
}

/// Runs a program under the sampling layer. Gives what was sampled, and the exit status.
///
/// # Errors
/// It cannot be run.
pub fn sample(request: &sampled::Request, places: &Places) -> Result<(sampled::Outcome, u8), Failure> {
    let messages = TerminalMessages::default();
    let prepared = sampled::prepare(request, places, &messages)?;
    interrupt::pass_on(prepared.interrupt())?;
    let outcome = prepared.run(&messages)?;
    let code = match outcome.status {
        None => exit::INTERRUPTED,
        Some(0) if !outcome.is_whole => exit::TROUBLE,
        Some(status) => status,
    };
    Ok((outcome, code))
}
