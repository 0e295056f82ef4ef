//! `heaptoll lab replay-graph`: collectors that move objects, on traces of real programs, and what is refused.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::fixture::{CommandOutput, Fixture, read_json};

/// Lists that live, among a megabyte of garbage, made by as many threads as the first argument has.
const PROGRAM: &str = r#"
    #include <pthread.h>
    struct node { struct node *next; long more[30]; };
    static struct node *volatile lists[4];
    static void *work(void *which) {
        for (int at = 0; at < 1000; at++) {
            struct node *volatile made = malloc(sizeof *made);
            made->next = lists[(long)which];
            lists[(long)which] = made;
            char *volatile garbage = malloc(1000);
            *garbage = 1;
            free(garbage);
        }
        return 0;
    }
    int main(int count, char **words) {
        pthread_t threads[3];
        int more = count > 1 ? atoi(words[1]) - 1 : 0;
        for (long at = 0; at < more; at++) pthread_create(&threads[at], 0, work, (void *)(at + 1));
        work(0);
        for (long at = 0; at < more; at++) pthread_join(threads[at], 0);
        long sum = 0;
        for (int at = 0; at < 4; at++)
            for (struct node *node = lists[at]; node; node = node->next) sum += node->more[0] = at;
        return sum < 0;
    }
"#;

/// Records the program, with so many threads, into `t.graph`.
fn record(fixture: &Fixture, name: &str, threads: &str) -> String {
    let program = fixture.program(name, PROGRAM);
    let graph = fixture.at("t.graph");
    fixture.heaptoll(&["record", "--graph", "-o", &graph, "--", &program, threads]).exits(0);
    graph
}

/// An installation whose `heaptoll-mmtk` is another, or none.
fn home(fixture: &Fixture, mmtk: Option<&str>) -> PathBuf {
    let stage = heaptoll_testing::staged::home();
    let home = fixture.path("home");
    std::fs::create_dir_all(home.join("lib/heaptoll")).expect("makes");
    for entry in std::fs::read_dir(stage.join("lib/heaptoll")).expect("a stage").flatten() {
        let link = home.join("lib/heaptoll").join(entry.file_name());
        if entry.file_name() != "heaptoll-mmtk" && !link.exists() {
            symlink(entry.path(), link).expect("links");
        }
    }
    if let Some(text) = mmtk {
        let real = stage.join("lib/heaptoll/heaptoll-mmtk");
        let text = text.replace("REAL", &real.display().to_string());
        fixture.script("home/lib/heaptoll/heaptoll-mmtk", &text);
    }
    home
}

fn in_home(fixture: &Fixture, home: &Path, arguments: &[&str]) -> CommandOutput {
    fixture.command(arguments).env("HEAPTOLL_HOME", home).output().expect("starts").into()
}

fn rows(figures: &Value, heap: usize) -> &Vec<Value> {
    figures["heaps"][heap]["rows"].as_array().expect("rows")
}

#[test]
#[ignore = "slow: the moving collectors take two CPU minutes to compile"]
fn collectors_that_move_objects_are_compared_in_heaps_of_fixed_size() {
    let fixture = Fixture::new();
    let (graph, json, page) = (record(&fixture, "lists", "1"), fixture.at("a.json"), fixture.at("a.html"));
    let plans =
        ["-m", "mmtk:immix", "-m", "mmtk:semispace", "-m", "mmtk:immix,moving=off", "-m", "mmtk:nogc"];
    let options =
        ["-n", "2", "--heap", "3x,64K", "--check", "--tolerance", "10", "--json", &json, "--html", &page];
    let shown = fixture.heaptoll(&[&["lab", "replay-graph", &graph][..], &plans, &options].concat()).exits(0);
    shown.shows(&[
        "Collectors that move objects, on lists",
        "Smallest heaps",
        "mmtk:immix,moving=off",
        "does not fit",
        "too few repetitions",
    ]);
    let figures = read_json(&json);
    let smallest = |at: usize| figures["plans"][at]["smallest"]["search"]["heap"].as_f64().expect("a heap");
    // A copying collector reserves as much as it may copy.
    assert!(smallest(1) > 1.3 * smallest(0), "{figures:#}");
    let ample = rows(&figures, 0);
    assert_eq!(ample.len(), 4);
    for row in ample {
        assert_eq!(
            (&row["ending"]["kind"], &row["checked"]["violation"]),
            (&"fits".into(), &Value::Null),
            "{row:#}"
        );
    }
    assert!(ample[1]["spent"]["copied_bytes"].as_f64() > Some(250_000.0), "{:#}", ample[1]);
    assert!(ample[1]["cpu_ratio"]["pairs"] == 2 && ample[0]["cpu_ratio"].is_null());
    assert_eq!(ample[3]["spent"]["full_collections"], 0.0);
    // 250 KB are alive at the end.
    for row in &rows(&figures, 1)[..3] {
        assert_eq!(row["ending"]["kind"], "does_not_fit", "{row:#}");
        assert!(row["ending"]["live_bytes"].as_u64() < Some(250_000), "{row:#}");
    }
}

