//! `heaptoll lab delay`: quarantines of several sizes in front of a manager, from the program to the figures.

use serde_json::Value;

use crate::fixture::{Fixture, database, eventually, marker, programs_with, read_json, rows_of};

/// Takes, writes and frees 400 blocks of 64 KiB one after another: one is live at a time, the others wait.
const ONE_AT_A_TIME: &str = r#"
int main(void) {
    small_pages();
    for (int i = 0; i < 400; i++) {
        char *block = malloc(65536);
        memset(block, i, 65536);
        if (block[i] != (char)i) return 1;
        free(block);
    }
    puts("done");
    return 0;
}
"#;

fn point(json: &Value, size: u64) -> &Value {
    let points = json["curves"][0]["points"].as_array().expect("points");
    points
        .iter()
        .find(|point| point["size_bytes"] == size)
        .unwrap_or_else(|| panic!("no {size} in {points:?}"))
}

#[test]
fn a_delay_holds_what_was_freed_and_shows_it_as_memory() {
    let fixture = Fixture::new();
    let program = fixture.program("queue", ONE_AT_A_TIME);
    let (db, file, html) = (fixture.at("delay.db"), fixture.at("delay.json"), fixture.at("delay.html"));
    let words = ["lab", "delay", "-m", "glibc", "--sizes", "64K,8M", "-n", "2", "--seed", "7", "--db", &db];
    fixture
        .heaptoll(&[&words[..], &["--json", &file, "--html", &html, "--", &program]].concat())
        .exits(0)
        .shows(&[
            "What it costs to delay the reuse of freed memory",
            "quarantine",
            "8M",
            "What the quarantine itself costs",
        ])
        .complains(&["every row is kept in", "heaptoll lab delay --resume"]);
    let json = read_json(&file);
    assert_eq!(json["schema"], "heaptoll-delay/1");
    assert_eq!(json["sizes_bytes"], serde_json::json!([1, 65536, 8 << 20]));
    assert_eq!((&json["complete"], &json["curves"][0]["manager"]), (&true.into(), &"glibc".into()));
    let peak = |size: u64| point(&json, size)["medians"]["peak_rss_kib"].as_f64().expect("a peak");
    // 8 MiB less a block or two, more than at one byte.
    let more_kib = peak(8 << 20) - peak(1);
    assert!((6500.0..10_000.0).contains(&more_kib), "{more_kib} KiB");
    let held = |size: u64| point(&json, size)["medians"]["held_high_bytes"].as_f64().expect("it reports");
    // Within a block of what it may hold: the block that exceeds the size is held for an instant, too.
    let block = 66_000.0;
    for size in [1, 65536, 8 << 20] {
        let over = held(size) - size as f64;
        assert!((-block..=block).contains(&over), "{size}: {over} more");
    }
    assert!(std::fs::read_to_string(&html).expect("a page").contains("\"shape\":\"area\""));
    // The rows are an experiment's, as others are.
    fixture.heaptoll(&["report", &db]).exits(0).shows(&["quarantine=8M/glibc", "quarantine=1B/glibc"]);
}

#[test]
fn a_manager_and_its_quarantines_run_at_once_and_no_other_manager_with_them() {
    let fixture = Fixture::new();
    let program = fixture.program("queue", ONE_AT_A_TIME);
    let db = fixture.at("delay.db");
    let words = [
        "lab",
        "delay",
        "--pairing",
        "lockstep",
        "-m",
        "glibc",
        "-m",
        "lea",
        "--sizes",
        "64K",
        "-n",
        "1",
        "--db",
        &db,
    ];
    let (html, file) = (fixture.at("delay.html"), fixture.at("delay.json"));
    fixture.heaptoll(&[&words[..], &["--json", &file, "--html", &html, "--", &program]].concat()).exits(0);
    assert!(std::fs::read_to_string(&html).expect("a page").contains("in lockstep and separately"));
    assert!(read_json(&file)["warnings"].to_string().contains("--pairing interleaved"));
    let json = fixture.json(&db);
    let begun = |stack: &str| rows_of(&json, stack, "timed")[0]["started_unix_s"].as_f64().expect("a time");
    for manager in ["glibc", "lea"] {
        for delayed in ["1B", "64K"].map(|size| format!("quarantine={size}/{manager}")) {
            assert_eq!(begun(manager), begun(&delayed), "{delayed}");
            assert_eq!(rows_of(&json, &delayed, "alone").len(), 1);
        }
    }
    assert_ne!(begun("glibc"), begun("lea"));
    fixture.heaptoll(&["lab", "delay", "--resume", &db, "--pairing", "interleaved"]).exits(2);
    let interleaved = fixture.at("interleaved.db");
    let words = ["lab", "delay", "-m", "glibc", "--sizes", "64K", "-n", "1"];
    fixture.heaptoll(&[&words[..], &["--db", &interleaved, "--", &program]].concat()).exits(0);
    assert!(rows_of(&fixture.json(&interleaved), "glibc", "alone").is_empty());
}

