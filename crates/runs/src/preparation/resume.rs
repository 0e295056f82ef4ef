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
use heaptoll_report::format::shell_path;
use serde::de::IgnoredAny;

/// The studies that choose their runs one by one. The runs of another command would spoil their files.
const CHOOSING: [&str; 2] = ["minheap", "proximity"];

/// Opens the file and brings the experiment back to where it can go on. `study` is the study that goes on, if it chooses
/// its runs.
///
/// # Errors
/// The file cannot be used or is of another such study, or what it needs is gone.
pub fn resume(
    path: &Path,
    study: Option<&str>,
    repetitions: Option<u32>,
    messages: &dyn Messages,
) -> Result<(Store, Experiment), Failure> {
    let (store, mut experiment) = Store::resume(path)?;
    for other in CHOOSING.into_iter().filter(|name| Some(*name) != study) {
        if store.attached_value::<IgnoredAny>(other)?.is_some() {
            return Err(Failure::Usage(format!(
                "{0} is of the study {other}, which chooses its runs itself; go on with: heaptoll lab {other} \
                 --resume {0}",
                shell_path(path)
            )));
        }
    }
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

#[cfg(test)]
mod tests {
    use heaptoll_command::context::Silent;
    use heaptoll_experiment::experiment::Protocol;

    use super::*;

    /// Before, `heaptoll run --resume` made timed rows in the file of a study that chooses its runs, and spoiled it.
    #[test]
    fn a_file_of_a_study_that_chooses_its_runs_goes_on_only_by_that_study() {
        let folder = tempfile::tempdir().expect("a folder");
        for study in CHOOSING {
            let path = folder.path().join(study);
            let made = Experiment::begun(Protocol::default(), "glibc".into(), vec![]);
            let store = Store::create(&path, &made).expect("creates");
            store.attach_value(study, &[1]).expect("writes");
            drop(store);
            let goes_on = |by| resume(&path, by, None, &Silent).map(|_| ()).map_err(|why| why.to_string());
            for other in [None].into_iter().chain(CHOOSING.map(Some)).filter(|by| *by != Some(study)) {
                let why = goes_on(other).expect_err(study);
                assert!(why.ends_with(&format!("heaptoll lab {study} --resume {}", path.display())), "{why}");
            }
            assert_eq!(goes_on(Some(study)), Ok(()));
        }
        let path = folder.path().join("experiment");
        let made = Experiment::begun(Protocol::default(), "glibc".into(), vec![]);
        drop(Store::create(&path, &made).expect("creates"));
        assert!(resume(&path, None, None, &Silent).is_ok());
    }
}
