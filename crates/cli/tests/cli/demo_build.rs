//! The build of the demo: what it leaves out must not be needed by what it has.

use std::path::Path;
use std::process::Command;

#[test]
#[ignore = "slow: compiles the product once more"]
fn the_build_without_what_records_and_diffs_compiles() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut cargo = Command::new(env!("CARGO"));
    // The tests may be built through clippy, whose lints are for the whole.
    cargo.env_remove("RUSTC_WORKSPACE_WRAPPER").env_remove("CLIPPY_ARGS");
    cargo.args(["check", "--quiet", "--locked", "-p", "heaptoll", "--no-default-features", "--target-dir"]);
    let made = cargo.arg(root.join("target")).current_dir(&root).status();
    assert!(made.expect("cargo runs").success());
}
