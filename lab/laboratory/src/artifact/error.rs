//! Why an artifact cannot be made or used.

use std::io;
use std::path::PathBuf;

use heaptoll_experiment::store::StoreError;
use thiserror::Error;

use super::format::VERSION;
use crate::cluster::ClusterError;

/// A request about an artifact that cannot be carried out.
#[derive(Debug, Error)]
pub enum ArtifactError {
    /// The folder is there.
    #[error("{path} exists; give the artifact another name (-o)", path = .path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// A file cannot be read.
    #[error("cannot read {path}: {cause}", path = .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {path}: {cause}", path = .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// An experiment that was not measured to its end.
    #[error("{path} is not complete; measure the rest first (heaptoll run --resume, heaptoll lab shards merge)", path = .path.display())]
    Incomplete {
        /// Its file.
        path: PathBuf,
    },
    /// Nothing is known that would measure it again.
    #[error(
        "{path} cannot be measured again: it was not made by `heaptoll run`; make an artifact of an experiment that was",
        path = .path.display()
    )]
    NotRepeatable {
        /// Its file.
        path: PathBuf,
    },
    /// What was piped into the program is gone.
    #[error(
        "{path} cannot be measured again, because the program's standard input was a pipe and is not kept; \
         measure it with --stdin FILE, and make an artifact of that",
        path = .path.display()
    )]
    Piped {
        /// Its file.
        path: PathBuf,
    },
    /// An experiment of shards without its plan.
    #[error("{path} was measured in shards: give their plan (--plan)", path = .path.display())]
    NeedsPlan {
        /// Its file.
        path: PathBuf,
    },
    /// Classes of machines, which have verdicts of their own.
    #[error(
        "{path} was measured on several classes of machines: `heaptoll lab shards merge --class NAME` makes \
         a file of one class; make an artifact of that", path = .path.display()
    )]
    SeveralClasses {
        /// Its file.
        path: PathBuf,
    },
    /// A plan of something else.
    #[error("{plan} is not the plan of {path}; give the one that its shards were measured with", plan = .plan.display(),
        path = .path.display())]
    OtherPlan {
        /// The plan's file.
        plan: PathBuf,
        /// The experiment's.
        path: PathBuf,
    },
    /// A folder that is no artifact.
    #[error("{path} is not an artifact of heaptoll ({why}); `heaptoll lab artifact EXPERIMENT -o DIR` makes \
             one", path = .path.display())]
    NoArtifact {
        /// The folder.
        path: PathBuf,
        /// What does not fit.
        why: String,
    },
    /// An artifact of another version of the format.
    #[error("{path} is an artifact of version {found}, written by heaptoll {written_by}; this heaptoll reads version \
        {VERSION}: use that one", path = .path.display())]
    OtherVersion {
        /// The folder.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// The version of heaptoll that wrote it.
        written_by: String,
    },
    /// What describes it is not as it was written.
    #[error("{path} is damaged or was changed: its content does not match the digest in it; get the artifact \
             again",
        path = .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A file of the folder is not there.
    #[error("{path} is missing from the artifact; get it again", path = .path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A file of the folder differs.
    #[error("{path} is damaged or was changed: its SHA-256 is {here}, but the artifact's description says \
             {recorded}; get the artifact again", path = .path.display())]
    OtherContent {
        /// The file.
        path: PathBuf,
        /// Its digest.
        here: String,
        /// Its recorded digest.
        recorded: String,
    },
    /// Two experiments without a pair of program and manager in common.
    #[error("{path} has no program and manager of the artifact that did the same work; measure it with the script `replay`",
        path = .path.display())]
    NothingInCommon {
        /// The experiment's file.
        path: PathBuf,
    },
    /// A plan, or a file that takes part.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The experiment's file.
    #[error(transparent)]
    Store(#[from] StoreError),
}
