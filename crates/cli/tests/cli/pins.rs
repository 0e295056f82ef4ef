//! `heaptoll ledger` names the call site whose few live blocks keep the pages of a heap that is otherwise free: planted
//! in programs of many call sites.

use std::fmt::Write;

use serde_json::Value;

use crate::fixture::{Fixture, UNOPTIMISED, read_json};

/// Every site allocates in turn, with a survivor of `log_audit` between every 30 of them, until this many blocks of
/// 240 bytes in the mean are live; then all is freed but the survivors.
fn planted(sites: usize, blocks: usize) -> String {
    let rounds = blocks / sites;
    let mut source = format!(
        "{UNOPTIMISED}static void *work[96000]; static int filled; void *kept[96000]; static int used;\n"
    );
    for site in 0..sites {
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
    (0..sites).for_each(|site| {
        let _ = write!(source, "site_{site},");
    });
    let _ = write!(
        source,
        "}};\nint main(void) {{\n    small_pages();\n    for (int round = 0; round < {rounds}; round++)\n        for (int at = \
         0; at < {sites}; at++) {{ all[at](); if (at % 30 == 0) log_audit(); }}\n    for (int at = 0; at < filled; at++) \
         free(work[at]);\n    return kept[0] == 0;\n}}\n",
    );
    source
}

fn assert_first(fixture: &Fixture, manager: &str, program: &str, survivors: u64) {
    let json = fixture.at("ledger.json");
    let output = fixture.heaptoll(&["ledger", "-m", manager, "--json", &json, "--", program]).exits(0);
    assert!(output.err.contains("log_audit < main pins "), "{manager}: {}", output.err);
    let figures = read_json(&json);
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
    // Of the heap alone: how much of the libraries is resident depends on the machine. The last snapshot may be from a
    // twentieth of the peak before the end, which leaves half of the heap.
    assert!(bytes * 10 > number(&last["heap_bytes"]) * 4, "{manager}: two fifths: {last:#}");
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
    assert!(held <= survivors, "{manager}: no more blocks than were made: {held}");
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("a figure: {value}"))
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or_else(|| panic!("an array: {value}"), Vec::as_slice)
}

fn name<'a>(figures: &'a Value, site: &Value) -> &'a str {
    let named = array(&figures["call_sites"]).iter().find(|named| named["site"] == *site);
    named.and_then(|named| named["name"].as_str()).unwrap_or_else(|| panic!("{site} has a name"))
}

/// The picture has the pages of the worst snapshot and what was freed there.
fn assert_pictured(figures: &Value, page: &str) {
    let pictures: Vec<&Value> =
        array(&figures["moments"]).iter().filter(|snapshot| !snapshot["picture"].is_null()).collect();
    let [snapshot] = pictures[..] else { panic!("one picture: {}", pictures.len()) };
    let (picture, pins) = (&snapshot["picture"], &snapshot["pins"]);
    let cells = array(&picture["cells"]);
    let sum = |key: &str| cells.iter().map(|cell| number(&cell[key])).sum::<u64>();
    assert_eq!(sum("held_bytes"), number(&pins["bytes"]), "the free bytes on live pages");
    let pages = number(&picture["pages"]) * number(&picture["page_bytes"]);
    assert_eq!(
        sum("live_bytes") + sum("held_bytes") + sum("empty_pages") * number(&picture["page_bytes"]),
        pages
    );
    let audited = cells.iter().filter(|cell| {
        cell["holders"].get(0).is_some_and(|first| name(figures, &first["site"]) == "log_audit < main")
    });
    assert!(audited.count() * 10 > cells.len() * 8, "eight tiles in ten are its");
    // All other sites were freed around it, each with a few of the bytes.
    let around = &picture["around"][0];
    assert_eq!(
        (name(figures, &around["site"]), number(&picture["followed_one_in"])),
        ("log_audit < main", 1)
    );
    let held = number(&around["held_bytes"]);
    assert!(number(&around["unused_bytes"]) * 5 < held, "{around:#}");
    let freed: u64 = array(&around["freed"]).iter().map(|freed| number(&freed["bytes"])).sum();
    assert!((freed + number(&around["others_bytes"])) * 10 > held * 8, "{around:#}");
    assert!(array(&around["freed"]).iter().all(|freed| name(figures, &freed["site"]).starts_with("site_")));
    assert_eq!(page.matches("style=\"--l:").count(), cells.len());
    assert!(page.contains("class=\"h-0 s-"), "the first call site's colour");
}