#[test]
#[ignore = "slow: the moving collectors take two CPU minutes to compile"]
fn a_program_of_two_threads_with_control_characters_in_its_name_is_replayed_by_one_thread() {
    let fixture = Fixture::new();
    let graph = record(&fixture, "li\u{1b}[31mst", "2");
    let json = fixture.at("a.json");
    let options = [
        "-n",
        "1",
        "--heap",
        "4M",
        "--check",
        "-m",
        "mmtk:gencopy",
        "-m",
        "mmtk:markcompact",
        "--json",
        &json,
    ];
    let shown = fixture.heaptoll(&[&["lab", "replay-graph", &graph][..], &options].concat()).exits(0);
    let shown = shown.shows(&["baseline", "Collections"]);
    assert!(!shown.out.contains('\u{1b}'), "{}", shown.out);
    assert_eq!(read_json(&json)["prepared"]["threads"], 2);
    // Its end is cut off: what is there is replayed.
    let whole = std::fs::read(&graph).expect("reads");
    std::fs::write(&graph, &whole[..whole.len() - 20]).expect("writes");
    fixture.heaptoll(&[&["lab", "replay-graph", &graph][..], &options].concat()).exits(0);
    assert_ne!(read_json(&json)["warnings"].as_array().map(Vec::len), Some(0));
}

#[test]
#[ignore = "slow: the moving collectors take two CPU minutes to compile"]
fn an_object_that_a_collection_lost_is_trouble_and_so_is_a_collector_that_crashes() {
    let fixture = Fixture::new();
    let graph = record(&fixture, "lists", "1");
    let replay = ["lab", "replay-graph", &graph, "--heap", "4M", "-n", "2", "--check"];
    let plans = ["-m", "mmtk:immix", "-m", "mmtk:gencopy"];
    let all = [&replay[..], &plans].concat();
    let lost = "\"REAL\" \"$@\" | sed 's/\"violation\":null/\"violation\":\"object 7 is gone\"/'";
    let script = format!("#!/bin/sh\ncase \"$3\" in gencopy) {lost} ;; *) exec \"REAL\" \"$@\" ;; esac\n");
    let output = in_home(&fixture, &home(&fixture, Some(&script)), &all).exits(1);
    output
        .complains(&["mmtk:gencopy in 4.00 MiB: reachability is violated: object 7 is gone"])
        .shows(&["reachability is violated"]);
    let damaged = "\"REAL\" \"$@\" | sed 's/\"damage\":null/\"damage\":\"pages in use: 8, in blocks: 7\"/'";
    let script = format!("#!/bin/sh\ncase \"$3\" in gencopy) {damaged} ;; *) exec \"REAL\" \"$@\" ;; esac\n");
    let output = in_home(&fixture, &home(&fixture, Some(&script)), &all).exits(1);
    let output = output.shows(&["the collector's heap is damaged: pages in use: 8, in blocks: 7"]);
    assert!(!output.out.contains("reachability is violated"), "{}", output.out);
    let crash = "#!/bin/sh\ncase \"$3\" in gencopy) echo no copies >&2; kill -SEGV $$ ;; *) exec \"REAL\" \"$@\" ;; esac\n";
    let output = in_home(&fixture, &home(&fixture, Some(crash)), &all).exits(1);
    output.shows(&["killed by signal 11; it wrote: no copies", "baseline", "failed"]);
    std::fs::remove_file(fixture.path("home/lib/heaptoll/heaptoll-mmtk")).expect("removes");
    in_home(&fixture, &home(&fixture, None), &all).exits(2).complains(&["heaptoll-mmtk", "make build"]);
}

#[test]
#[ignore = "slow: the moving collectors take two CPU minutes to compile"]
fn a_replay_that_is_killed_while_a_smallest_heap_is_searched_is_repeated_and_then_marked() {
    let fixture = Fixture::new();
    let graph = record(&fixture, "lists", "1");
    let replay =
        ["lab", "replay-graph", &graph, "--heap", "2x", "-n", "1", "--tolerance", "10", "-m", "mmtk:immix"];
    let marker = fixture.at("killed");
    let once = format!(
        "#!/bin/sh\n[ $1 = replay ] && [ ! -e '{marker}' ] && : >'{marker}' && kill -KILL $$\nexec \"REAL\" \"$@\"\n"
    );
    let output = in_home(&fixture, &home(&fixture, Some(&once)), &replay).exits(0);
    assert!(std::fs::exists(&marker).is_ok_and(|there| there), "it was never killed");
    assert!(
        !output.out.contains("mmtk:immix  at most") && !output.out.contains("failed twice"),
        "{}",
        output.out
    );
    let below = "#!/bin/sh\n[ $1 = replay ] && [ $4 -lt 3000000 ] && kill -KILL $$\nexec \"REAL\" \"$@\"\n";
    let output = in_home(&fixture, &home(&fixture, Some(below)), &replay).exits(1);
    output.shows(&["mmtk:immix  at most", "failed twice: killed by signal 9"]);
}

