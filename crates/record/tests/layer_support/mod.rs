//! A fixture for the tests of layers: the layers, and small programs compiled on the spot.
#![allow(dead_code)]

pub mod recorded;

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of the staged build. `.cargo/config.toml` sets `HEAPTOLL_HOME`; `make stage-tests` fills that folder.
pub fn staged(path: &str) -> PathBuf {
    let home = std::env::var_os("HEAPTOLL_HOME").expect("HEAPTOLL_HOME is set");
    let file = Path::new(&home).join("lib/heaptoll").join(path);
    assert!(file.exists(), "{} is missing: run make stage-tests", file.display());
    file
}

/// The directory of the layers.
pub fn layers() -> PathBuf {
    staged("layers")
}

/// A manager of ours.
pub fn manager(name: &str) -> PathBuf {
    staged(&format!("managers/{name}.so"))
}

/// A temporary directory with a compiler.
pub struct Fixture(pub tempfile::TempDir);

impl Fixture {
    pub fn new() -> Fixture {
        Fixture(tempfile::tempdir().expect("a temporary directory"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Compiles a program of `layer_programs`.
    pub fn program(&self, source: &str, flags: &[&str]) -> PathBuf {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/layer_programs");
        let compiler = if source.ends_with(".cc") { "c++" } else { "cc" };
        let out = self.path(source.split('.').next().expect("a name"));
        // Without -fno-builtin the compiler removes pairs of malloc and free.
        let output = Command::new(compiler)
            .args(["-O1", "-fno-builtin", "-w", "-pthread", "-o"])
            .arg(&out)
            .arg(sources.join(source))
            .args(flags)
            .output()
            .expect("the compiler runs");
        assert!(output.status.success(), "{source}: {}", String::from_utf8_lossy(&output.stderr));
        out
    }
}
