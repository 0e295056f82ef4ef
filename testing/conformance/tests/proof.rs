//! The proof of collectors: its cases under ours, and under some that are broken.

use std::sync::LazyLock;

use heaptoll_conformance::proof::program::Program;
use tempfile::TempDir;

mod documented;
mod every_collector;
mod glibc;
mod guard;
mod historic;
mod mutant_collectors;
mod sweep;
mod tithe;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a temporary folder"));

/// The program of all cases, compiled once.
static PROGRAM: LazyLock<Program> =
    LazyLock::new(|| Program::build(FOLDER.path()).expect("the program compiles"));
