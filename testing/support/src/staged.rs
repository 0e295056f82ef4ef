//! The staged build: the installation that tests run. `make stage-tests` fills it.

use std::path::{Path, PathBuf};

/// Its folder: `HEAPTOLL_HOME`, which `.cargo/config.toml` sets, or the build tree's.
pub fn home() -> PathBuf {
    let built = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/debug/stage");
    std::env::var_os("HEAPTOLL_HOME").map_or_else(built, PathBuf::from)
}

/// A file or folder of its `lib/heaptoll`, such as `managers/tithe.so`.
///
/// # Panics
/// It is not there.
pub fn file(path: &str) -> PathBuf {
    let file = home().join("lib/heaptoll").join(path);
    assert!(file.exists(), "{} is missing: run make stage-tests", file.display());
    file
}

/// The object of a manager of ours with every assertion. `make checked` builds them next to the staged build.
///
/// # Panics
/// It is not there.
pub fn checked(manager: &str) -> PathBuf {
    let file = home().join("../../checked/lib/heaptoll/managers").join(format!("{manager}.so"));
    assert!(file.exists(), "{} is missing: run make checked", file.display());
    file
}
