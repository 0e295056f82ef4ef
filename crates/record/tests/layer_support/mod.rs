//! A fixture for the tests of layers: the layers, and small programs compiled on the spot.
#![allow(dead_code)]

pub mod recorded;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory of the layers.
pub fn layers() -> PathBuf {
    heaptoll_testing::staged::file("layers")
}

/// A manager of ours.
pub fn manager(name: &str) -> PathBuf {
    heaptoll_testing::staged::file(&format!("managers/{name}.so"))
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
