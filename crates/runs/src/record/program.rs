//! The program to record: found, and checked before it runs.

use std::ffi::OsString;
use std::path::PathBuf;

use heaptoll_catalog::{Size, fill_scratch};
use heaptoll_experiment::places::Places;
use heaptoll_experiment::runner::PINNED;
use heaptoll_preflight::{Refusal, inspect_program};
use heaptoll_record::Request;

use crate::workload::{catalog, catalog_places};
use heaptoll_command::context::Messages;
use heaptoll_command::failure::Failure;

/// The request names no program.
pub const NOTHING_TO_RECORD: &str =
    "nothing to record: give a command after `--`, or --program NAME (`heaptoll programs` lists them)";

/// The program as the user named it: a command, or an entry of the catalog.
#[derive(Debug, Clone)]
pub struct ProgramChoice {
    /// Program and arguments; empty where an entry was named.
    pub command: Vec<OsString>,
    /// Name of the entry.
    pub name: Option<String>,
    /// Size of its input.
    pub size: Size,
    /// A folder with further entries.
    pub catalog: Option<PathBuf>,
    /// What a command reads from its standard input, when not ours. An entry has its own.
    pub stdin: Option<PathBuf>,
}

/// The command to record.
pub struct RecordedCommand {
    /// For the trace's name.
    pub name: String,
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// Variables set for it.
    pub environment: Vec<(OsString, OsString)>,
    /// Its standard input, when not ours.
    pub stdin: Option<PathBuf>,
    /// Lives as long as the program.
    _scratch: Option<heaptoll_scratch::Scratch>,
}

/// Finds the command or the catalog's program.
///
/// # Errors
/// Neither was named, or it is not available.
pub fn find(choice: &ProgramChoice, places: &Places) -> Result<RecordedCommand, Failure> {
    if let Some(name) = &choice.name {
        return of_catalog(name, choice, places);
    }
    let Some(first) = choice.command.first().filter(|first| !first.is_empty()) else {
        return Err(Failure::Usage(NOTHING_TO_RECORD.into()));
    };
    let path = PathBuf::from(first);
    let name = path.file_name().unwrap_or(first).to_string_lossy().into_owned();
    Ok(RecordedCommand {
        name,
        command: choice.command.clone(),
        environment: Vec::new(),
        stdin: choice.stdin.clone(),
        _scratch: None,
    })
}

fn of_catalog(name: &str, choice: &ProgramChoice, places: &Places) -> Result<RecordedCommand, Failure> {
    let mut catalog = catalog(places, choice.catalog.as_deref())?;
    let (program, folders) = (catalog.meant(name)?, catalog_places(places));
    if let Some(what) = program.missing(&folders) {
        return Err(Failure::Usage(format!("{name}: {what}")));
    }
    let prepared = program.prepare(choice.size, &folders)?;
    if prepared.serve.is_some() {
        return Err(Failure::Usage(format!(
            "{name} is a server, which runs until a signal: record its command, and load it from another terminal"
        )));
    }
    let scratch = heaptoll_scratch::Scratch::make()
        .map_err(|error| Failure::Usage(format!("cannot make a scratch folder: {error}")))?;
    let tmp = scratch.path().display().to_string();
    let fill = |text: &String| OsString::from(fill_scratch(text, &tmp));
    // As in runs that are compared: the same work each time.
    let pinned = PINNED.iter().filter(|(name, _)| std::env::var_os(name).is_none());
    let pinned = pinned.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let own = prepared.environment.iter().map(|(name, value)| (name.into(), fill(value)));
    Ok(RecordedCommand {
        name: prepared.name,
        command: prepared.command.iter().map(fill).collect(),
        environment: pinned.chain(own).collect(),
        stdin: Some(prepared.stdin.unwrap_or_else(|| "/dev/null".into())),
        _scratch: Some(scratch),
    })
}

/// Allocators that programs link, by the beginning of their object's name.
const LINKED: [&str; 7] =
    ["libjemalloc", "libtcmalloc", "libmimalloc", "libtbbmalloc", "libhoard", "libsnmalloc", "librpmalloc"];

/// Refuses a program that the layer cannot reach, warns of one that it may not reach wholly, and puts glibc in front of
/// another manager that it links, or that the user preloads, where `manager_named`: glibc was named.
///
/// # Errors
/// The refusal.
pub fn inspect(request: &mut Request, manager_named: bool, messages: &dyn Messages) -> Result<(), Failure> {
    let environment: Vec<_> = std::env::vars_os().collect();
    let facts = inspect_program(&request.command, &environment, request.directory.as_deref())?;
    if facts.own_exports.iter().any(|name| name == "malloc") {
        return Err(Refusal::OwnAllocator { program: facts.path, object: facts.binary }.into());
    }
    if !facts.hidden_allocator.is_empty() {
        messages.warning(&format!(
            "{} seems to have an allocator inside ({}): its blocks are not recorded",
            facts.binary.display(),
            facts.hidden_allocator.join(", ")
        ));
    }
    let preloaded = environment.iter().filter(|(name, _)| name == "LD_PRELOAD");
    let preloaded = preloaded
        .flat_map(|(_, list)| list.to_string_lossy().split([':', ' ']).map(file_name).collect::<Vec<_>>());
    let mut objects = facts.needed.iter().cloned().chain(preloaded);
    let linked = objects.find(|object| LINKED.iter().any(|known| object.starts_with(known)));
    if let Some(linked) = linked.filter(|_| request.manager.preload.is_empty()) {
        if manager_named {
            // In front of what is linked. By its soname, as the program names it.
            request.manager.preload = vec![PathBuf::from("libc.so.6")];
        } else {
            let name = facts.binary.file_name().unwrap_or_default().to_string_lossy();
            messages.note(&format!("{name} links or preloads {linked}: it is recorded over that"));
        }
    }
    Ok(())
}

fn file_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}
