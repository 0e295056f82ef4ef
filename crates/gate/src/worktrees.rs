//! Two commits of a repository, each built in a tree of its own: `old` and `new` in one scratch folder, whose names are
//! equally long, as what a program keeps of its path otherwise differs.
//!
//! The working tree as it is becomes a commit of no branch, by an index of its own: the user's index and branches stay
//! as they are.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_record::inheriting;
use heaptoll_scratch::Scratch;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};

use super::request::Refs;
use super::tree_error::TreeError;
use super::unopened::Differing;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;

/// Lines of a failed build that are shown.
const SHOWN: usize = 20;
const POLL: Duration = Duration::from_millis(20);

/// A tree that is checked out and built.
#[derive(Debug, Clone)]
pub struct Tree {
    /// The folder in it that corresponds to the current one.
    pub folder: PathBuf,
    /// Hash of its commit; of the working tree, that of the commit it is based on.
    pub commit: String,
    /// Whether it has changes over that commit.
    pub dirty: bool,
}

/// Both trees; they are removed when this is dropped.
pub struct Trees {
    /// The base.
    pub base: Tree,
    /// The new build.
    pub new: Tree,
    added: Added,
    _scratch: Scratch,
}

/// Worktrees that git knows of.
struct Added {
    repository: PathBuf,
    trees: Vec<PathBuf>,
}

/// Has git remove and forget a tree, also one that is gone; whether it did.
fn remove(repository: &Path, tree: &Path) -> bool {
    let mut git = git_in(repository, &["worktree", "remove", "--force", "--force"]);
    git.arg(tree).output().is_ok_and(|done| done.status.success())
}

impl Drop for Added {
    fn drop(&mut self) {
        for tree in &self.trees {
            // Where a build has taken rights from its folders, git cannot remove them, and forgets the tree without them.
            if !remove(&self.repository, tree) {
                heaptoll_scratch::remove(tree);
                remove(&self.repository, tree);
            }
        }
    }
}

impl Trees {
    /// Checks out both commits and builds them, side by side.
    ///
    /// # Errors
    /// No git, no such commit, a build that fails or changes tracked files, or Ctrl-C.
    pub fn make(refs: &Refs, context: &Context) -> Result<Trees, Failure> {
        let scratch = Scratch::make().map_err(TreeError::Scratch).map_err(refused)?;
        let repository = Repository::here().map_err(refused)?;
        repository.forget_lost();
        let wanted = repository.commits(refs, scratch.path()).map_err(refused)?;
        let mut added = Added { repository: repository.top.clone(), trees: vec![] };
        for (name, commit) in [("old", &wanted[0]), ("new", &wanted[1])] {
            let tree = scratch.path().join(name);
            // It is known to git from the beginning of the command on.
            added.trees.push(tree.clone());
            let checked_out = repository.check_out(&tree, commit);
            if context.interrupt.is_set() {
                return Err(Failure::Interrupted);
            }
            checked_out.map_err(refused)?;
        }
        if let Some(build) = &refs.build {
            let progress = context.messages.progress(None);
            progress.set_text(&format!("building both commits: {build}"));
            repository.build(build, &added.trees, &wanted, scratch.path(), context.interrupt)?;
        }
        let [base, new] = wanted;
        let tree = |at: usize, commit: Commit| Tree {
            folder: added.trees[at].join(&repository.prefix),
            commit: commit.shown,
            dirty: commit.dirty,
        };
        let (base, new) = (tree(0, base), tree(1, new));
        Ok(Trees { base, new, added, _scratch: scratch })
    }

    /// What differs between them.
    ///
    /// # Errors
    /// A file in one of them cannot be read.
    pub fn differing(&self) -> std::io::Result<Differing> {
        Differing::between(&self.added.trees[0], &self.added.trees[1])
    }
}

fn refused(error: TreeError) -> Failure {
    Failure::Refused(Box::new(error))
}

/// A commit to check out.
struct Commit {
    /// What is checked out.
    hash: String,
    /// What is shown: of the working tree, the commit that it is based on.
    shown: String,
    dirty: bool,
}

struct Repository {
    top: PathBuf,
    /// The current folder below the top.
    prefix: String,
}

/// Options of git before its command, and words of the folder: what precedes a command in its words.
const BEFORE_COMMAND: usize = 6;
/// What a hook of git's has in its environment, which would lead git in another tree back to the user's
/// (`git rev-parse --local-env-vars`).
const OF_HOOKS: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_SHALLOW_FILE",
];

