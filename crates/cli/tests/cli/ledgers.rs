//! `heaptoll ledger`: on programs whose memory is known, on real ones under managers of all sorts, and on traces that
//! have nothing to show.

use std::sync::LazyLock;

use serde_json::Value;

use crate::fixture::{CommandOutput, Fixture, is_built, read_json};

/// The ledger of a command as JSON.
#[track_caller]
fn ledger(fixture: &Fixture, options: &[&str], command: &[&str]) -> Value {
    let mut arguments = vec!["ledger", "--json", "-"];
    arguments.extend(options);
    if !command.is_empty() {
        arguments.push("--");
        arguments.extend(command);
    }
    let output = fixture.heaptoll(&arguments);
    assert_eq!(output.code, Some(0), "{arguments:?}:\n{}\n{}", output.out, output.err);
    serde_json::from_str(&output.out)
        .unwrap_or_else(|error| panic!("{arguments:?}: {error}:\n{}\n{}", output.out, output.err))
}

/// Whose figures these are, for a panic.
fn whose(figures: &Value) -> String {
    format!("{} under {}", figures["program"], figures["manager"])
}

fn snapshots(figures: &Value) -> &Vec<Value> {
    figures["moments"].as_array().unwrap_or_else(|| panic!("no snapshots: {figures:#}"))
}

fn bytes(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no figure: {value}"))
}

/// A snapshot by its number.
#[track_caller]
fn snapshot<'a>(figures: &'a Value, number: &str) -> &'a Value {
    let number = figures[number].as_u64().unwrap_or_else(|| panic!("no {number}: {}", whose(figures)));
    &snapshots(figures)[number as usize]
}

/// A line's member, 0 where there is no such line.
fn line(snapshot: &Value, term: &str, member: &str) -> u64 {
    let lines = snapshot["lines"].as_array().expect("lines");
    lines.iter().find(|line| line["term"] == term).map_or(0, |line| bytes(&line[member]))
}

/// All of a line, resident or not.
fn total(snapshot: &Value, term: &str) -> u64 {
    ["resident", "swapped", "absent"].iter().map(|member| line(snapshot, term, member)).sum()
}

/// Asserts what must hold in every snapshot of every program: the sum closes, the record is the process's.
#[track_caller]
fn assert_sound(figures: &Value) {
    let whose = whose(figures);
    assert_eq!(figures["schema"], "heaptoll-ledger/1", "{whose}");
    assert_eq!(figures["kind"], "pages", "{whose}");
    assert!(!snapshots(figures).is_empty(), "{whose}");
    for snapshot in snapshots(figures) {
        let lines = snapshot["lines"].as_array().expect("lines");
        let sum: u64 = lines.iter().map(|line| bytes(&line["resident"])).sum();
        let difference = snapshot["difference_bytes"].as_i64().expect("a figure");
        assert_eq!(
            i128::from(sum) + i128::from(difference),
            i128::from(bytes(&snapshot["rss_bytes"])),
            "{whose}: {snapshot:#}"
        );
        assert_eq!(snapshot["defects"]["unmapped_blocks"], 0, "{whose}: {snapshot:#}");
        assert_eq!(snapshot["defects"]["overlapping_blocks"], 0, "{whose}: {snapshot:#}");
        assert_eq!(total(snapshot, "live"), bytes(&snapshot["live_bytes"]), "{whose}: {snapshot:#}");
        assert!(snapshot["no_pagemap"].is_null(), "{whose}: {snapshot:#}");
    }
}

/// C: `hold(begun)` makes calls, few enough that no collector collects, until a snapshot has been taken, however busy
/// the machine is. A program that began at `begun` (`now()`) was stopped by no snapshot for longer than until now, and
/// the next one comes after at most twenty times the duration of the last.
const HOLD: &str = r#"
    static double now(void) {
        struct timespec time;
        clock_gettime(CLOCK_MONOTONIC, &time);
        return time.tv_sec + time.tv_nsec / 1e9;
    }
    static double enough(double begun) { return now() + 0.5 + 20 * (now() - begun); }
    static void hold(double begun) {
        double until = enough(begun);
        while (now() < until) { free(malloc(50)); usleep(20000); }
    }
"#;

