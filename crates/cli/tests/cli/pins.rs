//! `heaptoll ledger` names the call site whose few live blocks keep the pages of a heap that is otherwise free: planted
//! in programs of 2,000 call sites.

use std::fmt::Write;

use serde_json::Value;

use crate::fixture::Fixture;

const SITES: usize = 2000;

/// Every site allocates in turn, with a survivor of `log_audit` between every 30 of them, until 20 MB are live; then all
/// is freed but the survivors.
fn planted() -> String {
    let mut source =
        String::from("static void *work[80000]; static int filled; void *kept[80000]; static int used;\n");
    for site in 0..SITES {
        let bytes = 40 + site * 7 % 400;
        let _ = writeln!(
            source,
            "__attribute__((noinline)) static void site_{site}(void) {{ work[filled] = memset(malloc({bytes}), 1, 8); \
             filled++; }}"
        );
    }
    source.push_str(
        "__attribute__((noinline)) static void log_audit(void) { kept[used++] = memset(malloc(72), 2, 72); }\n\
         static void (*const all[])(void) = {",
    );
    (0..SITES).for_each(|site| {
        let _ = write!(source, "site_{site},");
    });
    source.push_str(
        "};\nint main(void) {\n    small_pages();\n    for (int round = 0; round < 40; round++)\n        for (int at = 0; \
         at < 2000; at++) { all[at](); if (at % 30 == 0) log_audit(); }\n    for (int at = 0; at < filled; at++) \
         free(work[at]);\n    return kept[0] == 0;\n}\n",
    );
    source
}

fn assert_first(fixture: &Fixture, manager: &str, program: &str) {
    let output = fixture.heaptoll(&["ledger", "-m", manager, "--json", "-", "--", program]);
    assert_eq!(output.code, Some(0), "{manager}: {}\n{}", output.out, output.err);
    let figures: Value = serde_json::from_str(&output.out).expect("JSON");
    let last = figures["moments"].as_array().and_then(|all| all.last()).expect("a snapshot at the end");
    let pins = &last["pins"];
    let bytes = pins["bytes"].as_u64().expect("a figure");
    let external: u64 = last["lines"]
        .as_array()
        .expect("lines")
        .iter()
        .filter(|line| line["term"] == "external")
        .map(|line| line["resident"].as_u64().expect("a figure"))
        .sum();
    // A manager's census takes its metadata out of the counted lines.
    let is_whole = if manager == "glibc" { bytes == external } else { bytes >= external };
    assert!(is_whole, "{manager}: the sites hold {bytes} bytes of {external} of external fragmentation");
    assert!(
        bytes * 10 > last["rss_bytes"].as_u64().expect("a figure") * 4,
        "{manager}: two fifths: {last:#}"
    );
    let first = &pins["sites"][0];
    let name = figures["call_sites"]
        .as_array()
        .expect("sites")
        .iter()
        .find(|site| site["site"] == first["site"])
        .map(|site| site["name"].as_str().expect("a name").to_owned());
    let name = name.unwrap_or_else(|| panic!("{manager}: the site has a name: {figures:#}"));
    assert!(name == "log_audit < main", "{manager}: {name}");
    assert!(first["alone_bytes"].as_u64() > Some(bytes * 9 / 10), "{manager}: {pins:#}");
    let held = first["blocks"].as_u64().expect("a figure");
    assert!(held <= 40 * 67, "{manager}: no more blocks than were made: {held}");
}

#[test]
fn the_survivors_that_keep_the_pages_of_a_heap_are_first_in_the_list() {
    let fixture = Fixture::new();
    let program = fixture.program("planted", &planted());
    assert_first(&fixture, "glibc", &program);
    assert_first(&fixture, "knuth", &program);
    let output = fixture.heaptoll(&["ledger", "--", &program]);
    assert!(output.out.contains("log_audit < main pins "), "{}", output.out);
    let output = fixture.heaptoll(&["ledger", "--no-sites", "--", &program]);
    assert!(output.out.contains("Call sites were not recorded"), "{}", output.out);
}
