//! `heaptoll ledger`: on programs whose memory is known, on real ones under managers of all sorts, and on traces that
//! have nothing to show.

use serde_json::Value;

use crate::bench::{Bench, Said};

/// The ledger of a command as JSON.
fn ledger(bench: &Bench, options: &[&str], command: &[&str]) -> Value {
    let mut arguments = vec!["ledger", "--json", "-"];
    arguments.extend(options);
    if !command.is_empty() {
        arguments.push("--");
        arguments.extend(command);
    }
    let said = bench.heaptoll(&arguments).exits(0);
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}:\n{}\n{}", said.out, said.err))
}

fn moments(figures: &Value) -> &Vec<Value> {
    figures["moments"].as_array().unwrap_or_else(|| panic!("no moments: {figures:#}"))
}

fn bytes(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no figure: {value}"))
}

/// A line's member, 0 where there is no such line.
fn line(moment: &Value, term: &str, member: &str) -> u64 {
    let lines = moment["lines"].as_array().expect("lines");
    lines.iter().find(|line| line["term"] == term).map_or(0, |line| bytes(&line[member]))
}

/// Asserts what must hold at every moment of every program: the sum closes, the record is the process's.
#[track_caller]
fn assert_sound(figures: &Value) {
    assert_eq!(figures["schema"], "heaptoll-ledger/1");
    assert_eq!(figures["kind"], "pages");
    assert!(!moments(figures).is_empty());
    for moment in moments(figures) {
        let lines = moment["lines"].as_array().expect("lines");
        let sum: u64 = lines.iter().map(|line| bytes(&line["resident"])).sum();
        let difference = moment["difference_bytes"].as_i64().expect("a figure");
        assert_eq!(
            i128::from(sum) + i128::from(difference),
            i128::from(bytes(&moment["rss_bytes"])),
            "{moment:#}"
        );
        assert_eq!(moment["defects"]["unmapped_blocks"], 0, "{moment:#}");
        assert_eq!(moment["defects"]["overlapping_blocks"], 0, "{moment:#}");
        let live: u64 =
            ["resident", "swapped", "absent"].iter().map(|member| line(moment, "live", member)).sum();
        assert_eq!(live, bytes(&moment["live_bytes"]), "{moment:#}");
        assert!(moment["no_pagemap"].is_null());
    }
}

/// Holds 20 000 blocks of 1000 bytes, written, and 64 MiB that are not, and makes calls until it has been looked at.
const HOLDER: &str = r#"
    static char *blocks[20000];
    int main(void) {
        for (int at = 0; at < 20000; at++) memset(blocks[at] = malloc(1000), 1, 1000);
        char *large = malloc(64 << 20);
        large[5 << 20] = 1;
        for (int at = 0; at < 20000; at += 2) free(blocks[at]);
        for (int at = 0; at < 3000; at++) { free(malloc(50)); usleep(1000); }
        return large == 0;
    }
"#;

#[test]
fn a_known_program_is_where_it_should_be() {
    let bench = Bench::new();
    let program = bench.program("holder", HOLDER);
    let figures = ledger(&bench, &[], &[&program]);
    assert_sound(&figures);
    let last = moments(&figures).last().expect("one");
    assert_eq!(figures["manager"], "glibc");
    // Half of the blocks, and the large one.
    let live = 10_000 * 1000 + (64 << 20);
    assert!((live..live + 200).contains(&bytes(&last["live_bytes"])), "{last:#}");
    // A page of it at each end at most, and the one that was written.
    let untouched = line(last, "live", "absent");
    assert!(((64 << 20) - 3 * 4096..=64 << 20).contains(&untouched), "{last:#}");
    // Of 1008 bytes of a freed chunk all is pinned, less what is thread cache: there is none, the page is shared.
    let pinned = line(last, "external", "resident");
    assert!((10_000 * 1000..10_000 * 1100).contains(&pinned), "{last:#}");
    assert_eq!(line(last, "metadata", "resident") / 1000, bytes(&last["live_blocks"]) * 8 / 1000);
    assert!(line(last, "recorder", "resident") > 0, "{last:#}");
}

/// Runs a real program under a manager, if that is there.
fn real(bench: &Bench, manager: &str, options: &[&str], command: &[&str]) -> Option<Value> {
    let known = bench.heaptoll(&["managers"]).exits(0).out;
    let is_there = known.lines().any(|line| line.split_whitespace().next() == Some(manager));
    if !is_there {
        eprintln!("skipped: {manager} is not built");
        return None;
    }
    let mut all = vec!["-m", manager];
    all.extend(options);
    let figures = ledger(bench, &all, command);
    assert_sound(&figures);
    assert_eq!(figures["manager"], manager);
    Some(figures)
}

/// Tables that grow and are dropped, for half a second at least.
const PERL: [&str; 3] =
    ["perl", "-e", "for my $round (1..4) { my %table; $table{$_} = 'x' x ($_ % 50) for 1..30000; }"];

#[test]
fn real_programs_close_under_every_sort_of_manager() {
    let bench = Bench::new();
    let gawk = [
        "gawk",
        "BEGIN { for (i = 0; i < 200000; i++) a[i % 40000] = i \" \" i; print length(a) > \"/dev/null\" }",
    ];
    let python =
        ["/usr/bin/python3", "-c", "tables = [{str(i): [i] for i in range(3000)} for _ in range(20)]"];
    for manager in ["glibc", "mimalloc3", "jemalloc", "tithe", "tithe-collect", "bw16", "knuth"] {
        for command in [&PERL[..], &gawk, &python] {
            if let Some(figures) = real(&bench, manager, &[], command) {
                let peak = &moments(&figures)[figures["peak"].as_u64().expect("a number") as usize];
                assert!(line(peak, "live", "resident") > 0, "{manager}: {peak:#}");
            }
        }
    }
}

