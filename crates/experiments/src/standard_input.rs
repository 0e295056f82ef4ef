//! What a program reads from its standard input: nothing, a file, or heaptoll's own standard input. A program runs many
//! times, and each run has to read the same from its beginning; so what can be read only once is kept in a file first.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use heaptoll_scratch::Scratch;

use crate::context::Context;
use crate::failure::Failure;
use keep::Keeper;
use source::Source;

mod error;
mod keep;
mod source;

/// Where a program's standard input comes from.
#[derive(Debug, Clone, Default)]
pub enum StandardInput {
    /// It is empty.
    #[default]
    Nothing,
    /// A file, which each run reads from its beginning.
    File(PathBuf),
    /// That of heaptoll.
    Own,
}

/// Heaptoll's own standard input, which is read at most once and stays readable until the command ends.
#[derive(Debug, Default)]
pub struct OwnInput(Mutex<Option<Kept>>);

/// Heaptoll's standard input in a form that can be read again.
#[derive(Debug)]
struct Kept {
    /// The file to read; none where there is nothing to read.
    path: Option<PathBuf>,
    /// The folder of a file that was made for it.
    _folder: Option<Scratch>,
}

impl StandardInput {
    /// The file that a user names, and without one heaptoll's own standard input.
    pub fn file_or_own(file: Option<PathBuf>) -> StandardInput {
        file.map_or(StandardInput::Own, StandardInput::File)
    }

    /// The file that each run reads; none where there is nothing to read. The first call reads a pipe to its end.
    ///
    /// # Errors
    /// The file cannot be read by every run; a pipe ends too late, has too much, or cannot be kept; Ctrl-C.
    pub fn path(&self, context: &Context) -> Result<Option<PathBuf>, Failure> {
        let kept = match self {
            StandardInput::Nothing => return Ok(None),
            StandardInput::File(path) => return readable(path).map(Some),
            StandardInput::Own => &context.own_input.0,
        };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_none() {
            let own = io::stdin().as_fd().try_clone_to_owned().map_err(keep::unreadable)?;
            *kept = Some(Kept::of(own.into(), &Keeper::new(context))?);
        }
        Ok(kept.as_ref().and_then(|kept| kept.path.clone()))
    }
}

impl Kept {
    /// Standard input that can be read again: by its path, or as a copy.
    fn of(from: File, keeper: &Keeper) -> Result<Kept, Failure> {
        let (folder, path) = match Source::of(from).map_err(keep::unreadable)? {
            Source::Terminal => {
                keeper.context.messages.note(
                    "standard input is a terminal, and the program reads an empty one: `< FILE` or a pipe gives it input",
                );
                (None, None)
            }
            Source::Nothing => (None, None),
            Source::Path(path) => (None, Some(path)),
            Source::Once(once) => keeper.keep(once)?.unzip(),
        };
        Ok(Kept { path, _folder: folder })
    }
}

/// The absolute path of a file for standard input, which every run reads from its beginning.
fn readable(path: &Path) -> Result<PathBuf, Failure> {
    let refuse = |why: String| Failure::Usage(format!("cannot read --stdin {}: {why}", path.display()));
    let kind = std::fs::metadata(path).map_err(|error| refuse(error.to_string()))?.file_type();
    // A pipe would be empty from the second run on, and opening one may never return.
    if !kind.is_file() && !kind.is_char_device() {
        return Err(refuse("it is no file that every run can read from its beginning".into()));
    }
    let absolute = File::open(path).and_then(|_| std::path::absolute(path));
    absolute.map_err(|error| refuse(error.to_string()))
}

#[cfg(test)]
mod tests;
