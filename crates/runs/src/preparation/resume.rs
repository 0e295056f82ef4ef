//! Resumes an experiment that was stopped.

use std::path::{Path, PathBuf};

use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::extension::require;
use heaptoll_experiment::manager::uses_folder;
use heaptoll_experiment::store::Store;
use heaptoll_experiment::{kept_input, machine, working_copy};

use crate::preparation::settings_in_environment;
use heaptoll_command::context::Messages;
use heaptoll_command::failure::Failure;

/// Opens the file and brings the experiment back to where it can go on.
///
/// # Errors
/// The file cannot be used, or what it needs is gone.
pub fn resume(
    path: &Path,
    repetitions: Option<u32>,
    messages: &dyn Messages,
) -> Result<(Store, Experiment), Failure> {
    let (store, mut experiment) = Store::resume(path)?;
    if !experiment.settings.shards.is_empty() {
        return Err(Failure::Usage(format!(
            "{} was measured in shards: `heaptoll lab shards work` measures a missing shard, and `heaptoll lab \
             shards merge` adds it",
            path.display()
        )));
    }
    // Only Java's collectors write there.
    if experiment.stacks.iter().any(|stack| uses_folder(&stack.environment)) {
        require(&format!("{}, which has collectors of Java,", path.display()))?;
    }
    if let Some(fewer) = repetitions.filter(|&n| n < experiment.settings.repetitions) {
        return Err(Failure::Usage(format!(
            "-n {fewer}: {} began with {} repetitions and can only be extended; Ctrl-C ends it early",
            path.display(),
            experiment.settings.repetitions
        )));
    }
    for object in experiment.stacks.iter().flat_map(|stack| &stack.preload) {
        if !Path::new(object).is_file() {
            return Err(Failure::Usage(format!(
                "{object}, which the experiment preloads, is missing; put it back to go on"
            )));
        }
    }
    for stdin in experiment.programs.iter().filter_map(|program| program.stdin.as_deref()) {
        still_there(stdin, path)?;
    }
    if experiment.settings.working_copy {
        let folder = Path::new(&experiment.settings.directory);
        working_copy::check(folder).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    // Last: a request that is refused leaves the file as it is.
    if let Some(more) = repetitions.filter(|&n| n > experiment.settings.repetitions) {
        experiment.settings.repetitions = more;
        experiment.complete = false;
        store.describe(&experiment)?;
    }
    settings_in_environment::warn(&experiment, messages);
    let now = machine::read();
    if (&now.cpu, &now.kernel, &now.libc)
        != (&experiment.machine.cpu, &experiment.machine.kernel, &experiment.machine.libc)
    {
        messages
            .warning("the experiment began on another machine; new rows will not compare well with old ones");
    }
    Ok((store, experiment))
}

/// Refuses to go on without what the program read from its standard input.
fn still_there(stdin: &str, experiment: &Path) -> Result<(), Failure> {
    let why = match (kept_input::sha256(stdin), std::fs::metadata(stdin)) {
        (_, Ok(_)) => return Ok(()),
        (Some(_), Err(_)) => {
            "came from a pipe and was kept only until that command ended: begin again with --stdin FILE"
                .into()
        }
        (None, Err(error)) => format!("was {stdin}: {error}; put it back to go on"),
    };
    Err(Failure::Usage(format!("standard input of the program in {} {why}", experiment.display())))
}

/// Goes back to the folder in which the command was given, where that was known: its output files were named from there.
///
/// # Errors
/// It is gone.
pub fn come_back(here: Option<PathBuf>) -> Result<(), Failure> {
    let Some(here) = here else { return Ok(()) };
    std::env::set_current_dir(&here)
        .map_err(|error| Failure::Usage(format!("cannot go back to {}: {error}", here.display())))
}

/// The command may name files relative to the folder in which the experiment was begun.
pub fn go_where_it_began(experiment: &Experiment) -> Result<(), Failure> {
    let directory = &experiment.settings.directory;
    if directory.is_empty() {
        return Ok(());
    }
    std::env::set_current_dir(directory).map_err(|error| {
        Failure::Usage(format!("cannot go to {directory}, where the experiment began: {error}"))
    })
}
