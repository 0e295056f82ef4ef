//! The example of the library does what its page shows, and the page shows the example.

use std::process::Command;

const EXAMPLE: &str = include_str!("../examples/compare_two_managers.rs");
const PAGE: &str = include_str!("../../../docs/reference/library.md");

/// The folder of the examples that Cargo built for this test.
fn example() -> std::path::PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let profile = test.parent().and_then(|deps| deps.parent()).expect("target/PROFILE/deps");
    profile.join("examples/compare_two_managers")
}

#[test]
fn two_managers_are_compared_in_twenty_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(example())
        .args(["gawk", "BEGIN { for (i = 0; i < 20000; i++) a[i] = i \"x\"; print length(a) }"])
        .env("HEAPTOLL_HOME", heaptoll_staged::home())
        .env("XDG_STATE_HOME", folder.path())
        .output()
        .expect("cargo builds the examples of what it tests");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("knuth: ") && text.contains("glibc: the baseline"), "{text}");
    assert!(text.contains(&folder.path().display().to_string()), "{text}");
    let body = EXAMPLE.split("fn main()").nth(1).expect("a main");
    assert!(body.lines().count() <= 20, "the page promises 20 lines");
}

#[test]
fn the_page_shows_the_example() {
    assert!(PAGE.contains(EXAMPLE.split("\n\n").nth(1).expect("the imports")), "the imports");
    let main = &EXAMPLE[EXAMPLE.find("fn main").expect("a main")..];
    assert!(PAGE.contains(main.trim_end()), "docs/reference/library.md does not show the example's main");
}
