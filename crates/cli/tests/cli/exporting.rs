//! `export --to`: call stacks for viewers of profiles, on traces made here with names that mean something to some
//! format, and on recorded programs.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use heaptoll_trace::{
    Allocation, Ending, EventKind, Frame, Gap, Header, Settings, Site, Sites, TraceFile, Writer,
};
use serde_json::Value;

use crate::fixture::{CommandOutput, Fixture, read_json};
use crate::importing::installed;

/// All formats of call stacks, and the names of their files for `made.heaptoll`.
const FORMATS: [(&str, &str); 7] = [
    ("pprof", "made.pb.gz"),
    ("firefox", "made.firefox.json"),
    ("folded", "made.folded"),
    ("dhat", "dhat.out.made"),
    ("callgrind", "callgrind.out.made"),
    ("speedscope", "made.speedscope.json"),
    ("perfetto", "made.perfetto-trace"),
];
/// What compilers, JITs and hostile programs may call a function.
const NAMES: [&str; 3] = ["ns::f<a;b>(int)", "two\nlines", "<script>alert(1)</script>"];

fn call(size: u64, site: u32) -> Allocation {
    let kind = EventKind::Malloc;
    Allocation { kind, thread: 0, size, usable: size, align_log2: 0, site, latency_ns: 0 }
}

/// Writes a trace of 10 s: each second an object of 100 bytes from one stack, which stays, and one of 1000 from another,
/// which is freed half a second later.
fn trace(fixture: &Fixture, name: &str, sites: bool) -> String {
    let command = vec!["/usr/bin/made".into(), "-x \u{1b}[2J".into()];
    let header = Header { command, pid: 12, sites, recorder: "1".into(), ..Header::default() };
    let out = TraceFile::create(&fixture.path(name), true).expect("makes the trace");
    let mut writer = Writer::new(out, &header, &Settings::default()).expect("begins");
    for second in 0..10 {
        writer.stamp(second * 1_000_000_000);
        writer.allocate(&call(100, 1)).expect("writes");
        let slot = writer.allocate(&call(1000, 2)).expect("writes");
        writer.stamp(second * 1_000_000_000 + 500_000_000);
        writer.free(slot, EventKind::Free, 0, 0).expect("writes");
    }
    if sites {
        let frame = |function: &str| Frame {
            function: function.into(),
            line: "/src/a b.c:7".into(),
            ..Frame::default()
        };
        let stripped = Frame { object: "/opt/x\ny/bin".into(), offset: 0x40, ..Frame::default() };
        writer.sites(&Sites {
            sites: [vec![], vec![0, 1, 2], vec![3, 2]].map(|frames| Site { frames }).into(),
            frames: NAMES.map(frame).into_iter().chain([stripped]).collect(),
        });
    }
    let ending = Ending { how: "exited".into(), time_ns: 10_000_000_000, ..Ending::default() };
    writer.finish(&ending).expect("ends");
    fixture.at(name)
}

/// Runs a command in the fixture's folder.
fn in_folder(fixture: &Fixture, arguments: &[&str]) -> CommandOutput {
    let mut command = fixture.command(arguments);
    command.current_dir(fixture.path(".")).output().expect("heaptoll starts").into()
}

/// The sums of a pprof file's four values, read as protocol buffers are defined.
pub fn pprof_sums(path: &str) -> Vec<u64> {
    let plain = Command::new("gzip").args(["-dc", path]).output().expect("gzip runs").stdout;
    let mut sums = vec![0; 4];
    let samples = fields(&plain).into_iter().filter(|(number, _)| *number == 2);
    for (_, sample) in samples {
        let values = fields(sample).into_iter().find(|(number, _)| *number == 2).expect("values").1;
        let mut rest = values;
        for sum in &mut sums {
            *sum += varint(&mut rest);
        }
        assert!(rest.is_empty());
    }
    sums
}

/// The fields of a message that have a length; others are left out.
fn fields(mut bytes: &[u8]) -> Vec<(u64, &[u8])> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        match key & 7 {
            0 => drop(varint(&mut bytes)),
            2 => {
                let length = varint(&mut bytes) as usize;
                found.push((key >> 3, &bytes[..length]));
                bytes = &bytes[length..];
            }
            other => panic!("no such type of field: {other}"),
        }
    }
    found
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let length = bytes.iter().position(|byte| byte & 128 == 0).expect("an end") + 1;
    let (number, rest) = bytes.split_at(length);
    *bytes = rest;
    number.iter().rev().fold(0, |sum, byte| sum << 7 | u64::from(byte & 127))
}

