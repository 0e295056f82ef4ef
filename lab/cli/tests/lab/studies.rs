//! `heaptoll lab study`: studies of one's own with made-up claims, stopped and gone on with; and each study of a paper in
//! its shortest form.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fixture::{Fixture, database, eventually, read_json, stored};

/// A study of two steps on a small program, with a claim that counts decide.
const SMALL: &str = r#"
name = "small"
title = "A small study"
source = "These tests"
about = ["Does a collector take more instructions than a malloc?"]

[[step]]
id = "small-time"
kind = "run"
programs = ["cfrac", "not-there"]
managers = ["kingsley", "bw16", "sweep/mimalloc3"]
size = "tiny"
repetitions = 2

[[step]]
id = "small-counts"
kind = "instructions"
programs = ["cfrac"]
managers = ["kingsley", "bw16"]
size = "tiny"

[[exhibit]]
id = "table"
title = "Table 1: instructions an object"
form = "table"
step = "small-counts"
metric = "per_object"

[[claim]]
id = "more"
place = "§1"
words = "A collector takes more instructions an object than a malloc."
exhibits = ["table"]
[[claim.test]]
words = "bw16 takes more than kingsley"
rule = "all"
above = 1.0
quantity = { step = "small-counts", metric = "per_object", of = { managers = ["bw16"] }, over = { managers = ["kingsley"] } }

[[claim]]
id = "less"
place = "§2"
words = "A collector takes fewer instructions an object than a malloc."
[[claim.test]]
words = "bw16 takes less than kingsley"
rule = "all"
below = 1.0
quantity = { step = "small-counts", metric = "per_object", of = { managers = ["bw16"] }, over = { managers = ["kingsley"] } }

[[claim]]
id = "faster"
place = "§3"
words = "A collector is faster than a malloc."
[[claim.test]]
words = "bw16 takes less CPU time"
rule = "all"
below = 1.0
quantity = { step = "small-time", metric = "cpu_s", of = { managers = ["bw16"] }, over = { managers = ["kingsley"] } }
"#;

fn write(fixture: &Fixture, name: &str, text: &str) -> String {
    std::fs::write(fixture.path(name), text).expect("writes");
    fixture.at(name)
}

/// The answers of a study's claims: by claim.
fn answers(results: &Value) -> Vec<(String, String)> {
    let sections = results["chapters"].as_array().expect("chapters").iter();
    let verdicts = sections.flat_map(|section| section["verdicts"].as_array().expect("verdicts"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    verdicts.map(|verdict| (text(&verdict["claim"]), text(&verdict["answer"]))).collect()
}

fn answer(results: &Value, claim: &str) -> String {
    let found = answers(results).into_iter().find(|(id, _)| id == claim);
    found.unwrap_or_else(|| panic!("no claim {claim}")).1
}

fn ran<'a>(results: &'a Value, step: &str) -> &'a Value {
    let steps = results["steps"].as_array().expect("steps");
    steps
        .iter()
        .find(|ran| ran["planned"]["step"] == step)
        .unwrap_or_else(|| panic!("no step {step} in {steps:?}"))
}

fn cells(results: &Value, step: &str, manager: &str, metric: &str) -> usize {
    let cells = results["figures"]["cells"].as_array().expect("cells").iter();
    cells
        .filter(|cell| cell["step"] == step && cell["manager"] == manager && cell["metric"] == metric)
        .count()
}

