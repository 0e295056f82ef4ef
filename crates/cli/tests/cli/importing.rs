//! `heaptoll trace import` on recordings that heaptrack made, and profiles of pprof, DHAT, jemalloc and gperftools given to
//! the commands that read them and to those that cannot.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::fixture::{CommandOutput, Fixture, read_json};

/// Recordings of `requests.cc` in that folder.
const RECORDINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/heaptrack_recordings");

fn import(fixture: &Fixture, recording: &str) -> (String, CommandOutput) {
    let trace = fixture.at("imported.heaptoll");
    let output = fixture.heaptoll(&["trace", "import", recording, "-o", &trace, "--force"]);
    (trace, output)
}

fn stat(fixture: &Fixture, trace: &str) -> Value {
    let json = fixture.at("stat.json");
    fixture.heaptoll(&["trace", "stat", trace, "--json", &json]).exits(0);
    read_json(&json)
}

/// Objects, bytes, most bytes alive, objects and bytes never freed.
fn sums(stat: &Value) -> [u64; 5] {
    [
        &stat["objects"],
        &stat["bytes"],
        &stat["peak"]["live_bytes"],
        &stat["at_exit"]["objects"],
        &stat["at_exit"]["bytes"],
    ]
    .map(|value| value.as_u64().expect("a number"))
}

/// Stacks with their bytes, of what a function of the program's called.
fn under_main(folded: &str) -> Vec<String> {
    let mut lines: Vec<String> = folded
        .lines()
        .filter_map(|line| line.split_once(";main").map(|(_, below)| below))
        // The C++ library's own frames are heaptrack's alone.
        .map(|line| line.replace(";operator new(unsigned long)", ""))
        .collect();
    lines.sort_unstable();
    lines
}

#[test]
fn a_recording_of_heaptrack_works_with_every_command_for_traces() {
    let fixture = Fixture::new();
    for (file, form) in [("requests.zst", "interpreted"), ("requests.raw.zst", "raw")] {
        let (trace, output) = import(&fixture, &format!("{RECORDINGS}/{file}"));
        output
            .exits(0)
            .complains(&["wrote 506 events and 4 call stacks", "threads: all calls belong to one"]);
        let stat = stat(&fixture, &trace);
        // As `heaptrack_print` has them: 303 allocations, a peak of 92.0 kB, 10.3 kB leaked.
        assert_eq!(sums(&stat), [303, 117_601, 92_001, 100, 10_297]);
        let from = stat["subject"]["imported"]["from"].as_str().expect("a tool");
        assert_eq!(from, format!("heaptrack 1.4.0 (file format 3, {form})"));
        let shown = fixture.heaptoll(&["trace", "stat", &trace]).exits(0).out;
        assert!(
            shown.contains("comes from a recording of heaptrack 1.4.0")
                && shown.contains("single lifetimes") == (form != "raw"),
            "{shown}"
        );
        for command in ["lifetimes", "leaks", "bound"] {
            fixture.heaptoll(&[command, &trace]).exits(0);
        }
        // Before, the heading ended with "under".
        let leaks = fixture.heaptoll(&["leaks", &trace]).out;
        assert!(leaks.contains("under an unknown manager"), "{leaks}");
        let nothing = fixture.heaptoll(&["diff", &trace, &trace]);
        assert!(
            nothing.out.contains("every call site allocated and retained the same")
                || nothing.code == Some(2),
            "{}",
            nothing.out
        );
        let folded = fixture.heaptoll(&["trace", "export", &trace, "--to", "folded", "-o", "-"]).exits(0).out;
        // A raw one has names where its program happens to be at its place.
        assert!(form == "raw" || folded.contains("main;handle;parse"), "{folded}");
    }
}

