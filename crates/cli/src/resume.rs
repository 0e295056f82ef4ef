//! Resumes an experiment that was stopped.

use std::collections::BTreeMap;
use std::path::Path;

use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::store::Store;
use heaptoll_experiment::{machine, working_copy};

use crate::failure::Failure;
use crate::terminal;

/// Opens the file and brings the experiment back to where it can go on.
///
/// # Errors
/// The file cannot be used, or what it needs is gone.
pub fn resume(path: &Path, repetitions: Option<u32>) -> Result<(Store, Experiment), Failure> {
    let (store, mut experiment) = Store::resume(path)?;
    if let Some(fewer) = repetitions.filter(|&n| n < experiment.settings.repetitions) {
        return Err(Failure::Usage(format!(
            "-n {fewer}: {} was begun with {} repetitions and can be extended, not cut short; Ctrl-C ends it early",
            path.display(),
            experiment.settings.repetitions
        )));
    }
    if let Some(more) = repetitions.filter(|&n| n > experiment.settings.repetitions) {
        experiment.settings.repetitions = more;
        experiment.complete = false;
        store.describe(&experiment)?;
    }
    for object in experiment.stacks.iter().flat_map(|stack| &stack.preload) {
        if !Path::new(object).is_file() {
            return Err(Failure::Usage(format!(
                "{object}, which the experiment preloads, is gone; put it back to go on"
            )));
        }
    }
    if experiment.settings.working_copy {
        let folder = Path::new(&experiment.settings.directory);
        working_copy::check(folder).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    warn_of_settings_in_the_environment(&experiment);
    let now = machine::read();
    if (&now.cpu, &now.kernel, &now.libc)
        != (&experiment.machine.cpu, &experiment.machine.kernel, &experiment.machine.libc)
    {
        terminal::warning(
            "this is not the machine the experiment began on; its new rows will not compare well",
        );
    }
    Ok((store, experiment))
}

/// The command may name files relative to the folder in which the experiment was begun.
pub fn go_where_it_began(experiment: &Experiment) -> Result<(), Failure> {
    let directory = &experiment.settings.directory;
    if directory.is_empty() {
        return Ok(());
    }
    std::env::set_current_dir(directory).map_err(|error| {
        Failure::Usage(format!("cannot go to {directory}, where the experiment was begun: {error}"))
    })
}

/// Variables that tune an allocator apply to every run of it; the user should know that they are set, and which are
/// overridden because they define a manager.
pub fn warn_of_settings_in_the_environment(experiment: &Experiment) {
    const PREFIXES: [&str; 10] = [
        "MALLOC_",
        "_RJEM_MALLOC_",
        "JE_MALLOC_",
        "MIMALLOC_",
        "TCMALLOC_",
        "GLIBC_TUNABLES",
        "SNMALLOC_",
        "RPMALLOC_",
        "TITHE_",
        "GC_",
    ];
    for (variable, overruling) in overruled(experiment, |variable| std::env::var(variable).ok()) {
        terminal::warning(&format!(
            "{variable} is set, and overruled under {}, which sets it itself",
            overruling.join(", ")
        ));
    }
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
            terminal::warning(&format!(
                "{name} is set and applies to every run; unset it to compare managers as they are"
            ));
        }
    }
    for name in ["LD_PRELOAD", "LD_AUDIT"] {
        if std::env::var_os(name).is_some_and(|value| !value.is_empty()) {
            terminal::warning(&format!("{name} is set; heaptoll leaves it out of every run"));
        }
    }
}

/// Variables of the environment that some stacks set to another value, with these stacks.
fn overruled(experiment: &Experiment, set: impl Fn(&str) -> Option<String>) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for stack in &experiment.stacks {
        for (variable, value) in &stack.environment {
            if set(variable).is_some_and(|outside| outside != *value) {
                let stacks = found.entry(variable.clone()).or_default();
                if !stacks.contains(&stack.name) {
                    stacks.push(stack.name.clone());
                }
            }
        }
    }
    found
}
