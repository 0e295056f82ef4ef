//! Reasons for which a program was not traced.

use std::path::PathBuf;

use heaptoll_experiment::launch::LaunchError;
use heaptoll_units::limits;
use thiserror::Error;

/// A run under the tracer without a result.
#[derive(Debug, Error)]
pub enum TracerError {
    /// The tracer is not in its folder.
    #[error(
        "{path} is missing: this heaptoll has no tracer. Of releases, the one whose name ends in `-no-tracer` has none; \
         in the source tree, install the package `valgrind` (apt-get install valgrind), then run `make build` (and \
         `make install`)", path = .path.display()
    )]
    NotBuilt {
        /// The file.
        path: PathBuf,
    },
    /// A part of it cannot be used.
    #[error("{path}: {reason}; run `make build` again, with the package `valgrind` installed", path = .path.display())]
    Incomplete {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A processor without a tracer.
    #[error("there is no tracer for this processor ({0}); it runs on x86-64, and is untested on arm64")]
    Processor(&'static str),
    /// The program did not begin, or ended before anything was recorded.
    #[error("{program} cannot be run under Valgrind{}", indented(.output))]
    CannotRun {
        /// The program.
        program: String,
        /// What Valgrind or the program printed.
        output: String,
    },
    /// A program with an allocator of its own of which not every call was seen.
    #[error("{why}")]
    HalfSeen {
        /// What was seen, what it shows, and what to do.
        why: String,
    },
    /// Folder for rings and logs.
    #[error(
        "cannot make a folder for the tracer's rings in {folder}: {cause}; {advice}",
        folder = .folder.display(),
        advice = limits::advice_or(.cause, "is it writable and not full?")
    )]
    Scratch {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The rings cannot be read.
    #[error("cannot read the tracer's rings in {folder}: {cause}", folder = .folder.display())]
    Rings {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The launcher.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

fn indented(text: &str) -> String {
    match text.trim() {
        "" => ": it ended before anything was recorded".into(),
        text => format!(":\n  {}", text.replace('\n', "\n  ")),
    }
}
