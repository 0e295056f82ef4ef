//! What every command writes of stored databases and traces, in `tests/stored/golden/`. For scripts: JSON, CSV, Parquet,
//! SQL and the formats of other tools, in which only sentences may change. For readers: the terminal's
//! text and Markdown, whose every word is compared.
//!
//! `make golden` writes the files anew, and names those that are others than before.

use std::process::{Command, Stdio};

use crate::golden_files::{Golden, assert_as_before, assert_shown_as_before, compare, stored_files};

/// Where they are.
pub const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stored/golden");

const OF_EXPERIMENTS: [Golden; 9] = [
    ("report-repetitions.json", "report repetitions.db --json @"),
    ("report-repetitions.csv", "report repetitions.db --csv @"),
    ("report-repetitions.parquet", "report repetitions.db --parquet @"),
    ("report-instructions.json", "report instructions.db --json @"),
    ("report-locality.json", "report locality.db --json @"),
    ("report-drag.json", "report drag.db --json @"),
    ("report-drag.csv", "report drag.db --csv @"),
    ("report-reclamation.json", "report reclamation.db --json @"),
    ("report-frequency.csv", "report frequency.db --csv @"),
];

const OF_TRACES: [Golden; 11] = [
    ("stat-calls.json", "stat calls.heaptoll --json @"),
    ("stat-snapshots.json", "stat snapshots.heaptoll --json @"),
    ("stat-pointers.json", "stat pointers.graph --json @"),
    ("lifetimes-snapshots.json", "lifetimes snapshots.heaptoll --json @"),
    ("ledger-snapshots.json", "ledger snapshots.heaptoll --json @"),
    ("leaks-snapshots.json", "leaks snapshots.heaptoll --json @"),
    ("leaks-pointers.json", "leaks pointers.graph --json @"),
    ("bound-calls.json", "bound calls.heaptoll --json @"),
    ("diff-sampled.json", "diff sampled.pb.gz sampled.pb.gz --json @"),
    ("diff-sites.json", "diff snapshots.heaptoll snapshots.heaptoll --json @"),
    ("diff-kinds.json", "diff sampled.pb.gz snapshots.heaptoll --json @"),
];

const EXPORTED: [Golden; 10] = [
    ("calls.parquet", "export calls.heaptoll -o @"),
    ("snapshots.parquet", "export snapshots.heaptoll -o @"),
    ("snapshots.pprof", "export snapshots.heaptoll --to pprof -o @"),
    ("snapshots.firefox", "export snapshots.heaptoll --to firefox -o @"),
    ("snapshots.folded", "export snapshots.heaptoll --to folded -o @"),
    ("snapshots.dhat", "export snapshots.heaptoll --to dhat -o @"),
    ("snapshots.callgrind", "export snapshots.heaptoll --to callgrind -o @"),
    ("snapshots.speedscope", "export snapshots.heaptoll --to speedscope -o @"),
    ("snapshots.perfetto", "export snapshots.heaptoll --to perfetto -o @"),
    ("sampled.folded", "export sampled.pb.gz --to folded -o @"),
];

/// What readers get: the terminal's text as NAME.txt, and NAME.md.
const SHOWN: [Golden; 16] = [
    ("report-repetitions", "report repetitions.db"),
    ("report-instructions", "report instructions.db"),
    ("report-locality", "report locality.db"),
    ("report-drag", "report drag.db"),
    ("report-reclamation", "report reclamation.db --bounds"),
    ("report-frequency", "report frequency.db --collections"),
    ("stat-calls", "trace stat calls.heaptoll"),
    ("stat-snapshots", "trace stat snapshots.heaptoll"),
    ("stat-pointers", "trace stat pointers.graph"),
    ("lifetimes-snapshots", "trace lifetimes snapshots.heaptoll"),
    ("ledger-snapshots", "ledger snapshots.heaptoll"),
    ("leaks-snapshots", "leaks snapshots.heaptoll"),
    ("leaks-pointers", "leaks pointers.graph"),
    ("bound-calls", "trace bound calls.heaptoll"),
    ("diff-sites", "diff snapshots.heaptoll snapshots.heaptoll"),
    ("diff-kinds", "diff sampled.pb.gz snapshots.heaptoll"),
];

#[test]
fn what_readers_get_of_stored_files_is_as_before() {
    assert_shown_as_before(&SHOWN);
}

#[test]
fn what_scripts_read_of_stored_experiments_is_as_before() {
    assert_as_before(&OF_EXPERIMENTS);
}

#[test]
fn what_scripts_read_of_stored_traces_is_as_before() {
    assert_as_before(&OF_TRACES);
}

#[test]
fn what_other_tools_read_of_stored_traces_is_as_before() {
    assert_as_before(&EXPORTED);
}

#[test]
fn the_documented_queries_answer_as_before() {
    let fixture = stored_files();
    let queries =
        std::fs::File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/sql-examples.sql"));
    let mut sqlite = Command::new("sqlite3");
    let output = sqlite
        .arg(fixture.path("repetitions.db"))
        .stdin(queries.expect("opens"))
        .stderr(Stdio::inherit())
        .output();
    let changes = compare("queries.txt", &output.expect("sqlite3 runs").stdout);
    assert!(changes.is_empty(), "{}", changes.join("\n"));
}
