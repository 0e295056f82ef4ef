//! `stat` and `lifetimes`, on traces made here with known content, and on a recorded program whose objects have known
//! ages.

use std::io::Write;
use std::process::Stdio;

use heaptoll_trace::{
    Allocation, Ending, EventKind, Frame, Header, Settings, Site, Sites, TraceFile, Writer,
};
use serde_json::Value;

use crate::fixture::{CommandOutput, Fixture, read_json};

/// Objects that the made trace has.
const OBJECTS: u64 = 1000;

fn call(size: u64, site: u32) -> Allocation {
    Allocation {
        kind: EventKind::Malloc,
        thread: 0,
        size,
        usable: size + 8,
        align_log2: 0,
        site,
        latency_ns: 40,
    }
}

/// Writes a trace: objects of 1000 bytes, each freed when one more was made but for the first ten, and one that grows.
fn trace(fixture: &Fixture, name: &str, sites: bool) -> String {
    let header = Header {
        command: vec!["/usr/bin/made".into(), "-x \u{1b}[2J".into()],
        manager: "glibc".into(),
        sites,
        latency: true,
        ..Header::default()
    };
    let out = TraceFile::create(&fixture.path(name), true).expect("makes the trace");
    let settings = Settings { events_per_chunk: 128, ..Settings::default() };
    let mut writer = Writer::new(out, &header, &settings).expect("begins");
    let mut previous = None;
    for object in 0..OBJECTS {
        writer.stamp(object * 1_000_000);
        let slot = writer.allocate(&call(1000, 1 + (object % 2) as u32)).expect("writes");
        if let Some(previous) = previous.replace(slot).filter(|_| object > 10) {
            writer.free(previous, EventKind::Free, 1, 20).expect("writes");
        }
    }
    let grown = Allocation { kind: EventKind::Realloc, ..call(3000, 2) };
    writer.resize(previous.expect("objects"), &grown, true).expect("writes");
    if sites {
        let frame = |function: &str| Frame { function: function.into(), ..Frame::default() };
        writer.sites(&Sites {
            sites: [vec![], vec![0], vec![1, 0]].map(|frames| Site { frames }).into(),
            frames: vec![frame("main"), frame("left_hand")],
        });
    }
    let ending = Ending {
        how: "exited with status 0".into(),
        time_ns: 2_000_000_000,
        cpu_s: Some(0.5),
        ..Ending::default()
    };
    writer.finish(&ending).expect("ends");
    fixture.at(name)
}

#[test]
fn what_is_no_trace_is_named_and_a_program_is_shown_its_place() {
    let fixture = Fixture::new();
    let program = fixture.program("prog", "int main(void) { free(malloc(9)); return 0; }");
    fixture.heaptoll(&["trace", "stat", &fixture.at("")]).exits(2).complains(&["it seems to be a folder"]);
    let hint = format!("put it after `--`: heaptoll ledger -- {program}");
    fixture.heaptoll(&["leaks", "sort"]).exits(2).complains(&["put it after `--`: heaptoll leaks -- sort"]);
    fixture.heaptoll(&["ledger", &program]).exits(2).complains(&["it seems to be a program", &hint]);
}

/// `run` warns of it for CPython; a recording has none of these objects either.
#[test]
fn a_recording_of_a_runtime_with_a_heap_of_its_own_gives_a_warning() {
    let fixture = Fixture::new();
    let python = fixture.program("python3.11", "int main(void) { free(malloc(9)); return 0; }");
    let trace = fixture.at("t");
    let record =
        |words: &[&str]| fixture.heaptoll(&[&["record", "-f", "-o", &trace, "--"], words].concat()).exits(0);
    record(&[&python]).complains(&["set PYTHONMALLOC=malloc"]);
    fixture
        .heaptoll(&["trace", "stat", &trace])
        .exits(0)
        .shows(&["unless it was recorded with PYTHONMALLOC=malloc"]);
    fixture
        .heaptoll(&["trace", "replay", &trace, "-m", "glibc", "-n", "1"])
        .exits(0)
        .shows(&["recorded with PYTHONMALLOC=malloc"]);
    let set = record(&["env", "PYTHONMALLOC=malloc", &python]);
    assert!(!set.err.contains("set PYTHONMALLOC"), "{}", set.err);
    // Before, a trace did not state it, and `leaks` and `stat` warned all the same.
    let images = std::fs::read_dir(fixture.path("t.children")).expect("the image that env became");
    for image in images.map(|entry| entry.expect("a trace").path()) {
        let shown = fixture.heaptoll(&["trace", "stat", &image.to_string_lossy()]).exits(0);
        assert!(
            !shown.out.contains("recorded with PYTHONMALLOC") && shown.out.contains("python3.11"),
            "{}",
            shown.out
        );
    }
}