fn git_in(folder: &Path, arguments: &[&str]) -> Command {
    let mut git = Command::new("git");
    // A hook of a checkout is none of the gate's, no more than a monitor of the file system.
    git.arg("-C").arg(folder).args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]);
    git.args(arguments).stdin(Stdio::null());
    // No password can be typed here; and `git status` leaves the user's index as it is.
    git.env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C");
    for name in OF_HOOKS {
        git.env_remove(name);
    }
    git
}

/// What a command of git's prints, without the line end.
fn output(git: &mut Command) -> Result<String, TreeError> {
    let words: Vec<String> =
        git.get_args().skip(BEFORE_COMMAND).map(|word| word.to_string_lossy().into_owned()).collect();
    let done = git.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => TreeError::NoGit,
        _ => TreeError::Git { command: words.join(" "), why: error.to_string() },
    })?;
    if !done.status.success() {
        let why = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        return Err(TreeError::Git { command: words.join(" "), why });
    }
    Ok(String::from_utf8_lossy(&done.stdout).trim_end_matches('\n').to_owned())
}

/// The path of a repository that only the second of two listings of `git ls-tree` has: mode, `commit`, hash, tab, path.
fn nested(before: &str, after: &str) -> Option<String> {
    let repositories = |text: &str| -> BTreeSet<String> {
        let lines = text.lines().filter(|line| line.starts_with("160000 "));
        lines.filter_map(|line| Some(line.split_once('\t')?.1.to_owned())).collect()
    };
    repositories(after).difference(&repositories(before)).next().cloned()
}

/// The path of a submodule with changes of its own, of a line of `git status --porcelain=v2`: its third word is `S`, then
/// `C` of another commit, `M` of changed files, `U` of new ones. What a build leaves there is new, and is no change.
fn dirty_submodule(line: &str) -> Option<&str> {
    let mut words = line.splitn(9, ' ');
    let (kind, state) = (words.next()?, words.nth(1)?);
    let is_dirty = kind == "1" && state.starts_with('S') && state.contains('M');
    is_dirty.then(|| words.last()).flatten()
}

impl Repository {
    fn here() -> Result<Repository, TreeError> {
        let here = Path::new(".");
        let top =
            output(&mut git_in(here, &["rev-parse", "--show-toplevel"])).map_err(|error| match error {
                TreeError::Git { why, .. } => TreeError::NoRepository(why),
                other => other,
            })?;
        let prefix = output(&mut git_in(here, &["rev-parse", "--show-prefix"]))?;
        Ok(Repository { top: top.into(), prefix })
    }

    /// Has git forget trees of gates that were killed, whose scratch folders are gone.
    fn forget_lost(&self) {
        let Ok(listed) = self.git(&["worktree", "list", "--porcelain"]) else { return };
        let trees = listed.lines().filter_map(|line| line.strip_prefix("worktree "));
        for tree in trees.map(Path::new).filter(|tree| heaptoll_scratch::is_inside(tree) && !tree.exists()) {
            // A tree that stays is listed as prunable, and does no harm.
            remove(&self.top, tree);
        }
    }

    fn git(&self, arguments: &[&str]) -> Result<String, TreeError> {
        output(&mut git_in(&self.top, arguments))
    }

    /// Both commits. The working tree is one of no branch.
    fn commits(&self, refs: &Refs, scratch: &Path) -> Result<[Commit; 2], TreeError> {
        let base = self.commit(&refs.base)?;
        let new = match &refs.new {
            Some(name) => self.commit(name)?,
            None => self.working_tree(scratch)?,
        };
        Ok([base, new])
    }

