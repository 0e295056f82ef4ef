//! Why nothing was recorded: each message states what happened, to what, and what to do next.

use std::io;
use std::path::PathBuf;

use heaptoll_alloc_ring::RingError;
use heaptoll_trace::TraceError;
use heaptoll_units::limits;
use thiserror::Error;

/// A recording that could not begin. The program has not run, except where the message states it.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The command is empty.
    #[error("no command was given; name the program to record after `--`")]
    NoCommand,
    /// The trace is there already.
    #[error("{} exists; --force overwrites it, -o FILE names another", .path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The trace would be a folder.
    #[error("{} is a folder; name a file in it with -o", .path.display())]
    IsFolder {
        /// The folder.
        path: PathBuf,
    },
    /// Standard output is the program's.
    #[error(
        "a trace cannot go to standard output, because the program uses it; name a file with -o, or a named pipe \
         with a reader"
    )]
    StandardOutput,
    /// The trace cannot be made.
    #[error("cannot write the trace {}: {source}; name another place with -o", .path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The trace's beginning could not be written.
    #[error("cannot begin the trace {}: {source}; name another place with -o", .path.display())]
    Trace {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: TraceError,
    },
    /// The recording layer is not installed.
    #[error(
        "the recording layer {} cannot be read ({source}); {}",
        .path.display(),
        limits::advice_or(.source, "build it with `make build`")
    )]
    Layer {
        /// Where it should be.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The loader would not find it.
    #[error("the path {} holds a space or a colon, which LD_PRELOAD takes for a separator; use a symbolic link without them", .path.display())]
    NotPreloadable {
        /// A layer or manager.
        path: PathBuf,
    },
    /// The rings could not be made.
    #[error("cannot record: {advice}{0}", advice = ring_advice(.0))]
    Ring(#[from] RingError),
    /// The program could not be started.
    #[error("cannot start {program}: {source}; check that it runs by hand")]
    Start {
        /// The command.
        program: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A file that the program should read or write cannot be opened.
    #[error("cannot open {} for the program: {source}{}", .path.display(), limits::after(.source))]
    Stream {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The system refused something that a recording needs.
    #[error("cannot {what}: {source}{}", limits::after(.source))]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

/// What to do about rings that could not be made. A limit of the process meets every folder.
fn ring_advice(error: &RingError) -> String {
    let Some((_, cause)) = error.tried().first() else { return String::new() };
    limits::advice_or(cause, "set TMPDIR to a folder that you can write to, with 2 MiB free") + "; "
}
