//! `heaptoll lab proximity` on programs that mark their requests.

use serde_json::Value;

use crate::fixture::{Fixture, read_json};

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
