//! Why recording cannot begin.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why the shared file could not be made.
#[derive(Debug)]
pub enum RingError {
    /// No folder took it: each with its error.
    NoFolder(Vec<(PathBuf, io::Error)>),
    /// The file could not be used after it was made.
    Io(PathBuf, &'static str, io::Error),
    /// Sizes that do not fit together.
    Options,
}

impl fmt::Display for RingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RingError::NoFolder(tried) => {
                write!(f, "no folder takes the shared file of the recording;")?;
                for (path, error) in tried {
                    write!(f, " {}: {error};", path.display())?;
                }
                write!(f, " set TMPDIR to a folder that you can write to")
            }
            RingError::Io(path, what, error) => write!(
                f,
                "cannot {what} {}: {error}; is the folder full, or the address space limited (ulimit -v)?",
                path.display()
            ),
            RingError::Options => write!(
                f,
                "rings must have 2^7 to 2^24 words in at least two blocks of at least 64, and there must be one"
            ),
        }
    }
}

impl std::error::Error for RingError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RingError::Io(_, _, error) => Some(error),
            _ => None,
        }
    }
}
