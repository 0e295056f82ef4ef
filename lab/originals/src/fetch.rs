//! Brings the sources: by git from a repository, or from a folder that has them.
//!
//! Git runs programs that a repository's settings name (hooks, filters, fsmonitor, helpers of transport), and the
//! repository may be another user's. So only git folders that are made here are worked in, and of a repository on this
//! machine nothing but the objects is read. Digests are compared after that.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use heaptoll_peers::RecipeError;
use heaptoll_peers::process::quietly;

use crate::OriginalsError;

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

/// The folder that has the sources: `from` itself, or `tree`, which is made. `scratch` is for git's own files.
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
    fs::create_dir_all(tree).map_err(|source| RecipeError::Write { path: tree.to_owned(), source })?;
    let source = Source { wanted, tree, git: scratch.join("git") };
    match git_folder(folder) {
        Some(repository) => source.local(from, &repository)?,
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

/// The git folder of a clone, or of a bare repository. One above it does not count.
fn git_folder(folder: &Path) -> Option<PathBuf> {
    let inner = folder.join(".git");
    if inner.is_dir() {
        return Some(inner);
    }
    (folder.join("HEAD").is_file() && folder.join("objects").is_dir()).then(|| folder.to_owned())
}

/// The commit that a repository's HEAD names, read without git.
fn head_of(repository: &Path) -> Option<String> {
    let read = |name: &str| fs::read_to_string(repository.join(name)).ok();
    let head = read("HEAD")?;
    let Some(branch) = head.trim().strip_prefix("ref: ") else { return Some(head.trim().to_owned()) };
    let packed = || {
        let lines = read("packed-refs")?;
        let line = lines.lines().find(|line| line.split(' ').nth(1) == Some(branch))?;
        Some(line.split(' ').next()?.to_owned())
    };
    let is_inside = Path::new(branch).components().all(|part| matches!(part, Component::Normal(_)));
    is_inside.then(|| read(branch)).flatten().or_else(packed).map(|commit| commit.trim().to_owned())
}

struct Source<'a> {
    wanted: &'a Wanted<'a>,
    tree: &'a Path,
    /// The git folder, which is made.
    git: PathBuf,
}

impl Source<'_> {
    /// A command of git in the folder that is made. It waits for no password and runs no hook or monitor.
    fn git(&self) -> Command {
        let mut git = Command::new("git");
        for place in ["DIR", "INDEX_FILE", "WORK_TREE", "OBJECT_DIRECTORY", "COMMON_DIR", "NAMESPACE"] {
            git.env_remove(format!("GIT_{place}"));
        }
        git.env("GIT_TERMINAL_PROMPT", "0").current_dir(self.tree);
        git.arg("--git-dir").arg(&self.git).arg("--work-tree").arg(self.tree);
        git.args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]);
        git
    }

    /// The same without the settings of the user and of the machine, which may name filters too.
    fn plain_git(&self) -> Command {
        let mut git = self.git();
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_"))
        {
            git.env_remove(name);
        }
        git.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        git.env("HOME", &self.git).env("XDG_CONFIG_HOME", &self.git);
        git.env("GIT_ATTR_NOSYSTEM", "1").env("GIT_NO_REPLACE_OBJECTS", "1");
        git
    }

    fn make(&self) -> Result<(), String> {
        quietly(self.plain_git().args(["init", "--quiet", "--template="]))
    }

    fn check_out(&self, mut git: Command, commit: &str) -> Result<(), String> {
        quietly(git.args(["checkout", "--quiet", commit, "--"]).args(&self.wanted.paths))
    }

    /// Checks the folders out of a repository that is here and stays as it is. Only its objects are read.
    fn local(&self, from: &str, repository: &Path) -> Result<(), OriginalsError> {
        let objects =
            std::path::absolute(repository).unwrap_or_else(|_| repository.to_owned()).join("objects");
        for others in ["info/alternates", "info/http-alternates"].map(|name| objects.join(name)) {
            if others.exists() {
                return Err(OriginalsError::Borrowed { from: from.to_owned(), others });
            }
        }
        let all = || {
            self.make()?;
            let line = [objects.as_os_str().as_encoded_bytes(), b"\n"].concat();
            fs::write(self.git.join("objects/info/alternates"), line).map_err(|error| error.to_string())?;
            self.check_out(self.plain_git(), self.wanted.commit).or_else(|problem| {
                let head = head_of(repository).ok_or(problem)?;
                self.check_out(self.plain_git(), &head)
            })
        };
        all().map_err(|problem| OriginalsError::Fetch { from: from.to_owned(), problem })
    }

    /// Fetches one commit's trees, and of its files those below the folders, by the user's own settings of transport.
    fn remote(&self, from: &str) -> Result<(), OriginalsError> {
        let run = |arguments: &[&str]| quietly(self.git().args(arguments));
        let fetch =
            |commit: &str| run(&["fetch", "--quiet", "--depth=1", "--filter=blob:none", "origin", commit]);
        let all = || {
            self.make()?;
            run(&["remote", "add", "origin", from])?;
            fetch(self.wanted.commit).or_else(|_| fetch("HEAD"))?;
            self.check_out(self.git(), "FETCH_HEAD")
        };
        all().map_err(|problem| OriginalsError::Fetch { from: from.to_owned(), problem })
    }
}

#[cfg(test)]
mod tests;
