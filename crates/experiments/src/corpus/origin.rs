//! Where what ran comes from: digests of the program, its libraries and inputs, and the packages that they are of.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::artifact::packages::{self, Package};
use crate::cluster::ClusterError;
use crate::cluster::digests::{self, FileDigest};

/// The files of a command with these variables, and what is preloaded into it.
pub fn files(
    command: &[OsString],
    environment: &[(OsString, OsString)],
    stdin: Option<&Path>,
    preloaded: &[PathBuf],
) -> Result<Vec<FileDigest>, ClusterError> {
    let mut whole: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    whole.extend(environment.iter().cloned());
    let stdin = stdin.filter(|path| *path != Path::new("/dev/null"));
    digests::of_command(command, whole, stdin, preloaded)
}

/// The packages of these files.
pub fn packages(files: &[FileDigest]) -> Vec<Package> {
    let owners = packages::owners(files.iter().map(|file| file.path.as_str()));
    let names: BTreeSet<&str> = owners.values().map(String::as_str).collect();
    packages::installed(names)
}
