//! `heaptoll record --graph` and `heaptoll trace stat` of what it writes.

use crate::fixture::{CommandOutput, Fixture, read_json};

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
    fixture.heaptoll(&record).exits(0).complains(&["edges", "root points", "heaptoll trace stat"]);
    fixture.heaptoll(&record).exits(2).complains(&["exists"]);
    let shown = fixture.heaptoll(&["trace", "stat", &graph, "--json", &json]).exits(0);
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
        fixture
            .heaptoll(&[command, &graph])
            .exits(2)
            .complains(&["a trace with pointers", "lab replay-graph"]);
    }
}

/// A request of ten stores and five loads, one that is begun twice, and one that ends without a beginning.
const MARKED: &str = r#"
    /* Of a load whose value nothing uses Valgrind makes none. */
    static volatile long sum;
    int main(void) {
        volatile char *block = malloc(64);
        heaptoll_event_end(7);
        block[0] = 1;
        heaptoll_event_begin();
        for (int at = 0; at < 10; at++) block[at] = 1;
        for (int at = 0; at < 5; at++) sum += block[at];
        heaptoll_event_end(1);
        sum += block[1];
        heaptoll_event_begin();
        sum += block[2];
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
    fixture
        .heaptoll(&["trace", "stat", &graph, "--json", &json])
        .exits(0)
        .shows(&["loads and stores", "requests"]);
    let figures = read_json(&json);
    let counts = ["accesses", "stores", "requests", "request_accesses"].map(|name| figures[name].as_u64());
    assert_eq!(counts, [Some(19), Some(12), Some(2), Some(16)], "{figures:#}");
    let without = ["record", "--graph", "--force", "-o", &graph, "--", &program];
    fixture.heaptoll(&without).exits(0);
    fixture.heaptoll(&["trace", "stat", &graph, "--json", &json]).exits(0);
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

/// Ends with status 3, after blocks of two sites.
const ENDS: &str = r#"
    __attribute__((noinline)) static void keeps(void) { for (int at = 0; at < 50; at++) *(volatile char **)malloc(100) = 0; }
    int main(void) {
        keeps();
        for (int at = 0; at < 50; at++) { char *volatile made = malloc(1000); free(made); }
        return 3;
    }
"#;

#[test]
fn a_graph_of_a_program_that_fails_has_its_end_and_sites_and_needs_no_state_folder() {
    let fixture = Fixture::new();
    let (program, graph, json) = (fixture.program("ends", ENDS), fixture.at("e.graph"), fixture.at("e.json"));
    let stale = fixture.path("e.graph.children");
    std::fs::create_dir(&stale).expect("makes");
    std::fs::write(&graph, "older").expect("writes");
    std::fs::write(stale.join("77.graph"), "of an earlier run").expect("writes");
    let record = ["record", "--graph", "--sites", "-f", "--expect-status", "3", "-o", &graph, "--", &program];
    let mut command = fixture.command(&record);
    let output: CommandOutput = command.env("XDG_STATE_HOME", "/proc/state").output().expect("runs").into();
    output.exits(3).complains(&["heaptoll trace stat"]);
    assert!(!stale.exists(), "traces of the earlier run are removed");
    // Standard input is read, and a pipe that has the trace.
    let mut stat = fixture.command(&["trace", "stat", "-", "--json", &json]);
    let piped = std::fs::File::open(&graph).expect("it is there");
    let output: CommandOutput = stat.stdin(piped).output().expect("runs").into();
    output.exits(0).shows(&["exited with status 3", "Call sites", "keeps"]);
    let figures = read_json(&json);
    assert_eq!(figures["ended"], "exited with status 3");
    assert!(figures["call_sites"].as_array().is_some_and(|sites| sites.len() >= 2), "{figures:#}");
    let cut = fixture.at("cut.graph");
    let bytes = std::fs::read(&graph).expect("reads");
    std::fs::write(&cut, &bytes[..12]).expect("writes");
    fixture.heaptoll(&["stat", &cut]).exits(2).complains(&["cut off within its first bytes"]);
    fixture.heaptoll(&["stat", &fixture.at(".")]).exits(2).complains(&["seems to be a folder"]);
}

#[test]
fn an_output_that_is_an_input_or_no_file_is_refused_before_anything_runs() {
    let fixture = Fixture::new();
    let (trace, pipe) = (fixture.at("a.graph"), fixture.at("pipe"));
    std::fs::write(&trace, "a trace").expect("writes");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    for command in
        [&["trace", "stat", &trace, "--markdown", &trace][..], &["trace", "stat", &trace, "--html", &trace]]
    {
        fixture.heaptoll(command).exits(2).complains(&["the same file"]);
        assert_eq!(std::fs::read_to_string(&trace).expect("it is there"), "a trace");
    }
    let record = ["record", "--graph", "-f", "-o", &pipe, "--", "/bin/true"];
    fixture.heaptoll(&record).exits(2).complains(&["not a file"]);
    assert!(!fixture.path("pipe").is_file(), "the pipe stays one");
    fixture.heaptoll(&["record", "--graph"]).exits(2).complains(&["nothing to record"]);
}