/// Requests that go over a list that lives and make a few kilobytes of garbage.
const REQUESTS: &str = r#"
    struct node { struct node *volatile next; volatile long more[30]; };
    static struct node *volatile list;
    static volatile long sum;
    int main(void) {
        for (int at = 0; at < 500; at++) {
            struct node *made = malloc(sizeof *made);
            made->next = list;
            list = made;
        }
        for (int request = 0; request < 2000; request++) {
            heaptoll_event_begin();
            for (struct node *node = list; node; node = node->next) sum += node->more[0];
            for (int at = 0; at < 4; at++) {
                volatile char *garbage = malloc(1000);
                *garbage = 1;
                free((void *)garbage);
            }
            heaptoll_event_end(0);
        }
        return 0;
    }
"#;

#[test]
#[ignore = "slow: the moving collectors take two CPU minutes to compile"]
fn the_program_s_accesses_are_replayed_and_their_misses_simulated_request_by_request() {
    let fixture = Fixture::new();
    let header = include_str!("../../../../include/heaptoll_events.h");
    let program = fixture.program("marked", &format!("{header}\n{REQUESTS}"));
    let (graph, json) = (fixture.at("t.graph"), fixture.at("a.json"));
    fixture.heaptoll(&["record", "--graph", "--references", "-o", &graph, "--", &program]).exits(0);
    fixture.heaptoll(&["trace", "stat", &graph, "--json", &json]).exits(0);
    let accesses = read_json(&json)["accesses"].clone();
    assert!(accesses.as_u64() >= Some(2000 * 1004), "{accesses}");
    let plans = ["-m", "mmtk:marksweep", "-m", "mmtk:semispace", "-m", "own:treadmill"];
    let options = ["-n", "1", "--heap", "32M", "--misses", "--cache", "32K/8,1M/16", "--collections", "40"];
    let replay = ["lab", "replay-graph", &graph, "--json", &json];
    let shown = fixture.heaptoll(&[&replay[..], &plans, &options].concat()).exits(0);
    shown.shows(&["Simulated misses", "misses of 32K", "first 10 %, emptied", "Requests by their place"]);
    let figures = read_json(&json);
    assert_eq!(figures["prepared"]["accesses"], accesses);
    let rows = rows(&figures, 0);
    for row in &rows[..2] {
        let misses = &row["misses"];
        assert_eq!((&misses["accesses"], &misses["requests"]["all"]), (&accesses, &2000.into()), "{row:#}");
        assert!((38..=42).contains(&misses["collections"].as_u64().expect("a number")), "{row:#}");
        // The list is larger than the first cache and smaller than the second: empty ones wait for memory.
        let near = &misses["requests"]["portions"][1];
        let ratio = |of: &str| near[of]["ratio"].as_f64().expect("a ratio");
        assert!(ratio("emptied") > 1.2 && ratio("touched") < 1.1 * ratio("emptied"), "{near:#}");
        assert!(misses["emptied_cycles"].as_u64() > misses["touched_cycles"].as_u64(), "{row:#}");
    }
    // It collects when its heap is full, which it never is here.
    assert_eq!((&rows[2]["misses"]["accesses"], &rows[2]["misses"]["collections"]), (&accesses, &0.into()));
}

#[test]
#[ignore = "slow: the moving collectors take two CPU minutes to compile"]
fn misses_of_a_trace_without_references_and_of_no_machine_are_refused() {
    let fixture = Fixture::new();
    let graph = record(&fixture, "lists", "1");
    let refused = |words: &[&str], because: &[&str]| {
        fixture.heaptoll(&[&["lab", "replay-graph", &graph], words].concat()).exits(2).complains(because);
    };
    refused(&["--misses"], &["no loads and stores", "--references"]);
    refused(&["--misses", "--cache", "32K"], &["32K", "SIZE/WAYS"]);
    refused(&["--collections", "10"], &["--misses"]);
}

#[test]
fn other_files_managers_plans_and_heaps_are_refused() {
    let fixture = Fixture::new();
    let program = fixture.program("small", "int main(void) { free(malloc(10)); return 0; }");
    let (plain, text) = (fixture.at("t.heaptoll"), fixture.at("text"));
    fixture.heaptoll(&["record", "-o", &plain, "--", &program]).exits(0);
    std::fs::write(&text, "neither").expect("writes");
    let refused = |words: &[&str], because: &[&str]| {
        fixture.heaptoll(&[&["lab", "replay-graph"], words].concat()).exits(2).complains(because);
    };
    refused(&[&plain], &["a trace without pointers", "record --graph"]);
    refused(&[&text], &["not a trace with pointers", "text"]);
    refused(&["-"], &["it needs a file"]);
    refused(&[&plain, "-m", "glibc"], &["-m glibc", "collectors of MMTk", "mmtk:semispace"]);
    refused(&[&plain, "-m", "mmtk:semispce"], &["no such collector", "semispace"]);
    refused(&[&plain, "--heap", "0.5x"], &["from 1x"]);
    let plan = ["trace", "replay", &plain, "-m", "mmtk:semispace"];
    fixture.heaptoll(&plan).exits(2).complains(&["mmtk:semispace", "record --graph", "lab replay-graph"]);
}
