//! The stepped program: compiled when needed, since it is thirty lines of C.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fastpath::tracer::StepError;

const SOURCE: &str = include_str!("../../fastpath/step.c");

/// The compiled program, in a folder that goes with it.
#[derive(Debug)]
pub struct Program {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Program {
    /// Compiles it with `cc`.
    ///
    /// # Errors
    /// No temporary folder, no compiler, or one that refuses.
    pub fn build() -> Result<Program, StepError> {
        let failed = |reason: String| StepError::Build { reason };
        let folder = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
        let (source, path) = (folder.path().join("step.c"), folder.path().join("step"));
        std::fs::write(&source, SOURCE).map_err(|error| failed(error.to_string()))?;
        let output = Command::new("cc")
            .args(["-std=gnu11", "-O2", "-fno-builtin-malloc", "-fno-builtin-free", "-pthread", "-o"])
            .args([&path, &source])
            .arg("-ldl")
            .output()
            .map_err(|error| failed(format!("cc: {error}")))?;
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        Ok(Program { _folder: folder, path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