#[test]
fn what_a_collector_has_not_reclaimed_is_dead() {
    let bench = Bench::new();
    // Frees everything at once: under tithe-collect, where free does nothing, it is dead and not live.
    let program = bench.program(
        "dropper",
        "int main(void) {
            for (int at = 0; at < 300000; at++) { char *block = malloc(500); memset(block, 1, 500); free(block);
                if (at % 500 == 0) usleep(1000); }
            return 0; }",
    );
    let Some(figures) = real(&bench, "tithe-collect", &[], &[&program]) else { return };
    let told = |moment: &&Value| !moment["census"].is_null();
    let most = moments(&figures).iter().filter(told).map(|moment| line(moment, "dead", "resident")).max();
    // At least 256 KiB are handed out between two collections.
    assert!(most.expect("a census") > 100_000, "{figures:#}");
    assert!(moments(&figures).iter().all(|moment| bytes(&moment["live_bytes"]) < 100_000));
}

#[test]
fn forced_collections_tell_headroom_from_what_is_held() {
    let bench = Bench::new();
    // Drops a chain of blocks by and by, and keeps the addresses of others that it has freed.
    let program = bench.program(
        "keeper",
        "static char *kept[2000];
        int main(void) {
            for (int at = 0; at < 2000; at++) { kept[at] = malloc(500); free(kept[at]); }
            for (int at = 0; at < 300000; at++) { char *block = malloc(500); memset(block, 1, 500); free(block);
                if (at % 300 == 0) usleep(3000); }
            return kept[0] == 0; }",
    );
    let Some(figures) = real(&bench, "tithe-collect", &["--collect"], &[&program]) else { return };
    assert_eq!(figures["collected"], true);
    let told = |moment: &&Value| moment["census"]["live_after_collection_bytes"].is_u64();
    let told: Vec<&Value> = moments(&figures).iter().filter(told).collect();
    assert!(!told.is_empty(), "{figures:#}");
    let most = |term: &str| told.iter().map(|moment| line(moment, term, "resident")).max();
    assert!(most("headroom") > Some(20_000), "{figures:#}");
    // A megabyte of freed blocks whose addresses are kept.
    assert!(most("held") >= Some(900_000), "{figures:#}");
    assert!(told.iter().all(|moment| line(moment, "dead", "resident") == 0));
}

#[test]
fn a_trace_without_looks_gives_the_coarse_sum() {
    let bench = Bench::new();
    let program = bench.program("holder", HOLDER);
    let trace = bench.at("plain.heaptoll");
    bench.heaptoll(&["record", "-o", &trace, "--", &program]).exits(0);
    let said = bench.heaptoll(&["ledger", &trace]).exits(0);
    said.shows(&["recorded without --ledger", "Rest KiB"]);
    let said = bench.heaptoll(&["ledger", &trace, "--json", "-"]).exits(0);
    let figures: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(figures["kind"], "coarse");
    let last = figures["points"].as_array().and_then(|points| points.last()).expect("points");
    assert!(bytes(&last["live_bytes"]) > 10_000 * 1000);
}

#[test]
fn what_is_no_trace_is_refused() {
    let bench = Bench::new();
    std::fs::write(bench.path("text"), "hello\n").expect("writes");
    let refused = |arguments: &[&str]| -> Said { bench.heaptoll(arguments).exits(2) };
    refused(&["ledger", &bench.at("text")]);
    refused(&["ledger", &bench.at("nothing")]).complains(&["nothing"]);
    refused(&["ledger"]);
    refused(&["ledger", &bench.at("text"), "--", "true"]);
    refused(&["ledger", "--", "/nothing/of/the/kind"]);
}

#[test]
fn of_several_processes_the_largest_is_shown_and_a_failure_passed_on() {
    let bench = Bench::new();
    let program = bench.program("holder", HOLDER);
    let trace = bench.at("kept.heaptoll");
    let script = format!("{program}; exit 3");
    let said = bench.heaptoll(&["ledger", "-o", &trace, "--", "sh", "-c", &script]).exits(1);
    said.complains(&["was the largest"]).shows(&["holder"]);
    assert!(bench.path("kept.heaptoll").exists());
    bench.heaptoll(&["ledger", "-o", &trace, "--", "true"]).exits(2);
}

#[test]
fn the_page_and_the_figures_are_written() {
    let bench = Bench::new();
    let program = bench.program("holder", HOLDER);
    let (page, json) = (bench.at("out.html"), bench.at("out.json"));
    let said = bench.heaptoll(&["ledger", "--html", &page, "--json", &json, "--", &program]).exits(0);
    said.shows(&["Where the memory is", "external fragmentation", "resident set"]);
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("Resident memory over time"));
    assert_sound(&serde_json::from_str(&std::fs::read_to_string(json).expect("a file")).expect("JSON"));
}

#[test]
fn a_trace_that_does_not_stay_is_not_offered() {
    let bench = Bench::new();
    let program = bench.program("holder", HOLDER);
    let said = bench.heaptoll(&["ledger", "--", &program]).exits(0);
    assert!(!said.err.contains("heaptoll stat"), "{}", said.err);
    assert!(said.out.contains("Where the memory is"), "{}", said.out);
}