fn folded_sum(text: &str) -> u64 {
    text.lines().filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum()
}

#[test]
fn every_format_has_the_sums_of_stat() {
    let fixture = Fixture::new();
    let trace = trace(&fixture, "made.heaptoll", true);
    for (format, file) in FORMATS {
        let wrote = in_folder(&fixture, &["trace", "export", &trace, "--to", format]).exits(0);
        wrote.complains(&["wrote 2 call stacks to", file]);
        in_folder(&fixture, &["trace", "export", &trace, "--to", format])
            .exits(2)
            .complains(&["exists", "--force"]);
    }
    let json = fixture.at("stat.json");
    fixture.heaptoll(&["trace", "stat", &trace, "--json", &json]).exits(0);
    let stat = read_json(&json);
    let number = |value: &Value| value.as_u64().expect("a number");
    let (objects, bytes) = (number(&stat["objects"]), number(&stat["bytes"]));
    let (alive, alive_bytes) = (number(&stat["at_exit"]["objects"]), number(&stat["at_exit"]["bytes"]));
    let pprof = fixture.at("made.pb.gz");
    assert_eq!(pprof_sums(&pprof), [objects, bytes, alive, alive_bytes]);
    in_folder(&fixture, &["trace", "export", &trace, "--to", "pprof", "--at", "peak", "--force"]).exits(0);
    let peak = (number(&stat["peak"]["live_objects"]), number(&stat["peak"]["live_bytes"]));
    assert_eq!(pprof_sums(&pprof), [objects, bytes, peak.0, peak.1]);

    let folded = std::fs::read_to_string(fixture.path("made.folded")).expect("text");
    assert_eq!(folded_sum(&folded), bytes);
    let dhat = read_json(&fixture.at("dhat.out.made"));
    let sum = |field: &str| -> u64 {
        dhat["pps"].as_array().expect("points").iter().map(|point| number(&point[field])).sum()
    };
    assert_eq!((sum("tb"), sum("gb"), sum("eb"), sum("ebk")), (bytes, peak.1, alive_bytes, alive));
    let callgrind = std::fs::read_to_string(fixture.path("callgrind.out.made")).expect("text");
    let summary = format!("summary: {objects} {bytes} {alive} {alive_bytes}\n");
    assert!(callgrind.contains(&summary), "{callgrind}");
    let speedscope = read_json(&fixture.at("made.speedscope.json"));
    let ends: Vec<u64> = speedscope["profiles"]
        .as_array()
        .expect("profiles")
        .iter()
        .map(|profile| number(&profile["endValue"]))
        .collect();
    assert_eq!(ends, [objects, bytes, alive, alive_bytes]);
    let firefox = read_json(&fixture.at("made.firefox.json"));
    let weights = firefox["threads"][0]["nativeAllocations"]["weight"].as_array().expect("weights");
    let weights = weights.iter().filter_map(Value::as_i64);
    assert_eq!(weights.clone().filter(|bytes| *bytes > 0).sum::<i64>() as u64, bytes);
    assert_eq!(weights.sum::<i64>() as u64, alive_bytes);
}

#[test]
fn names_stay_within_their_places_in_formats_of_lines() {
    let fixture = Fixture::new();
    let trace = trace(&fixture, "made.heaptoll", true);
    let shown =
        |format: &str| fixture.heaptoll(&["trace", "export", &trace, "--to", format, "-o", "-"]).exits(0);
    let folded = shown("folded");
    assert_eq!(
        folded.out,
        "<script>alert(1)</script>;two lines;ns::f<a:b>(int) 1000\n<script>alert(1)</script>;bin+0x40 10000\n"
    );
    assert_eq!(folded.err, "", "nothing but the result");
    let callgrind = shown("callgrind").out;
    assert!(callgrind.contains("\ncmd: /usr/bin/made -x  [2J\n") && callgrind.contains(") two lines\n"));
    assert!(!callgrind.contains('\u{1b}'), "{callgrind}");
}

