//! One binary of all these tests: linking one takes the time of many tests.

use std::sync::LazyLock;

use heaptoll_conformance::security::{Attack, run as run_attacks};
use heaptoll_conformance::suite::{Case, Suite, sources};
use heaptoll_experiment::manager;
use heaptoll_experiment::places::Places;
use tempfile::TempDir;

mod checked;
mod juliet;
mod managers;
mod mutants;
mod proof;
mod security;
mod tailored;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a temporary folder"));

/// The program of all cases, compiled once.
static SUITE: LazyLock<Suite> =
    LazyLock::new(|| Suite::build(&sources(), FOLDER.path()).expect("the suite compiles"));

/// What becomes of attacks under stacks of the installation.
fn attacks(suite: &Suite, stacks: &[&str], cases: &[&Case]) -> Vec<Attack> {
    let places = Places::find().expect("heaptoll's own files");
    let known = manager::known(&places).expect("the managers can be listed");
    let stacks: Vec<_> = stacks
        .iter()
        .map(|name| manager::find(&known, name).expect("it is built: make preloaded stage-tests"))
        .collect();
    for stack in &stacks {
        suite
            .check_bound(&stack.name, &stack.preload(&places), &stack.environment)
            .expect("it serves malloc");
    }
    run_attacks(suite, &places, &stacks, cases).expect("the cases can be run")
}
