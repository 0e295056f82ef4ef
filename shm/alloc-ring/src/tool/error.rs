//! The reasons for which recording cannot begin.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// The reason for which the shared file could not be made.
#[derive(Debug)]
pub enum RingError {
    /// It could be made in no folder: each folder with its error.
    NoFolder(Vec<(PathBuf, io::Error)>),
    /// The sizes are out of range.
    Options,
}

impl RingError {
    /// The folders that were tried, each with its error.
    pub fn tried(&self) -> &[(PathBuf, io::Error)] {
        match self {
            RingError::NoFolder(tried) => tried,
            RingError::Options => &[],
        }
    }
}

impl fmt::Display for RingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RingError::NoFolder(tried) => {
                write!(f, "no folder takes the shared file of the recording")?;
                tried.iter().try_for_each(|(path, error)| write!(f, "; {}: {error}", path.display()))
            }
            RingError::Options => write!(
                f,
                "rings must have 2^7 to 2^24 words in at least two blocks of at least 64, and there must be one"
            ),
        }
    }
}

impl std::error::Error for RingError {}
