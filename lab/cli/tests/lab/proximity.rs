//! `heaptoll lab proximity` on programs that mark their requests.

use serde_json::Value;

use crate::fixture::{Fixture, eventually, goes_on_after, read_json, runs_in, stored};

/// 4000 requests that each allocate ten blocks of 100 bytes and keep some of them a while.
const REQUESTS: &str = "#include \"heaptoll_events.h\"
static char *volatile kept[1000];
int main(void) {
    unsigned long at = 0;
    for (int request = 0; request < 4000; request++) {
        heaptoll_event_begin();
        for (int i = 0; i < 10; i++, at++) {
            char *one = malloc(100);
            memset(one, request, 100);
            free(kept[at % 1000]);
            kept[at % 1000] = one;
        }
        heaptoll_event_end(request % 3);
    }
    printf(\"%lu\\n\", at);
    return 0; }";

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn every_request_is_counted_and_collections_come_as_often_as_set() {
    let fixture = Fixture::new();
    let program = fixture.program("requests", REQUESTS);
    let (json, html) = (fixture.at("p.json"), fixture.at("p.html"));
    let stacks = ["--cpu", "-m", "sweep/glibc", "-m", "tithe-collect"];
    let options = [&stacks[..], &["--collections", "100,10", "-n", "2", "--json", &json]].concat();
    fixture
        .heaptoll(&[&["lab", "proximity", "--html", &html], &options[..], &["--", &program]].concat())
        .exits(0)
        .shows(&["Mean time, ratio to the middle", "sweep/glibc", "survivor bias from"])
        .shows(&["Mean processor time, ratio to the middle", "Median processor time, ratio to the middle"]);
    let found = read_json(&json);
    let one = &found["programs"][0];
    // Forty thousand blocks, and what the C library takes for its output.
    assert!((4_000_000..4_100_000).contains(&number(&one["requested_bytes"])), "{}", one["requested_bytes"]);
    for stack in one["stacks"].as_array().expect("stacks") {
        let scales = stack["scales"].as_array().expect("scales");
        let aims: Vec<u64> = scales.iter().map(|scale| number(&scale["aimed_at"])).collect();
        assert_eq!(aims, [10, 100]);
        for scale in scales {
            let first_tenth = &scale["stretches"][1];
            assert!(
                first_tenth["cpu_mean"]["ratio"].as_f64().is_some_and(|ratio| ratio > 0.0),
                "{first_tenth}"
            );
            let collections: Vec<u64> =
                scale["collections"].as_array().expect("runs").iter().map(number).collect();
            let aimed_at = number(&scale["aimed_at"]);
            assert_eq!(collections.len(), 2);
            assert!(collections.iter().all(|n| (aimed_at / 2..=aimed_at * 2).contains(n)), "{collections:?}");
            let counted = ["requests", "interrupted", "before_first"].map(|name| number(&scale[name]));
            assert_eq!(counted.iter().sum::<u64>(), 2 * 4000, "{counted:?}");
            assert!(
                counted[1] <= collections.iter().sum(),
                "one thread: a collection interrupts one at most"
            );
            let groups = scale["groups"].as_array().expect("groups");
            assert_eq!(groups.iter().map(|group| number(&group["requests"])).sum::<u64>(), counted[0]);
            assert!(groups.windows(2).all(|pair| number(&pair[0]["to_ns"]) <= number(&pair[1]["from_ns"])));
            assert!(groups.iter().all(|group| number(&group["requests"]) >= 30));
        }
        assert!(stack["fastest_mean_ns"].as_f64().is_some_and(|ns| ns > 0.0));
    }
    let page = std::fs::read_to_string(html).expect("a page");
    assert!(page.contains("Median time of a request by distance") && page.contains("chart-5"));
}

#[test]
fn what_has_no_requests_or_no_period_is_refused() {
    let fixture = Fixture::new();
    let silent = fixture.program("silent", "int main(void) { return malloc(10) == 0; }");
    fixture
        .heaptoll(&["lab", "proximity", "-m", "sweep/glibc", "--", &silent])
        .exits(2)
        .complains(&["marks no requests", "heaptoll_events.h"]);
    fixture
        .heaptoll(&["lab", "proximity", "-m", "glibc", "--", &silent])
        .exits(2)
        .complains(&["option every="]);
    fixture
        .heaptoll(&["lab", "proximity", "-m", "sweep,every=1M/glibc", "--", &silent])
        .exits(2)
        .complains(&["leave out every="]);
    fixture.heaptoll(&["lab", "proximity", "--all"]).exits(2).complains(&["mark no requests"]);
    fixture.heaptoll(&["lab", "proximity", "--collections", "0", "--", &silent]).exits(2);
    fixture.heaptoll(&["lab", "proximity", "--cap", "0.5", "--", &silent]).exits(2).complains(&["from 1"]);
}

/// A program that fails under a collector is reported, and the others' figures are kept.
#[test]
fn wrong_output_does_not_count() {
    let fixture = Fixture::new();
    let source = REQUESTS.replace("printf(", "if (getenv(\"HEAPTOLL_SWEEP\")) puts(\"odd\"); printf(");
    let program = fixture.program("odd", &source);
    let json = fixture.at("p.json");
    let options =
        ["-m", "sweep/glibc", "-m", "tithe-collect", "--collections", "10", "-n", "2", "--json", &json];
    fixture
        .heaptoll(&[&["lab", "proximity"], &options[..], &["--", &program]].concat())
        .exits(1)
        .shows(&["wrong output"]);
    let found = read_json(&json);
    let stacks = &found["programs"][0]["stacks"];
    assert_eq!(number(&stacks[0]["scales"][0]["requests"]), 0);
    assert!(number(&stacks[1]["scales"][0]["requests"]) > 0);
}

/// What was marked is kept beside each row, so groups and ratios are of all runs, whenever they were made.
#[test]
fn a_study_that_was_stopped_goes_on_and_makes_no_run_twice() {
    let fixture = Fixture::new();
    let source = REQUESTS.replace("unsigned long at = 0;", "unsigned long at = 0; usleep(50000);");
    let program = fixture.program("requests", &source);
    let (db, json, again) = (fixture.at("p.db"), fixture.at("p.json"), fixture.at("again.json"));
    let words = ["lab", "proximity", "-m", "sweep/glibc", "--collections", "10,20", "-n", "8", "--db", &db];
    let under_way = fixture.start(&[&words[..], &["--", &program]].concat());
    eventually("rows", || stored(&db) >= 4);
    under_way.signal(libc::SIGINT);
    under_way
        .wait()
        .exits(130)
        .shows(&["interrupted: what was measured until then is shown"])
        .complains(&["go on with: heaptoll lab proximity --resume"]);
    let stopped = runs_in(&db);
    let resume = ["lab", "proximity", "--resume", &db, "--json"];
    let under_way = fixture.start(&[&resume[..], &[&json]].concat());
    eventually("more rows", || stored(&db) > stopped.len() as i64 + 1);
    under_way.signal(libc::SIGKILL);
    under_way.wait();
    goes_on_after(&stopped, &db);
    let killed = runs_in(&db);
    fixture.heaptoll(&[&resume[..], &[&json]].concat()).exits(0);
    goes_on_after(&killed, &db);
    let (found, all) = (read_json(&json), runs_in(&db));
    assert_eq!((&found["complete"], all.len()), (&true.into(), 1 + 2 * 8));
    for scale in found["programs"][0]["stacks"][0]["scales"].as_array().expect("scales") {
        assert_eq!(scale["collections"].as_array().map(Vec::len), Some(8));
        let counted = ["requests", "interrupted", "before_first"].map(|name| number(&scale[name]));
        assert_eq!(counted.iter().sum::<u64>(), 8 * 4000, "{counted:?}");
    }
    // A complete one is shown again, by its rows and marks alone.
    fixture.heaptoll(&[&resume[..], &[&again]].concat()).exits(0);
    assert_eq!((read_json(&again), runs_in(&db)), (found, all));
    fixture.heaptoll(&["report", &db]).exits(0).shows(&["sweep,every="]);
}