#[test]
fn a_study_of_ones_own_is_run_kept_shown_again_and_not_measured_twice() {
    let fixture = Fixture::new();
    let study = write(&fixture, "small.toml", SMALL);
    let (keep, json, page) = (fixture.at("kept"), fixture.at("o.json"), fixture.at("o.html"));
    fixture
        .heaptoll(&["lab", "study", &study, "--keep", &keep, "--json", &json, "--html", &page])
        .exits(0)
        .shows(&["holds", "fails", "not decided"])
        .complains(&["not-there is left out of small-time", "step 1 of 2: small-time"]);
    let results = read_json(&json);
    assert_eq!(results["schema"], "heaptoll-study/1");
    let wanted = [("more", "holds"), ("less", "fails"), ("faster", "undecided")];
    assert_eq!(answers(&results), wanted.map(|(claim, answer)| (claim.to_owned(), answer.to_owned())));
    // The stack is called as the study calls it, and each figure has its cell.
    assert_eq!(cells(&results, "small-time", "sweep/mimalloc3", "cpu_s"), 1);
    assert_eq!(cells(&results, "small-counts", "bw16", "per_object"), 1);
    assert_eq!(results["complete"], true);
    let text = std::fs::read_to_string(fixture.path("o.html")).expect("the page");
    assert!(text.contains("A collector takes fewer instructions"));

    // The command shown with the figures repeats the step: counts are the same. (Of the malloc: a collector reads its
    // own threads' numbers from /proc, and how many digits these have is chance.)
    let command = ran(&results, "small-counts")["command"].as_str().expect("a command").to_owned();
    let mut words: Vec<&str> = command.split(' ').collect();
    assert_eq!(words.remove(0), "heaptoll");
    let again = fixture.at("again.json");
    words.extend(["--json", &again]);
    fixture.heaptoll(&words).exits(0);
    let per_object = |json: &Value| {
        json["programs"][0]["managers"][0]["figures"]["tables"]["instructions_per_object"].clone()
    };
    let first = read_json(&format!("{keep}/small-counts/figures-1.json"));
    assert!(per_object(&first).is_number());
    assert_eq!(per_object(&first), per_object(&read_json(&again)));

    // What was stored makes the same page; so does the folder, which has nothing left to run.
    let other = fixture.at("p.html");
    fixture.heaptoll(&["lab", "study", "--from", &json, "--html", &other]).exits(0);
    assert_eq!(std::fs::read_to_string(&other).expect("the page"), text);
    let begun = std::fs::metadata(format!("{keep}/small-time/rows.db")).and_then(|file| file.modified());
    let output = fixture.heaptoll(&["lab", "study", "--resume", &keep, "--json", &other]).exits(0);
    assert!(!output.err.contains("step 1"), "{}", output.err);
    assert_eq!(answers(&read_json(&other)), answers(&results));
    let now = std::fs::metadata(format!("{keep}/small-time/rows.db")).and_then(|file| file.modified());
    assert_eq!(begun.expect("it is there"), now.expect("it is there"));
}

/// A test that is mended shows what it makes of the figures that the old one judged.
#[test]
#[ignore = "slow: seven CPU seconds, of the stored results"]
fn stored_figures_are_judged_again_by_the_claims_of_today() {
    let fixture = Fixture::new();
    let stored = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/study-2026-11-22.json.xz");
    let (before, again) = (fixture.at("before.json"), fixture.at("again.json"));
    fixture.heaptoll(&["lab", "study", "--from", stored, "--json", &before]).exits(0);
    let output =
        fixture.heaptoll(&["lab", "study", "--from", stored, "--judge-again", "--json", &again]).exits(0);
    assert!(output.out.contains("confirmed") || output.err.contains("wrote"), "{}", output.err);
    let verdict = |file: &str| {
        let json = read_json(file);
        let verdicts = json["chapters"][1]["verdicts"].as_array().expect("verdicts").clone();
        let one = verdicts.into_iter().find(|one| one["claim"] == "small-heaps").expect("the claim");
        one["answer"].as_str().expect("an answer").to_owned()
    };
    assert_eq!((verdict(&before).as_str(), verdict(&again).as_str()), ("fails", "not_measured"));
    fixture.heaptoll(&["lab", "study", "zorn1992", "--judge-again"]).exits(2);
}

