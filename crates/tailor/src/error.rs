//! Why no allocator is made of a trace.

use std::io;
use std::path::{Path, PathBuf};

use heaptoll_units::number;
use thiserror::Error;

/// Why no allocator is made of a trace, and what to do.
#[derive(Debug, Error)]
pub enum TailorError {
    /// Too few allocations.
    #[error(
        "{trace} has {} allocations: an allocator is made from {} on, since a class for a size that a short run \
         requests a few times costs more than it gains; record a longer run, or one on a larger input",
        number(*allocations), number(*least)
    )]
    TooSmall {
        /// The trace.
        trace: String,
        /// Its allocations.
        allocations: u64,
        /// Fewest that are accepted.
        least: u64,
    },
    /// Events are missing.
    #[error(
        "{trace} is not whole ({why}): what was live at once, from which sizes are planned, is not known; record the \
         program again"
    )]
    NotWhole {
        /// The trace.
        trace: String,
        /// What is missing.
        why: String,
    },
    /// No compiler.
    #[error(
        "no C compiler is there: none of cc, gcc and clang is in PATH, and CC is not set; install one (Debian: gcc), or \
         write the source alone by `--source FILE` without `-o`"
    )]
    NoCompiler,
    /// `$CC` names none.
    #[error("CC is `{cc}`, which is no program in PATH; set it to a C compiler, or unset CC")]
    NoSuchCompiler {
        /// The variable's value.
        cc: String,
    },
    /// The system does not start it.
    #[error("cannot start the C compiler {compiler}: {source}; set CC to another")]
    CannotStart {
        /// Its command.
        compiler: String,
        /// The system's reason.
        source: io::Error,
    },
    /// It failed.
    #[error("{compiler} does not compile {}: {text}\nset CC to another compiler (GCC and Clang are known to do)", code.display())]
    CompilerFails {
        /// Its command.
        compiler: String,
        /// The source.
        code: PathBuf,
        /// The beginning of what it wrote.
        text: String,
    },
    /// A file to be made is there.
    #[error("{} exists: choose another name, or allow it to be replaced (--force)", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be made.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl TailorError {
    /// That a file cannot be made.
    pub(crate) fn write(path: &Path, source: io::Error) -> TailorError {
        TailorError::Write { path: path.to_owned(), source }
    }
}