#[test]
fn what_cannot_be_imported_is_refused_and_leaves_no_file() {
    let fixture = Fixture::new();
    let write = |name: &str, text: &[u8]| {
        std::fs::write(fixture.path(name), text).expect("writes");
        fixture.at(name)
    };
    for (name, text, reasons) in [
        ("newer", &b"v 20000 9\n"[..], &["version 9", "reads versions 1 to 3"][..]),
        ("broken", b"v 10400 3\ns 1 a\ni 5 9\n", &["line 3", "unknown texts"]),
        ("late", b"v 10400 3\ni 5 0\nt 1 0\na 5 1\n+ 0\n+ 7\n", &["line 6", "unknown allocation"]),
        ("empty", b"", &["neither a recording of heaptrack", "an empty file", "--from"]),
        (
            "massif",
            b"desc: (none)\ncmd: ./m\n",
            &["a profile of massif", "--tool=dhat writes one that is read"],
        ),
        ("text", b"hello\n", &["neither a recording of heaptrack", "bytehound export-heaptrack"]),
    ] {
        let file = write(name, text);
        let (trace, output) = import(&fixture, &file);
        output.exits(2).complains(reasons);
        assert!(!Path::new(&trace).exists(), "{name}: half of a trace is left");
    }
    let cut = write("cut", b"v 10400 3\ni 5 0\nt 1 0\na 5 1\n+ 0\n+ ");
    let (trace, output) = import(&fixture, &cut);
    output.exits(1).complains(&["cut off in its line 6", "what came before"]);
    let shown = fixture.heaptoll(&["trace", "stat", &trace]);
    assert!(shown.out.contains("cut off in its line 6"), "{}", shown.out);
    fixture
        .heaptoll(&["trace", "import", &trace, "-o", &fixture.at("x")])
        .exits(2)
        .complains(&["is a trace of heaptoll"]);
    let recording = format!("{RECORDINGS}/requests.zst");
    fixture
        .heaptoll(&["trace", "import", &recording, "-o", &trace])
        .exits(2)
        .complains(&["exists", "--force"]);
    fixture
        .heaptoll(&["trace", "stat", &recording])
        .exits(2)
        .complains(&["a recording of heaptrack", "heaptoll trace import"]);
    fixture
        .heaptoll(&["trace", "import", &recording, "--from", "pprof"])
        .exits(2)
        .complains(&["sums of call stacks"]);
}

/// `keep` keeps as many blocks as its argument states.
const PROGRAM: &str = r#"
__attribute__((noinline)) void *keep(int n) { char *p = malloc(100); p[0] = n; return p; }
__attribute__((noinline)) void drop(int n) { char *p = malloc(1000); p[0] = n; free(p); }
int main(int count, char **words) {
    for (int i = 0; i < atoi(words[1]); i++) keep(i), drop(i);
    return 0;
}
"#;

/// Records [`PROGRAM`].
fn recorded(fixture: &Fixture, name: &str, blocks: &str) -> String {
    let program = fixture.program("keeper", PROGRAM);
    let trace = fixture.at(name);
    fixture.heaptoll(&["record", "--sites", "-o", &trace, "--", &program, blocks]).exits(0);
    trace
}

fn folded(fixture: &Fixture, file: &str, value: &str) -> CommandOutput {
    fixture.heaptoll(&["trace", "export", file, "--to", "folded", "-o", "-", "--value", value])
}

#[test]
fn a_profile_of_another_tool_is_exported_and_compared_as_the_trace_that_it_is_of() {
    let fixture = Fixture::new();
    let traces = [recorded(&fixture, "few.heaptoll", "50"), recorded(&fixture, "many.heaptoll", "80")];
    let mut profiles = Vec::new();
    for (trace, name) in traces.iter().zip(["few", "many"]) {
        for format in ["pprof", "dhat"] {
            let file = fixture.at(&format!("{name}.{format}"));
            fixture.heaptoll(&["trace", "export", trace, "--to", format, "-o", &file]).exits(0);
            profiles.push(file);
        }
    }
    let [few, few_dhat, many, many_dhat] = &profiles[..] else { panic!("four") };
    for value in ["allocated-bytes", "live-objects"] {
        let of_trace = folded(&fixture, &traces[0], value).exits(0).out;
        for profile in [few, few_dhat] {
            let mut found: Vec<String> =
                folded(&fixture, profile, value).exits(0).out.lines().map(str::to_owned).collect();
            let mut expected: Vec<String> = of_trace.lines().map(str::to_owned).collect();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{profile}");
        }
    }
    for (base, new, has_peak) in [(few, many, false), (few_dhat, many_dhat, true), (few, &traces[1], false)] {
        let json = fixture.at("diff.json");
        let shown = fixture.heaptoll(&["diff", base, new, "--json", &json]).exits(0).out;
        assert!(shown.contains("keep") && shown.contains("retains at the end"), "{shown}");
        let figures = read_json(&json);
        assert_eq!(figures["sites"]["exit"]["difference"], 3000);
        assert_eq!(figures["sites"]["calls"]["difference"], 60);
        assert_eq!(figures["sites"]["live"]["difference"] != 0, has_peak);
        assert_eq!(
            shown.contains("Not compared (missing in one file): bytes live at the peak"),
            !has_peak,
            "{shown}"
        );
    }
    let page = fixture.at("few.html");
    fixture
        .heaptoll(&["trace", "export", few, "--to", "html", "-o", &page])
        .exits(0)
        .complains(&["call stacks"]);
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("class=\"flame") && page.contains("keep"), "{}", page.len());
}

