//! Brings the sources: by git from a repository, or from a folder that has them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::quietly;
use crate::{OriginalsError, Recipe};

/// The folder that has the sources: `from` itself, or one below `scratch`.
///
/// # Errors
/// A repository that cannot be reached, or a folder without the sources.
pub(crate) fn fetch(recipe: &Recipe, from: Option<&str>, scratch: &Path) -> Result<PathBuf, OriginalsError> {
    let from = from.unwrap_or(&recipe.table.url);
    let folder = Path::new(from);
    if folder.is_dir() && recipe.folders().iter().any(|path| folder.join(path).is_dir()) {
        return Ok(folder.to_owned());
    }
    let tree = scratch.join("tree");
    fs::create_dir_all(&tree).map_err(|source| OriginalsError::Write { path: tree.clone(), source })?;
    let source = Source { recipe, tree: &tree, scratch };
    match git_folder(folder) {
        Some(git) => source.local(from, &git)?,
        None if folder.is_dir() => {
            return Err(OriginalsError::Elsewhere {
                folder: folder.to_owned(),
                name: recipe.table.name.clone(),
                example: recipe.folders().first().copied().unwrap_or_default().to_owned(),
            });
        }
        None => source.remote(from)?,
    }
    Ok(tree)
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
    recipe: &'a Recipe,
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
            quietly(git.args(["checkout", "--quiet", commit, "--"]).args(self.recipe.folders()))
        };
        checkout(&self.recipe.table.commit)
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
            fetch(&self.recipe.table.commit).or_else(|_| fetch("HEAD"))?;
            let mut checkout = vec!["checkout", "--quiet", "FETCH_HEAD", "--"];
            checkout.extend(self.recipe.folders());
            run(&checkout)
        };
        all().map_err(|problem| OriginalsError::Fetch { from: from.to_owned(), problem })
    }
}
