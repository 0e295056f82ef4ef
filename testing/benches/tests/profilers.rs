//! The built bench, where nothing is installed.

use std::process::Command;

#[test]
fn without_an_installation_it_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bench = Command::new(env!("CARGO_BIN_EXE_heaptoll-bench"));
    let output =
        bench.arg("profilers").env("HEAPTOLL_HOME", folder.path()).output().expect("the bench starts");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("HEAPTOLL_HOME"), "{output:?}");
}