    fn commit(&self, name: &str) -> Result<Commit, TreeError> {
        let wanted = format!("{name}^{{commit}}");
        // After `--end-of-options` a name that begins with a dash is no option.
        let found = self.git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted]);
        match found {
            Ok(hash) => Ok(Commit { shown: hash.clone(), hash, dirty: false }),
            Err(TreeError::Git { .. }) => {
                let shallow =
                    self.git(&["rev-parse", "--is-shallow-repository"]).is_ok_and(|word| word == "true");
                Err(TreeError::NoCommit { name: name.into(), shallow })
            }
            Err(other) => Err(other),
        }
    }

    /// What is in the working tree now, tracked or new, but for what is ignored.
    fn working_tree(&self, scratch: &Path) -> Result<Commit, TreeError> {
        let head = self.commit("HEAD")?;
        // Whatever the user's settings leave out of it.
        let status =
            self.git(&["status", "--porcelain=v2", "--untracked-files=all", "--ignore-submodules=none"])?;
        if status.is_empty() {
            return Ok(head);
        }
        if let Some(path) = status.lines().find_map(dirty_submodule) {
            return Err(TreeError::DirtySubmodule(path.to_owned()));
        }
        let index = scratch.join("index");
        let own = |arguments: &[&str]| {
            let mut git = git_in(&self.top, arguments);
            git.env("GIT_INDEX_FILE", &index);
            for who in ["AUTHOR", "COMMITTER"] {
                git.env(format!("GIT_{who}_NAME"), "heaptoll")
                    .env(format!("GIT_{who}_EMAIL"), "heaptoll@localhost");
            }
            output(&mut git)
        };
        own(&["read-tree", "HEAD"])?;
        own(&["add", "--all"])?;
        let tree = own(&["write-tree"])?;
        if let Some(path) = nested(&own(&["ls-tree", "-r", "HEAD"])?, &own(&["ls-tree", "-r", &tree])?) {
            return Err(TreeError::NestedRepository(path));
        }
        let hash = own(&["commit-tree", &tree, "-p", &head.hash, "-m", "the working tree as it is"])?;
        Ok(Commit { hash, shown: head.hash, dirty: true })
    }

    fn check_out(&self, tree: &Path, commit: &Commit) -> Result<(), TreeError> {
        let mut add = git_in(&self.top, &["worktree", "add", "--quiet", "--detach", "--force"]);
        output(add.arg(tree).arg(&commit.hash))?;
        if !tree.join(".gitmodules").is_file() {
            return Ok(());
        }
        let update = &mut git_in(tree, &["submodule", "update", "--init", "--recursive", "--quiet"]);
        output(update).map(drop).map_err(|error| match error {
            TreeError::Git { why, .. } => TreeError::Submodules { commit: commit.shown.clone(), why },
            other => other,
        })
    }

    /// Builds all trees at once, each with its output in a file.
    fn build(
        &self,
        build: &str,
        trees: &[PathBuf],
        commits: &[Commit; 2],
        scratch: &Path,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        if let Some((_, commit)) =
            trees.iter().zip(commits).find(|(tree, _)| !tree.join(&self.prefix).is_dir())
        {
            let (commit, folder) = (commit.shown.clone(), self.prefix.clone());
            return Err(refused(TreeError::NoFolder { commit, folder }));
        }
        let failed = AtomicBool::new(false);
        let failed = &failed;
        let is_over = &(move || interrupt.is_set() || failed.load(Relaxed));
        let ended: Vec<Result<(), Unbuilt>> = std::thread::scope(|scope| {
            let one = |at: usize| {
                let log = scratch.join(format!("build-{at}"));
                let folder = trees[at].join(&self.prefix);
                move || {
                    let built = build_one(build, &folder, &log, &commits[at], is_over);
                    failed.fetch_or(built.is_err(), Relaxed);
                    built
                }
            };
            let start = |at| std::thread::Builder::new().spawn_scoped(scope, one(at));
            let all: Vec<_> = (0..trees.len()).map(start).collect();
            let broken = || Err(TreeError::Scratch(std::io::Error::other("a thread failed")).into());
            let wait = |thread: std::io::Result<std::thread::ScopedJoinHandle<'_, _>>| {
                thread.map_err(TreeError::Scratch)?.join().unwrap_or_else(|_| broken())
            };
            all.into_iter().map(wait).collect()
        });
        // A build that fails ends the other, which was then not what failed.
        let is_stopped = |built: &Result<(), Unbuilt>| matches!(built, Err(Unbuilt::Interrupted));
        let (stopped, others): (Vec<_>, Vec<_>) = ended.into_iter().partition(is_stopped);
        others.into_iter().chain(stopped).collect::<Result<Vec<()>, Unbuilt>>()?;
        for (tree, commit) in trees.iter().zip(commits) {
            let changed = output(&mut git_in(tree, &["status", "--porcelain", "--untracked-files=no"]));
            let changed = changed.map_err(refused)?;
            if !changed.is_empty() {
                let files: Vec<&str> = changed.lines().filter_map(|line| line.get(3..)).take(3).collect();
                let (commit, files) = (commit.shown.clone(), files.join(", "));
                return Err(refused(TreeError::Dirties { commit, files }));
            }
        }
        Ok(())
    }
}

/// Why a tree was not built; it goes from thread to thread.
enum Unbuilt {
    Refused(TreeError),
    Interrupted,
}