/// What claims compare of managers on one program is measured at once, and the runs alone with it.
#[test]
#[ignore = "slow: ten CPU seconds, of the studies alone"]
fn cpu_times_that_claims_compare_are_of_runs_in_lockstep() {
    let fixture = Fixture::new();
    let text = SMALL.replace("repetitions = 2", "repetitions = 6").replace(", \"not-there\"", "");
    let (study, json, keep) =
        (write(&fixture, "small.toml", &text), fixture.at("o.json"), fixture.at("kept"));
    fixture.heaptoll(&["lab", "study", &study, "--json", &json, "--keep", &keep]).exits(0);
    let results = read_json(&json);
    let step = ran(&results, "small-time");
    assert!(step["command"].as_str().is_some_and(|words| words.contains("--pairing lockstep")), "{step}");
    let all = results["figures"]["cells"].as_array().expect("cells").iter();
    let samples = |metric: &str, manager: &str| -> Vec<f64> {
        let is = |cell: &&Value| {
            cell["program"] == "cfrac" && cell["metric"] == metric && cell["manager"] == manager
        };
        let cell = all.clone().find(is).unwrap_or_else(|| panic!("no {metric} under {manager}"));
        let samples = cell["value"]["samples"].as_array().expect("samples").iter();
        samples.filter_map(Value::as_f64).collect()
    };
    for manager in ["kingsley", "bw16", "sweep/mimalloc3"] {
        for metric in ["cpu_s", "cpu_alone_s", "wall_s", "peak_rss_kib"] {
            assert_eq!(samples(metric, manager).len(), 6, "{metric} under {manager}");
        }
    }
    // The level is that of the runs alone, whatever company costs.
    let mean = |values: Vec<f64>| values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64;
    let off = mean(samples("cpu_s", "kingsley")) - mean(samples("cpu_alone_s", "kingsley"));
    assert!(off.abs() < 0.7, "{off}");
    let quick = fixture.heaptoll(&["lab", "study", &study, "--quick", "--json", &json]).exits(0);
    assert!(quick.out.contains("not decided"));
    let command = ran(&read_json(&json), "small-time")["command"].as_str().expect("a command").to_owned();
    assert!(command.contains("--pairing interleaved"), "{command}");
}

#[test]
#[ignore = "slow: eight CPU seconds; each command has tests of its own"]
fn every_command_that_counts_gives_figures() {
    let fixture = Fixture::new();
    let text = r#"
name = "counts"
title = "Counts"
source = "These tests"
about = []
[[step]]
id = "counts-places"
kind = "locality"
programs = ["cfrac"]
managers = ["kingsley", "bw16"]
size = "tiny"
[[step]]
id = "counts-lives"
kind = "lifetimes"
programs = ["cfrac", "lua"]
size = "tiny"
"#;
    let (study, json, keep) =
        (write(&fixture, "counts.toml", text), fixture.at("o.json"), fixture.at("kept"));
    fixture.heaptoll(&["lab", "study", &study, "--json", &json, "--keep", &keep]).exits(0);
    let results = read_json(&json);
    for manager in ["kingsley", "bw16"] {
        assert_eq!(cells(&results, "counts-places", manager, "tight_faults"), 4);
        assert!(cells(&results, "counts-places", manager, "page_faults") >= 10);
        assert!(cells(&results, "counts-places", manager, "miss_percent") >= 6);
    }
    assert!(cells(&results, "counts-lives", "glibc", "surviving") > 20);
    let left = std::fs::read_dir(fixture.path("kept/counts-lives")).expect("the folder");
    let traces = left.flatten().filter(|file| file.file_name().to_string_lossy().ends_with(".heaptoll"));
    assert_eq!(traces.count(), 0, "traces are large and not needed any more");
}

