//! What is to be recorded, and how.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use heaptoll_alloc_ring::StopPoint;

use crate::interrupt::Interrupt;

/// The processes that the program starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Children {
    /// A file for each process image.
    #[default]
    Files,
    /// Only the first image of the first process is recorded; the layer leaves the others alone.
    Ignore,
}

/// The manager below the recording layer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manager {
    /// Its name, for the trace. `glibc` when nothing is preloaded for it.
    pub name: String,
    /// Its version, where known.
    pub version: String,
    /// Whether it collects garbage: frees may then do nothing.
    pub collector: bool,
    /// Objects preloaded for it.
    pub preload: Vec<PathBuf>,
    /// Variables that it requires.
    pub environment: Vec<(OsString, OsString)>,
}

/// The name of a manager that is not proved.
pub const UNKNOWN: &str = "unknown";
const GLIBC: &str = "glibc";

impl Manager {
    /// The manager of a process whose `malloc` is bound to `object`: this one where that is its own. Otherwise the program
    /// links or preloads another, whose object names it.
    pub fn serving(&self, object: &Path) -> Manager {
        let named =
            |name: &str| Manager { name: name.to_owned(), version: UNKNOWN.to_owned(), ..Manager::default() };
        let Some(file) = object.file_name() else { return named(UNKNOWN) };
        let is_glibc = file.as_encoded_bytes().starts_with(b"libc.so.")
            || file.as_encoded_bytes().starts_with(b"libc-2.");
        let is_over_glibc = self.name.rsplit('/').next() == Some(GLIBC);
        if self.preload.iter().any(|own| own.file_name() == Some(file)) || (is_glibc && is_over_glibc) {
            return self.clone();
        }
        if is_glibc { named(GLIBC) } else { named(&file.to_string_lossy()) }
    }
}

/// What is recorded of a program, and which of its processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordingOptions {
    /// Whether to record call stacks.
    pub sites: bool,
    /// Whether to record how long each call takes.
    pub latency: bool,
    /// Whether each event gets a time of its own; otherwise about every millisecond has one.
    pub event_time: bool,
    /// Whether to take snapshots for the ledger, about sixty.
    pub ledger: bool,
    /// Whether to force a collection at each of these snapshots, to see what it reclaims.
    pub collect: bool,
    /// Where one process image is stopped for a snapshot, if one is to be.
    pub stop: Option<StopPoint>,
    /// Processes that the program starts.
    pub children: Children,
}

/// One recording.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// Variables set for the program, over those of this process. The objects in its `LD_PRELOAD` come after those of
    /// the recording.
    pub environment: Vec<(OsString, OsString)>,
    /// Its current folder; this process's when `None`.
    pub directory: Option<PathBuf>,
    /// What it reads; this process's standard input when `None`.
    pub stdin: Option<PathBuf>,
    /// Where its standard output goes; this process's when `None`.
    pub stdout: Option<PathBuf>,
    /// Where its standard error goes; this process's when `None`.
    pub stderr: Option<PathBuf>,
    /// The recording layer.
    pub layer: PathBuf,
    /// The manager below it.
    pub manager: Manager,
    /// The trace of the first process image; those of others are in a folder of this name with `.children` appended.
    pub output: PathBuf,
    /// Whether a file of that name may be overwritten.
    pub force: bool,
    /// What is recorded.
    pub options: RecordingOptions,
    /// Name and value of what the trace should state of the machine.
    pub machine: Vec<(String, String)>,
    /// Whether the program leads a process group of its own: signals of the terminal do not reach it, and all of the group
    /// can be ended by its number.
    pub own_group: bool,
    /// Through which the user stops it.
    pub interrupt: Interrupt,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_is_what_malloc_is_bound_to_or_unknown() {
        let manager = |name: &str, object: Option<&str>| Manager {
            name: name.into(),
            version: "1".into(),
            collector: true,
            preload: object.into_iter().map(PathBuf::from).collect(),
            environment: Vec::new(),
        };
        let (glibc, forwarded) = (manager("glibc", None), manager("forward/glibc", Some("/l/forward.so")));
        let mimalloc = manager("mimalloc3", Some("/m/mimalloc3.so"));
        let (libc, other) = ("/lib/x86_64-linux-gnu/libc.so.6", "/lib/libjemalloc.so.2");
        for (wanted, object, name) in [
            (&glibc, libc, "glibc"),
            (&glibc, other, "libjemalloc.so.2"),
            (&glibc, "", UNKNOWN),
            (&manager("glibc", Some("libc.so.6")), libc, "glibc"),
            (&forwarded, "/l/forward.so", "forward/glibc"),
            (&forwarded, libc, "forward/glibc"),
            (&mimalloc, "/m/mimalloc3.so", "mimalloc3"),
            (&mimalloc, libc, "glibc"),
            (&mimalloc, "", UNKNOWN),
        ] {
            let serving = wanted.serving(Path::new(object));
            assert_eq!(serving.name, name, "{object} for {}", wanted.name);
            let is_wanted = serving.name == wanted.name;
            assert_eq!((serving.collector, serving.version == "1"), (is_wanted, is_wanted));
        }
    }
}
