//! Made-up recordings of two builds, and what their call sites differ by.

use std::fs::File;
use std::path::Path as FilePath;

use heaptoll_trace::{Allocation, Ending, EventKind, Frame, Header, Settings, Site as Stack, Sites, Writer};

use super::*;
use crate::differences::{Rest, holds_0};

/// A recording that is being made up.
struct Recording {
    events: Vec<Call>,
    sites: Sites,
}

enum Call {
    /// Site and bytes; and whether the block is freed at once.
    Allocate(u32, u64, bool),
    /// The last block that is kept gets these bytes, by this site.
    Resize(u32, u64),
}

impl Recording {
    /// Stacks as `f < g < main`; the first has number 1. Lines and folders differ by `folder`.
    fn new(folder: &str, stacks: &[&str]) -> Recording {
        let mut sites = Sites { sites: vec![Stack::default()], frames: vec![] };
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        for stack in stacks {
            let mut frames = Vec::new();
            for function in stack.split(" < ") {
                let next = sites.frames.len() as u32;
                let number = *numbers.entry(function).or_insert(next);
                frames.push(number);
                if number < next {
                    continue;
                }
                sites.frames.push(Frame {
                    object: format!("{folder}/program"),
                    offset: sites.frames.len() as u64 + folder.len() as u64,
                    function: function.to_owned(),
                    line: format!("{folder}/source.c:{}", sites.frames.len() + folder.len()),
                });
            }
            sites.sites.push(Stack { frames });
        }
        Recording { events: Vec::new(), sites }
    }

    fn keep(mut self, site: u32, bytes: u64, times: usize) -> Recording {
        self.events.extend((0..times).map(|_| Call::Allocate(site, bytes, false)));
        self
    }

    fn pass(mut self, site: u32, bytes: u64, times: usize) -> Recording {
        self.events.extend((0..times).map(|_| Call::Allocate(site, bytes, true)));
        self
    }

    fn resize(mut self, site: u32, bytes: u64) -> Recording {
        self.events.push(Call::Resize(site, bytes));
        self
    }

    fn write(&self, folder: &FilePath, name: &str) -> Vec<PathBuf> {
        let path = folder.join(name);
        let header = Header { sites: true, command: vec![name.into()], ..Header::default() };
        let file = heaptoll_trace::Stream(File::create(&path).expect("a file"));
        let mut writer = Writer::new(file, &header, &Settings::default()).expect("begins");
        let mut last = 0;
        let call = |site, size| Allocation {
            kind: EventKind::Malloc,
            thread: 0,
            size,
            usable: size,
            align_log2: 0,
            site,
            latency_ns: 0,
        };
        for event in &self.events {
            match *event {
                Call::Allocate(site, bytes, is_freed) => {
                    let slot = writer.allocate(&call(site, bytes)).expect("writes");
                    if is_freed {
                        writer.free(slot, EventKind::Free, 0, 0).expect("writes");
                    } else {
                        last = slot;
                    }
                }
                Call::Resize(site, bytes) => {
                    let call = Allocation { kind: EventKind::Realloc, ..call(site, bytes) };
                    writer.resize(last, &call, false).expect("writes");
                }
            }
        }
        writer.sites(&self.sites);
        writer.finish(&Ending { how: "exited".into(), ..Ending::default() }).expect("ends");
        vec![path]
    }
}

fn compared(base: &Recording, new: &Recording) -> SiteDifferences {
    let folder = tempfile::tempdir().expect("a folder");
    differences(&base.write(folder.path(), "base"), &new.write(folder.path(), "new")).expect("traces")
}

/// Name and what is added, of everything that adds.
fn added(found: &Differences) -> Vec<(&str, u64)> {
    found.added().iter().map(|added| (added.part.name.as_str(), added.certain)).collect()
}

fn all(found: &SiteDifferences) -> [&Differences; 4] {
    [&found.bytes, &found.calls, &found.live, &found.exit]
}

const STACKS: [&str; 3] = ["node < insert < build < main", "term < parse < main", "cache < main"];

fn program(folder: &str) -> Recording {
    Recording::new(folder, &STACKS).keep(1, 100, 1000).pass(2, 64, 20_000).keep(3, 50, 400)
}

#[test]
fn a_leak_of_one_block_in_ten_thousand_allocations_comes_first() {
    let new = program("/tmp/new").keep(2, 64, 2);
    let found = compared(&program("/base"), &new);
    assert_eq!(added(&found.exit), [("term < parse < main", 128)]);
    assert_eq!(
        (added(&found.bytes)[0].0, added(&found.calls)),
        ("term < parse < main", vec![("term < parse < main", 2)])
    );
    assert_eq!((found.exit.base, found.exit.new), (120_000, 120_128));
    assert_eq!(found.exit.grown[0].share, Some(1.0));
    assert!(all(&found).iter().all(|one| one.only_base.parts == 0 && one.only_new.parts == 0));
}

