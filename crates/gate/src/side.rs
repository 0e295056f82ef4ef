//! The two sides of a program, found: the command of each, its folder and its commit.

use std::ffi::OsString;
use std::path::PathBuf;

use heaptoll_preflight::{Refusal, same_file};

use super::figures::Side;
use super::request::SideRequest;
use super::worktrees::Tree;
use heaptoll_command::failure::Failure;

/// One side that can be run.
#[derive(Debug, Clone, Default)]
pub struct BuiltSide {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// Folder that it runs in; heaptoll's own without one.
    pub folder: Option<PathBuf>,
    /// The commit that it was built of.
    pub commit: Option<String>,
    /// Whether it has changes over the commit.
    pub dirty: bool,
    /// The manager that is put into it.
    pub manager: Option<String>,
}

impl BuiltSide {
    /// A side in the place where it is, or in the tree that was built for it.
    pub fn of(request: &SideRequest, tree: Option<&Tree>) -> BuiltSide {
        BuiltSide {
            command: request.command.clone(),
            folder: tree.map(|tree| tree.folder.clone()),
            commit: tree.map(|tree| tree.commit.clone()),
            dirty: tree.is_some_and(|tree| tree.dirty),
            manager: request.manager.clone(),
        }
    }

    /// As it is reported.
    pub fn described(&self) -> Side {
        Side {
            command: self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            folder: self.folder.as_ref().map(|folder| folder.display().to_string()),
            commit: self.commit.clone(),
            dirty: self.dirty,
            manager: self.manager.clone(),
        }
    }

    /// The file that it executes.
    ///
    /// # Errors
    /// It is not there.
    pub fn program(&self) -> Result<PathBuf, Refusal> {
        let environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        heaptoll_preflight::locate(&self.command, &environment, self.folder.as_deref())
    }
}

/// What the two sides of a program have in common.
#[derive(Debug, Default)]
pub struct Sameness {
    /// For the reader.
    pub note: Option<String>,
    /// How they are the same in all that may differ: nothing has changed, whatever the times of their runs are.
    pub unchanged: Option<String>,
}

/// How a program names its own folder for the loader.
const ORIGIN: &[u8] = b"$ORIGIN";

/// Compares the two files of a program before anything runs.
///
/// # Errors
/// A file is not there.
pub fn check(base: &BuiltSide, new: &BuiltSide) -> Result<Sameness, Failure> {
    let noted = |note: Option<String>| Ok(Sameness { note, unchanged: None });
    let unchanged = |how: String| Ok(Sameness { note: None, unchanged: Some(how) });
    let (of_base, of_new) = (base.program()?, new.program()?);
    let same_arguments = base.command.get(1..) == new.command.get(1..) && base.manager == new.manager;
    let same_folder = base.folder == new.folder;
    if same_file(&of_base, &of_new) {
        if same_arguments && same_folder {
            return unchanged(format!(
                "base and new are the same file, {}, and run alike",
                of_base.display()
            ));
        }
        let is_one = same_arguments && base.folder.is_some();
        return noted(
            is_one.then(|| format!("both sides execute {}, which is in neither tree", of_base.display())),
        );
    }
    if let (Some(commit), Some(other)) = (&base.commit, &new.commit)
        && commit == other
        && !base.dirty
        && !new.dirty
    {
        return noted(Some(format!("base and new are builds of the same commit, {commit}")));
    }
    let bytes = |path: &PathBuf| std::fs::read(path).ok();
    let found = bytes(&of_base).filter(|found| same_arguments && bytes(&of_new).as_ref() == Some(found));
    let Some(found) = found else { return noted(None) };
    let both = format!("{} and {} hold the same bytes", of_base.display(), of_new.display());
    // A build may load libraries that lie beside it, and one in a folder of its own may read other files there.
    let by_place = found.windows(ORIGIN.len()).any(|window| window == ORIGIN);
    if same_folder && !by_place { unchanged(both) } else { noted(Some(both)) }
}
