//! The example of the library does what its page states, and the page shows the example.

#[path = "../examples/compare_two_managers.rs"]
#[allow(dead_code)]
mod compare_two_managers;

const EXAMPLE: &str = include_str!("../examples/compare_two_managers.rs");
const PAGE: &str = include_str!("../../../docs/reference/library.md");

#[test]
fn two_managers_are_compared_in_twenty_lines() {
    assert!(heaptoll_testing::staged::file("managers/knuth.so").exists());
    let folder = tempfile::tempdir().expect("a folder");
    let command = ["gawk", "BEGIN { for (i = 0; i < 20000; i++) a[i] = i \"x\"; print length(a) }"];
    let db = folder.path().join("e.db");
    let lines = compare_two_managers::cpu_ratios(command.iter().map(Into::into), Some(db.clone()));
    let lines = lines.expect("a comparison");
    assert!(lines.iter().any(|line| line.starts_with("knuth: ") && line.contains(" to ")), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("glibc: the baseline")), "{lines:?}");
    assert!(db.is_file(), "every run is kept");
    let function = EXAMPLE.split("-> Result<Vec<String>, Failure> {").nth(1).expect("the function");
    assert!(function.trim().lines().count() <= 20, "the page promises 20 lines");
}

#[test]
fn the_page_shows_the_example() {
    let shown = &EXAMPLE[EXAMPLE.find("use std").expect("imports")..];
    assert!(PAGE.contains(shown.trim_end()), "docs/reference/library.md is not the example");
}
