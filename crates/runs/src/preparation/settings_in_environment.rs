//! Variables of the environment that change what managers do.

use std::collections::BTreeMap;
use std::ffi::OsString;

use heaptoll_experiment::experiment::Experiment;

use heaptoll_command::context::Messages;

/// Beginnings of the names of variables that managers read.
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

/// Those that are set, with their values.
pub fn set() -> BTreeMap<String, String> {
    let text = |(name, value): (OsString, OsString)| {
        (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
    };
    let reads = |(name, _): &(String, String)| PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    std::env::vars_os().map(text).filter(reads).collect()
}

/// Warns of those that are set: they apply to every run of an allocator, and the user should know that they are set, and
/// which are overridden because they define a manager.
pub fn warn(experiment: &Experiment, messages: &dyn Messages) {
    for (variable, overruling) in overruled(experiment, |variable| std::env::var(variable).ok()) {
        messages.warning(&format!("{variable} is set, but {} sets it itself", overruling.join(", ")));
    }
    for name in set().keys() {
        messages.warning(&format!(
            "{name} is set and applies to every run; unset it to compare managers as they are"
        ));
    }
    for name in ["LD_PRELOAD", "LD_AUDIT"] {
        if std::env::var_os(name).is_some_and(|value| !value.is_empty()) {
            messages.warning(&format!("{name} is set; heaptoll leaves it out of every run"));
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
