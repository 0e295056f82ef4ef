//! Young and incremental collections of real programs, each compared with a full marking (`TITHE_CHECK=young`): old objects get young ones
//! at every place that a collector must read, while the program forks, closes what it does not know, is filtered and
//! replaces its memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

struct Built {
    object: PathBuf,
    program: PathBuf,
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."))
}

/// A file of the staged build.
fn staged(path: &str) -> PathBuf {
    let home = std::env::var_os("HEAPTOLL_HOME").expect("cargo's configuration sets HEAPTOLL_HOME");
    let file = PathBuf::from(home).join("lib/heaptoll").join(path);
    assert!(file.exists(), "{} is missing: run make stage-tests", file.display());
    file
}

fn folder() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
}

fn built() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| {
        let program = folder().join("young");
        let mut command = Command::new("cc");
        command.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-pthread", "-o"]);
        run(command.arg(&program).arg(root().join("preload/collectors/tithe/tests/young/young.c")));
        Built { object: staged("managers/tithe.so"), program }
    })
}

/// The lines of the log of a case, which ends well.
fn log(name: &str, settings: &[(&str, &str)]) -> Vec<String> {
    log_of(name, &[], settings)
}

fn log_of(name: &str, more: &[&str], settings: &[(&str, &str)]) -> Vec<String> {
    let path = folder().join(format!("young-{name}-{}-{}", more.len(), settings.len()));
    let _ = fs::remove_file(&path);
    let mut command = Command::new(&built().program);
    command.arg(name).args(more).env("LD_PRELOAD", &built().object).env("TITHE_LOG", &path);
    run(command.env("TITHE_CHECK", "young").envs(settings.iter().copied()));
    let text = fs::read_to_string(&path).expect("a log");
    text.lines().map(str::to_string).collect()
}

fn count(lines: &[String], text: &str) -> usize {
    lines.iter().filter(|line| line.contains(text)).count()
}

/// Each case by the default budget, by a collection every so many bytes, and in mode `hybrid`.
fn young(name: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for settings in [
        &[("TITHE_MODE", "collect")][..],
        &[("TITHE_MODE", "collect"), ("TITHE_EVERY", "40K")],
        &[("TITHE_MODE", "hybrid"), ("TITHE_EVERY", "70K"), ("TITHE_SWEEP", "eager")],
    ] {
        lines.extend(log(name, settings));
    }
    lines
}

/// Whether this kernel records writes.
fn is_tracked(lines: &[String]) -> bool {
    count(lines, "generations=off cause=kernel") == 0
}

fn are_young(name: &str) {
    let lines = young(name);
    let young = count(&lines, "generation=young");
    assert!(young > 50 || !is_tracked(&lines), "{young} young collections");
}

#[test]
fn old_objects_keep_young_ones() {
    are_young("graph");
}

#[test]
fn threads_share_a_heap_with_generations() {
    are_young("threads");
}

#[test]
fn children_of_fork_have_young_collections_of_their_own() {
    let lines = young("children");
    let of = |line: &String| line.split(' ').next().map(str::to_string);
    let young: std::collections::BTreeSet<_> =
        lines.iter().filter(|line| line.contains("generation=young")).filter_map(of).collect();
    // Five processes with a collection every so many bytes, twice; how many the default budget gives depends on time.
    assert!(young.len() >= 10 || !is_tracked(&lines), "{} processes", young.len());
}

#[test]
fn every_place_is_read() {
    are_young("places");
}

#[test]
fn memory_that_is_replaced_is_read() {
    are_young("replaced");
}

#[test]
fn a_program_that_closes_everything_has_full_collections_from_then_on() {
    for name in ["closing", "reusing"] {
        let lines = log(name, &[("TITHE_MODE", "collect"), ("TITHE_EVERY", "40K")]);
        // The log may be closed too.
        assert!(count(&lines, "generation=young") > 10 || !is_tracked(&lines), "{name}");
    }
}

#[test]
fn a_child_that_begins_under_a_filter_opens_no_descriptor() {
    let lines = log("filtered", &[("TITHE_MODE", "collect"), ("TITHE_EVERY", "40K")]);
    let filtered = count(&lines, "generations=off cause=filter");
    assert!(filtered >= 4 || !is_tracked(&lines), "{filtered} children");
}

/// Each case with a heap that takes several increments to mark.
fn are_incremental(name: &str) {
    for mode in ["collect", "hybrid"] {
        let settings = [("TITHE_MODE", mode), ("TITHE_PAUSE", "1ms"), ("TITHE_MIN_HEADROOM", "256K")];
        let lines = log_of(name, &["large"], &settings);
        let in_increments = lines
            .iter()
            .filter(|line| line.contains("increments=") && !line.contains("increments=1 "))
            .count();
        assert!(in_increments > 0 || !is_tracked(&lines), "{name}: no collection has several increments");
    }
}

#[test]
fn objects_that_change_between_increments_are_found() {
    are_incremental("graph");
}

#[test]
fn threads_run_between_increments() {
    are_incremental("threads");
}

#[test]
fn children_of_fork_go_on_with_a_collection() {
    are_incremental("children");
}

#[test]
fn memory_that_is_replaced_between_increments_is_read() {
    are_incremental("replaced");
}

#[test]
fn a_program_that_closes_everything_between_increments_goes_on() {
    for name in ["closing", "reusing", "filtered"] {
        log_of(name, &["large"], &[("TITHE_MODE", "collect"), ("TITHE_PAUSE", "1ms")]);
    }
}
