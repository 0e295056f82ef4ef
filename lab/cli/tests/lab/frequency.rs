//! `heaptoll lab frequency`: the mutator's time by the period of collections, from the program to the figures.

use serde_json::Value;

use crate::fixture::{Fixture, read_json};

/// Allocates 64 MiB in small blocks, keeps the last 1000, and forgets the others without a free.
const FORGETS: &str = r#"
static char *kept[1000];
int main(void) {
    unsigned long sum = 0;
    for (unsigned long i = 0; i < (64 << 20) / 512; i++) {
        char *block = malloc(500);
        block[0] = (char)i;
        kept[i % 1000] = block;
        for (int j = 0; j < 8; j++) sum += kept[(i * 7 + j) % 1000] ? kept[(i * 7 + j) % 1000][0] : 0;
    }
    printf("%lu\n", sum);
    return 0;
}
"#;

fn setting(study: &Value, every: u64, reclaim: u64) -> &Value {
    let settings = study["settings"].as_array().expect("settings");
    let same = |one: &&Value| one["period"]["every_bytes"] == every && one["period"]["reclaim"] == reclaim;
    settings.iter().find(same).unwrap_or_else(|| panic!("no {every}/{reclaim} in {settings:?}"))
}

fn collects_as_often_as_requested(collector: &str) {
    let fixture = Fixture::new();
    let program = fixture.program("forgets", FORGETS);
    let file = fixture.at("frequency.json");
    let words =
        ["frequency", "-m", collector, "--every", "1M,4M", "--reclaim", "1,4", "-n", "2", "--json", &file];
    fixture
        .heaptoll(&[&words[..], &["--", &program]].concat())
        .exits(0)
        .shows(&[
            "Frequency of collections",
            "Frequency of reclamation",
            "every 4th collection",
            "What was measured",
        ])
        .complains(&["heaptoll lab frequency --resume"]);
    let json = read_json(&file);
    assert_eq!(json["schema"], "heaptoll-frequency/1");
    let study = &json["programs"][0];
    assert_eq!(study["often_enough"], true);
    let figure = |every: u64, reclaim: u64, name: &str| {
        setting(study, every << 20, reclaim)["medians"][name]
            .as_f64()
            .unwrap_or_else(|| panic!("{name} is reported"))
    };
    for (every, reclaim) in [(1, 1), (4, 1), (1, 4), (4, 4)] {
        // 64 MiB, some of it in headers or rounding, and perhaps a collection at the end or none at the beginning.
        let collections = figure(every, reclaim, "collections") * every as f64;
        assert!((55.0..85.0).contains(&collections), "every {every}M: {collections}M in all");
        let pauses = figure(every, reclaim, "pauses_s");
        assert!(pauses > 0.0 && pauses < figure(every, reclaim, "wall_s"), "{pauses} s of pauses");
        assert!(figure(every, reclaim, "mutator_wall_s") < figure(every, reclaim, "wall_s"));
    }
    // Three of four collections leave their garbage where it is.
    assert!(figure(4, 4, "peak_rss_kib") > figure(4, 1, "peak_rss_kib") + 6000.0);
}

#[test]
fn tithe_collects_as_often_as_requested() {
    collects_as_often_as_requested("tithe-collect");
}

#[test]
fn the_sweep_layer_collects_as_often_as_requested() {
    collects_as_often_as_requested("sweep/mimalloc3");
}

#[test]
fn a_program_that_hardly_allocates_shows_nothing_about_frequency() {
    let fixture = Fixture::new();
    let program = fixture
        .program("quiet", "int main(void) { for (int i = 0; i < 40; i++) free(malloc(100000)); return 0; }");
    fixture
        .heaptoll(&[
            "lab",
            "frequency",
            "-m",
            "tithe-collect",
            "--every",
            "1M,2M",
            "--reclaim",
            "1",
            "-n",
            "2",
            "--",
            &program,
        ])
        .exits(0)
        .shows(&["fewer than 10 collections", "quiet under tithe-collect"]);
}

#[test]
fn what_cannot_be_given_a_period_is_refused_before_anything_runs() {
    let fixture = Fixture::new();
    for (collector, why) in [
        ("glibc", "put the sweep layer in front"),
        ("sweep,every=4M/glibc", "leave out every="),
        ("quarantine=1B/glibc", "name one sweep layer"),
    ] {
        fixture.heaptoll(&["lab", "frequency", "-m", collector, "--", "ls"]).exits(2).complains(&[why]);
    }
    fixture
        .heaptoll(&["lab", "frequency", "--every", "0", "--", "ls"])
        .exits(2)
        .complains(&["give sizes above 0"]);
}

#[test]
fn the_papers_periods_have_means_and_are_compared_with_the_papers() {
    let fixture = Fixture::new();
    // Twice the same work in two programs: 40 collections at 8 MiB.
    let longer = FORGETS.replace("64 << 20", "320 << 20");
    let [catalog, _] = ["one", "two"].map(|name| fixture.entry(name, &fixture.program(name, &longer)));
    let file = fixture.at("frequency.json");
    let words =
        ["frequency", "-m", "tithe-collect", "--reclaim", "1", "--every", "8M,32M", "-n", "2", "--quick"];
    fixture
        .heaptoll(&[&words[..], &["--catalog", &catalog, "-p", "one", "-p", "two", "--json", &file]].concat())
        .exits(0)
        .shows(&[
            "Compared with Sareen and Blackburn (2022)",
            "Geometric means over programs",
            "none of 2 programs",
        ]);
    let json = read_json(&file);
    assert_eq!(json["published"][0]["of_programs"], 2);
}

#[test]
fn a_program_without_a_collection_ends_the_study_at_once() {
    let fixture = Fixture::new();
    let program = fixture.program("little", "int main(void) { free(malloc(99)); return 0; }");
    let counter = fixture.at("runs");
    let script = fixture.script("counted", &format!("#!/bin/sh\necho x >> {counter}\nexec {program}\n"));
    let words =
        ["lab", "frequency", "-m", "sweep/glibc", "--every", "16M,64M", "--reclaim", "1", "-n", "9", "--"];
    fixture
        .heaptoll(&[&words[..], &[&script]].concat())
        .exits(2)
        .complains(&["has no collection", "--every 1M"]);
    let runs = std::fs::read_to_string(&counter).expect("it was run").lines().count();
    assert!(runs <= 8, "the proof runs and one round, not {runs}");
}
