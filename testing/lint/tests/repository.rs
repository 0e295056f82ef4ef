//! The repository keeps its own rules.

use std::path::Path;
use std::sync::LazyLock;

use heaptoll_lint::{Error, Finding, book, code, folders, language, order};

/// One pass for three tests.
static CODE: LazyLock<code::Findings> =
    LazyLock::new(|| code::check(root(), &[]).expect("the checks are made"));

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn made(findings: Result<Vec<Finding>, Error>) -> Vec<Finding> {
    findings.expect("the check is made")
}

fn none(findings: &[Finding]) {
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{} findings:\n{}", lines.len(), lines.join("\n"));
}

#[test]
fn identifiers_use_the_words_of_the_glossary() {
    none(&made(language::check(root())));
}

#[test]
fn folders_depend_on_each_other_in_their_order() {
    none(&made(folders::check(root())));
}

#[test]
fn modules_of_a_crate_use_each_other_without_new_circles() {
    none(&CODE.modules);
}

#[test]
fn modules_with_an_order_use_those_below_them() {
    none(&made(order::check(root())));
}

#[test]
fn files_and_functions_keep_the_limits_of_their_sizes() {
    none(&CODE.sizes);
}

#[test]
fn sentences_that_a_user_reads_are_short_and_plain() {
    none(&CODE.sentences);
}

#[test]
fn every_page_is_in_the_summary_and_every_link_leads_to_a_page_or_heading() {
    none(&made(book::check(root())));
}
