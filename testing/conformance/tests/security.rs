//! The security cases under stacks whose outcomes are known by how these managers work.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::LazyLock;

use heaptoll_conformance::security::{Attack, Outcome};
use heaptoll_conformance::suite::{Case, CaseKind, Suite, sources};
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a temporary folder"));
static SUITE: LazyLock<Suite> = LazyLock::new(|| {
    Suite::build_attacks(&sources(), "security", FOLDER.path()).expect("the attacks compile")
});

fn attacks(stacks: &[&str], cases: &[&Case]) -> Vec<Attack> {
    crate::attacks(&SUITE, stacks, cases)
}

#[test]
fn what_bump_glibc_and_the_layers_that_delay_frees_do_to_attacks_is_found() {
    assert!(SUITE.cases.iter().all(|case| case.kind == CaseKind::Security));
    assert!(SUITE.cases.len() > 30, "only {} cases", SUITE.cases.len());
    let names =
        ["double_free", "double_free_reused", "reuse_at_once", "read_after_free", "uninitialised_read"];
    let cases: Vec<&Case> = names.iter().map(|name| SUITE.case(name).expect("there is one")).collect();
    let quarantine = "quarantine=1M,check=on/glibc";
    let guard = "guard/glibc";
    let stacks = ["glibc", "bump", quarantine, guard];
    let found: BTreeMap<(String, String), Outcome> = attacks(&stacks, &cases)
        .into_iter()
        .map(|attack| ((attack.case, attack.stack), attack.outcome))
        .collect();
    let expected = [
        // glibc's caches of a thread are last in, first out, and have a key by which they notice a second free.
        ("double_free", "glibc", Outcome::Detected),
        ("double_free_reused", "glibc", Outcome::NotDetected),
        ("reuse_at_once", "glibc", Outcome::NotDetected),
        ("read_after_free", "glibc", Outcome::NotDetected),
        // free of bump does nothing: no block has two owners, and none loses what was in it.
        ("double_free", "bump", Outcome::Prevented),
        ("double_free_reused", "bump", Outcome::Prevented),
        ("reuse_at_once", "bump", Outcome::Prevented),
        ("read_after_free", "bump", Outcome::NotDetected),
        ("uninitialised_read", "bump", Outcome::Prevented),
        // Within its size no block is given out again, and each is filled.
        ("double_free", quarantine, Outcome::Detected),
        ("double_free_reused", quarantine, Outcome::Prevented),
        ("reuse_at_once", quarantine, Outcome::Prevented),
        ("read_after_free", quarantine, Outcome::Prevented),
        ("uninitialised_read", quarantine, Outcome::Prevented),
        // While a pointer leads to a block it is cleared and nobody else's.
        ("double_free", guard, Outcome::Detected),
        ("double_free_reused", guard, Outcome::Prevented),
        ("reuse_at_once", guard, Outcome::Prevented),
        ("read_after_free", guard, Outcome::Prevented),
        ("uninitialised_read", guard, Outcome::Prevented),
    ];
    for (case, stack, outcome) in expected {
        assert_eq!(found[&(case.into(), stack.into())], outcome, "{case} under {stack}");
    }
}

/// Attacks by writes past a block's ends, which no order of frees prevents.
const BOUNDS: [&str; 4] = ["overflow_", "underflow_", "neighbour", "zero_size_written"];

#[test]
fn the_guard_averts_every_attack_that_depends_on_reuse_or_on_a_wrong_free() {
    let cases: Vec<&Case> =
        SUITE.cases.iter().filter(|case| !BOUNDS.iter().any(|start| case.name.starts_with(start))).collect();
    let attacks = attacks(&["tithe-guard", "guard/glibc"], &cases);
    let gained: Vec<&Attack> = attacks
        .iter()
        .filter(|attack| {
            let must_be_reported =
                attack.case.starts_with("invalid_free") || attack.case.starts_with("double_free");
            match attack.outcome {
                Outcome::Detected => false,
                // Its block is not given out again, so that there is no second free.
                Outcome::Prevented => must_be_reported && attack.case != "double_free_reused",
                _ => true,
            }
        })
        .collect();
    assert!(cases.len() > 25 && gained.is_empty(), "{} cases: {gained:#?}", cases.len());
}

#[test]
fn the_command_prints_a_table_and_writes_json() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let json = folder.path().join("security.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_heaptoll-conformance"));
    command.args(["security", "glibc", "--case", "huge_request", "--json"]).arg(&json);
    let output = command.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 of 1"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).expect("written")).expect("JSON");
    assert_eq!(json["schema"], "heaptoll.security/1");
    assert_eq!(json["attacks"][0]["outcome"], "prevented");
    command = Command::new(env!("CARGO_BIN_EXE_heaptoll-conformance"));
    let output = command.args(["security", "--case", "no-such-case"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
}
