//! What can go wrong between a catalog entry and a command that can be run. Each message states what happened, to what,
//! and what to do next.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// An error of the catalog.
#[derive(Debug, Error)]
pub enum CatalogError {
    /// The folder of entries, or an entry in it, cannot be read.
    #[error("cannot read {}: {source}; {}", path.display(), remedy(source))]
    Read {
        /// What was read.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The folder holds no entry at all.
    #[error("no program entries (*.toml) in {}; give the folder with gawk.toml and its neighbours", folder.display())]
    Empty {
        /// The folder looked in.
        folder: PathBuf,
    },
    /// An entry is not TOML, lacks a field, or has one that the catalog does not know.
    #[error(
        "{}: {}\ncorrect the line shown; docs/questions/programs.md lists the fields of an entry",
        file.display(),
        problem.trim_end()
    )]
    Syntax {
        /// The entry.
        file: PathBuf,
        /// The parser's message, with the line and the field.
        problem: String,
    },
    /// A field of an entry parses but makes no sense.
    #[error("{}: field `{field}`: {problem}; {remedy}", file.display())]
    Field {
        /// The entry.
        file: PathBuf,
        /// The dotted name of the field.
        field: String,
        /// What is wrong with it.
        problem: String,
        /// What to write instead.
        remedy: String,
    },
    /// Two entries claim one name.
    #[error("{} and {} both describe `{name}`; rename one of them", first.display(), second.display())]
    Duplicate {
        /// The name.
        name: String,
        /// The entry loaded first.
        first: PathBuf,
        /// The entry loaded second.
        second: PathBuf,
    },
    /// No program has that name.
    #[error("no program is called `{name}`; {}", suggestion.as_ref().map_or_else(
        || format!("there are: {}", known.join(", ")),
        |near| format!("did you mean `{near}`? `heaptoll programs` lists all"),
    ))]
    UnknownProgram {
        /// What was requested.
        name: String,
        /// The nearest name, when one is near.
        suggestion: Option<String>,
        /// All names.
        known: Vec<String>,
    },
    /// No set has that name.
    #[error("no set of programs is called `{name}`; {}", match known.is_empty() {
        true => "no catalog here has one".to_owned(),
        false => format!("there are: {}", known.join(", ")),
    })]
    UnknownSet {
        /// What was requested.
        name: String,
        /// All names.
        known: Vec<String>,
    },
    /// No size has that name.
    #[error("no size is called `{size}`; give tiny, quick, demo or full")]
    UnknownSize {
        /// What was requested.
        size: String,
    },
    /// The program has no input of that size.
    #[error("`{program}` has no size `{size}`; it has: {}; add [sizes.{size}] to {}", known.join(", "), file.display())]
    NoSize {
        /// The program.
        program: String,
        /// What was requested.
        size: String,
        /// The sizes there are.
        known: Vec<String>,
        /// The entry.
        file: PathBuf,
    },
    /// A generated input cannot be written.
    #[error("cannot write the input `{input}` to {}: {source}; {}", path.display(), remedy(source))]
    Write {
        /// The input's name in the entry.
        input: String,
        /// Where it was to go.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A file that was recorded with its digest cannot be compared with it.
    #[error("cannot compare {} with its digest: {source}; add its program again (heaptoll programs add)", path.display())]
    Unverified {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is another one than was recorded.
    #[error(
        "{} differs from the added file (SHA-256 {found}, not {expected}); put that file back, or remove {} and add \
         this one (heaptoll programs add)",
        path.display(),
        list.parent().unwrap_or(list).display()
    )]
    OtherFile {
        /// The file.
        path: PathBuf,
        /// Where its digest was recorded.
        list: PathBuf,
        /// Its digest.
        found: String,
        /// The recorded one.
        expected: String,
    },
    /// A path that a command needs as text is not UTF-8.
    #[error("the path {} is not UTF-8 and cannot be part of a command; move it to a folder with a plain name", path.display())]
    NotText {
        /// The path.
        path: PathBuf,
    },
}

impl CatalogError {
    pub(crate) fn field(
        file: &Path,
        field: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        CatalogError::Field {
            file: file.to_owned(),
            field: field.into(),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }
}

/// What to do about an I/O error.
fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "the disk or quota is full: free some space, or choose an inputs folder on another disk"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "check the folder's permissions, or choose one you may write to"
        }
        io::ErrorKind::NotFound => "check that the path is right",
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "a file is in the way: remove it or choose another folder"
        }
        _ => "see the reason above",
    }
}
