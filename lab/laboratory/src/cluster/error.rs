//! Why an experiment cannot be cut, a shard not measured, or shards not merged.

use std::io;
use std::path::PathBuf;

use heaptoll_experiment::store::StoreError;
use heaptoll_units::{and_list, plural};
use thiserror::Error;

use super::format::VERSION;
use super::machine_class::Difference;
use super::role::Role;

/// A request about plans and shards that cannot be carried out.
#[derive(Debug, Error)]
pub enum ClusterError {
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
    /// A file that is no plan.
    #[error("{path} is not a plan of heaptoll ({why}); `heaptoll lab shards plan ... -o FILE` writes one", path = .path.display())]
    NoPlan {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        why: String,
    },
    /// A plan of another version of the format.
    #[error(
        "{path} is a plan of version {found}, written by heaptoll {written_by}; this heaptoll reads version {VERSION}: \
         plan, work and merge with one version", path = .path.display()
    )]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// The version of heaptoll that wrote it.
        written_by: String,
    },
    /// A plan that another heaptoll made.
    #[error(
        "{path} was made by heaptoll {planned}, but this is {here}, which may measure differently; use one \
         version on all nodes, or plan again", path = .path.display()
    )]
    OtherHeaptoll {
        /// The file.
        path: PathBuf,
        /// The version that made it.
        planned: String,
        /// This version.
        here: String,
    },
    /// A plan that is not as it was written.
    #[error(
        "{path} is damaged or was changed after it was made: its content does not match the digest in it; \
         plan again",
        path = .path.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// No such shard.
    #[error("there is no shard {number}: the plan has {}, numbered from 0", plural(*.of as usize, "shard"))]
    NoShard {
        /// The number.
        number: u32,
        /// How many there are.
        of: u32,
    },
    /// This machine is of another class.
    #[error(
        "{node} is not a machine of class {class}: {}. Run the shard on another node, or plan again with a \
         class of this one (`heaptoll lab shards plan --machine -o FILE`, then --class)", differences(.found)
    )]
    OtherClass {
        /// This node.
        node: String,
        /// The class of the shard.
        class: String,
        /// What differs.
        found: Vec<Difference>,
    },
    /// A file of the plan is not on this node.
    #[error(
        "{path} ({}) is not on this node: install the package that has it, in the version that the plan was made with",
        .role.as_str(), path = .path.display()
    )]
    MissingFile {
        /// The file.
        path: PathBuf,
        /// What it is to the experiment.
        role: Role,
    },
    /// A file differs from the plan's.
    #[error(
        "{path} ({}) differs from the file of the plan: its SHA-256 is {here}, but the plan says {planned}; \
         put the same file on each node, or plan again", .role.as_str(), path = .path.display()
    )]
    OtherFile {
        /// The file.
        path: PathBuf,
        /// What it is to the experiment.
        role: Role,
        /// Its digest here.
        here: String,
        /// Its digest in the plan.
        planned: String,
    },
    /// A file takes part here that the plan does not know.
    #[error(
        "{path} ({}) takes part on this node but is not in the plan: the loader finds other libraries here; \
         install what the machine of the plan has, or plan again", .role.as_str(), path = .path.display()
    )]
    UnplannedFile {
        /// The file.
        path: PathBuf,
        /// What it is to the experiment.
        role: Role,
    },
    /// The environment has other settings of managers.
    #[error(
        "{variable} is {} here, but was {} when the plan was made, and managers read it; give the shard the \
         same environment",
        setting(.here), setting(.planned)
    )]
    OtherEnvironment {
        /// The variable.
        variable: String,
        /// Its value here.
        here: Option<String>,
        /// Its value in the plan.
        planned: Option<String>,
    },
    /// A program is not there, or is another kind of file than it was.
    #[error("{command} cannot run on this node: {why}")]
    Program {
        /// The word that names it.
        command: String,
        /// Why.
        why: String,
    },
    /// The loader does not serve a file.
    #[error("the libraries of {path} are not on this node: {why}", path = .path.display())]
    Libraries {
        /// The program or object.
        path: PathBuf,
        /// The loader's message.
        why: String,
    },
    /// A shard of something else lies where this one is to be.
    #[error("{path} is not shard {number} of this plan; move it away, or give another folder (-o)", path = .path.display())]
    Occupied {
        /// The file.
        path: PathBuf,
        /// The shard that would get its name.
        number: u32,
    },
    /// What was measured could not be put where it belongs.
    #[error(
        "shard {number} was measured but cannot be kept in {folder}: {cause}; free space there and run it \
         again",
        folder = .folder.display()
    )]
    NotKept {
        /// Its number.
        number: u32,
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The disk of the scratch folder fails while a shard is measured.
    #[error(
        "shard {number} was not measured, and nothing of it is kept: the disk of {folder} is full or failing; free space \
         there or give a folder on another disk (--scratch), and run it again",
        folder = .folder.display()
    )]
    ScratchFull {
        /// Its number.
        number: u32,
        /// The folder.
        folder: PathBuf,
    },
    /// A file to merge is no shard.
    #[error("{path} is not a shard: it was measured by itself; merge takes the files of `heaptoll lab shards \
             work`", path = .path.display())]
    NoShardFile {
        /// The file.
        path: PathBuf,
    },
    /// A shard that was not measured to its end.
    #[error(
        "{path} is an incomplete shard; remove it and run `heaptoll lab shards work` again",
        path = .path.display()
    )]
    HalfShard {
        /// The file.
        path: PathBuf,
    },
    /// A shard of another experiment.
    #[error(
        "{path} belongs to another experiment: its plan is {found}, not {expected} as in {first}; merge the \
         shards of one plan",
        path = .path.display(), first = .first.display()
    )]
    OtherExperiment {
        /// The file.
        path: PathBuf,
        /// Its plan.
        found: String,
        /// The file that it was compared with.
        first: PathBuf,
        /// That one's plan.
        expected: String,
    },
    /// A shard that describes the experiment otherwise.
    #[error(
        "{path} and {first} describe the experiment differently ({what}), though their plans are equal. One \
         of them was changed, or comes from another version of heaptoll; measure it again", path = .path.display(), first = .first.display()
    )]
    OtherDescription {
        /// The file.
        path: PathBuf,
        /// The file that it was compared with.
        first: PathBuf,
        /// What differs.
        what: String,
    },
    /// Rows that are not of the shard.
    #[error("{path} is damaged: {why}; measure shard {number} again", path = .path.display())]
    OtherRows {
        /// The file.
        path: PathBuf,
        /// Its number.
        number: u32,
        /// What does not fit.
        why: String,
    },
    /// There is nothing to merge.
    #[error("there is no shard to merge")]
    NothingToMerge,
    /// The experiment's file.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn setting(value: &Option<String>) -> String {
    value.as_ref().map_or("not set".into(), |value| format!("`{value}`"))
}

fn differences(found: &[Difference]) -> String {
    and_list(&found.iter().map(Difference::to_string).collect::<Vec<_>>())
}
