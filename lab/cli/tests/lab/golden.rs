//! What the laboratory's commands write of stored files, in `tests/golden/`; `make golden` writes it anew.

use crate::golden_files::{Golden, assert_as_before, assert_shown_as_before};

/// Where they are.
pub const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

const FOR_SCRIPTS: [Golden; 2] = [
    ("study-mimalloc.json", "study --from ROOT/docs/results/study-mimalloc-2026-11-27.json.xz --json @"),
    ("conservatism-pointers.json", "conservatism pointers.graph --json @"),
];

const SHOWN: [Golden; 2] = [
    ("study-mimalloc", "lab study --from ROOT/docs/results/study-mimalloc-2026-11-27.json.xz"),
    ("conservatism-pointers", "lab conservatism pointers.graph"),
];

#[test]
fn what_readers_get_of_stored_files_is_as_before() {
    assert_shown_as_before(&SHOWN);
}

#[test]
fn what_scripts_read_of_stored_files_is_as_before() {
    assert_as_before(&FOR_SCRIPTS);
}
