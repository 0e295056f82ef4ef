//! What is planted in programs of 2,000 call sites in C++ and Rust, whose templates and generics are inlined into the
//! sites, is first in each list: a leak, survivors that pin two fifths of the heap, twice the bytes of one site. C is in
//! `leaks.rs`, `pins.rs` and `diffs.rs`.

use std::fmt::Write;
use std::process::Command;

use crate::fixture::{Fixture, read_json};

/// Compiles the sources in `tests/planted`; returns the program's path.
/// Compiles a source file of this name into a program whose name is that without its ending.
pub fn compiled(fixture: &Fixture, compiler: &str, options: &[&str], file: &str, source: &str) -> String {
    std::fs::write(fixture.path(file), source).expect("writes the source");
    let program = fixture.at(file.split('.').next().unwrap_or(file));
    let output = Command::new(compiler)
        .args(options)
        .args(["-o", &program])
        .arg(fixture.path(file))
        .output()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

fn assert_leak_is_first(fixture: &Fixture, program: &str, site: &str) {
    let json = fixture.at("leaks.json");
    fixture.heaptoll(&["leaks", "--json", &json, "--", program, "leak"]).exits(0);
    let figures = read_json(&json);
    let first = &figures["rows"][0];
    assert!(
        first["name"].as_str().is_some_and(|name| name
            .split(" < ")
            .any(|frame| frame == site || frame.starts_with(&format!("{site} (")))),
        "{first:#}"
    );
    assert_eq!(
        (&first["kinds"]["definite"]["objects"], &first["kinds"]["definite"]["bytes"]),
        (&1.into(), &100.into())
    );
}

fn assert_survivors_are_first(fixture: &Fixture, program: &str, site: &str) {
    let json = fixture.at("ledger.json");
    let output = fixture.heaptoll(&["ledger", "--json", &json, "--", program, "pins"]).exits(0);
    let sentence = output.err.lines().find(|line| line.contains(" pins ")).unwrap_or_default();
    assert!(sentence.contains(&format!(" < {site} < ")), "{}", output.err);
    let figures = read_json(&json);
    let last = figures["moments"].as_array().and_then(|all| all.last()).expect("a snapshot at the end");
    let (pins, heap) = (&last["pins"], last["heap_bytes"].as_u64().expect("a figure"));
    let bytes = pins["bytes"].as_u64().expect("a figure");
    assert!(bytes * 10 > heap * 4, "two fifths of the heap: {bytes} of {heap}");
    let of_first = |what: &str| pins["sites"][0][what].as_u64().expect("a figure");
    assert!(of_first("alone_bytes") > bytes * 9 / 10 && of_first("blocks") <= 2500, "{pins:#}");
}

fn assert_what_doubled_is_first(fixture: &Fixture, program: &str, site: &str) {
    let [before, after] = ["once", "twice"].map(|mode| {
        let trace = fixture.at(mode);
        fixture.heaptoll(&["record", "--sites", "-o", &trace, "--", program, mode]).exits(0);
        trace
    });
    let (json, html) = (fixture.at("diff.json"), fixture.at("diff.html"));
    let output = fixture.heaptoll(&["diff", &before, &after, "--json", &json, "--html", &html]).exits(0);
    let first = output.out.lines().find(|line| line.contains("retains at the peak")).unwrap_or_default();
    let doubled = format!("{site} retains at the peak 800 B more: 800 B became 1.56 KiB (+100 %)");
    assert!(first.contains(&doubled), "{}", output.out);
    let figures = read_json(&json);
    for figure in ["live", "exit", "bytes", "calls"] {
        let first = &figures["sites"][figure]["grown"][0];
        let name = first["part"]["name"].as_str().unwrap_or_default();
        assert!(name.split(" < ").any(|function| function == site), "{figure}: {first:#}");
        assert_eq!(first["new"].as_u64(), first["base"].as_u64().map(|base| 2 * base), "{figure}: {first:#}");
    }
    let page = std::fs::read_to_string(&html).expect("a page");
    let largest = page.split("Call stacks that changed most").nth(1).expect("the flame graph's table");
    let row = largest.split("<tbody>").nth(1).and_then(|rows| rows.split("</tr>").next()).expect("a row");
    assert!(row.contains(site) && row.contains("+800"), "{row}");
}

#[test]
#[ignore = "slow: seventeen CPU seconds; a leak in C is planted in the fast tests"]
fn what_is_planted_in_two_thousand_sites_of_cpp_is_first() {
    let fixture = Fixture::new();
    let source = include_str!("../planted/sites.cc");
    let program = compiled(&fixture, "c++", &["-std=c++17", "-O1", "-g"], "planted.cc", source);
    assert_leak_is_first(&fixture, &program, "site_1234");
    assert_survivors_are_first(&fixture, &program, "log_audit");
    assert_what_doubled_is_first(&fixture, &program, "site_1234");
}

#[test]
#[ignore = "slow: six CPU seconds; a leak in C is planted in the fast tests"]
fn what_is_planted_in_two_thousand_sites_of_rust_is_first() {
    let fixture = Fixture::new();
    let mut sites = String::new();
    for site in (0..2000).filter(|site| *site != 1234) {
        let _ = write!(sites, "site_{site} ");
    }
    let source = include_str!("../planted/sites.rs").replace("SITES", &sites);
    let options = ["--edition", "2021", "-O", "-C", "debuginfo=1"];
    let program = compiled(&fixture, "rustc", &options, "planted.rs", &source);
    assert_leak_is_first(&fixture, &program, "planted::site_1234");
    assert_survivors_are_first(&fixture, &program, "planted::log_audit");
    assert_what_doubled_is_first(&fixture, &program, "planted::site_1234");
}

/// Before, the tracer's names of inlined functions had no class, and both were one call site, `make < main`.
#[test]
fn an_inlined_member_of_two_instances_of_a_template_is_two_call_sites() {
    let source = "#include <cstdlib>\nstatic void *volatile last;\nstruct Small { char c[40]; };\nstruct Large { char c[80]; };\n\
        template <class T> struct Box { __attribute__((always_inline)) static void make() { last = malloc(sizeof(T)); } };\n\
        int main() { for (int i = 0; i < 25; i++) Box<Small>::make(); for (int i = 0; i < 12; i++) Box<Large>::make(); \
        last = nullptr; }\n";
    let fixture = Fixture::new();
    let program = compiled(&fixture, "c++", &["-O1", "-g"], "template.cc", source);
    fixture.heaptoll(&["leaks", "--", &program]).exits(0).shows(&["Box<Small>::make", "Box<Large>::make"]);
}
