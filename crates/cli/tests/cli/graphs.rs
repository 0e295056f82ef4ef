//! `heaptoll record --graph` and `heaptoll stat` of what it writes.

use crate::fixture::{Fixture, read_json};

/// A list of ten nodes, and an object whose only pointer is stored inverted.
const PROGRAM: &str = r#"
    struct node { struct node *next; long more[12]; };
    static struct node *volatile list;
    static volatile unsigned long inverted;
    static void churn(void) { for (int at = 0; at < 100; at++) { char *volatile made = malloc(1000); free(made); } }
    __attribute__((noinline)) static void hide(void) { inverted = ~(unsigned long)malloc(5000); }
    int main(void) {
        for (int at = 0; at < 10; at++) {
            struct node *volatile made = malloc(sizeof *made);
            made->next = list;
            list = made;
        }
        hide();
        churn();
        *(volatile char *)~inverted = 1;
        churn();
        return 0;
    }
"#;

#[test]
fn a_graph_is_recorded_and_summed_up_and_is_no_plain_trace() {
    let fixture = Fixture::new();
    let (program, graph, json) =
        (fixture.program("list", PROGRAM), fixture.at("a.graph"), fixture.at("a.json"));
    let record = ["record", "--graph", "--roots-every", "4K", "-o", &graph, "--", &program];
    fixture.heaptoll(&record).exits(0).complains(&["edges", "root points", "heaptoll stat"]);
    fixture.heaptoll(&record).exits(2).complains(&["exists"]);
    let shown = fixture.heaptoll(&["stat", &graph, "--json", &json]).exits(0);
    shown.shows(&["hidden pointers", "Root points", "Bounds of lifetimes"]);
    let figures = read_json(&json);
    assert_eq!(figures["hidden"]["objects"], 1, "{figures:#}");
    assert_eq!(figures["hidden"]["bytes"], 5000);
    // The first node's is null.
    assert_eq!(figures["max_edges"], 9);
    let points = figures["points"].as_array().expect("points");
    assert!(points.len() >= 35, "{}", points.len());
    let last = points.last().expect("one");
    // Nodes, and the block that was just made. The hidden object is not reachable.
    let reachable = last["reachable_bytes"].as_u64().expect("bytes");
    assert!((1040..=2100).contains(&reachable), "{last:#}");
    for command in ["lifetimes", "replay", "bound", "ledger"] {
        fixture.heaptoll(&[command, &graph]).exits(2).complains(&["a trace with pointers", "replay --graph"]);
    }
}

/// A request of ten stores and five loads, one that is begun twice, and one that ends without a beginning.
const MARKED: &str = r#"
    int main(void) {
        volatile char *block = malloc(64);
        heaptoll_event_end(7);
        block[0] = 1;
        heaptoll_event_begin();
        for (int at = 0; at < 10; at++) block[at] = 1;
        for (int at = 0; at < 5; at++) block[at];
        heaptoll_event_end(1);
        block[1];
        heaptoll_event_begin();
        block[2];
        heaptoll_event_begin();
        block[3] = 1;
        heaptoll_event_end(2);
        return 0;
    }
"#;

#[test]
fn a_trace_with_references_has_each_load_and_store_and_the_requests_that_the_program_marks() {
    let fixture = Fixture::new();
    let header = include_str!("../../../../include/heaptoll_events.h");
    let program = fixture.program("marked", &format!("{header}\n{MARKED}"));
    let (graph, json) = (fixture.at("a.graph"), fixture.at("a.json"));
    let record = ["record", "--graph", "--references", "-o", &graph, "--", &program];
    fixture.heaptoll(&record).exits(0).complains(&["2 requests"]);
    fixture.heaptoll(&["stat", &graph, "--json", &json]).exits(0).shows(&["loads and stores", "requests"]);
    let figures = read_json(&json);
    let counts = ["accesses", "stores", "requests", "request_accesses"].map(|name| figures[name].as_u64());
    assert_eq!(counts, [Some(19), Some(12), Some(2), Some(16)], "{figures:#}");
    let without = ["record", "--graph", "--force", "-o", &graph, "--", &program];
    fixture.heaptoll(&without).exits(0);
    fixture.heaptoll(&["stat", &graph, "--json", &json]).exits(0);
    assert_eq!(read_json(&json)["accesses"], 0);
}

#[test]
fn options_of_the_other_way_to_record_are_refused() {
    let fixture = Fixture::new();
    for option in ["--latency", "--ledger"] {
        fixture
            .heaptoll(&["record", "--graph", option, "--", "/bin/true"])
            .exits(2)
            .complains(&["--graph", option]);
    }
    fixture.heaptoll(&["record", "--references", "--", "/bin/true"]).exits(2).complains(&["--graph"]);
    let zero = ["record", "--graph", "--roots-every", "0", "--", "/bin/true"];
    fixture.heaptoll(&zero).exits(2).complains(&["between 1 byte and 2 GiB"]);
}