/// The replays show what other managers hold of the same program by call site.
fn assert_replayed(figures: &Value) {
    let replays = &figures["replays"];
    let names: Vec<&str> =
        array(&replays["managers"]).iter().map(|one| one["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["glibc", "knuth", "bump"], "that of the recording first");
    let recorded = &figures["moments"][number(&replays["recorded"]) as usize];
    // One from before the first call has nothing to compare.
    let events: std::collections::BTreeSet<u64> = array(&figures["moments"])
        .iter()
        .map(|snapshot| number(&snapshot["events"]))
        .filter(|at| *at > 0)
        .collect();
    for manager in array(&replays["managers"]) {
        let first = &manager["pins"]["sites"][0];
        assert_eq!(name(figures, &first["site"]), "log_audit < main", "{manager:#}");
        assert_eq!(array(&manager["points"]).len(), events.len(), "at the same points");
    }
    let bytes = |pins: &Value| number(&pins["bytes"]) as f64;
    let again = bytes(&replays["managers"][0]["pins"]) / bytes(&recorded["pins"]);
    assert!((0.9..1.1).contains(&again), "the recorded manager holds as much again: {again}");
}

#[test]
fn a_recording_shows_its_worst_pages_and_what_other_managers_hold_of_the_same_program_by_call_site() {
    let fixture = Fixture::new();
    let program = fixture.program("planted", &planted(200, 32_000));
    let (trace, html, json) = (fixture.at("t"), fixture.at("page.html"), fixture.at("ledger.json"));
    let output = fixture.heaptoll(&["record", "--ledger", "--sites", "-o", &trace, "--", &program]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    let words = ["ledger", &trace, "-m", "knuth", "-m", "bump", "--html", &html, "--json", &json];
    let output = fixture.heaptoll(&words);
    assert_eq!(output.code, Some(0), "{}", output.err);
    let figures = read_json(&json);
    assert_pictured(&figures, &std::fs::read_to_string(&html).expect("written"));
    assert_replayed(&figures);
    assert!(output.out.contains("Freed around them"), "{}", output.out);
    // Resident memory comes first: what is not pinned may stay all the same.
    let sentence = output.out.lines().find(|line| line.starts_with("Resident memory: ")).unwrap_or_default();
    for words in
        [" under glibc (", "(log_audit < main pins ", "could be given back)", " under glibc when recorded ("]
    {
        assert!(sentence.contains(words), "{words} in {}", output.out);
    }
    assert!(output.out.contains("glibc, as recorded"), "{}", output.out);
    let output = fixture.heaptoll(&["ledger", "-m", "knuth", "-m", "bump", "--", &program]);
    assert_eq!(output.code, Some(2), "{}", output.err);
    assert!(output.err.contains("heaptoll ledger TRACE"), "{}", output.err);
    let output = fixture.heaptoll(&["ledger", &trace, "-m", "no-such-manager"]);
    assert_eq!(output.code, Some(2), "{}", output.err);
}

fn survivors_are_first(sites: usize, blocks: usize) {
    let fixture = Fixture::new();
    let program = fixture.program("planted", &planted(sites, blocks));
    let survivors = (blocks / sites * sites.div_ceil(30)) as u64;
    assert_first(&fixture, "glibc", &program, survivors);
    assert_first(&fixture, "knuth", &program, survivors);
    let output = fixture.heaptoll(&["ledger", "--no-sites", "--", &program]);
    output.complains(&["Call sites were not recorded"]);
}

#[test]
fn the_survivors_that_keep_the_pages_of_a_heap_are_first_in_the_list() {
    survivors_are_first(200, 32_000);
}

#[test]
#[ignore = "slow: nine CPU seconds; a tenth of the sites is in the fast tests"]
fn the_survivors_that_keep_the_pages_of_a_heap_are_first_among_two_thousand_sites() {
    survivors_are_first(2000, 96_000);
}
