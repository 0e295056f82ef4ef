//! What an earlier version stored is read as that version read it: an experiment's database and the traces of
//! recordings, in `tests/stored/`. Members may be added; none changes its name or its value.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::fixture::{Fixture, read_json};
use crate::golden_files::changed;

fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stored").join(name)
}

/// A copy in the fixture's folder: databases are opened for writing.
fn copied(fixture: &Fixture, name: &str) -> String {
    std::fs::copy(stored(name), fixture.path(name)).expect("copies the stored file");
    fixture.at(name)
}

#[track_caller]
fn assert_read_as_before(arguments: &[&str], fixture: &Fixture, expected: &str) {
    let json = fixture.at("now.json");
    fixture.heaptoll(&[arguments, &["--json", &json]].concat()).exits(0);
    let mut changes = Vec::new();
    let old = read_json(&stored(expected).display().to_string());
    changed(&old, Some(&read_json(&json)), "", &mut changes);
    assert!(changes.is_empty(), "{expected}:\n{}", changes.join("\n"));
}

#[test]
fn a_stored_experiment_is_read_as_before() {
    let fixture = Fixture::new();
    let database = copied(&fixture, "experiment.db");
    assert_read_as_before(&["report", &database], &fixture, "experiment.json");
    let table = fixture.at("now.csv");
    fixture.heaptoll(&["report", &database, "--csv", &table]).exits(0);
    let rows = |path: &Path| -> Vec<std::collections::BTreeMap<String, String>> {
        let mut reader = csv::Reader::from_path(path).expect("opens");
        reader.deserialize().collect::<Result<_, _>>().expect("reads")
    };
    let (old, new) = (rows(&stored("experiment.csv")), rows(Path::new(&table)));
    assert_eq!(old.len(), new.len());
    for (old, new) in old.iter().zip(&new) {
        assert!(old.iter().all(|(name, value)| new.get(name) == Some(value)), "{old:?} became {new:?}");
    }
}

#[test]
fn stored_traces_are_read_as_before() {
    let fixture = Fixture::new();
    let calls = copied(&fixture, "calls.heaptoll");
    assert_read_as_before(&["trace", "stat", &calls], &fixture, "stat.json");
    assert_read_as_before(&["trace", "lifetimes", &calls], &fixture, "lifetimes.json");
    let snapshots = copied(&fixture, "snapshots.heaptoll");
    assert_read_as_before(&["ledger", &snapshots], &fixture, "ledger.json");
}

#[test]
fn a_changed_member_is_noticed() {
    let old = serde_json::json!({"a": [1, {"b": 2}], "verdict": "x"});
    let changes = |new: Value| {
        let mut changes = Vec::new();
        changed(&old, Some(&new), "", &mut changes);
        changes.len()
    };
    assert_eq!(changes(serde_json::json!({"a": [1, {"b": 2, "c": 3}], "verdict": "y"})), 0);
    assert_eq!(changes(serde_json::json!({"a": [1, {"c": 2}]})), 1);
    assert_eq!(changes(serde_json::json!({"a": [1, {"b": 3}]})), 1);
    assert_eq!(changes(serde_json::json!({"a": [1]})), 1);
}

/// The forms of output that are text, by the first word of each.
const TEXTS: [(&str, &str); 4] =
    [("--json", "{"), ("--csv", "order,"), ("--markdown", "## "), ("--html", "<!DOCTYPE html>")];

#[test]
fn a_dash_is_standard_output_with_nothing_else_on_it() {
    let fixture = Fixture::new();
    let db = copied(&fixture, "experiment.db");
    let trace = copied(&fixture, "calls.heaptoll");
    let only = |words: &[&str], first: &str| {
        let output = fixture.heaptoll(words).exits(0);
        assert!(output.out.starts_with(first), "{words:?}: {}", output.out);
        assert!(!output.err.contains("wrote"), "{words:?}: {}", output.err);
        output.out
    };
    for (form, first) in TEXTS {
        only(&["report", &db, form, "-"], first);
    }
    only(&["diff", &db, &db, "--anyway", "--markdown", "-"], "## ");
    only(&["trace", "stat", &trace, "--html", "-"], "<!DOCTYPE html>");
    only(&["managers", "--json", "-"], "{");
    let program = fixture.program("p", "int main(void) { free(malloc(9)); puts(\"its own\"); return 0; }");
    let json = only(&["ledger", "--json", "-", "--", &program], "{");
    assert!(serde_json::from_str::<Value>(&json).is_ok(), "{json}");
    fixture
        .heaptoll(&["report", &db, "--parquet", "-"])
        .exits(2)
        .complains(&["--parquet - means standard output"]);
    assert!(!fixture.path("-").exists() && !Path::new("-").exists());
}