/// A gate of two versions of a package with a recursion over many functions had thousands of call sites, and named one
/// of them that had a thousandth of the difference.
#[test]
fn sites_of_functions_that_call_each_other_in_any_order_are_merged() {
    let orders: Vec<String> = (0..2000)
        .map(|order| {
            let bits = (0..11).filter(|bit| order & (1 << bit) != 0).map(|bit| format!(" < f{bit}"));
            format!("node < grow < loop{} < main", bits.collect::<String>())
        })
        .collect();
    let stacks: Vec<&str> = orders.iter().map(String::as_str).collect();
    let program =
        |times| (1..=2000).fold(Recording::new("/b", &stacks), |made, site| made.keep(site, 10, times));
    let found = compared(&program(1), &program(2));
    assert_eq!(found.base_stacks, 2000);
    assert!(found.live.grown[0].difference > 100, "{:?}", found.live.grown[0]);
    assert_eq!((found.live.difference, found.live.sum()), (20_000, 20_000), "the sum closes");
    assert!(found.warnings.iter().any(|warning| warning.contains("innermost functions are merged")));
}

#[test]
fn a_leak_at_a_new_call_site_comes_first_too() {
    let mut stacks = STACKS.to_vec();
    stacks.push("log < leak < main");
    let mut new = Recording::new("/n", &stacks);
    new.events = program("/n").keep(4, 64, 2).events;
    let found = compared(&program("/b"), &new);
    assert_eq!(added(&found.exit), [("log < leak < main", 128)]);
    assert_eq!((found.exit.only_new.parts, found.exit.only_new.amount, found.exit.sum()), (1, 128, 128));
}

#[test]
fn two_percent_more_live_bytes_at_one_site_come_first() {
    let new = Recording::new("/n", &STACKS).keep(1, 102, 1000).pass(2, 64, 20_000).keep(3, 50, 400);
    let found = compared(&program("/b"), &new);
    assert_eq!(added(&found.live), [("node < insert < build", 2000)]);
    assert_eq!(found.live.difference, 2000);
    assert_eq!(found.live.grown[0].part.stack, ["node", "insert", "build", "main"]);
}

#[test]
fn what_grows_stays_with_the_site_that_allocated_it_and_the_call_is_of_the_one_that_resized_it() {
    let found = compared(&program("/b"), &program("/n").resize(2, 250));
    assert_eq!(added(&found.bytes), [("term < parse < main", 250)]);
    assert_eq!(added(&found.exit), [("cache < main", 200)]);
    assert_eq!(added(&found.calls), [("term < parse < main", 1)]);
}

#[test]
fn a_renamed_function_is_joined_by_the_innermost_ones_or_unmatched() {
    let base = Recording::new("/b", &["node < insert < main", "term < parse < main", "old < main"])
        .keep(1, 10, 10)
        .keep(2, 7, 10)
        .keep(3, 1, 30);
    let new = Recording::new("/n", &["node < add < main", "term < parse < main", "other < start < main"])
        .keep(1, 12, 10)
        .keep(2, 7, 10)
        .keep(3, 1, 50);
    let found = compared(&base, &new);
    let row = &found.live.grown[0];
    assert_eq!(
        (row.part.name.as_str(), row.part.base_name.as_str()),
        ("node < add < main", "node < insert < main")
    );
    assert_eq!((row.part.joined_by, row.difference), (Some(1), 20));
    assert_eq!((found.live.only_base.amount, found.live.only_new.amount), (30, 50));
    assert_eq!(found.live.only_new.largest[0].part.name, "other < start < main");
    assert!(all(&found).iter().all(|one| one.sum() == i128::from(one.new) - i128::from(one.base)));
}

#[test]
fn what_could_be_two_sites_is_joined_with_neither() {
    let base = Recording::new("/b", &["node < a < main"]).keep(1, 10, 1);
    let new = Recording::new("/n", &["node < b < main", "node < c < main"]).keep(1, 10, 1).keep(2, 5, 1);
    let found = compared(&base, &new);
    assert_eq!((found.live.only_base.parts, found.live.only_new.parts), (1, 2));
    assert_eq!((found.live.difference, found.live.sum()), (5, 5));
}

