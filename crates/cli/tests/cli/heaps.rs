//! `heaptoll run --heaps`: collectors in heaps of several sizes next to allocators at their own memory.

use serde_json::Value;

use crate::fixture::{Fixture, eventually, goes_on_after, line, outcomes, retains, rows_of, runs_in, stored};

const MIB: u64 = 1 << 20;

/// Fails in heaps of 8 MiB or more, which no search of its smallest heap tries.
const FAILS_IN_8_MIB: &str =
    "char *options = getenv(\"HEAPTOLL_SWEEP\"), *heap = options ? strstr(options, \"heap=\") : 0;
    if (heap && atol(heap + 5) >= 8 << 20) return 7;";

fn curves(json: &Value) -> &Vec<Value> {
    json["comparison"]["heaps"]["programs"][0]["curves"].as_array().expect("curves")
}

#[test]
fn a_collector_runs_in_each_heap_and_allocators_are_points() {
    let fixture = Fixture::new();
    let program = fixture.program("retains", &retains(MIB, FAILS_IN_8_MIB));
    let (db, page) = (fixture.at("e.db"), fixture.at("page.html"));
    let words =
        ["run", "--heaps=10,1.5,3", "-m", "sweep,every=64K/glibc", "-m", "sweep,heap=4M/glibc", "-n", "2"];
    let output = fixture.heaptoll(&[&words[..], &["--db", &db, "--html", &page, "--", &program]].concat());
    let output = output.exits(0);
    // What does not fit is a result and no failure.
    let shown = ["At equal memory", "does not fit in", "overhead at least", "Smallest heap, KiB:", "1.5x"];
    let output = output.shows(&shown);
    assert!(output.out.starts_with("retains under 3 memory managers"), "{}", output.out);
    let page = std::fs::read_to_string(&page).expect("written");
    assert!(page.contains("CPU over heap size") && page.contains("CPU over memory"));

    let json = fixture.json(&db);
    let [curve] = &curves(&json)[..] else { panic!("a heap that the user fixed is not searched: {json:#}") };
    assert_eq!(curve["collector"], "sweep,every=64K/glibc");
    let smallest = curve["smallest_bytes"].as_u64().expect("bytes");
    assert!((MIB..2 * MIB).contains(&smallest), "{smallest}");
    let heaps: Vec<(f64, bool, f64)> = curve["heaps"]
        .as_array()
        .expect("heaps")
        .iter()
        .map(|heap| {
            let bytes = heap["heap_bytes"].as_u64().expect("bytes") as f64;
            (heap["factor"].as_f64().expect("a factor"), heap["fits"] == true, bytes)
        })
        .collect();
    assert_eq!(
        heaps.iter().map(|heap| (heap.0, heap.1)).collect::<Vec<_>>(),
        [(1.5, true), (3.0, true), (10.0, false)]
    );
    for (factor, _, bytes) in heaps {
        assert!((bytes - factor * smallest as f64).abs() <= 4096.0, "{factor}: {bytes}");
    }
    let points = json["comparison"]["heaps"]["programs"][0]["points"].as_array().expect("points");
    let points: Vec<&Value> = points.iter().map(|point| &point["stack"]).collect();
    assert_eq!(points, ["glibc", "sweep,every=64K/glibc", "sweep,heap=4M/glibc"]);
    // The same paired runs as of any stack, with the heap in their environment.
    assert_eq!(rows_of(&json, "sweep,every=64K/glibc@1.5x", "timed").len(), 2);
    assert!(outcomes(&json, "sweep,every=64K/glibc@10x").iter().all(|outcome| outcome == "exit"), "{json:#}");
    assert!(
        line(&json, "sweep,every=64K/glibc@10x")["verdict"]
            .as_str()
            .is_some_and(|text| text.starts_with("does not fit"))
    );

    let again = fixture.heaptoll(&["report", &db]).exits(0);
    assert_eq!(again.out.split("At equal memory").nth(1), output.out.split("At equal memory").nth(1));
    fixture.heaptoll(&["run", "--resume", &db, "-n", "3"]).exits(0);
    assert_eq!(rows_of(&fixture.json(&db), "sweep,every=64K/glibc@3x", "timed").len(), 3);
}

