//! `heaptoll run --exact`: exact counts beside the measured ratios, stored, gone on with, and left out with the reason.

use serde_json::Value;

use crate::bench::{Bench, assert_none_left, eventually, line, marker, processes_with, read_json, rows_of};

/// Ten thousand blocks and some work on each.
const WORKS: &str = "int main(void) { for (int i = 0; i < 10000; i++) { volatile char *p = malloc(i % 500 + 1); \
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
fn exact_counts_stand_beside_measured_ratios_and_are_read_back_and_gone_on_with() {
    let bench = Bench::new();
    let (program, busy) = (bench.program("works", WORKS), bench.manager("busy.so", BUSY));
    let (db, page, csv) = (bench.at("e.db"), bench.at("page.html"), bench.at("rows.csv"));
    let managers = ["-m", "glibc", "-m", "glibc", "-m", &busy, "-n", "1", "--warmup", "0", "--db", &db];
    let said = bench.heaptoll(&[&["run", "--exact"], &managers[..], &["--", &program]].concat()).exits(0);
    let said =
        said.shows(&["exact counts", "instructions", "too few repetitions to state a difference in time"]);
    let shown = said.out.split("exact counts").nth(1).map(str::to_owned);

    let outputs = ["--html", &page, "--csv", &csv];
    let again = bench.heaptoll(&[&["report", &db], &outputs[..]].concat()).exits(0);
    assert_eq!(again.out.split("exact counts").nth(1).map(str::to_owned), shown, "the same as at its end");
    assert!(!again.out.contains("What traced runs counted"), "not twice: {}", again.out);
    let page = std::fs::read_to_string(&page).expect("written");
    assert!(page.contains("<h3>Exact counts</h3>"));
    assert_eq!(std::fs::read_to_string(&csv).expect("written").matches(",traced,").count(), 3);

    let json = bench.json(&db);
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

    // As `heaptoll instructions` counts it.
    let figures = bench.at("instructions.json");
    bench.heaptoll(&["instructions", "-m", &busy, "--json", &figures, "--", &program]).exits(0);
    let counted = read_json(&figures);
    let owners = &counted["programs"][0]["managers"][1]["figures"]["owners"];
    let all: u64 = ["program", "allocator", "collector"]
        .iter()
        .filter_map(|who| owners[who]["instructions"].as_u64())
        .sum();
    let stored = &rows_of(&json, &busy, "traced")[0]["exact"]["instructions"];
    let own: u64 = ["program", "allocator", "collector"].iter().filter_map(|who| stored[who].as_u64()).sum();
    assert!(all > 0 && all.abs_diff(own) < 20_000, "{all} and {own}: but for other environments");

    // What there is is not counted again.
    bench.heaptoll(&["run", "--resume", &db, "-n", "2"]).exits(0).shows(&["exact counts"]);
    let json = bench.json(&db);
    assert_eq!(["glibc", "glibc#2", &busy].map(|stack| rows_of(&json, stack, "traced").len()), [1; 3]);
    assert_eq!(line(&json, &busy)["good"], 2);
}

#[test]
fn exact_counts_are_added_to_what_was_measured_and_ctrl_c_keeps_it() {
    let bench = Bench::new();
    let (db, mark, hold) = (bench.at("e.db"), marker("exact"), bench.at("hold"));
    let program = bench.program(
        "holds",
        "int main(int n, char **words) { free(malloc(77)); if (!access(words[2], F_OK)) pause(); puts(\"done\"); }",
    );
    let measured = ["run", "-m", "glibc", "-m", "glibc", "-n", "1", "--warmup", "0", "--db", &db];
    bench.heaptoll(&[&measured[..], &["--", &program, &mark, &hold]].concat()).exits(0);
    assert!(exact(&bench.json(&db)).is_null());

    std::fs::write(&hold, "").expect("writes");
    let run = bench.start(&["run", "--resume", &db, "--exact"]);
    eventually("it runs under the tracer", || !processes_with(&mark).is_empty());
    run.signal(libc::SIGINT);
    run.wait().exits(130).shows(&["incomplete: interrupted"]).complains(&["go on with"]);
    assert_none_left(&mark);
    let json = bench.json(&db);
    assert_eq!((rows_of(&json, "glibc", "timed").len(), rows_of(&json, "glibc", "traced").len()), (1, 0));

    std::fs::remove_file(&hold).expect("removes");
    // It knows what it lacks.
    bench.heaptoll(&["run", "--resume", &db]).exits(0).shows(&["exact counts"]);
    let json = bench.json(&db);
    assert_eq!(row(&json, "glibc#2")["instructions"]["ratio"], 1.0);
    assert_eq!(json["experiment"]["complete"], true);
    assert!(json["experiment"]["settings"]["repeat_command"].to_string().contains("--exact"));
}

#[test]
fn what_cannot_be_counted_is_left_out_with_the_reason() {
    let bench = Bench::new();
    let dies = |when: &str| format!("#define BEFORE(bytes) if ({when} getenv(\"VALGRIND_LIB\")) abort();");
    let never = bench.manager("never.so", &dies(""));
    let odd = bench.manager("odd.so", &dies("bytes == 7777 &&"));
    let program = bench.program("works", "int main(void) { free(malloc(7777)); puts(\"done\"); return 0; }");
    let db = bench.at("e.db");
    let run =
        ["run", "--exact", "-m", "glibc", "-m", &never, "-m", &odd, "-n", "1", "--warmup", "0", "--db", &db];
    bench.heaptoll(&[&run[..], &["--", &program]].concat()).exits(0).shows(&[
        "left out of the exact counts: it does not run under the tracer",
        "left out of the exact counts, for its traced run was not good: killed by signal 6",
    ]);
    let json = bench.json(&db);
    for stack in [&never, &odd] {
        assert_eq!(line(&json, stack)["marks"].to_string(), "[]", "its measured runs are good");
    }
    assert_eq!(exact(&json)["rows"].as_array().map(Vec::len), Some(1), "the baseline's");
}

#[test]
fn without_valgrind_nothing_is_measured() {
    let bench = Bench::new();
    let program = bench.program("works", WORKS);
    let db = bench.at("e.db");
    let mut run = bench.command(&["run", "--exact", "-m", "glibc", "-n", "1", "--db", &db, "--", &program]);
    let said: crate::bench::Said = run.env("PATH", bench.path("empty")).output().expect("starts").into();
    said.exits(2).complains(&["Valgrind", "apt-get install valgrind"]);
    assert!(!bench.path("e.db").exists());
}