#[test]
fn a_profile_has_no_events_and_every_command_states_it() {
    let fixture = Fixture::new();
    let trace = recorded(&fixture, "keeper.heaptoll", "5");
    let profile = fixture.at("keeper.pb.gz");
    fixture.heaptoll(&["trace", "export", &trace, "--to", "pprof", "-o", &profile]).exits(0);
    for command in ["stat", "lifetimes", "replay", "bound", "leaks", "ledger", "import"] {
        let refused = fixture.heaptoll(&[command, &profile]).exits(2);
        refused.complains(&[
            "a heap profile of pprof",
            "without events",
            "heaptoll trace export",
            "heaptoll diff",
        ]);
    }
    let to = |options: &[&str]| {
        let file = fixture.at("out");
        let words = [&["trace", "export", &profile, "-o", &file, "--force"], options].concat();
        fixture.heaptoll(&words)
    };
    to(&["--to", "firefox"]).exits(2).complains(&["without the times"]);
    to(&["--to", "pprof", "--between", "0,1s"]).exits(2).complains(&["--between has no meaning"]);
    to(&["--to", "pprof", "--at", "peak"]).exits(2).complains(&["nothing of its peak"]);
    for format in ["pprof", "callgrind", "speedscope", "perfetto", "dhat"] {
        to(&["--to", format]).exits(0);
    }
    let whole = std::fs::read(&profile).expect("reads");
    std::fs::write(&profile, &whole[..whole.len() - 20]).expect("writes");
    to(&["--to", "folded"]).exits(2).complains(&["cut off or damaged"]);
    to(&["--to", "folded", "--memory-limit", "1K"]).exits(2);
}

/// Writes a profile of itself as jemalloc does: an address of its own, and its mappings.
const DUMPS_ITSELF: &str = r#"
    #include <stdio.h>
    __attribute__((noinline)) static void *here(void) { return __builtin_return_address(0); }
    __attribute__((noinline)) static void *keeper(void) { void *volatile at = here(); return at; }
    int main(void) {
        char part[4096];
        size_t bytes;
        FILE *maps = fopen("/proc/self/maps", "r");
        printf("heap_v2/1000\n  t*: 9: 900 [0: 0]\n@ %p\n  t*: 9: 900 [0: 0]\n\nMAPPED_LIBRARIES:\n", keeper());
        while ((bytes = fread(part, 1, sizeof part, maps)) > 0) fwrite(part, 1, bytes, stdout);
        return 0;
    }
"#;

#[test]
fn a_profile_that_jemalloc_dumped_has_names_and_is_scaled() {
    let fixture = Fixture::new();
    let program = fixture.program("dumps", DUMPS_ITSELF);
    let profile = fixture.at("jeprof.1.0.f.heap");
    let dumped = Command::new(&program).output().expect("runs");
    std::fs::write(&profile, dumped.stdout).expect("writes");
    let shown = folded(&fixture, &profile, "live-bytes").exits(0);
    assert_eq!(shown.out.trim(), "keeper 9457", "900 / (1 - exp(-100 / 1000))");
    shown.complains(&["once in about 1000 B allocated", "not bytes allocated"]);
    fixture
        .heaptoll(&["trace", "stat", &profile])
        .exits(2)
        .complains(&["a heap profile of jemalloc", "without events"]);
    // The file that its names came from is another by now.
    std::fs::write(&program, "another").expect("writes");
    let shown = folded(&fixture, &profile, "live-bytes").exits(0);
    let is_by_address = shown.out.starts_with("dumps") && shown.out.contains("+0x");
    assert!(is_by_address, "{}", shown.out);
}

/// The same program recorded by heaptrack and by heaptoll: sums of all that `main` calls are the same. heaptrack preloads
/// the C++ library, which makes a block of its own before `main`.
#[test]
#[ignore = "slow: needs heaptrack"]
fn heaptrack_and_heaptoll_count_the_same() {
    if !installed("heaptrack") {
        return;
    }
    let fixture = Fixture::new();
    let program = fixture.program("keeper", PROGRAM);
    let trace = recorded(&fixture, "own.heaptoll", "2000");
    for (options, file) in [(&["--raw"][..], "theirs.raw.zst"), (&[], "theirs.zst")] {
        let mut heaptrack = Command::new("heaptrack");
        heaptrack.args(options).args(["-o", &fixture.at("theirs"), &program, "2000"]);
        let output = heaptrack.output().expect("heaptrack runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let (imported, output) = import(&fixture, &fixture.at(file));
        output.exits(0);
        for value in ["allocated-bytes", "allocated-objects", "live-bytes", "live-objects"] {
            let own = under_main(&folded(&fixture, &trace, value).exits(0).out);
            let theirs = under_main(&folded(&fixture, &imported, value).exits(0).out);
            assert_eq!(own, theirs, "{value} of {file}");
            assert!(!own.is_empty());
        }
        let (own, theirs) = (sums(&stat(&fixture, &trace)), sums(&stat(&fixture, &imported)));
        let reserve = 72_704;
        assert_eq!([theirs[0] - 1, theirs[1] - reserve, theirs[2] - reserve], own[..3], "{file}");
    }
}

/// Whether a program is installed; a remark where it is not.
pub fn installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}
