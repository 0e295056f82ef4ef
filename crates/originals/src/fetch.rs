//! Brings the sources: by git from a repository, or from a folder that has them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::OriginalsError;
use crate::process::quietly;

/// What is fetched.
#[derive(Debug, Clone)]
pub(crate) struct Wanted<'a> {
    /// What the user knows it by.
    pub name: &'a str,
    /// The repository that has it.
    pub url: &'a str,
    /// Its commit.
    pub commit: &'a str,
    /// Folders and files of it that are needed.
    pub paths: Vec<&'a str>,
}

/// The folder that has the sources: `from` itself, or `tree`, which is made. `scratch` is for git's index.
///
/// # Errors
/// A repository that cannot be reached, or a folder without the sources.
pub(crate) fn fetch(
    wanted: &Wanted<'_>,
    from: Option<&str>,
    tree: &Path,
    scratch: &Path,
) -> Result<PathBuf, OriginalsError> {
    let from = from.unwrap_or(wanted.url);
    let folder = Path::new(from);
    if folder.is_dir() && wanted.paths.iter().any(|path| folder.join(path).exists()) {
        return Ok(folder.to_owned());
    }
    fs::create_dir_all(tree).map_err(|source| OriginalsError::Write { path: tree.to_owned(), source })?;
    let source = Source { wanted, tree, scratch };
    match git_folder(folder) {
        Some(git) => source.local(from, &git)?,
        None if folder.is_dir() => {
            return Err(OriginalsError::Elsewhere {
                folder: folder.to_owned(),
                name: wanted.name.to_owned(),
                example: wanted.paths.first().copied().unwrap_or_default().to_owned(),
            });
        }
        None => source.remote(from)?,
    }
    Ok(tree.to_owned())
}

/// A command of git that waits for no password.
fn git() -> Command {
    let mut git = Command::new("git");
    git.env("GIT_TERMINAL_PROMPT", "0")
        .env_remove("GIT_DIR")
        .env_remove("GIT_INDEX_FILE")
        .env_remove("GIT_WORK_TREE");
    git
}

/// The git folder of a clone, or of a bare repository. One above it does not count.
fn git_folder(folder: &Path) -> Option<PathBuf> {
    let inner = folder.join(".git");
    if inner.exists() {
        return Some(inner);
    }
    (folder.join("HEAD").is_file() && folder.join("objects").is_dir()).then(|| folder.to_owned())
}

struct Source<'a> {
    wanted: &'a Wanted<'a>,
    tree: &'a Path,
    scratch: &'a Path,
}

impl Source<'_> {
    /// Checks the folders out of a repository that is here, which stays as it is: the index is ours.
    fn local(&self, from: &str, repository: &Path) -> Result<(), OriginalsError> {
        let repository = std::path::absolute(repository).unwrap_or_else(|_| repository.to_owned());
        let checkout = |commit: &str| {
            let mut git = git();
            git.env("GIT_INDEX_FILE", self.scratch.join("index"));
            git.arg("--git-dir").arg(&repository).arg("--work-tree").arg(self.tree);
            quietly(git.args(["checkout", "--quiet", commit, "--"]).args(&self.wanted.paths))
        };
        checkout(self.wanted.commit)
            .or_else(|_| checkout("HEAD"))
            .map_err(|problem| OriginalsError::Fetch { from: from.to_owned(), problem })
    }

    /// Fetches one commit's trees, and of its files those below the folders.
    fn remote(&self, from: &str) -> Result<(), OriginalsError> {
        let run = |arguments: &[&str]| quietly(git().current_dir(self.tree).args(arguments));
        let fetch =
            |commit: &str| run(&["fetch", "--quiet", "--depth=1", "--filter=blob:none", "origin", commit]);
        let all = || {
            run(&["init", "--quiet"])?;
            run(&["remote", "add", "origin", from])?;
            fetch(self.wanted.commit).or_else(|_| fetch("HEAD"))?;
            let mut checkout = vec!["checkout", "--quiet", "FETCH_HEAD", "--"];
            checkout.extend(&self.wanted.paths);
            run(&checkout)
        };
        all().map_err(|problem| OriginalsError::Fetch { from: from.to_owned(), problem })
    }
}
