//! One binary of all these tests: linking one takes the time of many tests.

use std::sync::LazyLock;

use heaptoll_conformance::suite::{Suite, sources};
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