#[test]
fn stat_counts_what_is_in_a_trace() {
    let fixture = Fixture::new();
    let trace = trace(&fixture, "made.heaptoll", true);
    let (json, html) = (fixture.at("stat.json"), fixture.at("stat.html"));
    let output = fixture.heaptoll(&["trace", "stat", &trace, "--json", &json, "--html", &html]).exits(0);
    let output = output.shows(&[
        "What made allocates",
        "objects allocated",
        "realloc",
        "left_hand < main",
        "12.7 KiB",
    ]);
    assert!(!output.out.contains("\u{1b}[2J"), "the program's name moves the cursor:\n{}", output.out);
    let page = std::fs::read_to_string(&html).expect("the page is there");
    assert!(page.contains("Live bytes by bytes allocated") && page.contains("What made allocates"));
    let largest = [
        "<td class=\"num\">502\u{202f}000</td>",
        "<td class=\"num\">500\u{202f}000</td>",
        "left_hand &#60; main",
    ];
    assert!(
        page.contains("<figure class=\"flame\"") && largest.iter().all(|text| page.contains(text)),
        "{page}"
    );
    let bare = self::trace(&fixture, "bare.heaptoll", false);
    fixture.heaptoll(&["trace", "stat", &bare, "--html", &html]).exits(0);
    let page = std::fs::read_to_string(&html).expect("the page is there");
    assert!(!page.contains("<figure class=\"flame\""), "a trace without call stacks");

    let figures = read_json(&json);
    assert_eq!(figures["schema"], "heaptoll-stat/1");
    assert_eq!((&figures["objects"], &figures["bytes"]), (&OBJECTS.into(), &(1_002_000).into()));
    // The first eleven stay, and each later one until the next is there.
    assert_eq!(figures["peak"]["live_bytes"], 13_000);
    assert_eq!(figures["max_live_objects"], 12);
    assert_eq!(figures["at_exit"]["objects"], 11);
    assert_eq!(figures["temporary"]["before_next_1"], 0);
    assert_eq!(figures["temporary"]["before_next_10"], 989);
    assert_eq!(figures["cross_thread_frees"], 989);
    assert_eq!(figures["rates"]["objects_per_s"], 500.0);
    assert_eq!(figures["rates"]["objects_per_cpu_s"], 2000.0);
    assert_eq!(figures["reallocs"]["grown_bytes"], 2000);
    assert_eq!(figures["latencies"][0]["call"], "allocate");
    assert_eq!(figures["latencies"][0]["percentiles"][0], serde_json::json!([50.0, 40]));
    assert_eq!(figures["latencies"][2]["max_ns"], 20);
    assert_eq!(figures["sites"][0]["objects"], 500);
    assert!(output.out.contains("by bytes never freed"), "{}", output.out);
    let left_hand = &figures["call_sites"][0];
    assert_eq!((&left_hand["name"], &left_hand["stacks"]), (&"left_hand < main".into(), &1.into()));
    assert_eq!(left_hand["stack"][1]["function"], "main", "whole stacks: {left_hand}");
    assert_eq!(
        figures["frames"][figures["sites"][1]["stack"][0].as_u64().expect("a number") as usize]["function"],
        "left_hand"
    );
    fixture.heaptoll(&["trace", "stat", &trace, "--frames", "1", "--json", &json]).exits(0);
    assert_eq!(read_json(&json)["call_sites"][0]["name"], "left_hand");
    assert_eq!(figures["sizes"]["commonest"][0]["size"], 1000);
    assert_eq!(figures["subject"]["warnings"], Value::Array(vec![]));
}

