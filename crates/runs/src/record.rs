//! `heaptoll record`: a program's run under the recording layer, and its traces.

use std::path::{Path, PathBuf};

use heaptoll_experiment::extension::require_for;
use heaptoll_experiment::manager;
use heaptoll_experiment::places::Places;
use heaptoll_preflight::inspect_manager;
pub use heaptoll_record::{Children, Interrupt, RecordingOptions, StopPoint};
use heaptoll_record::{Manager, RecordError, RecordingOutcome};

use crate::preparation::stand_ins;
use heaptoll_command::context::Messages;
use heaptoll_command::failure::Failure;
use messages::ProgressMessages;
pub use messages::machine;
pub use program::NOTHING_TO_RECORD;
pub use program::ProgramChoice;
use program::RecordedCommand;

mod messages;
pub mod program;
pub mod system_calls;

/// What is recorded, how, and into which trace.
#[derive(Debug, Clone)]
pub struct Request {
    /// The program.
    pub program: ProgramChoice,
    /// The manager to record over; the program's own without one.
    pub manager: Option<String>,
    /// The trace; named for the program without one.
    pub output: Option<PathBuf>,
    /// Whether a trace that exists is overwritten.
    pub force: bool,
    /// What is recorded.
    pub options: RecordingOptions,
    /// Whether the trace is for one command only: the messages then state only what went wrong.
    pub is_temporary: bool,
}

/// A recording that can begin: program and manager are found and checked.
pub struct Prepared {
    request: heaptoll_record::Request,
    is_temporary: bool,
    /// Its scratch folder lives as long as the program.
    _command: RecordedCommand,
}

/// Finds and checks program and manager.
///
/// # Errors
/// The request cannot be carried out.
pub fn prepare(request: &Request, places: &Places, messages: &dyn Messages) -> Result<Prepared, Failure> {
    let manager = manager_of(request.manager.as_ref(), places, messages)?;
    let found = program::find(&request.program, places)?;
    let output = request.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.heaptoll", found.name)));
    let mut whole = heaptoll_record::Request {
        command: found.command.clone(),
        environment: found.environment.clone(),
        stdin: found.stdin.clone(),
        layer: places.record_layer(),
        manager,
        output,
        force: request.force,
        options: request.options,
        machine: messages::machine(&found.command, &found.environment),
        ..heaptoll_record::Request::default()
    };
    program::inspect(&mut whole, request.manager.is_some(), messages)?;
    Ok(Prepared { request: whole, is_temporary: request.is_temporary, _command: found })
}

impl Prepared {
    /// Through which the recording is stopped, or a signal passed on to the program.
    pub fn interrupt(&self) -> &Interrupt {
        &self.request.interrupt
    }

    /// The same with the program's output in a file, or on heaptoll's own standard output without one.
    pub fn with_output_in(mut self, file: Option<&Path>) -> Prepared {
        self.request.stdout = file.map(Path::to_owned);
        self
    }

    /// What is recorded.
    pub fn subject(&self) -> &heaptoll_record::Request {
        &self.request
    }

    /// Records the program to its end, and reports what is in the traces.
    ///
    /// # Errors
    /// It cannot be recorded.
    pub fn record(&self, messages: &dyn Messages) -> Result<RecordingOutcome, Failure> {
        let recorded = heaptoll_record::record(&self.request, &mut ProgressMessages { messages })
            .map_err(|error: RecordError| Failure::Refused(Box::new(error)))?;
        messages::summary(&self.request, &recorded, self.is_temporary, messages);
        Ok(recorded)
    }
}

/// The requested manager, which must be one.
pub fn manager_of(
    wanted: Option<&String>,
    places: &Places,
    messages: &dyn Messages,
) -> Result<Manager, Failure> {
    let known = manager::known(places)?;
    let name = wanted.map_or("glibc", String::as_str);
    if manager::is_group(&known, name) {
        return Err(Failure::Usage(format!(
            "-m {name} names several managers, but a recording has one: see `heaptoll managers`"
        )));
    }
    let found = manager::find(&known, name)?;
    require_for(&found)?;
    stand_ins::note(&known, wanted, messages);
    if found.layers.iter().any(|layer| layer.kind.name == "record") {
        return Err(Failure::Usage(format!(
            "-m {name}: `heaptoll record` puts the recording layer in front itself; leave it out"
        )));
    }
    if let Some(reason) = found.why_no_layers() {
        return Err(Failure::Usage(format!(
            "{name} cannot be recorded: {reason}. Record over another manager; `heaptoll run -m {name}` measures \
             this one"
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
