//! A workshop for the tests of layers: the layers, small programs compiled on the spot.
#![allow(dead_code)]

pub mod recorded;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The directory of the layers: `$HEAPTOLL_LAYERS_DIR`, or built here at first use.
pub fn layers() -> &'static Path {
    static LAYERS: OnceLock<PathBuf> = OnceLock::new();
    LAYERS.get_or_init(|| {
        if let Some(given) = std::env::var_os("HEAPTOLL_LAYERS_DIR") {
            return PathBuf::from(given);
        }
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("layers");
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../layers/Cargo.toml");
        let status = Command::new(env!("CARGO"))
            .args(["build", "--release", "--quiet", "--manifest-path"])
            .arg(manifest)
            .arg("--target-dir")
            .arg(&target)
            .status()
            .expect("cargo runs");
        assert!(status.success(), "the layers build");
        target.join("release")
    })
}

/// A manager of ours: from `$HEAPTOLL_HOME`, or built here at first use.
pub fn manager(name: &str) -> PathBuf {
    if let Some(home) = std::env::var_os("HEAPTOLL_HOME") {
        return Path::new(&home).join("lib/heaptoll/managers").join(format!("{name}.so"));
    }
    static BUILDING: Mutex<()> = Mutex::new(());
    let _building = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("managers");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../managers/Cargo.toml");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "--package", name, "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(&target)
        .status()
        .expect("cargo runs");
    assert!(status.success(), "{name} builds");
    target.join("release").join(format!("lib{name}.so"))
}

/// A temporary directory with a compiler.
pub struct Shop(pub tempfile::TempDir);

impl Shop {
    pub fn new() -> Shop {
        Shop(tempfile::tempdir().expect("a temporary directory"))
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