#[test]
fn between_two_times_is_as_if_the_recording_had_been_then() {
    let fixture = Fixture::new();
    let trace = trace(&fixture, "made.heaptoll", true);
    let of = |between: &str, value: &str| {
        let words =
            ["trace", "export", &trace, "--to", "folded", "-o", "-", "--between", between, "--value", value];
        folded_sum(&fixture.heaptoll(&words).exits(0).out)
    };
    assert_eq!(of("0,3s", "allocated-bytes"), 3 * 1100);
    assert_eq!(of("2s,5s", "live-bytes"), 300);
    assert_eq!(of("2s,4.2s", "live-objects"), 4, "three that stay, and one of the fifth second");
    assert_eq!(of("9s,1h", "allocated-objects"), 2);
    let words = |between| ["export", &trace, "--to", "folded", "-o", "-", "--between", between];
    fixture.heaptoll(&words("5s,2s")).exits(2).complains(&["after the first"]);
    fixture.heaptoll(&words("1m,2m")).exits(2).complains(&["ends after 10.000 s"]);
}

#[test]
fn what_cannot_be_exported_is_refused_with_the_way_out() {
    let fixture = Fixture::new();
    let without = trace(&fixture, "without.heaptoll", false);
    for (format, _) in FORMATS.iter().filter(|(format, _)| *format != "perfetto") {
        let refused =
            fixture.heaptoll(&["trace", "export", &without, "--to", format, "-o", &fixture.at("x")]);
        refused.exits(2).complains(&["has no call stacks", "heaptoll record --sites"]);
    }
    assert!(!fixture.path("x").exists());
    fixture.heaptoll(&["trace", "export", &without, "--to", "perfetto", "-o", &fixture.at("x")]).exits(0);
    assert!(std::fs::read(fixture.path("x")).expect("a trace").windows(10).any(|part| part == b"live bytes"));

    let trace = trace(&fixture, "made.heaptoll", true);
    for (format, option, value) in
        [("dhat", "--at", "peak"), ("pprof", "--value", "live-bytes"), ("parquet", "--between", "0,1s")]
    {
        let refused = fixture.heaptoll(&["trace", "export", &trace, "--to", format, option, value]).exits(2);
        refused.complains(&[option, format]);
    }
    fixture
        .heaptoll(&["trace", "export", &trace, "--to", "dhat", "-o", &trace])
        .exits(2)
        .complains(&["are the same file"]);
    fixture.heaptoll(&["trace", "export", "-", "--to", "folded"]).exits(2).complains(&["has no name"]);
}

/// Before, its trace was called cut off.
#[test]
fn a_program_that_allocates_nothing_has_a_profile_without_stacks() {
    let fixture = Fixture::new();
    let (program, trace) =
        (fixture.program("idle", "int main(void) { _exit(0); }"), fixture.at("idle.heaptoll"));
    fixture
        .heaptoll(&["record", "--sites", "-o", &trace, "--", &program])
        .exits(1)
        .complains(&["no allocation arrived"]);
    for (format, _) in FORMATS {
        let output = fixture
            .heaptoll(&["trace", "export", &trace, "--to", format, "-o", &fixture.at(format)])
            .exits(0);
        output.complains(&["wrote 0 call stacks"]);
    }
}

/// Before, a profile of a part was written without a word, with exit status 0.
#[test]
fn a_profile_of_a_trace_with_missing_events_is_marked_as_one_of_a_part() {
    let fixture = Fixture::new();
    let header = Header { sites: true, recorder: "1".into(), ..Header::default() };
    let out = TraceFile::create(&fixture.path("part.heaptoll"), true).expect("makes the trace");
    let mut writer = Writer::new(out, &header, &Settings::default()).expect("begins");
    writer.allocate(&call(100, 1)).expect("writes");
    writer.gap(&Gap { why: "disk full".into(), events: Some(7000) });
    let frame = Frame { function: "f".into(), ..Frame::default() };
    writer.sites(&Sites { sites: vec![Site::default(), Site { frames: vec![0] }], frames: vec![frame] });
    writer.finish(&Ending { how: "exited".into(), time_ns: 1, ..Ending::default() }).expect("ends");
    let output = fixture
        .heaptoll(&["trace", "export", &fixture.at("part.heaptoll"), "--to", "folded", "-o", "-"])
        .exits(1);
    output.shows(&["f 100"]).complains(&["7000 events are missing: disk full"]);
}