#[test]
fn a_trace_that_needs_more_memory_than_allowed_is_refused_with_what_it_needs() {
    let fixture = Fixture::new();
    let trace = trace(&fixture, "made.heaptoll", true);
    for command in ["stat", "lifetimes", "bound", "replay"] {
        let refused = fixture.heaptoll(&[command, &trace, "--memory-limit", "100"]).exits(2);
        refused.complains(&["12 objects at its peak", "the limit of 100 B", "--memory-limit 1M"]);
    }
    fixture
        .heaptoll(&["trace", "export", &trace, "--memory-limit", "0", "-o", &fixture.at("x.parquet")])
        .exits(2);
    fixture.heaptoll(&["trace", "stat", &trace, "--memory-limit", "much"]).exits(2).complains(&["4G"]);
    fixture.heaptoll(&["trace", "stat", &trace, "--memory-limit", "1M"]).exits(0);
}

#[test]
fn lifetimes_are_shown_by_size_site_and_thread() {
    let fixture = Fixture::new();
    let trace = trace(&fixture, "made.heaptoll", true);
    let json = fixture.at("lifetimes.json");
    let html = fixture.at("lifetimes.html");
    fixture.heaptoll(&["trace", "lifetimes", &trace, "--json", &json, "--html", &html]).exits(0).shows(&[
        "Lifetimes of the objects of made",
        "513 to 1024 B",
        "Still live at exit",
        "left_hand < main",
    ]);
    let page = std::fs::read_to_string(&html).expect("a page");
    assert!(page.contains("Survival by bytes allocated") && page.contains("<figure class=\"flame\""));
    let figures = read_json(&json);
    assert_eq!(figures["schema"], "heaptoll-lifetimes/1");
    assert_eq!(figures["all"]["objects"], OBJECTS);
    assert_eq!(figures["still_live"]["objects"], 11);
    let younger = &figures["survival"][0]["younger"];
    assert_eq!(figures["survival"][0]["clock"], "bytes");
    assert_eq!(younger[0]["objects"], 0.989, "all that are freed have the age of 1000 bytes: {younger}");
    assert_eq!(figures["survival"][1]["clock"], "time");
    assert_eq!(figures["survival"][1]["younger"][0]["objects"], 0.0, "1 ms old when they end");
    assert_eq!(figures["survival"][1]["younger"][1]["objects"], 0.989);
    let sites = |by: &str| {
        fixture.heaptoll(&["trace", "lifetimes", &trace, "--by", by, "--json", &json]).exits(0);
        read_json(&json)["groups"].as_array().expect("groups").len()
    };
    assert_eq!((sites("site"), sites("thread")), (2, 1));
}

#[test]
fn what_is_no_trace_is_refused_with_what_it_lacks() {
    let fixture = Fixture::new();
    let bare = trace(&fixture, "bare.heaptoll", false);
    fixture
        .heaptoll(&["trace", "lifetimes", &bare, "--by", "site"])
        .exits(2)
        .complains(&["bare.heaptoll", "--sites"]);
    std::fs::write(fixture.path("a.txt"), "hello, world\n".repeat(99)).expect("writes");
    for command in ["stat", "lifetimes"] {
        fixture.heaptoll(&[command, &fixture.at("a.txt")]).exits(2).complains(&["a.txt", "is not a trace"]);
        fixture.heaptoll(&[command, &fixture.at("gone")]).exits(2).complains(&["gone", "No such file"]);
        fixture.heaptoll(&[command, &fixture.at("")]).exits(2);
        fixture.heaptoll(&[command, &bare, "--html", "/nowhere/x.html"]).exits(2).complains(&["/nowhere"]);
    }
}

#[test]
fn a_trace_that_was_cut_off_is_summed_up_with_a_warning() {
    let fixture = Fixture::new();
    let whole = std::fs::read(trace(&fixture, "made.heaptoll", true)).expect("reads");
    std::fs::write(fixture.path("cut.heaptoll"), &whole[..whole.len() / 2]).expect("writes");
    let json = fixture.at("cut.json");
    let cut = fixture.at("cut.heaptoll");
    fixture
        .heaptoll(&["trace", "stat", &cut, "--json", &json])
        .exits(1)
        .shows(&["!", "the trace stops after"]);
    let figures = read_json(&json);
    let objects = figures["objects"].as_u64().expect("a count");
    assert!((100..OBJECTS).contains(&objects), "{objects}");
    assert!(!figures["subject"]["warnings"].as_array().expect("warnings").is_empty());
    assert_eq!(figures["subject"]["ended"], Value::Null);
    fixture.heaptoll(&["trace", "lifetimes", &cut]).exits(1).shows(&["!"]);
}

