//! `heaptoll lab conservatism` of a program whose roots are known.

use serde_json::Value;

use crate::fixture::{Fixture, read_json};

/// Each object has a size of its own, by which it is known. All are touched when they are made, and not again, but for
/// `used`.
const PROGRAM: &str = r#"
    #include <string.h>
    struct used { volatile unsigned long number; long more[3]; };
    static struct used *volatile used;
    static char *volatile stale;
    static volatile unsigned long number, inverted, garbage;
    static void *make(unsigned long bytes) { return memset(malloc(bytes), 1, bytes); }
    __attribute__((noinline)) static void churn(void) {
        for (int at = 0; at < 60; at++) { char *volatile made = malloc(1000); *made = 1; free(made); }
        used->more[0]++;
    }
    // Far below the frames of churn, where its calls do not overwrite it.
    __attribute__((noinline)) static void leave(void) {
        void *volatile deep[4096];
        for (int at = 0; at < 4096; at++) deep[at] = 0;
        deep[2000] = make(1 << 20);
    }
    __attribute__((noinline)) static void cover(void) {
        char over[65536];
        __asm__ volatile("" : : "r"(over) : "memory");
        churn();
        __asm__ volatile("" : : "r"(over) : "memory");
    }
    __attribute__((noinline)) static void statics(void) {
        stale = make(200000);
        number = (unsigned long)make(300000) + 123;
    }
    __attribute__((noinline)) static void hide(void) {
        inverted = ~(unsigned long)make(400000);
        garbage = ~(unsigned long)make(500000);
        make(600000);
    }
    int main(void) {
        used = make(sizeof *used);
        leave();
        statics();
        hide();
        churn();
        cover();
        // An integer that has the value of an address, in an object that is used later.
        used->number = ~garbage;
        churn();
        free((void *)~inverted);
        churn();
        return 0;
    }
"#;

fn rows(figures: &Value, cause: &str) -> (u64, u64) {
    let all = figures["causes"].as_array().expect("causes");
    let row = all.iter().find(|row| row["cause"] == cause).unwrap_or_else(|| panic!("{cause}"));
    let peak = |of: &str| row[of]["peak_bytes"].as_u64().expect("bytes");
    (peak("kept"), peak("again"))
}

#[test]
fn each_byte_that_is_kept_in_vain_is_found_by_its_cause() {
    let fixture = Fixture::new();
    let (program, graph) = (fixture.program("stale", PROGRAM), fixture.at("a.graph"));
    let (json, page) = (fixture.at("a.json"), fixture.at("a.html"));
    fixture.heaptoll(&["record", "--graph", "--roots-every", "4K", "-o", &graph, "--", &program]).exits(0);
    let shown = fixture.heaptoll(&["lab", "conservatism", &graph, "--json", &json, "--html", &page]).exits(0);
    shown.shows(&[
        "Conservatism keeps between",
        "stacks only",
        "Interior pointers",
        "unreachable before the free",
    ]);
    assert!(std::fs::read_to_string(&page).expect("a page").contains("Kept by conservatism"));
    let figures = read_json(&json);
    let mebibyte = 1 << 20;
    // The slot of a frame that ended, under another frame: unreachable in between.
    assert_eq!(rows(&figures, "stacks"), (mebibyte, mebibyte), "{figures:#}");
    assert_eq!(rows(&figures, "static_data"), (500_000, 0));
    assert_eq!(rows(&figures, "used_objects"), (500_000, 500_000));
    assert_eq!((rows(&figures, "mappings"), rows(&figures, "several").1), ((0, 0), 0));
    let bytes = |of: &Value| of["peak_bytes"].as_u64().expect("bytes");
    assert_eq!(bytes(&figures["at_least"]), mebibyte);
    assert_eq!(bytes(&figures["at_most"]), mebibyte + 500_000);
    // The number leads to the middle of an object.
    for rule in 0..2 {
        assert_eq!(bytes(&figures["interior"][rule]["unused"]), 300_000, "{:#}", figures["interior"]);
    }
    let ends = &figures["ends"];
    assert_eq!(ends["before"]["bytes"], 400_000, "{ends:#}");
    // What is lost: 600,000 for certain, and the slot's, which no frame covers at the end.
    assert_eq!(ends["lost"]["bytes"], 600_000 + mebibyte, "{ends:#}");
}

#[test]
fn a_trace_without_pointers_or_points_and_a_pipe_are_refused_or_explained() {
    let fixture = Fixture::new();
    let program = fixture.program("small", "int main(void) { free(malloc(10)); return 0; }");
    let (plain, graph) = (fixture.at("a.heaptoll"), fixture.at("a.graph"));
    fixture.heaptoll(&["record", "-o", &plain, "--", &program]).exits(0);
    fixture
        .heaptoll(&["lab", "conservatism", &plain])
        .exits(2)
        .complains(&["without pointers", "record --graph"]);
    fixture.heaptoll(&["lab", "conservatism", "-"]).exits(2).complains(&["twice"]);
    fixture.heaptoll(&["lab", "conservatism", &program]).exits(2).complains(&["small"]);
    fixture.heaptoll(&["record", "--graph", "-o", &graph, "--", &program]).exits(0);
    fixture
        .heaptoll(&["lab", "conservatism", &graph])
        .exits(0)
        .shows(&["no complete root point", "--roots-every"]);
}

#[test]
fn of_a_trace_that_was_cut_what_is_there_has_figures() {
    let fixture = Fixture::new();
    let (program, graph) = (fixture.program("stale", PROGRAM), fixture.at("a.graph"));
    fixture.heaptoll(&["record", "--graph", "--roots-every", "4K", "-o", &graph, "--", &program]).exits(0);
    let bytes = std::fs::read(&graph).expect("the trace");
    std::fs::write(fixture.path("cut.graph"), &bytes[..bytes.len() - 100]).expect("writes");
    let cut = fixture.heaptoll(&["lab", "conservatism", &fixture.at("cut.graph")]).exits(1);
    cut.shows(&["the recording was cut off", "Conservatism keeps between"]);
    std::fs::write(fixture.path("start.graph"), &bytes[..12]).expect("writes");
    let start = fixture.heaptoll(&["lab", "conservatism", &fixture.at("start.graph")]).exits(2);
    start.complains(&["cut off within its first bytes"]);
    fixture
        .heaptoll(&["lab", "conservatism", &fixture.at(".")])
        .exits(2)
        .complains(&["seems to be a folder"]);
}