const SLEEPS: &str =
    "int main(int n, char **a) { double s = atof(a[1]); for (int i = 0; i < 100; i++) free(malloc(100));
    usleep(s * 1e6); puts(\"done\"); return 0; }";

/// A catalog with a program that takes some time, and a study of it. Gives the folder and the study.
fn slow(fixture: &Fixture, seconds: f64, repetitions: u32) -> (String, String) {
    let program = fixture.program("slow", SLEEPS);
    let catalog = fixture.path("catalog");
    std::fs::create_dir_all(&catalog).expect("makes");
    let entry = format!(
        "name = \"slow\"\nabout = \"sleeps\"\ncommand = [\"{program}\", \"{seconds}\"]\n[sizes.quick]\n[sizes.full]\n"
    );
    std::fs::write(catalog.join("slow.toml"), entry).expect("writes");
    let study = format!(
        "name = \"slow\"\ntitle = \"Slow\"\nsource = \"These tests\"\nabout = []\n\
         [[step]]\nid = \"slow-first\"\nkind = \"run\"\nprograms = [\"slow\"]\nmanagers = [\"glibc\", \"lea\"]\n\
         repetitions = {repetitions}\noptions = [\"--warmup\", \"0\"]\npriority = 1\n\
         [[step]]\nid = \"slow-second\"\nkind = \"run\"\nprograms = [\"cfrac\"]\nmanagers = [\"glibc\", \"lea\"]\n\
         size = \"tiny\"\nrepetitions = 2\npriority = 3\n\
         [[claim]]\nid = \"later\"\nplace = \"1\"\nwords = \"Of the second step.\"\n[[claim.test]]\nwords = \"any\"\n\
         rule = \"all\"\nabove = 1.0\nquantity = {{ step = \"slow-second\", metric = \"cpu_s\", \
         of = {{ managers = [\"lea\"] }}, over = {{ managers = [\"glibc\"] }} }}\n"
    );
    (fixture.at("catalog"), write(fixture, "slow-study.toml", &study))
}

/// A study that names the program of before for one of today: which of them ran, with whose figures, and what the page has.
#[test]
fn a_papers_own_program_runs_in_place_of_its_kin_once_it_is_added() {
    let fixture = Fixture::new();
    let (catalog, study) = slow(&fixture, 0.01, 2);
    let original = fixture.at("program-of-1992");
    let entry = format!(
        "name = \"old-slow\"\nabout = \"sleeps as in 1992\"\ncommand = [\"{original}\", \"0.01\"]\n\
         added_by = {{ recipe = \"sleepers\", licence = \"no sale\" }}\n[sizes.quick]\n"
    );
    std::fs::write(fixture.path("catalog/old-slow.toml"), entry).expect("writes");
    let text = std::fs::read_to_string(&study).expect("the study");
    let step = "priority = 1\n[step.originals]\nslow = \"old-slow\"\n[[exhibit]]\nid = \"table\"\n\
                title = \"Table 1\"\nform = \"table\"\nstep = \"slow-first\"\nmetric = \"wall_s\"\n";
    std::fs::write(&study, text.replace("priority = 1\n", step)).expect("writes");
    let (json, page) = (fixture.at("o.json"), fixture.at("o.html"));
    let words =
        ["study", &study, "--catalog", &catalog, "--only", "slow-first", "--json", &json, "--html", &page];

    fixture.heaptoll(&words).exits(0);
    let without = read_json(&json);
    assert!(ran(&without, "slow-first")["originals"].is_null());
    assert!(
        without["warnings"].to_string().contains("heaptoll programs add sleepers"),
        "{}",
        without["warnings"]
    );

    std::fs::copy(fixture.program("slow", SLEEPS), &original).expect("copies");
    fixture.heaptoll(&words).exits(0);
    let with = read_json(&json);
    assert_eq!(ran(&with, "slow-first")["originals"], serde_json::json!({ "slow": "old-slow" }));
    assert!(ran(&with, "slow-first")["command"].to_string().contains("-p old-slow"));
    let cells = with["figures"]["cells"].as_array().expect("cells");
    assert!(cells.iter().all(|cell| cell["program"] == "slow") && cells.len() > 10);
    let text = std::fs::read_to_string(&page).expect("the page");
    assert!(text.contains("own programs: slow is old-slow") && !text.contains("programs add sleepers"));
}

/// When each row of a step was begun and how long it took, in s, in their order.
fn measured(db: &str) -> Vec<(f64, f64)> {
    let db = database(db).expect("the rows are there");
    let mut rows =
        db.prepare("SELECT started_unix_s, wall_s FROM observation ORDER BY position").expect("the layout");
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
    rows.map(|row| row.expect("a row")).collect()
}

#[test]
fn an_interrupted_study_shows_and_keeps_what_it_has_and_goes_on() {
    let fixture = Fixture::new();
    let (catalog, study) = slow(&fixture, 0.4, 12);
    let (keep, json) = (fixture.at("kept"), fixture.at("o.json"));
    let under_way =
        fixture.start(&["lab", "study", &study, "--catalog", &catalog, "--keep", &keep, "--json", &json]);
    let db = format!("{keep}/slow-first/rows.db");
    eventually("rows are kept", || stored(&db) >= 8);
    fixture.heaptoll(&["lab", "study", "--resume", &keep]).exits(2).complains(&["is in use"]);
    under_way.signal(libc::SIGINT);
    under_way
        .wait()
        .exits(130)
        .complains(&["go on with: heaptoll lab study --resume"])
        .shows(&["interrupted", "not measured"]);
    let results = read_json(&json);
    assert_eq!(
        (&results["complete"], &ran(&results, "slow-first")["ending"]),
        (&false.into(), &"cut".into())
    );
    assert_eq!(ran(&results, "slow-second")["ending"], "left_out");
    assert_eq!(answer(&results, "later"), "not_measured");
    let samples = |json: &Value| {
        let cells = json["figures"]["cells"].as_array().expect("cells").clone();
        let cell = cells.into_iter().find(|cell| cell["manager"] == "glibc" && cell["metric"] == "wall_s");
        cell.map(|cell| cell["value"]["samples"].as_array().expect("samples").clone()).unwrap_or_default()
    };
    let (first, rows) = (samples(&results), measured(&db));
    assert!(!first.is_empty() && first.len() < 12, "{first:?}");

    // Without time to go on, what was measured is still there.
    fixture.heaptoll(&["lab", "study", "--resume", &keep, "--budget", "1s", "--json", &json]).exits(1);
    assert_eq!(samples(&read_json(&json)), first);

    fixture.heaptoll(&["lab", "study", "--resume", &keep, "--json", &json]).exits(0);
    let results = read_json(&json);
    assert_eq!(ran(&results, "slow-first")["ending"], "whole");
    assert_eq!(results["complete"], true);
    assert_eq!(samples(&results).len(), 12);
    // Rows of before are still there: the step was resumed, and not run again. (Not so the samples: the start-up that
    // is taken off them is the median of more runs now.)
    let all = measured(&db);
    assert!(rows.len() >= 8 && all.len() > rows.len(), "{rows:?} then {all:?}");
    assert_eq!(all.get(..rows.len()), Some(rows.as_slice()));
    assert_eq!(answer(&results, "later"), "undecided");
}

/// A step that traces references began with its first program again.
#[test]
fn a_step_that_counts_was_killed_and_goes_on_with_the_programs_that_it_lacks() {
    const FREES: &str = "int main(void) { free(malloc(100)); return 0; }";
    let fixture = Fixture::new();
    let go = fixture.at("go");
    let waits = format!("int main(void) {{ free(malloc(100)); while (access(\"{go}\", F_OK)) ; return 0; }}");
    let catalog = fixture.path("catalog");
    std::fs::create_dir_all(&catalog).expect("makes");
    for (name, source) in [("first", FREES), ("second", &waits)] {
        let program = fixture.program(name, source);
        let entry =
            format!("name = \"{name}\"\nabout = \"waits\"\ncommand = [\"{program}\"]\n[sizes.quick]\n");
        std::fs::write(catalog.join(format!("{name}.toml")), entry).expect("writes");
    }
    let study = "name = \"kept\"\ntitle = \"Kept\"\nsource = \"These tests\"\nabout = []\n[[step]]\nid = \"places\"\n\
                 kind = \"locality\"\nprograms = [\"first\", \"second\"]\nmanagers = [\"lea\", \"glibc\"]\nsize = \"quick\"\n";
    let (study, keep, json) = (write(&fixture, "kept.toml", study), fixture.at("kept"), fixture.at("o.json"));
    let under_way =
        fixture.start(&["lab", "study", &study, "--catalog", &fixture.at("catalog"), "--keep", &keep]);
    eventually("a part is kept", || fixture.path("kept/places/kept-1.json").exists());
    under_way.signal(libc::SIGKILL);
    under_way.wait();
    // Were it run again, it would fail.
    fixture.program("first", "int main(void) { return 3; }");
    std::fs::write(&go, "").expect("writes");
    fixture.heaptoll(&["lab", "study", "--resume", &keep, "--json", &json]).exits(0);
    let results = read_json(&json);
    assert_eq!((&ran(&results, "places")["ending"], &results["complete"]), (&"whole".into(), &true.into()));
    let all = results["figures"]["cells"].as_array().expect("cells").iter();
    let references = all.filter(|cell| cell["metric"] == "references");
    let of: Vec<_> = references.map(|cell| (cell["program"].as_str(), cell["manager"].as_str())).collect();
    let wanted = [("first", "lea"), ("first", "glibc"), ("second", "lea"), ("second", "glibc")];
    assert_eq!(of, wanted.map(|(program, manager)| (Some(program), Some(manager))));
}

#[test]
fn parts_of_a_study_are_joined_to_one_run() {
    let fixture = Fixture::new();
    let (catalog, study) = slow(&fixture, 0.01, 2);
    let part = |step: &str, file: &str| {
        let json = fixture.at(file);
        let words = ["lab", "study", &study, "--catalog", &catalog, "--only", step, "--json", &json];
        fixture.heaptoll(&words).exits(0);
        json
    };
    let (first, second) = (part("slow-first", "first.json"), part("slow-second", "second.json"));
    assert_eq!(answer(&read_json(&first), "later"), "not_measured");
    let whole = fixture.at("whole.json");
    let join =
        |a: &str, b: &str| fixture.heaptoll(&["lab", "study", "--from", a, "--from", b, "--json", &whole]);
    join(&first, &second).exits(0);
    let results = read_json(&whole);
    assert_eq!(answer(&results, "later"), "undecided");
    assert_eq!(results["complete"], true);
    for step in ["slow-first", "slow-second"] {
        assert_eq!(ran(&results, step)["ending"], "whole");
        assert!(cells(&results, step, "glibc", "wall_s") > 0);
    }
    join(&first, &first)
        .exits(2)
        .complains(&["first.json measured step slow-first, and so did a part before it"]);
}

#[test]
fn a_step_that_failed_is_tried_again_when_the_study_goes_on() {
    let fixture = Fixture::new();
    let (catalog, study) = slow(&fixture, 0.01, 2);
    fixture.program("slow", "int main(void) { return 3; }");
    let (keep, json) = (fixture.at("kept"), fixture.at("o.json"));
    let words =
        ["study", &study, "--catalog", &catalog, "--only", "slow-first", "--keep", &keep, "--json", &json];
    fixture.heaptoll(&words).exits(1);
    assert_eq!(ran(&read_json(&json), "slow-first")["ending"], "failed");
    fixture.program("slow", SLEEPS);
    fixture.heaptoll(&["lab", "study", "--resume", &keep, "--json", &json]).exits(0);
    assert_eq!(ran(&read_json(&json), "slow-first")["ending"], "whole");
}

#[test]
fn a_step_is_cut_at_its_deadline_and_the_rest_is_left_out_when_time_is_over() {
    let fixture = Fixture::new();
    // Six repetitions under two managers take a minute, not the few seconds that the size suggests.
    let (catalog, study) = slow(&fixture, 5.0, 6);
    let json = fixture.at("o.json");
    let begun = Instant::now();
    let keep = fixture.at("kept");
    let words =
        ["lab", "study", &study, "--catalog", &catalog, "--budget", "12s", "--keep", &keep, "--json", &json];
    fixture.heaptoll(&words).exits(1);
    assert!(begun.elapsed() < Duration::from_secs(50), "{:?}", begun.elapsed());
    let results = read_json(&json);
    assert_eq!(results["budget_s"], 12.0);
    assert_eq!(ran(&results, "slow-first")["ending"], "cut");
    assert_eq!(ran(&results, "slow-second")["ending"], "left_out");
    assert_eq!(answer(&results, "later"), "not_measured");
}

#[test]
fn what_cannot_be_carried_out_is_refused_before_anything_runs() {
    let fixture = Fixture::new();
    let refused = |words: &[&str], complaints: &[&str]| {
        fixture.heaptoll(&[&["lab", "study"], words].concat()).exits(2).complains(complaints);
    };
    refused(&[], &["STUDY"]);
    refused(&["zorn1993"], &["there is no study `zorn1993`", "zorn1992", "sareen2022"]);
    refused(&["zorn1991"], &["did you mean `zorn1992`?"]);
    refused(&["./none.toml"], &["cannot read the study ./none.toml"]);
    refused(&["zorn1992", "--only", "nothing"], &["there is no such step", "zorn1992-time"]);
    refused(&["zorn1992", "--budget", "soon"], &["10m"]);
    refused(
        &["boehm-myths", "--budget", "1s"],
        &["in 1.0 s no step can be run", "the first can be decided with about"],
    );
    refused(&["zorn1992", "--budget", "10m", "--quick"], &["cannot be used with"]);
    refused(&["zorn1992", "--html", "/nowhere/o.html"], &["/nowhere/o.html"]);
    refused(&["--resume", &fixture.at("")], &["asked.json"]);
    let other = write(&fixture, "other.json", "{\"schema\": \"heaptoll-stat/1\"}");
    refused(&["--from", &other], &["heaptoll-stat/1", "heaptoll-study/1"]);
    refused(&["--from", &write(&fixture, "no.json", "no")], &["it is not JSON"]);
    refused(&[&write(&fixture, "bad.toml", "name = \"bad\"\ncolour = 1\n")], &["bad.toml", "colour"]);
    let small = write(&fixture, "small.toml", SMALL);
    refused(&[&small, "--keep", &fixture.at("")], &["is not empty", "--resume"]);
    let twice = write(&fixture, "twice.toml", &SMALL.replace("name = \"small\"", "name = \"twice\""));
    refused(&[&small, &twice], &["small-time", "rename it"]);
    let none = SMALL.replace("\"cfrac\"", "\"not-there-either\"");
    refused(&[&write(&fixture, "none.toml", &none)], &["no step can be run here"]);
    assert!(!fixture.path("state/heaptoll/studies").exists(), "nothing is made for what is refused");
}

#[test]
fn the_studies_are_listed() {
    let fixture = Fixture::new();
    let output = fixture.heaptoll(&["lab", "study", "--list"]).exits(0);
    output.shows(&["zorn1992", "detlefs1994", "boehm-myths", "sareen2022", "zorn1992-time", "instructions"]);
    // More repetitions take longer, and a study that takes too long has the commands of its parts.
    fixture
        .heaptoll(&["lab", "study", "--list", "--repetitions", "200"])
        .exits(0)
        .shows(&["Part 2, ", "minutes: heaptoll lab study zorn1992 --only zorn1992-"]);
    fixture
        .heaptoll(&["lab", "study", "--list", "--repetitions", "9"])
        .exits(2)
        .complains(&["9 is not in 10..=10000"]);
}

/// A study of a paper in its shortest form, or of its steps these. Each claim has an answer; what is timed decides nothing
/// in two repetitions.
fn quick(study: &str, only: &[&str]) {
    let fixture = Fixture::new();
    let (json, page, keep) = (fixture.at("o.json"), fixture.at("o.html"), fixture.at("kept"));
    let words = ["lab", "study", study, "--quick", "--keep", &keep, "--json", &json, "--html", &page];
    let only = only.iter().flat_map(|step| ["--only", step]);
    let output = fixture.heaptoll(&words.into_iter().chain(only).collect::<Vec<_>>());
    let output = output.exits(0).shows(&["shortest form"]);
    let results = read_json(&json);
    let section = &results["chapters"][0];
    let claims = section["study"]["claim"].as_array().expect("claims").len();
    assert_eq!(answers(&results).len(), claims);
    for step in results["steps"].as_array().expect("steps") {
        assert_eq!(step["ending"], "whole", "{step}\n{}", output.err);
    }
    let shown = section["exhibits"].as_array().expect("exhibits");
    assert_eq!(shown.len(), section["study"]["exhibit"].as_array().expect("exhibits").len());
    // Every step gave figures, and every exhibit names the command that repeats it.
    for step in results["steps"].as_array().expect("steps") {
        let id = &step["planned"]["step"];
        let cells = results["figures"]["cells"].as_array().expect("cells");
        assert!(cells.iter().any(|cell| cell["step"] == *id), "{id} gave no figure\n{}", output.err);
    }
    let text = std::fs::read_to_string(&page).expect("the page");
    for claim in section["study"]["claim"].as_array().expect("claims") {
        let id = claim["id"].as_str().expect("an id");
        // Claims on steps that did not run are counted there, and have no rows.
        assert!(text.contains(id) || answer(&results, id) == "not_measured", "claim {id} is not on the page");
    }
}

/// A step of each kind but those that trace references: each study has one or two in the fast tests.
#[test]
fn counts_and_lifetimes_of_zorn_have_a_shortest_form() {
    quick("zorn1992", &["zorn1992-counts", "zorn1992-lifetimes"]);
}

#[test]
#[ignore = "slow: five CPU seconds; other steps are in the fast tests"]
fn a_ledger_and_a_run_of_detlefs_have_a_shortest_form() {
    quick("detlefs1994", &["detlefs1994-ledger", "detlefs1994-cfrac"]);
}

#[test]
fn a_run_of_the_myths_has_a_shortest_form() {
    quick("boehm-myths", &["boehm-churn-long"]);
}

/// Steps that trace references take most of its time.
#[test]
#[ignore = "slow: half a minute; steps of its kinds are in the fast tests"]
fn zorn_runs_in_its_shortest_form_without_locality() {
    let steps = ["time", "own", "own-today", "counts", "lifetimes"].map(|step| format!("zorn1992-{step}"));
    quick("zorn1992", &steps.each_ref().map(String::as_str));
}

#[test]
#[ignore = "slow: the whole study, with every step that traces references"]
fn zorn_runs_in_its_shortest_form() {
    quick("zorn1992", &[]);
}

#[test]
#[ignore = "slow: every step of the study; two are in the fast tests"]
fn detlefs_runs_in_its_shortest_form() {
    quick("detlefs1994", &[]);
}

#[test]
#[ignore = "slow: every step of the study, two minutes; one is in the fast tests"]
fn the_myths_run_in_their_shortest_form() {
    quick("boehm-myths", &[]);
}

#[test]
#[ignore = "slow: fifty CPU seconds of it"]
fn sareen_runs_in_its_shortest_form() {
    quick("sareen2022", &[]);
}

#[test]
#[ignore = "slow: eight managers on five programs"]
fn mimalloc_runs_in_its_shortest_form() {
    quick("mimalloc2019", &[]);
}

/// Misses of the recorded stacks are in the slow form.
#[test]
#[ignore = "slow: nine CPU seconds; other steps are in the fast tests"]
fn the_points_of_reclamation_run_in_their_shortest_form() {
    quick("reclamation", &["reclamation-points"]);
}

#[test]
#[ignore = "slow: traces references of four stacks"]
fn reclamation_runs_in_its_shortest_form() {
    quick("reclamation", &[]);
}

#[test]
#[ignore = "slow: a minute of compiling; HEAPTOLL_MALLOC_BENCH names a clone of llvm-test-suite, or its mirror is here"]
fn the_papers_programs_are_built_and_make_the_papers_counts() {
    const MIRROR: &str = "/work/.mirror/llvm+llvm-test-suite/repo";
    let named = std::env::var("HEAPTOLL_MALLOC_BENCH").ok();
    let Some(from) = named.or_else(|| std::path::Path::new(MIRROR).is_dir().then(|| MIRROR.to_owned()))
    else {
        eprintln!("left out: no clone of llvm-test-suite is here");
        return;
    };
    let fixture = Fixture::new();
    fixture.heaptoll(&["programs", "add", "malloc-bench", "--from", &from]).exits(0).complains(&[
        // Detlefs, Dosser and Zorn (1994), Table II: 522, 1,704 and 1,604 thousand objects, the latter with resizes.
        "cfrac:nomemopt: 522296 objects, 0 resizes",
        "gawk:nomemopt: 1553198 objects, 150888 resizes",
        "perl:nomemopt: 1466938 objects, 136528 resizes",
    ]);
    let run = [
        "run",
        "--program",
        "mb-cfrac",
        "--program",
        "mb-cfrac:gc",
        "--program",
        "mb-make",
        "--size",
        "tiny",
    ];
    let rest = ["-m", "glibc", "-m", "bw16", "-n", "1", "--warmup", "0"];
    fixture.heaptoll(&[&run[..], &rest].concat()).exits(0);
    // From now on the study of the paper runs them.
    let (json, page) = (fixture.at("study.json"), fixture.at("study.html"));
    let study =
        ["study", "zorn1992", "--quick", "--only", "zorn1992-counts", "--json", &json, "--html", &page];
    fixture.heaptoll(&study).exits(0);
    let ran = &read_json(&json)["steps"][0]["originals"];
    assert_eq!(ran["cfrac:unoptimized"], "mb-cfrac:nomemopt", "{ran}");
    assert_eq!(ran["espresso"], "mb-espresso:plain", "{ran}");
    assert!(std::fs::read_to_string(&page).expect("the page").contains("espresso is mb-espresso:plain"));
}
