//! The stepped program: compiled when needed, since it is thirty lines of C.

use std::path::{Path, PathBuf};

use crate::Error;
use crate::compile::compile;
use crate::installation::scratch;

const SOURCE: &str = include_str!("../../c/step.c");

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
    pub fn build() -> Result<Program, Error> {
        let folder = scratch()?;
        let options = ["-std=gnu11", "-O2", "-fno-builtin-malloc", "-fno-builtin-free", "-pthread", "-ldl"];
        let path = compile(folder.path(), "step.c", SOURCE, &options)?;
        Ok(Program { _folder: folder, path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