/// A walk over a tree has a stack for each depth and path: here 3,540.
#[test]
fn deep_recursion_is_one_site() {
    let stacks: Vec<String> = (1..60)
        .flat_map(|depth| (0..60).map(move |at| (depth, at)))
        .map(|(depth, at)| {
            let walks = (0..depth).map(|level| if (level + at) % 3 == 0 { "left" } else { "right" });
            format!("node < right < left < {} < main", walks.collect::<Vec<_>>().join(" < "))
        })
        .collect();
    let stacks: Vec<&str> = stacks.iter().map(String::as_str).collect();
    let record = |folder, bytes| {
        let recording = Recording::new(folder, &stacks);
        (1..=stacks.len()).fold(recording, |recording, site| recording.keep(site as u32, bytes, 1))
    };
    let found = compared(&record("/b", 50), &record("/new", 51));
    assert_eq!((found.base_stacks, found.new_stacks), (3540, 3540));
    assert_eq!(added(&found.exit), [("node < right < left", 3540)]);
    assert_eq!((found.exit.grown.len(), found.exit.rest.parts, found.exit.only_new.parts), (1, 0, 0));
}

#[test]
fn a_recording_without_call_stacks_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("plain");
    let file = heaptoll_trace::Stream(File::create(&path).expect("a file"));
    let writer = Writer::new(file, &Header::default(), &Settings::default()).expect("begins");
    writer.finish(&Ending::default()).expect("ends");
    let error = differences(std::slice::from_ref(&path), std::slice::from_ref(&path))
        .expect_err("no stacks")
        .to_string();
    assert!(error.contains("has no call stacks"), "{error}");
}

/// A program of these functions; each allocates by two helpers.
fn wide(folder: &str, functions: usize) -> Recording {
    let stacks: Vec<String> = (0..functions).map(|at| format!("make < fill < site_{at} < main")).collect();
    let stacks: Vec<&str> = stacks.iter().map(String::as_str).collect();
    let recording = Recording::new(folder, &stacks);
    (1..=functions as u32).fold(recording, |recording, site| recording.keep(site, 10, 1))
}

#[test]
fn sites_of_a_large_program_are_distinguished_below_its_helpers() {
    let found = compared(&wide("/base", 1500), &wide("/tmp/new", 1500).keep(78, 10, 3));
    assert_eq!(added(&found.exit), [("make < fill < site_77", 30)]);
    assert_eq!((found.exit.grown[0].part.shown, found.exit.rest.parts), (3, 1499));
    assert!(found.warnings.is_empty(), "{:?}", found.warnings);
}

#[test]
fn a_site_is_shown_by_as_many_functions_as_no_other_has() {
    let stacks = ["a < b < c < d < left < main", "a < b < c < d < right < main", "a < b < c < d"];
    let build = |folder| {
        let recording = Recording::new(folder, &stacks);
        (1..=3).fold(recording, |recording, site| recording.keep(site, 10, 1))
    };
    let found = compared(&build("/base"), &build("/tmp/new").keep(2, 10, 5).keep(3, 10, 1));
    assert_eq!(added(&found.exit), [("a < b < c < d < right", 50), ("a < b < c < d", 10)]);
}

#[test]
fn the_stacks_of_both_have_the_sums_of_the_sites() {
    let found = compared(&program("/base"), &program("/tmp/new").keep(3, 50, 7).pass(1, 9, 2));
    let stacks = found.stacks.as_ref().expect("stacks");
    for (measure, figure) in [
        (Measure::PeakBytes, &found.live),
        (Measure::EndBytes, &found.exit),
        (Measure::RequestedBytes, &found.bytes),
        (Measure::Calls, &found.calls),
    ] {
        assert_eq!((stacks.base.total(measure), stacks.new.total(measure)), (figure.base, figure.new));
    }
    let names: Vec<Vec<String>> = (stacks.new.stacks())
        .map(|stack| stacks.new.frames_of(stack.call).map(|frame| frame.function.clone()).collect())
        .collect();
    assert!(names.contains(&vec!["cache".to_owned(), "main".to_owned()]), "{names:?}");
}

/// Recordings of `stacks` whose functions of these names have no symbols, at addresses `shift` higher.
fn stripped(shift: u64, stacks: &[&str], names: &[&str]) -> Recording {
    let mut recording = Recording::new("/p", stacks);
    for (at, frame) in recording.sites.frames.iter_mut().enumerate() {
        frame.offset = 0x100 * (at as u64 + 1) + shift;
        if names.contains(&frame.function.as_str()) {
            (frame.function, frame.line) = (String::new(), String::new());
            frame.object += if shift == 0 { "" } else { heaptoll_callsites::CHANGED };
        }
    }
    recording
}

