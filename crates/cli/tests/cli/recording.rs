//! `heaptoll record`: on programs that end well and badly, with the counting layer after the recording one to verify
//! that every call is there.

mod corruption;
mod counted;
mod ends;
mod memory;
mod refusals;
mod sandboxes;
mod signals;
mod trees;
mod unseen;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use heaptoll_trace::{Batch, Ending, EventKind, Gap, Header, Reader, Sample, Tables};

use crate::fixture::{CommandOutput, Fixture};

/// A trace, read whole.
pub struct Trace {
    pub header: Header,
    pub kinds: BTreeMap<EventKind, u64>,
    /// Sum of the requested sizes, without those of failed calls.
    pub requested: u64,
    pub threads: u32,
    pub ending: Option<Ending>,
    pub warnings: Vec<String>,
    pub gaps: Vec<Gap>,
    pub samples: Vec<Sample>,
}

impl Trace {
    #[track_caller]
    pub fn read(path: impl AsRef<Path>) -> Trace {
        let path = path.as_ref();
        let mut reader = Reader::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let (mut batch, mut kinds, mut requested, mut threads) = (Batch::default(), BTreeMap::new(), 0, 0);
        while reader.read(&mut batch).expect("reads") {
            for event in &batch.events {
                *kinds.entry(event.kind).or_insert(0) += 1;
                threads = threads.max(event.thread + 1);
                if event.kind.allocates() || event.kind == EventKind::Realloc {
                    requested += event.size;
                }
            }
        }
        let Tables { header, ending, warnings, gaps, samples, .. } = reader.into_tables();
        Trace { header, kinds, requested, threads, ending, warnings, gaps, samples }
    }

    pub fn of(&self, kinds: &[EventKind]) -> u64 {
        kinds.iter().map(|kind| self.kinds.get(kind).copied().unwrap_or(0)).sum()
    }

    pub fn made(&self) -> u64 {
        self.of(&[EventKind::Malloc, EventKind::Calloc, EventKind::Aligned, EventKind::New])
    }

    pub fn freed(&self) -> u64 {
        self.of(&[EventKind::Free, EventKind::Delete])
    }

    pub fn how(&self) -> &str {
        self.ending.as_ref().map_or("cut off", |ending| &ending.how)
    }

    /// Asserts that nothing is missing.
    #[track_caller]
    pub fn whole(self) -> Trace {
        assert!(self.warnings.is_empty() && self.gaps.is_empty(), "{:?} {:?}", self.warnings, self.gaps);
        assert!(self.ending.is_some(), "it has no ending");
        self
    }
}

/// The traces of other process images than the first, in order of their names.
pub fn children(fixture: &Fixture) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(fixture.path("t.children")).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Records a command in the fixture's folder into `t`.
pub fn record(fixture: &Fixture, options: &[&str], command: &[&str]) -> CommandOutput {
    let arguments = [&["record", "-o", "t"], options, &["--"], command].concat();
    fixture.command(&arguments).current_dir(fixture.path(".")).output().expect("heaptoll starts").into()
}

#[test]
fn a_program_is_recorded_under_its_own_name() {
    let fixture = Fixture::new();
    // What it is called and where it is can be seen while it is there: half a second, for a recorder that is kept
    // waiting.
    let program = fixture.program(
        "small",
        "int main(int c, char **v) { char line[9]; void *p = malloc(10); p = realloc(p, 100); free(calloc(2, 8)); \
         fgets(line, 9, stdin); printf(\"%s%s\", line, v[1]); fprintf(stderr, \"mine\\n\"); usleep(500000); return 7; }",
    );
    let mut command = fixture.command(&["record", "--", &program, "argument"]);
    std::fs::write(fixture.path("in"), "input\n").expect("writes");
    let stdin = std::fs::File::open(fixture.path("in")).expect("opens");
    let output: CommandOutput =
        command.current_dir(fixture.path(".")).stdin(stdin).output().expect("starts").into();
    let output =
        output.exits(7).complains(&["mine", "small.heaptoll: ", "heaptoll trace stat small.heaptoll"]);
    assert_eq!(output.out, "input\nargument", "standard output is the program's alone");
    assert!(output.err.lines().count() <= 6, "{}", output.err);
    let trace = Trace::read(fixture.path("small.heaptoll")).whole();
    // stdio's buffers are the program's, too.
    let own = trace.of(&[EventKind::Malloc, EventKind::Calloc]);
    assert!((2..6).contains(&own) && trace.of(&[EventKind::Realloc]) == 1, "{:?}", trace.kinds);
    assert_eq!(trace.header.command, [program.as_str(), "argument"]);
    let here = fixture.path(".").canonicalize().expect("exists");
    assert_eq!(Path::new(&trace.header.directory), here);
    assert_eq!(trace.header.manager, "glibc");
    assert!(trace.header.machine.iter().any(|(name, value)| name == "cpu" && !value.is_empty()));
    let ending = trace.ending.expect("an ending");
    assert_eq!((ending.how.as_str(), ending.status), ("exited with status 7", Some(7)));
    assert!(ending.peak_rss_kib.is_none_or(|kib| kib > 500) && ending.cpu_s < Some(1.0), "{ending:?}");
    assert_eq!(ending.threads, [trace.header.pid]);
}

