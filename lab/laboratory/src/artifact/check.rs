//! An artifact against the machine that it is on: what of it is missing here or differs, and what a mirror no longer has.

use std::path::Path;

use super::description::{Description, OwnedFile};
use super::error::ArtifactError;
use super::packages::{self, OnMirror, Package};
use crate::cluster::{ClusterError, MachineClass, digests};

/// A file that took part, on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileHere {
    /// The same.
    Same,
    /// Another of its name.
    Differs,
    /// None.
    Missing,
}

/// A package that took part, on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageHere {
    /// As it was.
    pub package: Package,
    /// The version that is installed here, if any.
    pub here: Option<String>,
    /// What this machine's package lists have.
    pub mirror: OnMirror,
}

/// What was found.
#[derive(Debug)]
pub struct Checked {
    /// The artifact, whole and as it was made.
    pub described: Description,
    /// Each file that took part, in the order of the description.
    pub files: Vec<FileHere>,
    /// Each package.
    pub packages: Vec<PackageHere>,
    /// In what this machine differs from the nearest of the artifact's.
    pub machine: Vec<String>,
}

impl Checked {
    /// Whether all that took part is here, as it was, or can be had: the same files, and each package on the mirror where
    /// there is one.
    pub fn is_all_here(&self) -> bool {
        self.files.iter().all(|file| *file == FileHere::Same)
            && self.packages.iter().all(|package| !matches!(package.mirror, OnMirror::Lost(_)))
    }

    /// The files that are not what they were.
    pub fn others(&self) -> impl Iterator<Item = (&OwnedFile, FileHere)> {
        self.described
            .files
            .iter()
            .zip(self.files.iter().copied())
            .filter(|(_, here)| *here != FileHere::Same)
    }
}

/// Verifies an artifact's own files and compares those that took part with this machine's.
///
/// # Errors
/// The artifact is none, damaged or changed.
pub fn check(folder: &Path) -> Result<Checked, ArtifactError> {
    let described = Description::read(folder)?;
    let files: Result<Vec<FileHere>, ArtifactError> = described.files.iter().map(here).collect();
    let installed = packages::installed(described.packages.iter().map(|package| package.name.as_str()));
    let mirrors = packages::on_mirror(&described.packages);
    let version = |package: &Package| {
        installed.iter().find(|one| one.name == package.name).map(|one| one.version.clone())
    };
    let packages = described.packages.iter().zip(mirrors).map(|(package, mirror)| PackageHere {
        package: package.clone(),
        here: version(package),
        mirror,
    });
    let packages = packages.collect();
    let machine = nearest(&described.machines, &MachineClass::here());
    Ok(Checked { files: files?, packages, machine, described })
}

fn here(file: &OwnedFile) -> Result<FileHere, ArtifactError> {
    match digests::digest(Path::new(&file.file.path), file.file.role) {
        Ok(found) if found.sha256 == file.file.sha256 => Ok(FileHere::Same),
        Ok(_) => Ok(FileHere::Differs),
        Err(ClusterError::MissingFile { .. }) => Ok(FileHere::Missing),
        Err(error) => Err(error.into()),
    }
}

/// In what this machine differs from that of the artifact with which it has most in common.
fn nearest(machines: &[MachineClass], here: &MachineClass) -> Vec<String> {
    let differences = machines.iter().map(|class| class.differences(here));
    let fewest = differences.min_by_key(Vec::len).unwrap_or_default();
    let text = |one: crate::cluster::machine_class::Difference| {
        format!("{} is {} here, and was {}", one.what, one.here, one.class)
    };
    fewest.into_iter().map(text).collect()
}