/// Holds 8,000 blocks of 1000 bytes, written, and 64 MiB that are not, until a snapshot has been taken. To be used
/// with [`HOLD`].
const HOLDER: &str = r#"
    static char *blocks[8000];
    int main(void) {
        double begun = now();
        small_pages();
        for (int at = 0; at < 8000; at++) memset(blocks[at] = malloc(1000), 1, 1000);
        char *large = malloc(64 << 20);
        large[5 << 20] = 1;
        for (int at = 0; at < 8000; at += 2) free(blocks[at]);
        hold(begun);
        return large == 0;
    }
"#;

/// The program of [`HOLDER`].
fn holder(fixture: &Fixture) -> String {
    fixture.program("holder", &format!("{HOLD}{HOLDER}"))
}

/// Before, that was "caches and quarantine", and the reader was sent to another manager; blocks with mappings of their
/// own, and those of other threads, were other anonymous memory.
#[test]
fn a_forked_worker_has_what_its_parent_allocated_as_inherited() {
    const SOURCE: &str = "#include <pthread.h>\n#include <sys/wait.h>
        static void *hold(void *mib) { for (long at = 0; at < (long)mib << 10; at++) memset(malloc(1000), 1, 1000); return 0; }
        int main(void) {
            pthread_t thread;
            small_pages();
            hold((void *)16);
            memset(malloc(8 << 20), 1, 8 << 20);
            if (pthread_create(&thread, 0, hold, (void *)8) || pthread_join(thread, 0)) return 1;
            if (fork() == 0) { hold((void *)4); usleep(100000); _exit(0); }
            return wait(0) < 0;
        }";
    let fixture = Fixture::new();
    let program = fixture.program("worker", SOURCE);
    for manager in ["glibc", "lea"] {
        let trace = fixture.at(manager);
        fixture.heaptoll(&["record", "--ledger", "-m", manager, "-o", &trace, "--", &program]).exits(0);
        let workers = std::fs::read_dir(fixture.at(&format!("{manager}.children")));
        let workers: Vec<_> = workers.expect("a worker").flatten().collect();
        let [worker] = &workers[..] else { panic!("{workers:?}") };
        let figures = ledger(&fixture, &[worker.path().to_str().expect("UTF-8")], &[]);
        assert_sound(&figures);
        let peak = snapshot(&figures, "peak");
        let mib = |term| line(peak, term, "resident") as f64 / f64::from(1 << 20);
        assert!((30.0..34.0).contains(&mib("inherited")), "{manager}: {peak:#}");
        let others = mib("fresh") + mib("caches") + mib("other_anonymous");
        assert!(others < 1.0 && mib("live") > 3.0, "{manager}: {peak:#}");
        let figures = ledger(&fixture, &[&trace], &[]);
        assert_eq!(line(snapshot(&figures, "peak"), "inherited", "resident"), 0, "{manager}: the parent");
    }
}

/// A ledger of [`holder`]: the command's output, its page and its figures.
static OF_HOLDER: LazyLock<(CommandOutput, String, Value)> = LazyLock::new(|| {
    let fixture = Fixture::new();
    let (program, page, json) = (holder(&fixture), fixture.at("out.html"), fixture.at("out.json"));
    let output = fixture.heaptoll(&["ledger", "--html", &page, "--json", &json, "--", &program]).exits(0);
    (output, std::fs::read_to_string(page).expect("a page"), read_json(&json))
});

#[test]
fn a_known_program_is_where_it_should_be() {
    let figures = &OF_HOLDER.2;
    assert_sound(figures);
    let last = snapshots(figures).last().expect("one");
    assert_eq!(figures["manager"], "glibc");
    // Half of the blocks, and the large one.
    let live = 4_000 * 1000 + (64 << 20);
    assert!((live..live + 200).contains(&bytes(&last["live_bytes"])), "{last:#}");
    // A page of it at each end at most, and the one that was written.
    let untouched = line(last, "live", "absent");
    assert!(((64 << 20) - 3 * 4096..=64 << 20).contains(&untouched), "{last:#}");
    // Of 1008 bytes of a freed chunk all is pinned, less what is thread cache: there is none, the page is shared.
    let pinned = line(last, "external", "resident");
    assert!((4_000 * 1000..4_000 * 1100).contains(&pinned), "{last:#}");
    assert_eq!(line(last, "metadata", "resident") / 1000, bytes(&last["live_blocks"]) * 8 / 1000);
    assert!(line(last, "recorder", "resident") > 0, "{last:#}");
}

