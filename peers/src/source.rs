//! Where cargo unpacked the crates whose C and C++ sources the peers are built from.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use cargo_metadata::MetadataCommand;

use crate::error::Error;

/// Queries cargo for the version and the folder of each crate; without the network first, then with it. Always by the
/// lock file as it is: a build must not choose other versions than those it was started with.
///
/// # Errors
/// [`Error::Metadata`] with cargo's message.
pub fn locate(manifest: &Path) -> Result<HashMap<String, (String, PathBuf)>, Error> {
    let query = |options: &[&str]| {
        let mut command = MetadataCommand::new();
        command
            .manifest_path(manifest)
            .other_options(options.iter().map(ToString::to_string).collect::<Vec<_>>());
        command.exec()
    };
    let mut metadata = query(&["--offline", "--locked"])
        .or_else(|_| query(&["--locked"]))
        .map_err(|e| Error::Metadata { manifest: manifest.to_path_buf(), message: e.to_string() })?;
    // Of several versions of a crate the newest stays.
    metadata.packages.sort_by(|a, b| a.version.cmp(&b.version));
    let place = |package: &cargo_metadata::Package| {
        let folder = package.manifest_path.parent()?.as_std_path().to_path_buf();
        Some((package.name.as_str().to_owned(), (package.version.to_string(), folder)))
    };
    Ok(metadata.packages.iter().filter_map(place).collect())
}
