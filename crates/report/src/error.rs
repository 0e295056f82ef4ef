//! What can go wrong while an experiment is written out, and what the reader should do about it.

use std::io;
use std::path::{Path, PathBuf};

/// An output that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file could not be written; nothing of it was left.
    #[error("cannot write {}: {source}; {advice}", path.display())]
    File {
        /// The requested file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
        /// What to do next.
        advice: &'static str,
    },
    /// The stream that was handed over refused the bytes.
    #[error("cannot write the {form}: {source}")]
    Stream {
        /// `JSON`, `CSV`, `Parquet`, `HTML` or `Markdown`.
        form: &'static str,
        /// The stream's error.
        source: io::Error,
    },
    /// The values themselves cannot be put into this form.
    #[error(
        "cannot put the experiment into {form}: {detail}; please report this with the experiment's .db file"
    )]
    Encode {
        /// `JSON`, `CSV`, `Parquet`, `HTML` or `Markdown`.
        form: &'static str,
        /// The encoder's error.
        detail: String,
    },
}

impl ReportError {
    /// Names the file in an error, with advice that fits the cause.
    pub fn file(path: &Path, source: io::Error) -> Self {
        use io::ErrorKind as K;
        let advice = match source.kind() {
            K::NotFound => "its folder does not exist: create it, or name another",
            K::PermissionDenied | K::ReadOnlyFilesystem => "choose a folder you may write to",
            K::StorageFull | K::QuotaExceeded => {
                "free some space or choose another disk, then write it again"
            }
            K::FileTooLarge => {
                "raise the limit on file sizes (`ulimit -f unlimited`) or choose another file system"
            }
            K::IsADirectory => "name a file inside that folder",
            K::NotADirectory => "part of the path is a file: name another",
            K::InvalidFilename => "choose a shorter name",
            K::BrokenPipe => "the reader of that pipe went away",
            _ => "choose another file and write it again from the stored rows with `heaptoll report`",
        };
        ReportError::File { path: path.to_path_buf(), source, advice }
    }
}