/// The table of call stacks is at the end of a trace.
#[test]
fn a_trace_that_was_cut_off_has_lost_its_stacks() {
    let fixture = Fixture::new();
    let trace = trace(&fixture, "made.heaptoll", true);
    let whole = std::fs::read(&trace).expect("reads");
    std::fs::write(&trace, &whole[..whole.len() / 3]).expect("writes");
    let refused = fixture.heaptoll(&["trace", "export", &trace, "--to", "folded", "-o", "-"]).exits(2);
    refused.complains(&["has lost its call stacks"]);
}

#[test]
fn full_disks_and_readers_that_have_gone_are_errors() {
    let fixture = Fixture::new();
    let trace = trace(&fixture, "made.heaptoll", true);
    for (format, _) in FORMATS {
        let full = fixture.heaptoll(&["trace", "export", &trace, "--to", format, "-o", "/dev/full"]).exits(1);
        full.complains(&["/dev/full", "No space left"]);
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = fixture.command(&["trace", "export", &trace, "--to", format, "-o", "-"]);
        let output: CommandOutput = command.stdout(writer).output().expect("runs").into();
        output.exits(1).complains(&["the reader of that pipe went away"]);
    }
}

#[test]
fn binary_formats_are_not_written_to_a_terminal() {
    let fixture = Fixture::new();
    let trace = trace(&fixture, "made.heaptoll", true);
    for (format, refused) in [("pprof", true), ("perfetto", true), ("folded", false)] {
        let line = format!("{} export {trace} --to {format} -o -", env!("CARGO_BIN_EXE_heaptoll"));
        let mut command = Command::new("script");
        fixture.prepare(&mut command);
        let output = command.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null()).output();
        let output: CommandOutput = output.expect("script runs").into();
        assert_eq!(output.code, Some(if refused { 2 } else { 0 }), "{format}: {}", output.out);
        assert_eq!(output.out.contains("is a terminal"), refused, "{format}: {}", output.out);
    }
}

#[test]
fn a_program_without_symbols_keeps_its_stacks() {
    const PROGRAM: &str = r#"
__attribute__((noinline)) void *keep(void) { return malloc(48); }
int main(void) { for (int i = 0; i < 20; i++) keep(); return 0; }
"#;
    let fixture = Fixture::new();
    let program = fixture.program("stripped", PROGRAM);
    assert!(Command::new("strip").arg(&program).status().expect("strip runs").success());
    let trace = fixture.at("stripped.heaptoll");
    fixture.heaptoll(&["record", "--sites", "-o", &trace, "--", &program]).exits(0);
    let folded = fixture.heaptoll(&["trace", "export", &trace, "--to", "folded", "-o", "-"]).exits(0).out;
    let line = folded.lines().find(|line| line.ends_with(" 960")).expect("20 objects of 48 bytes");
    assert!(line.contains(";stripped+0x"), "{line}");
    let pprof = fixture.at("stripped.pb.gz");
    let mut file = Vec::new();
    fixture.heaptoll(&["trace", "export", &trace, "--to", "pprof", "-o", &pprof]).exits(0);
    std::fs::File::open(&pprof).expect("opens").read_to_end(&mut file).expect("reads");
    assert_eq!(file[..2], [0x1f, 0x8b]);
    assert_eq!(pprof_sums(&pprof)[1], folded_sum(&folded));
}

/// `handle` keeps every third block of `parse`.
const REQUESTS: &str = r#"
__attribute__((noinline)) char *parse(int n) { char *p = malloc(100); p[0] = n; return p; }
__attribute__((noinline)) void handle(int n) { char *p = parse(n); if (n % 3) free(p); }
int main(void) { for (int i = 0; i < 300; i++) handle(i); return 0; }
"#;

/// Records [`REQUESTS`] and exports it; the file's path.
fn requests(fixture: &Fixture, format: &str) -> String {
    let program = fixture.program("requests", REQUESTS);
    let (trace, file) = (fixture.at("requests.heaptoll"), fixture.at("exported"));
    fixture.heaptoll(&["record", "--sites", "-o", &trace, "--", &program]).exits(0);
    fixture.heaptoll(&["trace", "export", &trace, "--to", format, "-o", &file]).exits(0);
    file
}

