//! `heaptoll run --exact`: exact counts with the measured ratios, stored, resumed, and left out with the reason.

use serde_json::Value;

use crate::fixture::{
    Fixture, assert_none_left, eventually, line, marker, processes_with, read_json, rows_of,
};

/// Two thousand blocks and some work on each.
const WORKS: &str = "int main(void) { for (int i = 0; i < 2000; i++) { volatile char *p = malloc(i % 500 + 1); \
     for (int k = 0; k < 50; k++) p[0] = k; free((void *)p); } puts(\"done\"); return 0; }";

/// Glibc's malloc behind 2000 instructions or so of its own.
const BUSY: &str = "#define BEFORE(bytes) for (volatile int i = 0; i < 300; i++);";

fn exact(json: &Value) -> &Value {
    &json["comparison"]["tables"][0]["exact"]
}

fn row<'a>(json: &'a Value, stack: &str) -> &'a Value {
    let rows = exact(json)["rows"].as_array().expect("rows");
    rows.iter().find(|row| row["stack"] == stack).unwrap_or_else(|| panic!("no {stack} in {rows:#?}"))
}

#[test]
fn exact_counts_are_shown_with_measured_ratios_read_back_and_resumed() {
    let fixture = Fixture::new();
    let (program, busy) = (fixture.program("works", WORKS), fixture.manager("busy.so", BUSY));
    let (db, page, csv) = (fixture.at("e.db"), fixture.at("page.html"), fixture.at("rows.csv"));
    let managers = ["-m", "glibc", "-m", "glibc", "-m", &busy, "-n", "1", "--warmup", "0", "--db", &db];
    let output = fixture.heaptoll(&[&["run", "--exact"], &managers[..], &["--", &program]].concat()).exits(0);
    let output =
        output.shows(&["exact counts", "instructions", "too few repetitions to claim a difference in time"]);
    let shown = output.out.split("exact counts").nth(1).map(str::to_owned);

    let outputs = ["--html", &page, "--csv", &csv];
    let again = fixture.heaptoll(&[&["report", &db], &outputs[..]].concat()).exits(0);
    assert_eq!(again.out.split("exact counts").nth(1).map(str::to_owned), shown, "the same as at its end");
    assert!(!again.out.contains("Counts of the traced runs"), "not twice: {}", again.out);
    let page = std::fs::read_to_string(&page).expect("written");
    assert!(page.contains("<h3><bdi>Exact counts</bdi></h3>"));
    assert_eq!(std::fs::read_to_string(&csv).expect("written").matches(",traced,").count(), 3);

    let json = fixture.json(&db);
    assert_eq!(
        (exact(&json)["notes"].to_string().as_str(), &json["experiment"]["complete"]),
        ("[]", &true.into())
    );
    let (same, busy_row) = (row(&json, "glibc#2"), row(&json, &busy));
    assert_eq!(same["instructions"]["ratio"], 1.0, "the same work to the instruction: {same:#}");
    assert!(
        same["misses"]
            .as_array()
            .is_some_and(|caches| caches.iter().all(|one| one["misses"]["ratio"] == 1.0))
    );
    assert!(busy_row["instructions"]["ratio"].as_f64().is_some_and(|ratio| ratio > 2.0), "{busy_row:#}");

    // As `heaptoll exact instructions` counts it.
    let figures = fixture.at("instructions.json");
    fixture.heaptoll(&["exact", "instructions", "-m", &busy, "--json", &figures, "--", &program]).exits(0);
    let counted = read_json(&figures);
    let owners = &counted["programs"][0]["managers"][1]["figures"]["owners"];
    let all: u64 = ["program", "allocator", "collector"]
        .iter()
        .filter_map(|owner| owners[owner]["instructions"].as_u64())
        .sum();
    let stored = &rows_of(&json, &busy, "traced")[0]["exact"]["instructions"];
    let own: u64 =
        ["program", "allocator", "collector"].iter().filter_map(|owner| stored[owner].as_u64()).sum();
    assert!(all > 0 && all.abs_diff(own) < 20_000, "{all} and {own}: but for other environments");

    // Existing counts are not made again.
    fixture.heaptoll(&["run", "--resume", &db, "-n", "2"]).exits(0).shows(&["exact counts"]);
    let json = fixture.json(&db);
    assert_eq!(["glibc", "glibc#2", &busy].map(|stack| rows_of(&json, stack, "traced").len()), [1; 3]);
    assert_eq!(line(&json, &busy)["good"], 2);
}