/// Runs a real program under a manager, if that is there.
fn real(fixture: &Fixture, manager: &str, options: &[&str], command: &[&str]) -> Option<Value> {
    if !is_built(manager) {
        return None;
    }
    let mut all = vec!["-m", manager];
    all.extend(options);
    let figures = ledger(fixture, &all, command);
    assert_sound(&figures);
    assert_eq!(figures["manager"], manager);
    Some(figures)
}

/// Tables that grow and are dropped. As the others below, it has work for a tenth of a second and more without us, so
/// that a recorder that has to share the machine sees it at work.
const PERL: [&str; 3] =
    ["perl", "-e", "for my $round (1..12) { my %table; $table{$_} = 'x' x ($_ % 50) for 1..30000; }"];

/// Runs one program of `share` under each manager, from another one on each time.
fn real_programs_close(share: usize) {
    let fixture = Fixture::new();
    let gawk = [
        "gawk",
        "BEGIN { for (i = 0; i < 200000; i++) a[i % 40000] = i \" \" i; print length(a) > \"/dev/null\" }",
    ];
    let python = [
        "/usr/bin/python3",
        "-c",
        "for _ in range(3): tables = [{str(i): [i] for i in range(3000)} for _ in range(20)]",
    ];
    let managers = ["glibc", "mimalloc3", "jemalloc", "tithe", "tithe-collect", "bw16", "knuth"];
    for (number, manager) in managers.into_iter().enumerate() {
        for command in [&PERL[..], &gawk, &python].into_iter().skip(number % share).step_by(share) {
            if let Some(figures) = real(&fixture, manager, &[], command) {
                // Not the one with the largest resident set: that may be from before the first block.
                let fullest = snapshot(&figures, "most_live");
                assert!(line(fullest, "live", "resident") > 0, "{}: {fullest:#}", whose(&figures));
            }
        }
    }
}

#[test]
#[ignore = "slow: 21 runs, a minute; three are in the fast tests"]
fn real_programs_close_under_every_sort_of_manager() {
    real_programs_close(1);
}

#[test]
fn three_real_programs_close_each_under_another_manager() {
    real_programs_close(11);
}

#[test]
fn what_a_collector_has_not_reclaimed_is_dead() {
    let fixture = Fixture::new();
    // Frees everything at once: under tithe-collect, where free does nothing, it is dead and not live. At least 256 KiB
    // are handed out before a collection: there is none.
    let program = fixture.program(
        "dropper",
        &format!(
            "{HOLD} int main(void) {{
            double begun = now();
            for (int at = 0; at < 300; at++) {{ char *block = malloc(500); memset(block, 1, 500); free(block); }}
            hold(begun);
            return 0; }}"
        ),
    );
    let Some(figures) = real(&fixture, "tithe-collect", &[], &[&program]) else { return };
    let reported = |snapshot: &&Value| !snapshot["census"].is_null();
    let most = snapshots(&figures).iter().filter(reported).max_by_key(|snapshot| total(snapshot, "dead"));
    let most = most.expect("a census");
    // The census has no addresses: some of it is on pages that were written.
    assert!(total(most, "dead") >= 300 * 500 && line(most, "dead", "resident") > 0, "{figures:#}");
    assert!(
        snapshots(&figures).iter().all(|snapshot| bytes(&snapshot["live_bytes"]) < 100_000),
        "{figures:#}"
    );
}

#[test]
fn forced_collections_separate_headroom_from_held_blocks() {
    let fixture = Fixture::new();
    // Keeps the addresses of blocks that it has freed, and drops others over time.
    let program = fixture.program(
        "keeper",
        &format!(
            "{HOLD} static char *kept[2000];
        int main(void) {{
            double begun = now();
            for (int at = 0; at < 2000; at++) {{ kept[at] = malloc(500); free(kept[at]); }}
            for (double until = enough(begun) + 1; now() < until; usleep(3000))
                for (int at = 0; at < 300; at++) {{ char *block = malloc(500); memset(block, 1, 500); free(block); }}
            return kept[0] == 0; }}"
        ),
    );
    let Some(figures) = real(&fixture, "tithe-collect", &["--collect"], &[&program]) else { return };
    assert_eq!(figures["collected"], true);
    let reported = |snapshot: &&Value| snapshot["census"]["live_after_collection_bytes"].is_u64();
    let reported: Vec<&Value> = snapshots(&figures).iter().filter(reported).collect();
    assert!(!reported.is_empty(), "{figures:#}");
    let most = |term: &str| reported.iter().map(|snapshot| line(snapshot, term, "resident")).max();
    // What was dropped since the last collection: any amount up to 256 KiB and more, but not each time as good as none.
    assert!(most("headroom") > Some(2_000), "{figures:#}");
    // A megabyte of freed blocks whose addresses are kept.
    assert!(most("held") >= Some(900_000), "{figures:#}");
    assert!(reported.iter().all(|snapshot| line(snapshot, "dead", "resident") == 0));
}

