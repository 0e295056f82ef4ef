//! The commit that a build is of, as git knows it. Without git, or outside of a repository, there is none.

use std::path::Path;
use std::process::{Command, Stdio};

/// A commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commit {
    /// Its hash, whole.
    pub hash: String,
    /// When it was made, Unix seconds; `None` where the clone does not have it.
    pub unix_s: Option<i64>,
    /// Whether files under version control were changed since.
    pub dirty: bool,
}

impl Commit {
    /// What is checked out in a folder.
    pub fn of_folder(folder: &Path) -> Option<Commit> {
        let commit = Commit::of_revision(folder, "HEAD")?;
        let changes = git(folder, &["status", "--porcelain", "--untracked-files=no"])?;
        Some(Commit { dirty: !changes.is_empty(), ..commit })
    }

    /// A revision as git takes it: a hash, a branch, a tag.
    pub fn of_revision(folder: &Path, revision: &str) -> Option<Commit> {
        let hash =
            git(folder, &["rev-parse", "--verify", "--end-of-options", &format!("{revision}^{{commit}}")])?;
        let unix_s = date(folder, &hash);
        Some(Commit { hash, unix_s, dirty: false })
    }

    /// The commit of a known hash, which a shallow clone may lack.
    pub fn of_hash(folder: &Path, hash: &str, dirty: bool) -> Commit {
        Commit { hash: hash.to_owned(), unix_s: date(folder, hash), dirty }
    }
}

fn date(folder: &Path, hash: &str) -> Option<i64> {
    git(folder, &["show", "--no-patch", "--format=%ct", "--end-of-options", hash])?.parse().ok()
}

/// What a git command prints, without the line end; `None` when it fails. Nothing of the repository is run or changed.
fn git(folder: &Path, words: &[&str]) -> Option<String> {
    let run = Command::new("git")
        .args(["--no-optional-locks", "-c", "core.fsmonitor=false", "-C"])
        .arg(folder)
        .args(words)
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(run.stdout).ok()?;
    run.status.success().then(|| text.trim_end().to_owned())
}