/// Before, code without symbols was one call site in recordings of two builds, in which nothing had changed.
#[test]
fn call_sites_without_symbols_are_kept_apart_and_joined_in_recordings_of_one_build_alone() {
    let stacks = ["a < main", "b < main"];
    let record = |shift, names: &[&str], a, b| stripped(shift, &stacks, names).keep(1, 10, a).keep(2, 10, b);
    let all = ["a", "b", "main"];
    let found = compared(&record(0, &all, 9, 1), &record(0, &all, 1, 9));
    assert_eq!(added(&found.exit), [("program+0x300 < program+0x200", 80)]);
    assert_eq!((found.exit.shrunk[0].difference, found.unjoined), (-80, None));

    let found = compared(&record(0, &all, 9, 1), &record(3, &all, 1, 9));
    let parts = |found: &SiteDifferences| (found.exit.only_base.parts, found.exit.only_new.parts);
    assert_eq!((parts(&found), found.exit.grown.len(), found.exit.rest.parts), ((2, 2), 0, 0));
    assert_eq!(
        found.unjoined.as_deref(),
        Some(
            "Not joined: 2 call sites (100 B allocated) of the first and 2 call sites (100 B allocated) of the \
             second. Their code has no symbols and lies at other addresses (another build, or made at run \
             time). Keep the symbols of both builds."
        )
    );

    let mut renamed = record(3, &all, 1, 9);
    renamed.sites.frames.iter_mut().for_each(|frame| frame.object = "/p/other".into());
    let found = compared(&record(0, &all, 9, 1), &renamed);
    assert!(found.unjoined.is_some_and(|why| why.starts_with("Not joined: 2 call sites")));

    let found = compared(&record(0, &all, 9, 1), &record(0, &[], 1, 9));
    assert_eq!(parts(&found), (2, 2));
    assert!(found.unjoined.is_some_and(|why| why.contains("(100 B allocated) of the first. Their")));

    // One symbol among them joins what no other call site of its build has.
    let found = compared(&record(0, &["main"], 9, 1), &record(3, &["main"], 1, 9));
    assert_eq!((found.exit.grown[0].difference, parts(&found), found.unjoined), (80, (0, 0), None));
    let found = compared(&record(0, &["a", "b"], 9, 1), &record(3, &["a", "b"], 1, 9));
    assert_eq!(
        (parts(&found), found.exit.rest),
        ((0, 0), Rest { parts: 1, base: 100, new: 100, difference: 0 })
    );
    assert!(found.unjoined.is_some());
}

/// Before, `diff` had one row for both, though one of them alone had grown.
#[test]
fn instances_of_a_template_differ_each_by_itself_and_are_joined_where_only_their_arguments_changed() {
    let base = ["void make_it<Session>() < main", "void make_it<Conn>() < main", "V<int>::add(int) < main"];
    let new = [base[0], base[1], "V<long>::add(long) < main"];
    let made = |folder, stacks: &[&str], times| {
        Recording::new(folder, stacks).keep(1, 10, 5).keep(2, 7, times).keep(3, 1, times)
    };
    let found = compared(&made("/b", &base, 10), &made("/n", &new, 30));
    assert_eq!(added(&found.live), [("make_it<Conn> < main", 140), ("V<long>::add < main", 20)]);
    let joined = &found.live.grown[1].part;
    assert_eq!((joined.base_name.as_str(), joined.joined_by), ("V<int>::add < main", Some(2)));
}

/// Before, a total of 196 calls fewer stood without an interval where 12,000 more were made.
#[test]
fn the_total_of_sampled_profiles_has_an_interval_that_is_wider_than_those_of_its_sites() {
    const MEAN: u64 = 1 << 19;
    let sums = |samples: u64| {
        let bytes = samples * MEAN;
        let mut sums = Sums { bytes, calls: bytes / 64, least_size: Some(64.0), ..Sums::default() };
        (sums.variance.calls, sums.variance.bytes) =
            super::super::site_sums::variances(sums.calls, bytes, Some(MEAN));
        sums
    };
    let figure =
        Estimate { value: |sums| sums.bytes, variance: |sums| sums.variance.bytes, counts_objects: false };
    let found = |sites: &[Site], means| split(sites, &HashMap::new(), &[], figure, means);
    let path = Path::default;
    let sites = [Site::Same(path(), sums(400), sums(600)), Site::Same(path(), sums(900), sums(720))];
    let both = found(&sites, [Some(MEAN); 2]);
    let width = |interval: Option<[i64; 2]>| interval.map(|[low, high]| high - low);
    assert_eq!((both.grown.len(), both.difference), (1, 20 * MEAN as i64));
    assert!(width(both.interval) > width(both.grown[0].interval), "{both:?}");
    assert!(both.interval.is_some_and(holds_0), "{both:?}");
    let more =
        found(&[Site::Same(path(), sums(400), sums(600)), Site::New(path(), sums(90))], [Some(MEAN); 2]);
    assert!(more.interval.is_some_and(|[low, _]| low > 0), "{more:?}");
    assert_eq!(found(&sites, [None; 2]).interval, None);
}
