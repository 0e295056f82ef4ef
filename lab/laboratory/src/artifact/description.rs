//! What describes an artifact: `artifact.json` in its folder.

use std::path::Path;

use heaptoll_experiment::experiment::Experiment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ArtifactError;
use super::format::{FORMAT, VERSION};
use super::packages::Package;
use crate::cluster::MachineClass;
use crate::cluster::digests::{self, FileDigest};
use crate::cluster::role::Role;
use crate::sealed::{self, Sealed, Unusable};

/// Name of the description in the folder.
pub const NAME: &str = "artifact.json";
/// Name of the experiment's file in the folder.
pub const ROWS: &str = "rows.db";
/// Name of the plan in the folder.
pub const PLAN: &str = "exp.plan";
/// Name of the script in the folder.
pub const REPLAY: &str = "replay";

/// Everything but the rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Description {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u64,
    /// Version of heaptoll that made it.
    pub heaptoll: String,
    /// SHA-256 of this description with this member empty and without spaces, hexadecimal.
    pub identity: String,
    /// What was measured; no rows.
    pub experiment: Experiment,
    /// The machine that made the artifact, or those of the plan.
    pub machines: Vec<MachineClass>,
    /// Whether digests are the plan's, from before the measurement; else they are of when the artifact was made.
    pub planned: bool,
    /// The files that took part.
    pub files: Vec<OwnedFile>,
    /// The Debian packages that they are of.
    pub packages: Vec<Package>,
    /// The other files of the folder.
    pub contents: Vec<Content>,
}

/// A file that took part, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OwnedFile {
    /// The file and its digest.
    #[serde(flatten)]
    pub file: FileDigest,
    /// Name of the Debian package that has it; none where it is of none.
    pub package: Option<String>,
    /// Whether it was put in its place or changed after the experiment began, as far as the file system knows.
    pub changed_since: bool,
}

impl OwnedFile {
    /// Whether heaptoll generated it as a program's input, so that it is generated again where it is missing.
    pub fn is_generated_input(&self) -> bool {
        self.file.role == Role::Input && self.file.path.contains("/heaptoll/inputs/")
    }
}

/// A file of the folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Content {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256, hexadecimal.
    pub sha256: String,
}

impl Sealed for Description {
    const FORMAT: &'static str = FORMAT;
    const VERSION: u64 = VERSION;

    fn identity(&mut self) -> &mut String {
        &mut self.identity
    }
}

impl Description {
    /// Reads the description of an artifact and verifies all files of its folder.
    ///
    /// # Errors
    /// It is no artifact, of another version, or anything in it is missing or was changed.
    pub fn read(folder: &Path) -> Result<Description, ArtifactError> {
        let path = folder.join(NAME);
        let no_artifact = |why: String| ArtifactError::NoArtifact { path: folder.into(), why };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(cause) => return Err(no_artifact(format!("{NAME}: {cause}"))),
        };
        let described: Description = sealed::read(&text).map_err(|unusable| match unusable {
            Unusable::Other(why) => no_artifact(format!("{NAME}: {why}")),
            Unusable::OtherVersion { found, written_by } => {
                ArtifactError::OtherVersion { path: folder.into(), found, written_by }
            }
            Unusable::Shape(_) | Unusable::Changed => ArtifactError::Changed { path: path.clone() },
        })?;
        described.contents.iter().try_for_each(|content| content.verify(folder))?;
        Ok(described)
    }
}

impl Content {
    /// A file of a folder.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of(folder: &Path, name: &str) -> Result<Content, ArtifactError> {
        let found = digests::digest(&folder.join(name), Role::Input)?;
        Ok(Content { name: name.into(), bytes: found.bytes, sha256: found.sha256 })
    }

    fn verify(&self, folder: &Path) -> Result<(), ArtifactError> {
        let path = folder.join(&self.name);
        let found = match Content::of(folder, &self.name) {
            Err(ArtifactError::Cluster(crate::cluster::ClusterError::MissingFile { .. })) => {
                return Err(ArtifactError::Missing { path });
            }
            found => found?,
        };
        if found.sha256 != self.sha256 {
            let (here, recorded) = (found.sha256, self.sha256.clone());
            return Err(ArtifactError::OtherContent { path, here, recorded });
        }
        Ok(())
    }
}