#[test]
fn a_trace_may_come_through_a_pipe_and_its_figures_leave_through_one() {
    let fixture = Fixture::new();
    let bytes = std::fs::read(trace(&fixture, "made.heaptoll", true)).expect("reads");
    for command in ["stat", "lifetimes"] {
        let mut child = fixture
            .command(&[command, "-", "--json", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(&bytes).expect("writes");
        drop(stdin);
        let output = CommandOutput::from(child.wait_with_output().expect("ends")).exits(0);
        let figures: Value = serde_json::from_str(&output.out).expect("nothing but JSON");
        assert_eq!(figures["schema"], format!("heaptoll-{command}/1"));
    }
}

/// Makes 1000 objects of 50,000 bytes and frees each just before the hundredth next: at the age of 99 objects. The
/// last hundred stay. Before that, 5000 of 7 bytes that are freed at once, and one that is resized from 11 to 44,000.
const KNOWN_AGES: &str = "
int main(void) {
    static void *ring[100];
    for (int i = 0; i < 5000; i++) free(malloc(7));
    void *grows = malloc(11);
    for (int n = 4000; n <= 44000; n += 4000) grows = realloc(grows, n);
    for (int i = 0; i < 1000; i++) {
        free(ring[i % 100]);
        ring[i % 100] = malloc(50000);
    }
    free(grows);
    return 0;
}";

#[test]
fn a_recorded_program_has_the_lifetimes_it_was_written_to_have() {
    let fixture = Fixture::new();
    let program = fixture.program("ages", KNOWN_AGES);
    let (trace, json) = (fixture.at("ages.heaptoll"), fixture.at("ages.json"));
    fixture.heaptoll(&["record", "-o", &trace, "--", &program]).exits(0);
    fixture.heaptoll(&["trace", "lifetimes", &trace, "--json", &json]).exits(0);
    let figures = read_json(&json);
    let groups = figures["groups"].as_array().expect("groups");
    let group = |up_to: u64| {
        groups.iter().find(|group| group["key"] == up_to).unwrap_or_else(|| panic!("no {up_to}: {groups:?}"))
    };

    // 50,000 bytes and the grown object, which lives while all others are made.
    let large = group(65536);
    assert_eq!(large["all"]["objects"], 1001, "{large}");
    assert_eq!(large["still_live"]["objects"], 100);
    let bytes = &large["survival"][0];
    let age = bytes["median_age"].as_u64().expect("most are freed");
    let known = 99 * 50_000;
    assert!(age.abs_diff(known) <= known / 16, "{age} is not {known}");
    let at = |age: u64| {
        let all = bytes["younger"].as_array().expect("ages");
        all.iter().find(|younger| younger["age"] == age).expect("a threshold")["objects"].as_f64()
    };
    assert_eq!(at(1 << 20), Some(0.0), "none is younger than 99 objects");
    assert_eq!(at(10 << 20), Some(900.0 / 1001.0), "but for the hundred and the grown one all end there");
    assert_eq!(at(100 << 20), Some(901.0 / 1001.0));

    // Freed at once: age 0.
    let small = &group(8)["survival"][0]["curve"][0];
    assert_eq!(small["age"], 1);
    assert!(small["objects"].as_f64().is_some_and(|alive| alive < 0.1), "{small}");

    fixture.heaptoll(&["trace", "stat", &trace, "--json", &json]).exits(0);
    let figures = read_json(&json);
    let commonest = figures["sizes"]["commonest"].as_array().expect("sizes");
    let made = |size: u64| commonest.iter().find(|row| row["size"] == size).map(|row| row["objects"].clone());
    assert_eq!((made(7), made(50_000)), (Some(5000.into()), Some(1000.into())));
    assert_eq!(figures["reallocs"]["grown"], 11);
    assert_eq!(figures["reallocs"]["longest_chain"], 11);
    let most = figures["peak"]["live_bytes"].as_u64().expect("a peak");
    let known = 100 * 50_000 + 44_000;
    assert!(
        (known..known + 200_000).contains(&most),
        "{most}: the program's own {known}, and a little of libc's"
    );
}
