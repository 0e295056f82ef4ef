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
        "{trace} has only {} allocations, and an allocator needs {}: classes for rare sizes cost more than they \
         gain. Record a longer run or a larger input",
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
        "{trace} is incomplete ({why}), so the live bytes that sizes are planned from are unknown; record the \
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
        "there is no C compiler: none of cc, gcc and clang is in PATH, and CC is not set. Install one (Debian: gcc), \
         or write only the source by `--source FILE` without `-o`"
    )]
    NoCompiler,
    /// `$CC` names none.
    #[error("CC is `{cc}`, which is not a program in PATH; set it to a C compiler, or unset CC")]
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
    #[error("{compiler} does not compile {}: {text}\nset CC to another compiler, such as GCC or Clang", code.display())]
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