#[test]
fn a_study_is_extended_and_shown_again_and_no_other_experiment_is() {
    let fixture = Fixture::new();
    let program = fixture.program("queue", ONE_AT_A_TIME);
    let (db, file) = (fixture.at("delay.db"), fixture.at("delay.json"));
    let words = ["lab", "delay", "-m", "glibc", "--sizes", "1M", "-n", "1", "--db", &db, "--", &program];
    fixture.heaptoll(&words).exits(0);
    fixture.heaptoll(&["lab", "delay", "--resume", &db, "-n", "2", "--json", &file]).exits(0).shows(&["1M"]);
    let json = read_json(&file);
    assert_eq!((point(&json, 1 << 20)["good"].as_u64(), &json["repetitions"]), (Some(2), &2.into()));
    // Two pairs give a range and never claim.
    assert_eq!(point(&json, 1 << 20)["over_no_delay"]["cpu"]["differs"], false);
    let other = fixture.at("run.db");
    fixture.heaptoll(&["run", "-m", "glibc", "-n", "1", "--db", &other, "--", &program]).exits(0);
    fixture.heaptoll(&["lab", "delay", "--resume", &other]).exits(2).complains(&["is not a delay study"]);
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_runs() {
    let fixture = Fixture::new();
    let words = |more: &[&str]| -> Vec<String> {
        ["delay"].iter().chain(more).chain(&["--", "ls"]).map(|word| word.to_string()).collect()
    };
    for (more, why) in [
        (&["-m", "quarantine=1B/glibc"][..], "name the manager alone"),
        (&["-m", "glibc", "--sizes", "0"], "give sizes of 1B or more"),
        (&["-m", "absent"], "there is no manager `absent`"),
        (&["-m", "tithe-collect"], "is a collector"),
        (&["--html", "/nowhere/a.html"], "cannot write /nowhere/a.html"),
    ] {
        let words = words(more);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        fixture.heaptoll(&words).exits(2).complains(&[why]);
    }
    fixture.heaptoll(&["lab", "delay", "-m", "glibc"]).exits(2).complains(&["nothing to run"]);
    for option in [["--warmup", "3"], ["--seed", "3"], ["--size", "quick"], ["--", "true"]] {
        let words = [&["lab", "delay", "--resume", "x.db"], &option[..]].concat();
        fixture.heaptoll(&words).exits(2).complains(&["cannot be used with"]);
    }
}

#[test]
fn an_interrupted_study_keeps_its_rows_and_goes_on() {
    let fixture = Fixture::new();
    let mark = marker("delay");
    let program = fixture.program("slow", "int main(void) { free(malloc(9)); usleep(150000); return 0; }");
    let db = fixture.at("delay.db");
    let words =
        ["lab", "delay", "-m", "glibc", "--sizes", "4K", "-n", "30", "--db", &db, "--", &program, &mark];
    let running = fixture.start(&words);
    let rows = || {
        let open = database(&db).ok()?;
        open.query_row("SELECT count(*) FROM observation WHERE phase = 'timed'", [], |row| {
            row.get::<_, i64>(0)
        })
        .ok()
    };
    eventually("rows", || rows().is_some_and(|rows| rows >= 3) && !programs_with(&mark).is_empty());
    running.signal(libc::SIGINT);
    let output = running.wait().exits(130).complains(&["heaptoll lab delay --resume"]);
    assert!(output.out.contains("interrupted: not all runs were made"), "{}", output.out);
}

#[test]
fn a_program_that_fails_under_a_delay_is_reported() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "fails",
        r#"int main(void) {
            const char *setting = getenv("HEAPTOLL_QUARANTINE");
            free(malloc(100));
            return setting && strstr(setting, "size=4096") ? 3 : 0;
        }"#,
    );
    fixture
        .heaptoll(&["lab", "delay", "-m", "glibc", "--sizes", "4K,1M", "-n", "2", "--", &program])
        .exits(1)
        .shows(&["under quarantine=4K/glibc: 2x exit status 3"]);
}

#[test]
fn several_programs_have_means_and_are_compared_with_the_papers() {
    let fixture = Fixture::new();
    let file = fixture.at("delay.json");
    let words =
        ["delay", "-m", "mimalloc3", "-p", "cfrac", "-p", "espresso", "--quick", "--sizes", "2M", "-n", "1"];
    fixture.heaptoll(&[&words[..], &["--json", &file]].concat()).exits(0).shows(&[
        "Geometric means over programs",
        "Compared with Sareen and Blackburn (2022)",
        "too few repetitions",
    ]);
    let json = read_json(&file);
    let sizes: Vec<&Value> =
        json["means"].as_array().expect("means").iter().map(|mean| &mean["size_bytes"]).collect();
    assert_eq!(sizes, [&Value::Null, &serde_json::json!(2 << 20)]);
    let published = json["published"].as_array().expect("theirs");
    assert!(published.iter().any(|one| one["suite"] == "mimalloc-bench" && one["quantity"] == "space"));
    assert!(published.iter().all(|one| one["manager"] == "mimalloc" && one["ours_manager"] == "mimalloc3"));
}
