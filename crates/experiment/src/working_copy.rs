//! A copy of the user's folder for each run, where the user allows it: a program that writes there then meets neither its
//! copies that run at the same time nor what an earlier run left.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use thiserror::Error;

/// A folder with more than this is not copied, bytes: a copy is made for every run.
pub const LARGEST_BYTES: u64 = 1 << 30;

/// A folder that cannot be copied.
#[derive(Debug, Error)]
pub enum WorkingCopyError {
    /// It is too large.
    #[error(
        "{} contains more than {} MiB, which --working-copy would copy for every run: run in a folder with \
         only what the program needs",
        .0.display(), LARGEST_BYTES >> 20
    )]
    Large(PathBuf),
    /// The copy would lie in what is copied.
    #[error("{} contains the temporary folder, where copies are made: set TMPDIR to another", .0.display())]
    HoldsTheCopies(PathBuf),
    /// Its name cannot be kept.
    #[error("the name of {} is not UTF-8 text, which --working-copy needs: rename it", .0.display())]
    Name(PathBuf),
    /// `cp` failed.
    #[error("cannot copy {} for a run: {why}", .folder.display())]
    Copy {
        /// The folder.
        folder: PathBuf,
        /// What `cp` wrote.
        why: String,
    },
}

/// Checks once that a folder can be copied for every run.
///
/// # Errors
/// It is too large, or copies would be made in it.
pub fn check(folder: &Path) -> Result<(), WorkingCopyError> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    if real(&std::env::temp_dir()).starts_with(real(folder)) {
        return Err(WorkingCopyError::HoldsTheCopies(folder.into()));
    }
    if folder.to_str().is_none() {
        return Err(WorkingCopyError::Name(folder.into()));
    }
    if holds_more(folder, LARGEST_BYTES) {
        return Err(WorkingCopyError::Large(folder.into()));
    }
    Ok(())
}

/// Whether the files below `folder` hold more than `limit` bytes. What cannot be read counts nothing here; copying it fails.
fn holds_more(folder: &Path, limit: u64) -> bool {
    let (mut folders, mut bytes) = (vec![folder.to_path_buf()], 0u64);
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(found) if found.is_dir() => folders.push(entry.path()),
                Ok(found) => bytes = bytes.saturating_add(found.len()),
                Err(_) => {}
            }
        }
        if bytes > limit {
            return true;
        }
    }
    false
}

/// Copies `folder` with its times and modes, and gives the copy's path, in `scratch`.
///
/// # Errors
/// `cp` cannot be started, or fails.
pub fn make(folder: &Path, scratch: &Path) -> Result<PathBuf, WorkingCopyError> {
    let copy = scratch.join("work");
    let refuse = |why: String| WorkingCopyError::Copy { folder: folder.into(), why };
    let mut cp = Command::new("cp");
    // Copies of small files cost little compared with a run; the kernel shares large ones where the file system can.
    cp.args(["-a", "--reflink=auto", "--"]).arg(folder).arg(&copy).stdin(Stdio::null());
    // Ctrl-C ends the runs, in order; a copy under way is finished first.
    cp.process_group(0);
    let done = cp.output().map_err(|error| refuse(error.to_string()))?;
    match done.status.success() {
        true => Ok(copy),
        false if done.stderr.is_empty() => Err(refuse(format!("cp ended with {}", done.status))),
        false => Err(refuse(String::from_utf8_lossy(&done.stderr).trim().to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_files_and_their_times() {
        let there = heaptoll_scratch::Scratch::make().expect("a folder");
        let folder = there.path().join("from");
        std::fs::create_dir_all(folder.join("below")).expect("folders");
        std::fs::write(folder.join("below/file"), "12345").expect("a file");
        std::os::unix::fs::symlink("below/file", folder.join("link")).expect("a link");
        let copy = make(&folder, there.path()).expect("a copy");
        assert_eq!(std::fs::read_to_string(copy.join("link")).expect("the file"), "12345");
        let time = |path: &Path| path.join("below/file").metadata().and_then(|found| found.modified()).ok();
        assert!(time(&copy).is_some() && time(&copy) == time(&folder));
        assert!(holds_more(&folder, 4) && !holds_more(&folder, 1000));
    }

    #[test]
    fn a_folder_that_holds_the_copies_or_is_not_there_is_refused() {
        assert!(matches!(check(Path::new("/")), Err(WorkingCopyError::HoldsTheCopies(_))));
        let there = heaptoll_scratch::Scratch::make().expect("a folder");
        let gone = make(&there.path().join("nothing"), there.path());
        assert!(matches!(gone, Err(WorkingCopyError::Copy { .. })), "{gone:?}");
    }
}
