//! The security cases under stacks whose outcomes are known by how these managers work.

use std::collections::BTreeMap;
use std::process::Command;

use heaptoll_conformance::security::{self, Outcome};
use heaptoll_conformance::suite::{Case, CaseKind, Suite, sources};
use heaptoll_experiment::manager;
use heaptoll_experiment::places::Places;

#[test]
fn what_bump_glibc_and_the_layers_that_delay_frees_do_to_attacks_is_found() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let suite = Suite::build_security(&sources(), folder.path()).expect("the cases compile");
    assert!(suite.cases.iter().all(|case| case.kind == CaseKind::Security));
    assert!(suite.cases.len() > 30, "only {} cases", suite.cases.len());
    let names =
        ["double_free", "double_free_reused", "reuse_at_once", "read_after_free", "uninitialised_read"];
    let cases: Vec<&Case> = names.iter().map(|name| suite.case(name).expect("there is one")).collect();
    let places = Places::find().expect("heaptoll's own files");
    let known = manager::known(&places).expect("the managers can be listed");
    let quarantine = "quarantine=1M,check=on/glibc";
    let guard = "guard/glibc";
    let stacks: Vec<_> = ["glibc", "bump", quarantine, guard]
        .iter()
        .map(|name| manager::find(&known, name).expect("it is built: make preloaded stage-tests"))
        .collect();
    let found: BTreeMap<(String, String), Outcome> = security::run(&suite, &places, &stacks, &cases)
        .expect("the cases can be run")
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