#[test]
#[ignore = "slow: starts callgrind_annotate of Valgrind"]
fn callgrind_annotate_shows_the_functions_with_their_bytes() {
    let fixture = Fixture::new();
    let file = requests(&fixture, "callgrind");
    let output = Command::new("callgrind_annotate").args(["--inclusive=yes", &file]).output();
    let output: CommandOutput = output.expect("callgrind_annotate runs").into();
    let output = output.exits(0);
    assert_eq!(output.err, "");
    for function in ["parse", "handle", "main"] {
        let of = |line: &&str| line.contains(&format!(":{function} "));
        let line = output.out.lines().find(of).unwrap_or_else(|| panic!("{function} in {}", output.out));
        assert!(line.contains("30,000") && line.contains("10,000"), "{line}");
    }
}

#[test]
#[ignore = "slow: starts Chromium"]
fn dhats_viewer_shows_the_totals() {
    let fixture = Fixture::new();
    let data = std::fs::read_to_string(requests(&fixture, "dhat")).expect("text").replace('<', "\\u003c");
    let viewer = std::fs::read_to_string("/usr/libexec/valgrind/dh_view.js").expect("Valgrind's viewer");
    let page = format!(
        "<!DOCTYPE html><script>{viewer}</script><script id=data type=application/json>{data}</script>\
        <body onload='onLoad(); gData = JSON.parse(document.getElementById(\"data\").textContent); buildTree(); \
        displayTree(0, 0, 0)'>"
    );
    std::fs::write(fixture.path("page.html"), page).expect("writes");
    let mut chromium = Command::new("chromium");
    chromium.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--dump-dom",
        "--virtual-time-budget=5000",
    ]);
    chromium.arg(format!("--user-data-dir={}", fixture.at("browser")));
    let output = chromium.arg(format!("file://{}", fixture.at("page.html"))).output().expect("Chromium runs");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    for text in ["30,000 bytes (100%", "300 blocks", "10,000 bytes (100%)", "parse (in "] {
        assert!(shown.contains(text), "no `{text}` in {shown}");
    }
}

/// Where Debian's libdevel-nytprof-perl has it, if it is not in the path.
const FLAMEGRAPH: &str = "/usr/share/perl5/Devel/NYTProf/flamegraph.pl";

#[test]
#[ignore = "slow: needs flamegraph.pl"]
fn flamegraph_pl_draws_every_function_with_its_bytes() {
    let script = if Path::new(FLAMEGRAPH).exists() { FLAMEGRAPH } else { "flamegraph.pl" };
    if !installed(script) {
        return;
    }
    let fixture = Fixture::new();
    let file = requests(&fixture, "folded");
    let output = Command::new(script).args(["--countname", "bytes", &file]).output();
    let output: CommandOutput = output.expect("it runs").into();
    let picture = output.exits(0).out;
    assert!(picture.contains("<svg"), "{picture}");
    for function in ["parse", "handle", "main"] {
        // Its title: the name, the bytes, the share.
        assert!(picture.contains(&format!("<title>{function} (30,000 bytes, ")), "{function} in {picture}");
    }
}

/// Perfetto's importer is a binary that its Python package fetches from elsewhere. Its message classes are in the package:
/// they read the whole file, and know every field of it.
#[test]
#[ignore = "slow: needs Perfetto's Python package"]
fn perfettos_own_message_classes_know_every_field() {
    const READ: &str = r#"
import sys
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as trace

def unknown(message):
    count = len(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            count += sum(unknown(one) for one in ([value] if hasattr(value, "ListFields") else value))
    return count

read = trace.Trace()
read.ParseFromString(open(sys.argv[1], "rb").read())
samples = [one for packet in read.packet for dump in packet.profile_packet.process_dumps for one in dump.samples]
print(unknown(read), sum(one.self_allocated for one in samples), sum(one.self_freed for one in samples),
      sum(packet.HasField("track_event") for packet in read.packet) > 0)
"#;
    if !installed("python3") {
        return;
    }
    if !Command::new("python3")
        .args(["-c", "import perfetto.protos"])
        .output()
        .is_ok_and(|o| o.status.success())
    {
        eprintln!("skipped: python3 has no packages perfetto and protobuf");
        return;
    }
    let fixture = Fixture::new();
    let file = requests(&fixture, "perfetto");
    let output = Command::new("python3").args(["-c", READ, &file]).output();
    let output: CommandOutput = output.expect("it runs").into();
    assert_eq!(output.exits(0).out, "0 30000 20000 True\n");
}