impl From<TreeError> for Unbuilt {
    fn from(error: TreeError) -> Unbuilt {
        Unbuilt::Refused(error)
    }
}

impl From<Unbuilt> for Failure {
    fn from(unbuilt: Unbuilt) -> Failure {
        match unbuilt {
            Unbuilt::Refused(error) => refused(error),
            Unbuilt::Interrupted => Failure::Interrupted,
        }
    }
}

fn build_one(
    build: &str,
    folder: &Path,
    log: &Path,
    commit: &Commit,
    is_over: &(dyn Fn() -> bool + Sync),
) -> Result<(), Unbuilt> {
    let open = || {
        let out = File::create(log)?;
        Ok((out.try_clone()?, out))
    };
    let (out, err) = open().map_err(TreeError::Scratch)?;
    let mut command = Command::new("sh");
    command.args(["-c", build]).current_dir(folder).env("PWD", folder).stdin(Stdio::null());
    for name in OF_HOOKS {
        command.env_remove(name);
    }
    let started = command.env(OF_BUILD, log).stdout(out).stderr(err).process_group(0).spawn();
    let ended = wait_for(started.map_err(TreeError::Scratch)?, build, log, commit, is_over);
    end_all_of(log);
    ended
}

/// The variable that finds all that a build has started: its value is the path of the build's log.
const OF_BUILD: &str = "HEAPTOLL_BUILD";
/// How long the killed may take.
const ENDING: Duration = Duration::from_secs(2);

/// Ends what a build has left in sessions of its own (`setsid`): it would run while programs are measured.
fn end_all_of(log: &Path) {
    let until = Instant::now() + ENDING;
    loop {
        let left = inheriting(format!("{OF_BUILD}=").as_bytes(), log);
        if left.is_empty() || Instant::now() > until {
            return;
        }
        for pid in left.into_iter().filter_map(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(POLL);
    }
}

/// Waits for a build, and ends its process group with it.
fn wait_for(
    mut child: Child,
    build: &str,
    log: &Path,
    commit: &Commit,
    is_over: &(dyn Fn() -> bool + Sync),
) -> Result<(), Unbuilt> {
    let group = Pid::from_child(&child);
    loop {
        if has_ended(group) {
            // What it leaves behind would run while programs are measured. It was not waited for, so the number of its
            // group, which it leads, is still its own.
            let _ = kill_process_group(group, Signal::KILL);
        }
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => {
                return Err(Unbuilt::Refused(TreeError::Build {
                    commit: commit.shown.clone(),
                    how: status.to_string(),
                    build: build.to_owned(),
                    output: last_lines(log),
                }));
            }
            Ok(None) if is_over() => {
                let _ = kill_process_group(group, Signal::KILL);
                let _ = child.wait();
                return Err(Unbuilt::Interrupted);
            }
            Ok(None) => std::thread::sleep(POLL),
            Err(error) => return Err(TreeError::Scratch(error).into()),
        }
    }
}

/// Whether a child has ended, which can still be waited for.
fn has_ended(child: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(child), options).is_ok_and(|ended| ended.is_some())
}

/// The last lines of a log, each on a new line.
fn last_lines(log: &Path) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.len().saturating_sub(SHOWN);
    lines[first..].iter().map(|line| format!("\n  {}", heaptoll_report::format::printable(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes within a submodule were left out of the tree, and the side was called dirty nevertheless.
    #[test]
    fn a_submodule_with_changes_of_its_own_is_recognised() {
        let line = |state: &str| format!("1 .M {state} 160000 160000 160000 aa bb libs/a module");
        assert_eq!(dirty_submodule(&line("S.M.")), Some("libs/a module"));
        assert_eq!(dirty_submodule(&line("S..U")), None, "as a build leaves it");
        assert_eq!(dirty_submodule(&line("SC..")), None, "another commit is in the tree");
        assert_eq!(dirty_submodule(&line("N...")), None);
        assert_eq!(dirty_submodule("? file"), None);
    }

    /// `git add` makes a link of it, and the tree had an empty folder.
    #[test]
    fn a_repository_within_the_repository_is_recognised() {
        let before = "100644 blob aa\tapp.c\n160000 commit bb\tlib";
        assert_eq!(nested(before, before), None);
        let after = format!("{before}\n160000 commit cc\tnested one");
        assert_eq!(nested(before, &after), Some("nested one".into()));
    }

    #[test]
    fn nothing_is_recognised_in_nothing() {
        assert_eq!(dirty_submodule(""), None);
    }
}
