//! A program's run under the recording layer, as `heaptoll record` and `heaptoll ledger` make it.

use std::path::PathBuf;

use heaptoll_experiment::manager;
use heaptoll_experiment::places::Places;
use heaptoll_experiment::stack::LayerKind;
use heaptoll_preflight::inspect_manager;
use heaptoll_record::{Children, Manager, RecordError, Request};

use crate::exit;
use heaptoll_experiments::failure::Failure;
use heaptoll_experiments::preparation::stand_ins;

mod messages;
mod program;
mod signals;

pub use program::ProgramChoice;

/// What is recorded, how, and into which trace.
pub struct RecordingOptions {
    /// The program.
    pub program: ProgramChoice,
    /// The manager to record over; the program's own without one.
    pub manager: Option<String>,
    /// The trace; named for the program without one.
    pub output: Option<PathBuf>,
    /// Whether a trace that exists is overwritten.
    pub force: bool,
    /// Whether call stacks are recorded.
    pub sites: bool,
    /// Whether the time that each call takes is recorded.
    pub latency: bool,
    /// Whether each event has its own time.
    pub event_time: bool,
    /// Whether snapshots are taken of where the memory is.
    pub ledger: bool,
    /// Whether a collection is forced at each of them.
    pub collect: bool,
    /// Processes that the program starts.
    pub children: Children,
    /// Whether the trace is for this command only: the messages then state only what went wrong.
    pub is_temporary: bool,
}

/// Records a program to its end. Gives the exit status of `heaptoll record`.
///
/// # Errors
/// It cannot be recorded.
pub fn record(options: &RecordingOptions, places: &Places) -> Result<u8, Failure> {
    let manager = manager_of(options, places)?;
    let found = program::find(&options.program, places)?;
    let mut request = Request {
        command: found.command,
        environment: found.environment,
        stdin: found.stdin,
        layer: places.record_layer(),
        manager,
        output: options.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.heaptoll", found.name))),
        force: options.force,
        sites: options.sites,
        latency: options.latency,
        event_time: options.event_time,
        ledger: options.ledger,
        collect: options.collect,
        children: options.children,
        machine: messages::machine(),
        ..Request::default()
    };
    program::inspect(&mut request, options.manager.is_some())?;
    signals::watch(&request.interrupt)?;
    let recorded = heaptoll_record::record(&request, &mut messages::ProgressMessages).map_err(refused)?;
    messages::summary(&request, &recorded, options.is_temporary);
    Ok(match recorded.status {
        None => exit::INTERRUPTED,
        Some(0) if !recorded.is_whole() || recorded.events() == 0 => exit::TROUBLE,
        Some(status) => status,
    })
}

fn refused(error: RecordError) -> Failure {
    Failure::Refused(Box::new(error))
}

/// The requested manager, which must be one.
fn manager_of(options: &RecordingOptions, places: &Places) -> Result<Manager, Failure> {
    let known = manager::known(places)?;
    let name = options.manager.as_deref().unwrap_or("glibc");
    if manager::is_group(&known, name) {
        return Err(Failure::Usage(format!(
            "-m {name} names several managers; a recording has one: see `heaptoll managers`"
        )));
    }
    stand_ins::note(&known, &options.manager, &crate::messages::TerminalMessages::default());
    let found = manager::find(&known, name)?;
    if found.layers.iter().any(|layer| layer.kind == LayerKind::Record) {
        return Err(Failure::Usage(format!(
            "-m {name}: `heaptoll record` puts the recording layer in front itself; leave it out"
        )));
    }
    if let Some(reason) = found.why_no_layers() {
        return Err(Failure::Usage(format!(
            "{name} cannot be recorded over: {reason}; record over another manager, and `heaptoll run -m {name}` for its \
             figures"
        )));
    }
    if let Some(object) = &found.object {
        inspect_manager(object)?;
    }
    Ok(Manager {
        collector: found.collects(),
        preload: found.preload(places),
        environment: found.environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        name: found.name,
        version: found.version,
    })
}
