//! Heaptoll's own standard input in a form that every run of a program can read, for as long as a command lasts.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use heaptoll_scratch::Scratch;

/// Heaptoll's own standard input, which is read at most once and stays readable until the command ends.
#[derive(Debug, Default)]
pub struct OwnInput(Mutex<Option<Kept>>);

/// What was read.
#[derive(Debug)]
pub struct Kept {
    /// The file to read; none where there is nothing to read.
    pub path: Option<PathBuf>,
    /// The folder of a file that was made for it.
    _folder: Option<Scratch>,
}

impl Kept {
    /// A file, and the folder that was made for it.
    pub fn new(path: Option<PathBuf>, folder: Option<Scratch>) -> Kept {
        Kept { path, _folder: folder }
    }
}

impl OwnInput {
    /// The file to read, by `read` where this is the first call.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn path<E>(&self, read: impl FnOnce() -> Result<Kept, E>) -> Result<Option<PathBuf>, E> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match kept.take() {
            Some(found) => found,
            None => read()?,
        };
        Ok(kept.insert(found).path.clone())
    }
}
