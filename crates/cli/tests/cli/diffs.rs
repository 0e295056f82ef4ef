//! `heaptoll diff` on recordings of programs that are known to differ.

use std::fmt::Write;

use crate::fixture::{Fixture, UNOPTIMISED, read_json};

/// A program of many call sites. Each allocates 200 bytes 4 times and frees half of them; with an argument, the site
/// `doubled` allocates twice as many.
fn planted(sites: usize, doubled: usize) -> String {
    let mut source = format!("{UNOPTIMISED}static void *kept[40000]; static int used, arguments;\n");
    for site in 0..sites {
        let times = if site == doubled { "4 * arguments" } else { "4" };
        let _ = writeln!(
            source,
            "__attribute__((noinline)) static void site_{site}(void) {{ for (int at = 0; at < {times}; at++) {{ \
             kept[used++] = malloc(200); free(malloc(100)); }} __asm__ volatile(\"\"); }}"
        );
    }
    source.push_str("int main(int count, char **words) { arguments = count;\n");
    (0..sites).for_each(|site| {
        let _ = writeln!(source, "    site_{site}();");
    });
    source.push_str("    return 0;\n}\n");
    source
}

fn what_doubles_is_first(sites: usize) {
    let fixture = Fixture::new();
    let doubled = format!("site_{} < main", sites / 2);
    let program = fixture.program("planted", &planted(sites, sites / 2));
    let trace = |name: &str, arguments: &[&str]| {
        let trace = fixture.path(name);
        let trace = trace.to_str().expect("a name of text").to_owned();
        let record = ["record", "--sites", "-o", &trace, "--", &program];
        let output = fixture.heaptoll(&[&record[..], arguments].concat());
        assert_eq!(output.code, Some(0), "{}", output.err);
        trace
    };
    let (before, after) = (trace("before", &[]), trace("after", &["more"]));
    let json = fixture.path("diff.json");
    let json = json.to_str().expect("a name of text");
    let output = fixture.heaptoll(&["diff", &before, &after, "--json", json]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    let first = output.out.lines().find(|line| line.contains("retains at the peak")).unwrap_or_default();
    assert!(
        first.starts_with(&format!("{doubled} retains at the peak 800 B more: 800 B became 1.56 KiB")),
        "{}",
        output.out
    );
    let figures = read_json(json);
    for (figure, difference) in [("live", 800), ("exit", 800), ("bytes", 1200), ("calls", 8)] {
        let all = &figures["sites"][figure];
        assert_eq!(all["difference"], difference, "{figure}");
        assert_eq!(all["grown"].as_array().map(Vec::len), Some(1), "{figure}: {all:#}");
        assert_eq!(all["grown"][0]["part"]["name"], doubled.as_str(), "{figure}");
        assert_eq!(all["rest"]["parts"], sites - 1, "{figure}");
    }
    let same = fixture.heaptoll(&["diff", &after, &after]);
    assert!(same.out.contains("Nothing: every call site"), "{}", same.out);
}

#[test]
fn a_site_that_doubles_its_bytes_is_first_and_the_rows_close() {
    what_doubles_is_first(200);
}

/// More than are shown with their callers.
#[test]
#[ignore = "slow: eight CPU seconds; a tenth of the sites is in the fast tests"]
fn a_site_among_two_thousand_that_doubles_its_bytes_is_first_and_the_rows_close() {
    what_doubles_is_first(2000);
}

#[test]
fn two_times_of_one_run_show_what_is_live_at_each() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "growing",
        "static void *kept[1000];\n__attribute__((noinline)) static void *session(int at) { return kept[at] = malloc(1 << \
         10); }\nint main(void) { for (int at = 0; at < 1000; at++) { if (!session(at)) return 1; usleep(400); } return \
         0; }\n",
    );
    let trace = fixture.path("trace");
    let trace = trace.to_str().expect("a name of text");
    let output = fixture.heaptoll(&["record", "--sites", "-o", trace, "--", &program]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    let json = fixture.path("diff.json");
    let json = json.to_str().expect("a name of text");
    let output = fixture.heaptoll(&["diff", trace, "--between", "0.2s,1h", "--json", json]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    // Before, two times after the end were equal without a word.
    assert!(output.out.contains("what is shown at 3600 s is its end"), "{}", output.out);
    assert!(!output.out.contains("at 200 ms is its end"), "{}", output.out);
    let exit = &read_json(json)["sites"]["exit"];
    assert_eq!(exit["grown"][0]["part"]["name"], "session < main", "{exit:#}");
    assert_eq!(exit["grown"][0]["new"], 1000 << 10);
    let before = exit["grown"][0]["base"].as_u64().expect("a figure");
    // However slow the machine is, 400 microseconds pass between two sessions.
    assert!(before < 501 << 10, "{before}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let fixture = Fixture::new();
    let trace = fixture.path("trace");
    let trace = trace.to_str().expect("a name of text");
    let program = fixture.program("small", "int main(void) { free(malloc(10)); return 0; }");
    assert_eq!(fixture.heaptoll(&["record", "-o", trace, "--", &program]).code, Some(0));
    let refused = |arguments: &[&str], why: &str| {
        let output = fixture.heaptoll(arguments);
        assert_eq!(output.code, Some(2), "{arguments:?}: {}", output.out);
        assert!(output.err.contains(why), "{arguments:?}: {}", output.err);
    };
    refused(&["diff", trace, trace], "record the program again with --sites");
    refused(&["diff", trace], "--between");
    refused(&["diff", trace, "--between", "5s,1s"], "after the first");
    refused(&["diff", "/bin/true", trace], "/bin/true");
    refused(&["diff", trace, "/nowhere"], "/nowhere");
}

/// Counts the instructions of a program whose `hot` runs `rounds` times; returns the JSON file.
fn counted(fixture: &Fixture, name: &str, rounds: usize) -> String {
    let source = format!(
        "static volatile int sum;\n__attribute__((noinline)) static void hot(void) {{ for (int at = 0; at < {rounds}; at++) \
         sum += at; }}\n__attribute__((noinline)) static void other(void) {{ for (int at = 0; at < 5000; at++) sum -= at; }}\n\
         int main(void) {{ for (int at = 0; at < 100; at++) free(malloc(at)); hot(); other(); return 0; }}\n"
    );
    let (program, json) = (fixture.program("counted", &source), fixture.at(name));
    fixture.heaptoll(&["exact", "instructions", "--json", &json, "--", &program]).exits(0);
    json
}

#[test]
fn counts_of_instructions_are_compared_by_function() {
    let fixture = Fixture::new();
    let (before, after) = (counted(&fixture, "before.json", 10_000), counted(&fixture, "after.json", 30_000));
    let (json, html) = (fixture.at("diff.json"), fixture.at("diff.html"));
    let output = fixture.heaptoll(&["diff", &before, &after, "--json", &json, "--html", &html]).exits(0);
    let sentence =
        output.out.lines().find(|line| line.starts_with("counted under glibc")).unwrap_or_default();
    assert!(sentence.contains("most by hot of counted"), "{}", output.out);
    let pair = &read_json(&json)["pairs"][0];
    let first = &pair["functions"]["grown"][0];
    assert_eq!(
        (&first["part"]["name"], &first["part"]["object"]),
        (&"hot".into(), &"counted".into()),
        "{first:#}"
    );
    let figure = |value: &serde_json::Value| value.as_u64().expect("a figure");
    let more = figure(&first["new"]) - figure(&first["base"]);
    assert!(more >= 60_000 && more % 20_000 == 0, "as many in each of 20,000 rounds: {first:#}");
    let malloc = &pair["routines"][0];
    assert_eq!(
        (&malloc["routine"], &malloc["base_calls"], &malloc["new_calls"]),
        (&"malloc".into(), &100.into(), &100.into())
    );
    let page = std::fs::read_to_string(&html).expect("a page");
    assert!(page.contains("class=\"flame compared\""));
    let same = fixture.heaptoll(&["diff", &before, &before]).exits(0);
    assert!(same.out.contains("the same in every function"), "{}", same.out);
    fixture
        .heaptoll(&["diff", &before])
        .exits(2)
        .complains(&["name two files of heaptoll exact instructions"]);
    fixture.heaptoll(&["diff", &before, "/bin/true"]).exits(2).complains(&["JSON and one is not"]);
    fixture.heaptoll(&["diff", &json, &before]).exits(2).complains(&["heaptoll-instructions/1 is needed"]);
    let text = std::fs::read_to_string(&before).expect("the counts");
    let mut older: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    older["programs"][0]["managers"][0].as_object_mut().expect("a row").remove("functions");
    std::fs::write(fixture.path("older.json"), older.to_string()).expect("writes");
    let older = fixture.at("older.json");
    fixture.heaptoll(&["diff", &older, &after]).exits(2).complains(&["count them again"]);
}

#[test]
fn two_results_of_any_command_that_compares_managers_are_compared_by_figure() {
    let fixture = Fixture::new();
    let before = concat!(env!("CARGO_MANIFEST_DIR"), "/../traced/testdata/locality.json");
    let text = std::fs::read_to_string(before).expect("figures");
    let mut figures: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    figures["programs"][0]["rows"][0]["lines_touched"] = 1.into();
    std::fs::write(fixture.path("after.json"), figures.to_string()).expect("writes");
    let (after, json) = (fixture.at("after.json"), fixture.at("diff.json"));
    let output = fixture.heaptoll(&["diff", before, &after, "--json", &json]).exits(0);
    assert!(output.out.contains("1 of ") && output.out.contains("lines_touched"), "{}", output.out);
    assert_eq!(read_json(&json)["rows"][0]["metric"], "lines_touched");
    let same = fixture.heaptoll(&["diff", before, before]).exits(0);
    assert!(same.out.contains("0 of "), "{}", same.out);
    let other = concat!(env!("CARGO_MANIFEST_DIR"), "/../traced/testdata/instructions.json");
    fixture.heaptoll(&["diff", before, other]).exits(2).complains(&["heaptoll-locality/1 is needed"]);
}

/// Only runs of `heaptoll run` had rows for other tools.
#[test]
fn the_figures_of_a_result_are_a_table_and_rows_of_csv_and_parquet() {
    let fixture = Fixture::new();
    let figures = concat!(env!("CARGO_MANIFEST_DIR"), "/../traced/testdata/locality.json");
    let (csv, parquet) = (fixture.at("facts.csv"), fixture.at("facts.parquet"));
    let output = fixture.heaptoll(&["report", figures, "--csv", &csv, "--parquet", &parquet]).exits(0);
    output.shows(&["What heaptoll exact locality found", "figures.", "lines_touched"]);
    let lines = std::fs::read_to_string(&csv).expect("rows");
    assert!(lines.starts_with("program,manager,metric,at,basis,repetition,value,low,high\n"), "{lines}");
    assert!(lines.lines().any(|line| line.contains(",lines_touched,,exact,,")), "{lines}");
    assert!(std::fs::read(&parquet).expect("rows").starts_with(b"PAR1"));
    let refused = |words: &[&str], why: &str| {
        fixture.heaptoll(&[&["report"], words].concat()).exits(2).complains(&[why]);
    };
    refused(&[figures, "--json", &fixture.at("o.json")], "is JSON already");
    refused(&[figures, "--bounds"], "is JSON already");
    refused(&[figures, "--explain"], "is JSON already");
    std::fs::write(fixture.path("other.json"), "{\"schema\": \"x/1\"}").expect("writes");
    refused(&[&fixture.at("other.json")], "take a file of --json of run, exact instructions");
}

/// The largest part of a page's first flame graph: its table has it without scripts.
fn flame_table(page: &str) -> &str {
    let figure = page.split("<figure class=\"flame").nth(1).expect("a flame graph");
    figure.split("<tbody>").nth(1).and_then(|rows| rows.split("</tbody>").next()).expect("a table")
}

#[test]
fn pages_of_recordings_and_traced_runs_have_flame_graphs() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "held",
        "static char *all[3000];\n__attribute__((noinline)) static char *hold(int bytes) { return calloc(1, bytes); }\n\
         int main(void) { small_pages(); for (int at = 0; at < 3000; at++) { all[at] = hold(1000); all[at][0] = 1; }\n\
         for (int at = 0; at < 3000; at++) if (at % 4) free(all[at]); return 0; }\n",
    );
    let html = fixture.at("page.html");
    let page = |arguments: &[&str]| {
        fixture.heaptoll(&[arguments, &["--html", &html, "--", &program]].concat()).exits(0);
        std::fs::read_to_string(&html).expect("a page")
    };
    let drag = page(&["exact", "drag", "--sites"]);
    assert!(flame_table(&drag).contains("hold &#60; main"), "{}", flame_table(&drag));
    assert!(drag.contains("bytes times the 1000 instructions"));
    let ledger = page(&["ledger"]);
    assert!(flame_table(&ledger).contains("hold &#60; main"), "{}", flame_table(&ledger));
    let instructions = page(&["exact", "instructions", "-m", "mimalloc3"]);
    assert!(flame_table(&instructions).contains("main &#60; held"), "{}", flame_table(&instructions));
    assert!(instructions.contains("from glibc to mimalloc3"));
}