#[test]
fn exact_counts_are_added_to_what_was_measured_and_ctrl_c_keeps_it() {
    let fixture = Fixture::new();
    let (db, mark, hold) = (fixture.at("e.db"), marker("exact"), fixture.at("hold"));
    let program = fixture.program(
        "holds",
        "int main(int n, char **words) { free(malloc(77)); if (!access(words[2], F_OK)) pause(); puts(\"done\"); }",
    );
    let measured = ["run", "-m", "glibc", "-m", "glibc", "-n", "1", "--warmup", "0", "--db", &db];
    fixture.heaptoll(&[&measured[..], &["--", &program, &mark, &hold]].concat()).exits(0);
    assert!(exact(&fixture.json(&db)).is_null());

    std::fs::write(&hold, "").expect("writes");
    let run = fixture.start(&["run", "--resume", &db, "--exact"]);
    eventually("it runs under the tracer", || !processes_with(&mark).is_empty());
    run.signal(libc::SIGINT);
    run.wait().exits(130).shows(&["incomplete: interrupted"]).complains(&["go on with"]);
    assert_none_left(&mark);
    let json = fixture.json(&db);
    assert_eq!((rows_of(&json, "glibc", "timed").len(), rows_of(&json, "glibc", "traced").len()), (1, 0));

    std::fs::remove_file(&hold).expect("removes");
    // The experiment records which counts it lacks.
    fixture.heaptoll(&["run", "--resume", &db]).exits(0).shows(&["exact counts"]);
    let json = fixture.json(&db);
    assert_eq!(row(&json, "glibc#2")["instructions"]["ratio"], 1.0);
    assert_eq!(json["experiment"]["complete"], true);
    assert!(json["experiment"]["settings"]["repeat_command"].to_string().contains("--exact"));
}

#[test]
fn what_cannot_be_counted_is_left_out_with_the_reason() {
    let fixture = Fixture::new();
    let dies = |when: &str| format!("#define BEFORE(bytes) if ({when} getenv(\"VALGRIND_LIB\")) abort();");
    let never = fixture.manager("never.so", &dies(""));
    let odd = fixture.manager("odd.so", &dies("bytes == 7777 &&"));
    let program =
        fixture.program("works", "int main(void) { free(malloc(7777)); puts(\"done\"); return 0; }");
    let db = fixture.at("e.db");
    let run =
        ["run", "--exact", "-m", "glibc", "-m", &never, "-m", &odd, "-n", "1", "--warmup", "0", "--db", &db];
    fixture.heaptoll(&[&run[..], &["--", &program]].concat()).exits(0).shows(&[
        "left out of the exact counts: it does not run under the tracer",
        "left out of the exact counts, because its traced run failed: killed by signal 6",
    ]);
    let json = fixture.json(&db);
    for stack in [&never, &odd] {
        assert_eq!(line(&json, stack)["marks"].to_string(), "[]", "its measured runs are good");
    }
    assert_eq!(exact(&json)["rows"].as_array().map(Vec::len), Some(1), "the baseline's");
}

#[test]
fn without_a_tracer_nothing_is_measured() {
    let fixture = Fixture::new();
    let program = fixture.program("works", WORKS);
    let db = fixture.at("e.db");
    let mut run = fixture.command(&["run", "--exact", "-m", "glibc", "-n", "1", "--db", &db, "--", &program]);
    let home = crate::tracing::other_home(&fixture, &["heaptoll-amd64-linux", "heaptoll-arm64-linux"]);
    let output: crate::fixture::CommandOutput =
        run.env("HEAPTOLL_HOME", home).output().expect("starts").into();
    output.exits(2).complains(&["has no tracer", "apt-get install valgrind"]);
    assert!(!fixture.path("e.db").exists());
}
