//! A program's run under the recording layer, as `heaptoll record` and `heaptoll ledger` make it.

mod signals;

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use clap::Args;
use heaptoll_command::failure::Failure;
use heaptoll_experiment::places::Places;
use heaptoll_runs::record::{self, Interrupt, Request};
use heaptoll_runs::sampled;
use heaptoll_scratch::Scratch;

use crate::duration::duration;
use crate::exit;
use crate::messages::TerminalMessages;

/// A temporary folder for a trace that is not kept.
///
/// # Errors
/// None can be made.
pub fn scratch_for_trace() -> Result<Scratch, Failure> {
    Scratch::make().map_err(|error| {
        Failure::Usage(format!("cannot make a temporary folder for the trace: {error}; name a file with -o"))
    })
}

/// The option that ends a recording.
#[derive(Debug, Clone, Args)]
pub struct EndArguments {
    /// End the recording after this time: the program gets Ctrl-C's signal, and the status is 0 if that ends it. A program that
    /// runs 10 s later goes on, unrecorded
    #[arg(long = "for", value_name = "TIME", value_parser = duration, allow_negative_numbers = true)]
    after_s: Option<f64>,
}

impl EndArguments {
    /// Ends a recording that begins now at its time. Returns what makes the exit status of the program's.
    fn set(&self, interrupt: &Interrupt) -> Result<impl Fn(u8) -> u8 + use<>, Failure> {
        let end = |s| signals::end_after(Duration::from_secs_f64(s), interrupt);
        let is_over = self.after_s.map(end).transpose()?;
        Ok(move |status| match &is_over {
            Some(is_over) if is_over.load(Relaxed) && status == ENDED_BY_INTERRUPT => 0,
            _ => status,
        })
    }
}

/// The status of a program that the signal of Ctrl-C has ended.
const ENDED_BY_INTERRUPT: u8 = 128 + libc::SIGINT as u8;

/// Records a program to its end; its output goes into the file, or to standard output. Gives the exit status of
/// `heaptoll record`.
///
/// # Errors
/// It cannot be recorded.
pub fn record(
    request: &Request,
    output: Option<&Path>,
    places: &Places,
    end: &EndArguments,
) -> Result<u8, Failure> {
    let messages = TerminalMessages::default();
    let prepared = record::prepare(request, places, &messages)?.with_output_in(output);
    signals::pass_on(prepared.interrupt())?;
    let status_of = end.set(prepared.interrupt())?;
    let recorded = prepared.record(&messages)?;
    Ok(match recorded.status.map(status_of) {
        None => exit::INTERRUPTED,
        Some(0) if !recorded.is_whole() || recorded.is_empty() => exit::TROUBLE,
        Some(status) => status,
    })
}

/// Runs a program under the sampling layer. Gives what was sampled, and the exit status.
///
/// # Errors
/// It cannot be run.
pub fn sample(
    request: &sampled::Request,
    places: &Places,
    end: &EndArguments,
) -> Result<(sampled::Outcome, u8), Failure> {
    let messages = TerminalMessages::default();
    let prepared = sampled::prepare(request, places, &messages)?;
    signals::pass_on(prepared.interrupt())?;
    let status_of = end.set(prepared.interrupt())?;
    let outcome = prepared.run(&messages)?;
    let code = match outcome.status.map(status_of) {
        None => exit::INTERRUPTED,
        Some(0) if !outcome.is_whole => exit::TROUBLE,
        Some(status) => status,
    };
    Ok((outcome, code))
}