#[test]
fn samples_and_maxima_show_memory_over_time() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "high",
        // Samples that are taken while it grows find it now here and now there, and none is promised at a certain time:
        // it stays at its height for so long that it is seen there.
        "int main(void) { for (int i = 0; i < 30; i++) { char *p = malloc(8 << 20); memset(p, 1, 8 << 20); \
         for (int k = 0; i == 29 && k < 500; k++) { free(malloc(9)); usleep(4000); } \
         if (i % 3 == 2) free(p); usleep(4000); } return 0; }",
    );
    record(&fixture, &[], &[&program]).exits(0);
    let trace = Trace::read(fixture.path("t")).whole();
    assert!(trace.samples.len() >= 5, "{:?}", trace.samples);
    let most = trace.samples.iter().max_by_key(|sample| sample.rss_kib).expect("samples");
    assert!(most.rss_kib > 120 << 10 && most.anon_kib <= most.rss_kib, "{most:?}");
    assert!((most.heap_kib as i64 - most.anon_kib as i64).abs() < 20 << 10, "{most:?}");
    let ending = trace.ending.expect("an ending");
    assert!(ending.max_live_bytes >= 168 << 20 && ending.peak_heap_bytes >= Some(160 << 20), "{ending:?}");
    assert!(ending.peak_rss_kib >= Some(most.rss_kib));
    assert!(ending.time_ns >= 120_000_000 && trace.samples.is_sorted_by_key(|sample| sample.time_ns));
}

/// Before, the trace of a shell had the peak of the program that it waited for, and the note of the largest trace did
/// not name its program.
#[test]
fn the_peak_of_a_process_is_not_that_of_its_children_and_the_largest_trace_is_named() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "large",
        "int main(void) { for (int i = 0; i < 999; i++) free(malloc(9)); memset(malloc(64 << 20), 1, 64 << 20); \
         return 0; }",
    );
    let script = format!("{program}; sleep 0.1; :");
    record(&fixture, &[], &["sh", "-c", &script])
        .exits(0)
        .complains(&["; the largest is ", ", of large (process "]);
    let ending = Trace::read(fixture.path("t")).whole().ending.expect("an ending");
    assert!(ending.peak_rss_kib < Some(32 << 10), "{ending:?}");
}

#[test]
fn a_program_of_the_catalog_is_recorded_over_a_named_manager() {
    let fixture = Fixture::new();
    let arguments = ["record", "-m", "mimalloc3", "--program", "perl", "--size", "quick", "-o", "t"];
    let mut command = fixture.command(&arguments);
    let output: CommandOutput = command.current_dir(fixture.path(".")).output().expect("starts").into();
    output.exits(0);
    let trace = Trace::read(fixture.path("t")).whole();
    assert_eq!(trace.header.manager, "mimalloc3");
    assert!(trace.header.manager_version.starts_with(|c: char| c.is_ascii_digit()), "{:?}", trace.header);
    assert!(trace.made() > 10_000, "{:?}", trace.kinds);
    assert!(!trace.header.collector);
}

#[test]
fn times_latencies_and_sites_are_recorded_on_request() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "timed",
        "static void *kept[100]; int main(void) { for (int i = 0; i < 100; i++) kept[i] = malloc(50 + i); \
         usleep(30000); for (int i = 0; i < 100; i++) free(kept[i]); return 0; }",
    );
    record(&fixture, &["--time", "event", "--latency", "--sites"], &[&program]).exits(0);
    let trace = Trace::read(fixture.path("t")).whole();
    assert!(trace.header.event_time && trace.header.latency && trace.header.sites);
    let mut reader = Reader::open(&fixture.path("t")).expect("opens");
    let (mut batch, mut all) = (Batch::default(), Vec::new());
    while reader.read(&mut batch).expect("reads") {
        all.extend_from_slice(&batch.events);
    }
    let own: Vec<_> =
        all.iter().filter(|event| event.kind.allocates() && (50..150).contains(&event.size)).collect();
    assert!(own.len() >= 100);
    assert!(own.iter().all(|event| event.site > 0), "{own:?}");
    let times: std::collections::HashSet<u64> = own.iter().map(|event| event.time_ns).collect();
    assert!(times.len() > 90, "{} times of {}", times.len(), own.len());
    assert!(all.iter().filter(|event| event.latency_ns > 0).count() > 150, "frees have one, too");
    let frees: Vec<_> = all.iter().filter(|event| event.kind == EventKind::Free).collect();
    let pause = frees[frees.len() - 1].time_ns - own[own.len() - 1].time_ns;
    assert!(pause >= 29_000_000, "{pause} ns");
    let sites = reader.tables().sites.as_ref().expect("sites");
    let main = sites.frames.iter().any(|frame| frame.function == "main");
    assert!(main, "{:?}", sites.frames);
}
