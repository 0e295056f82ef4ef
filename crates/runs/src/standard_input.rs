//! What a program reads from its standard input: nothing, a file, or heaptoll's own standard input. A program runs many
//! times, and each run has to read the same from its beginning; so what can be read only once is kept in a file first.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_command::own_input::Kept;
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
        match self {
            StandardInput::Nothing => Ok(None),
            StandardInput::File(path) => readable(path).map(Some),
            StandardInput::Own => context.own_input.path(|| {
                let own = io::stdin().as_fd().try_clone_to_owned().map_err(keep::unreadable)?;
                kept(own.into(), &Keeper::new(context))
            }),
        }
    }
}

/// A standard input that can be read again: by its path, or as a copy.
fn kept(from: File, keeper: &Keeper) -> Result<Kept, Failure> {
    let (folder, path) = match Source::of(from).map_err(keep::unreadable)? {
        Source::Terminal => {
            keeper.context.messages.note(
                "standard input is a terminal, so the program gets empty input: give it input by `< FILE` or a pipe",
            );
            (None, None)
        }
        Source::Nothing => (None, None),
        Source::Path(path) => (None, Some(path)),
        Source::Once(once) => keeper.keep(once)?.unzip(),
    };
    Ok(Kept::new(path, folder))
}

/// The absolute path of a file for standard input, which every run reads from its beginning.
fn readable(path: &Path) -> Result<PathBuf, Failure> {
    let refuse = |why: String| Failure::Usage(format!("cannot read --stdin {}: {why}", path.display()));
    let kind = std::fs::metadata(path).map_err(|error| refuse(error.to_string()))?.file_type();
    // A pipe would be empty from the second run on, and opening one may never return.
    if !kind.is_file() && !kind.is_char_device() {
        return Err(refuse("it must be a regular file".into()));
    }
    let absolute = File::open(path).and_then(|_| std::path::absolute(path));
    absolute.map_err(|error| refuse(error.to_string()))
}

#[cfg(test)]
mod tests;
