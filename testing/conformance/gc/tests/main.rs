//! One binary of all these tests: linking one takes the time of many tests.

use std::sync::LazyLock;

use heaptoll_proof::program::Program;
use tempfile::TempDir;

mod documented;
mod every_collector;
mod glibc;
mod historic;
mod mutants;
mod sweep;
mod tithe;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a temporary folder"));

/// The program of all cases, compiled once.
static PROGRAM: LazyLock<Program> =
    LazyLock::new(|| Program::build(FOLDER.path()).expect("the program compiles"));
