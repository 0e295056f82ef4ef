//! Objects under proof: a manager of this repository, built by cargo from its sources, with and without its assertions.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::Error;

/// How it is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// As installed.
    Release,
    /// With every assertion and overflow check.
    Checked,
}

impl Profile {
    /// Its name in preload/Cargo.toml.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Release => "release",
            Profile::Checked => "checked",
        }
    }
}

/// Builds the shared object of a manager of this repository if it is not up to date, and returns its path.
///
/// # Errors
/// Cargo is missing or fails.
pub fn built(manager: &str, profile: Profile) -> Result<PathBuf, Error> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let target = target.join("preload");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--quiet", "--profile", profile.name(), "-p", manager, "--manifest-path"]);
    command.arg(root.join("preload/Cargo.toml")).arg("--target-dir").arg(&target);
    let failed = |message: String| Error::Cargo { command: format!("{command:?}"), message };
    let mut same = Command::new(command.get_program());
    same.args(command.get_args());
    match same.output() {
        Ok(output) if output.status.success() => {
            Ok(target.join(profile.name()).join(format!("lib{manager}.so")))
        }
        Ok(output) => Err(failed(String::from_utf8_lossy(&output.stderr).trim_end().to_string())),
        Err(source) => Err(failed(source.to_string())),
    }
}
