//! The page that lists places of an only pointer has those that the cases try.

use std::path::Path;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A row of the C table as the page has it.
fn documented(row: &str) -> String {
    let (name, rest) = row.trim().trim_start_matches("{\"").split_once("\", ").expect("a name");
    let keeps = match rest.split(',').next() {
        Some("HELD") => "kept",
        Some("LOST") => "lost",
        Some("REPORTED") => "lost, and reported",
        other => panic!("{other:?} of {name}"),
    };
    format!("| {name} | {keeps} |")
}

#[test]
fn the_page_has_the_places_that_the_cases_try() {
    let source = read("testing/conformance/c/proof/held.c");
    let (_, table) = source.split_once("/* table begins */\n").expect("the table");
    let (table, _) = table.split_once("    /* table ends */").expect("its end");
    let rows: Vec<String> = table.lines().map(documented).collect();
    let expected =
        format!("| where the only pointer is | its block is |\n|---|---|\n{}\n\n", rows.join("\n"));
    let page = "docs/method/limits.md";
    assert!(read(page).contains(&expected), "{page} has not exactly these rows:\n{expected}");
}