#[test]
fn a_trace_without_snapshots_gives_the_coarse_sum() {
    let fixture = Fixture::new();
    let program = holder(&fixture);
    let trace = fixture.at("plain.heaptoll");
    fixture.heaptoll(&["record", "-o", &trace, "--", &program]).exits(0);
    let output = fixture.heaptoll(&["ledger", &trace]).exits(0);
    output.shows(&["recorded without --ledger", "Rest KiB"]);
    let output = fixture.heaptoll(&["ledger", &trace, "--json", "-"]).exits(0);
    let figures: Value = serde_json::from_str(&output.out).expect("JSON");
    assert_eq!(figures["kind"], "coarse");
    let last = figures["points"].as_array().and_then(|points| points.last()).expect("points");
    assert!(bytes(&last["live_bytes"]) > 4_000 * 1000);
}

#[test]
fn what_is_no_trace_is_refused() {
    let fixture = Fixture::new();
    std::fs::write(fixture.path("text"), "hello\n").expect("writes");
    let refused = |arguments: &[&str]| -> CommandOutput { fixture.heaptoll(arguments).exits(2) };
    refused(&["ledger", &fixture.at("text")]);
    refused(&["ledger", &fixture.at("nothing")]).complains(&["nothing"]);
    refused(&["ledger"]);
    refused(&["ledger", &fixture.at("text"), "--", "true"]);
    refused(&["ledger", "--", "/nothing/of/the/kind"]);
}

#[test]
fn of_several_processes_the_largest_is_shown_and_a_failure_passed_on() {
    let fixture = Fixture::new();
    let program = holder(&fixture);
    let trace = fixture.at("kept.heaptoll");
    let script = format!("{program}; exit 3");
    let output = fixture.heaptoll(&["ledger", "-o", &trace, "--", "sh", "-c", &script]).exits(1);
    output.complains(&["process images, ", "holder (process ", "had the most resident memory"]);
    assert!(fixture.path("kept.heaptoll").exists());
    fixture.heaptoll(&["ledger", "-o", &trace, "--", "true"]).exits(2);
}

#[test]
fn the_page_and_the_figures_are_written() {
    let (output, page, figures) = &*OF_HOLDER;
    for words in ["Where the memory is", "external fragmentation", "resident set"] {
        assert!(output.err.contains(words), "{}", output.err);
    }
    assert!(page.contains("Resident memory over time"));
    assert_sound(figures);
}

/// Before, the tables were appended to what `ledger -- xz -c FILE > FILE.xz` wrote, and `--exact` wrote it twice.
#[test]
fn standard_output_has_what_the_program_writes_and_nothing_else() {
    let fixture = Fixture::new();
    let program = fixture.program("writer", "int main(void) { malloc(99); puts(\"one line\"); return 0; }");
    let (page, text) = (fixture.at("out.html"), fixture.at("out.md"));
    for options in [&["--html", &page, "--markdown", &text][..], &["--exact", "--no-sites"]] {
        let output = fixture.heaptoll(&[&["ledger"], options, &["--", &program]].concat()).exits(0);
        assert_eq!(output.out, "one line\n", "{options:?}: {}", output.err);
        output.complains(&["Where the memory is"]);
    }
    let output = fixture.heaptoll(&["ledger", "--json", "-", "--", &program]).exits(0);
    assert!(output.out.starts_with('{'), "{}", output.out);
    output.complains(&["one line"]);
}

#[test]
fn a_trace_that_does_not_stay_is_not_offered() {
    let shown = &OF_HOLDER.0.err;
    assert!(!shown.contains("heaptoll trace stat") && shown.contains("Where the memory is"), "{shown}");
}
