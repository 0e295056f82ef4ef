//! Why two commits cannot be had as trees: no git, no commit, a build that fails, and what to do about it.

use heaptoll_units::limits;
use thiserror::Error;

/// Why there is no tree to run in.
#[derive(Debug, Error)]
pub enum TreeError {
    /// No git.
    #[error("git was not found, which --base-ref needs: install it, or give two builds (--base, --new)")]
    NoGit,
    /// Not in a repository.
    #[error("the current folder is in no git repository, which --base-ref needs: {0}")]
    NoRepository(String),
    /// No such commit.
    #[error("there is no commit `{name}` in this repository{}", commit_advice(*.shallow))]
    NoCommit {
        /// As it was given.
        name: String,
        /// Whether the repository is a shallow clone.
        shallow: bool,
    },
    /// A command of git's failed.
    #[error("git {command} failed: {why}")]
    Git {
        /// The command.
        command: String,
        /// What it wrote.
        why: String,
    },
    /// Submodules that cannot be had.
    #[error("the submodules of {commit} cannot be checked out: {why}")]
    Submodules {
        /// The commit.
        commit: String,
        /// What git wrote.
        why: String,
    },
    /// Changes in a submodule.
    #[error(
        "the submodule {0} has uncommitted changes, which no tree would have: commit them there, or name \
         --new-ref"
    )]
    DirtySubmodule(String),
    /// A repository within the repository that is no submodule of HEAD.
    #[error(
        "{0} is a repository of its own, whose files no tree would have: let git ignore it, or name --new-ref"
    )]
    NestedRepository(String),
    /// The current folder is not in a commit.
    #[error(
        "{commit} has no folder {folder}, which is the current one: run the gate in a folder that both commits have"
    )]
    NoFolder {
        /// The commit.
        commit: String,
        /// The folder, below the top of the repository.
        folder: String,
    },
    /// The build failed.
    #[error("the build of {commit} failed ({how}): {build}{output}")]
    Build {
        /// The commit.
        commit: String,
        /// Exit status or signal.
        how: String,
        /// The build's command.
        build: String,
        /// The last lines that it wrote, on new lines.
        output: String,
    },
    /// The build changed files that are in the repository.
    #[error(
        "the build of {commit} changes tracked files: {files}; the build would not be that commit. Take them \
         out of the repository, or let the build write elsewhere"
    )]
    Dirties {
        /// The commit.
        commit: String,
        /// The first of them.
        files: String,
    },
    /// Scratch folders or the log.
    #[error(
        "cannot make a folder for the builds: {0}; {advice}",
        advice = limits::advice_or(.0, "is the temporary folder writable and not full?")
    )]
    Scratch(std::io::Error),
}

fn commit_advice(shallow: bool) -> &'static str {
    match shallow {
        true => {
            "; it is a shallow clone, which lacks most of them: `git fetch --unshallow`, or `fetch-depth: 0` in the job's \
             checkout"
        }
        false => ": `git branch -a` and `git tag` list what there is",
    }
}
