//! Sources in C and C++ of the benches: compiled when needed, since each is some dozen lines.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Error, child};

/// Compiles a source into a folder; what is made has the source's name without its ending.
///
/// # Errors
/// The folder cannot be written, there is no compiler, or it refuses.
pub fn compile(folder: &Path, name: &str, source: &str, options: &[&str]) -> Result<PathBuf, Error> {
    let file = folder.join(name);
    let made = file.with_extension("");
    std::fs::write(&file, source).map_err(Error::file("write", &file))?;
    let compiler = if name.ends_with(".c") { "cc" } else { "c++" };
    child::run(Command::new(compiler).args(options).arg("-o").args([&made, &file]))?;
    Ok(made)
}

/// Options for an object that is preloaded.
pub const OBJECT: [&str; 4] = ["-O2", "-shared", "-fPIC", "-fno-builtin"];