#[test]
fn means_over_programs_are_of_equal_factors() {
    let fixture = Fixture::new();
    let words = ["run", "--heaps=2", "-m", "tithe-collect", "-n", "2", "--warmup", "0", "--size", "tiny"];
    let db = fixture.at("e.db");
    let programs = ["-p", "cfrac:gc", "-p", "route:gc", "--db", &db];
    let output = fixture.heaptoll(&[&words[..], &programs].concat()).exits(0);
    output.shows(&["overall: at equal memory, means over 2 programs"]);
    let json = fixture.json(&db);
    let overall = &json["comparison"]["heaps"]["overall"][0];
    assert_eq!(
        (&overall["collector"], &overall["heaps"][0]["factor"]),
        (&"tithe-collect".into(), &2.0.into())
    );
    assert_eq!(overall["heaps"][0]["programs"], 2);
    let smallest: Vec<&Value> = json["comparison"]["heaps"]["programs"]
        .as_array()
        .expect("programs")
        .iter()
        .map(|program| &program["curves"][0]["smallest_bytes"])
        .collect();
    assert!(smallest.len() == 2 && smallest[0] != smallest[1], "{smallest:?}");
}

#[test]
fn factors_and_managers_that_cannot_be_are_refused_with_what_to_do() {
    let fixture = Fixture::new();
    let refused = |words: &[&str], text: &str| {
        fixture.heaptoll(&[&["run"], words, &["--", "true"]].concat()).exits(2).complains(&[text]);
    };
    refused(&["--heaps=0.5", "-m", "sweep/glibc"], "give 1 or more");
    refused(&["--heaps=2,x", "-m", "sweep/glibc"], "`x` is not a number");
    refused(&["--heaps=1,2,3,4,5,6,7,8,9,10,11,12,13", "-m", "sweep/glibc"], "give at most 12");
    refused(&["--heaps", "-m", "glibc"], "-m tithe-collect");
    refused(&["--heaps", "-m", "sweep,heap=1M/glibc"], "sweep/glibc");
    refused(&["--heaps", "--working-copy", "-m", "sweep/glibc"], "--working-copy");
    let server = ["--heaps", "-m", "sweep/glibc", "--serve", "true", "--load", "true"];
    fixture.heaptoll(&[&["run"], &server[..]].concat()).exits(2).complains(&["--serve"]);
}

#[test]
fn a_search_that_was_killed_goes_on_and_the_run_after_it() {
    let fixture = Fixture::new();
    let program = fixture.program("retains", &retains(MIB, "usleep(50000);"));
    let db = fixture.at("e.db");
    let words = ["run", "--heaps=2", "-m", "sweep,every=64K/glibc", "-n", "2", "--warmup", "0", "--db", &db];
    let under_way = fixture.start(&[&words[..], &["--", &program]].concat());
    eventually("rows of the search", || stored(&db) >= 5);
    under_way.signal(libc::SIGKILL);
    under_way.wait();
    let before = runs_in(&db);
    assert!(before.iter().all(|run| run.1 == "search"), "{before:?}");
    fixture.heaptoll(&["run", "--resume", &db]).exits(0).shows(&["At equal memory"]);
    goes_on_after(&before, &db);
    let json = fixture.json(&db);
    let smallest = curves(&json)[0]["smallest_bytes"].as_u64().expect("bytes");
    assert!((MIB..2 * MIB).contains(&smallest), "{smallest}");
    assert_eq!(rows_of(&json, "sweep,every=64K/glibc@2x", "timed").len(), 2);
}

#[test]
fn a_search_that_nothing_can_be_run_after_leaves_no_file() {
    let fixture = Fixture::new();
    let program = fixture.static_program("static", "int main(void) { return malloc(10) == 0; }");
    let db = fixture.at("e.db");
    let words = ["run", "--heaps=2", "-m", "sweep/glibc", "--db", &db, "--", &program];
    fixture.heaptoll(&words).exits(2).complains(&["statically linked"]);
    assert!(!std::path::Path::new(&db).exists());
}
