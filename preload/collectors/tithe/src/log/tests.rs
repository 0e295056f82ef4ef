//! Tests of the log.

extern crate std;

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, process};

use proptest::prelude::*;

use super::*;

/// The path of a file of one test, removed at its end.
struct TempFile(PathBuf);

impl TempFile {
    fn new(name: &str) -> TempFile {
        let place = TempFile(std::env::temp_dir().join(format!("tithe-log-{}-{name}", process::id())));
        let _ = fs::remove_file(&place.0);
        place
    }

    fn bytes(&self) -> &[u8] {
        self.0.as_os_str().as_encoded_bytes()
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.0).expect("the file was written")
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn pairs(line: &str) -> BTreeMap<&str, &str> {
    let line = line.strip_suffix('\n').expect("a line has an end");
    assert!(!line.contains('\n'), "{line}");
    line.split(' ').map(|pair| pair.split_once('=').expect("a pair")).collect()
}

fn number(pairs: &BTreeMap<&str, &str>, key: &str) -> u64 {
    pairs[key].parse().expect("a number")
}

fn size(pairs: &BTreeMap<&str, &str>, key: &str) -> usize {
    pairs[key].parse().expect("a size")
}

fn ns(pairs: &BTreeMap<&str, &str>, key: &str) -> u64 {
    let (whole, places) = pairs[key].split_once('.').expect("microseconds with places");
    assert_eq!(places.len(), 3);
    format!("{whole}{places}").parse().expect("ns")
}

fn reason(pairs: &BTreeMap<&str, &str>) -> Reason {
    [Reason::Budget, Reason::Memory, Reason::Called]
        .into_iter()
        .find(|reason| reason.as_str() == pairs["reason"])
        .expect("a reason")
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = text.bytes();
    let mut plain = Vec::new();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [bytes.next().expect("a digit"), bytes.next().expect("a digit")];
            let digits = std::str::from_utf8(&digits).expect("ASCII");
            plain.push(u8::from_str_radix(digits, 16).expect("hexadecimal"));
        } else {
            plain.push(byte);
        }
    }
    plain
}

fn parse(line: &str) -> (u64, Report) {
    let pairs = pairs(line);
    let report = Report {
        number: number(&pairs, "collection"),
        reason: reason(&pairs),
        heap_before: size(&pairs, "heap_before_bytes"),
        heap_after: size(&pairs, "heap_after_bytes"),
        live: size(&pairs, "live_bytes"),
        reclaimed: size(&pairs, "reclaimed_bytes"),
        ambiguous: pairs.contains_key("ambiguous_bytes").then(|| size(&pairs, "ambiguous_bytes")),
        generation: pairs.get("generation").map(|name| {
            GENERATIONS.into_iter().find(|generation| generation.as_str() == *name).expect("a generation")
        }),
        increments: pairs.contains_key("increments").then(|| IncrementTotals {
            count: number(&pairs, "increments") as u32,
            longest_ns: ns(&pairs, "longest_us"),
            total_ns: ns(&pairs, "increments_us"),
        }),
        held: pairs.contains_key("waiting_bytes").then(|| HeldTotals {
            waiting: size(&pairs, "waiting_bytes"),
            kept: size(&pairs, "kept_bytes"),
            kept_blocks: size(&pairs, "kept_blocks"),
            late_writes: number(&pairs, "late_writes"),
            double_frees: number(&pairs, "double_frees"),
        }),
        old: pairs.get("old_bytes").map_or(0, |_| size(&pairs, "old_bytes")),
        reread: pairs.get("reread_bytes").map_or(0, |_| size(&pairs, "reread_bytes")),
        roots_bytes: size(&pairs, "roots_bytes"),
        budget: size(&pairs, "budget_bytes"),
        threads: size(&pairs, "threads"),
        markers: size(&pairs, "markers"),
        stop_ns: ns(&pairs, "stop_us"),
        roots_ns: ns(&pairs, "roots_us"),
        mark_ns: ns(&pairs, "mark_us"),
        sweep_ns: ns(&pairs, "sweep_us"),
        pause_ns: ns(&pairs, "pause_us"),
    };
    (number(&pairs, "pid"), report)
}

fn parse_abandoned(line: &str) -> Abandoned {
    let pairs = pairs(line);
    let cause = match pairs["cause"] {
        "thread" => {
            let mut name = [0; 16];
            let bytes = unescaped(pairs["thread"]);
            name[..bytes.len()].copy_from_slice(&bytes);
            StopError::Thread(UnstoppedThread {
                tid: pairs["tid"].parse().expect("a thread's number"),
                name,
                state: unescaped(pairs["state"])[0].into(),
            })
            .into()
        }
        other => AbandonCause::of_bits(u64::MAX).find(|cause| cause.name() == other).expect("a cause").into(),
    };
    Abandoned {
        number: number(&pairs, "abandoned"),
        reason: reason(&pairs),
        cause,
        heap_before: size(&pairs, "heap_before_bytes"),
        waited_ns: ns(&pairs, "waited_us"),
    }
}

fn number_of_process(line: &str) -> u64 {
    let (first, _) = line.split_once(' ').expect("several pairs");
    first.strip_prefix("pid=").expect("the pid comes first").parse().expect("a number")
}

fn text(line: &LogLine) -> &str {
    std::str::from_utf8(line.bytes()).expect("a line is text")
}

fn report(value: u64) -> Report {
    Report {
        number: value,
        reason: Reason::Budget,
        heap_before: value as usize,
        heap_after: value as usize,
        live: value as usize,
        reclaimed: value as usize,
        ambiguous: Some(value as usize),
        generation: Some(Generation::Incremental),
        increments: Some(IncrementTotals { count: value as u32, longest_ns: value, total_ns: value }),
        held: Some(HeldTotals {
            waiting: value as usize,
            kept: value as usize,
            kept_blocks: value as usize,
            late_writes: value,
            double_frees: value,
        }),
        old: value as usize,
        reread: value as usize,
        roots_bytes: value as usize,
        budget: value as usize,
        threads: value as usize,
        markers: value as usize,
        stop_ns: value,
        roots_ns: value,
        mark_ns: value,
        sweep_ns: value,
        pause_ns: value,
    }
}

fn any_reason() -> impl Strategy<Value = Reason> {
    prop_oneof![Just(Reason::Budget), Just(Reason::Memory), Just(Reason::Called)]
}

const GENERATIONS: [Generation; 4] =
    [Generation::Unaged, Generation::Full, Generation::Young, Generation::Incremental];

fn any_generation() -> impl Strategy<Value = Option<Generation>> {
    proptest::option::of(proptest::sample::select(&GENERATIONS[..]))
}

fn any_cause() -> impl Strategy<Value = Cause> {
    let thread = (0..c_int::MAX, proptest::collection::vec(1u8..=255, 0..=15), 1u8..=255).prop_map(
        |(tid, bytes, state)| {
            let mut name = [0; 16];
            name[..bytes.len()].copy_from_slice(&bytes);
            StopError::Thread(UnstoppedThread { tid, name, state: state.into() }).into()
        },
    );
    let others: Vec<Cause> = AbandonCause::of_bits(!AbandonCause::Thread.bit()).map(Cause::from).collect();
    prop_oneof![thread, prop::sample::select(others)]
}

proptest! {
    #[test]
    fn each_line_can_be_read_back(
        pid: u64,
        reason in any_reason(),
        ambiguous: Option<usize>,
        generation in any_generation(),
        sizes: [usize; 9],
        numbers: [u64; 6],
        steps: Option<(u32, u64, u64)>,
        held: Option<([usize; 3], [u64; 2])>,
        markers: usize,
    ) {
        let report = Report {
            number: numbers[0],
            reason,
            heap_before: sizes[0],
            heap_after: sizes[1],
            live: sizes[2],
            reclaimed: sizes[3],
            ambiguous,
            generation,
            increments: steps.map(|(count, longest_ns, total_ns)| IncrementTotals { count, longest_ns, total_ns }),
            held: held.map(|([waiting, kept, kept_blocks], [late_writes, double_frees])| HeldTotals {
                waiting,
                kept,
                kept_blocks,
                late_writes,
                double_frees,
            }),
            old: generation.map_or(0, |_| sizes[7]),
            reread: generation.map_or(0, |_| sizes[8]),
            roots_bytes: sizes[4],
            budget: sizes[5],
            threads: sizes[6],
            markers,
            stop_ns: numbers[1],
            roots_ns: numbers[2],
            mark_ns: numbers[3],
            sweep_ns: numbers[4],
            pause_ns: numbers[5],
        };
        prop_assert_eq!(parse(text(&report.line(pid))), (pid, report));
    }

    #[test]
    fn each_line_of_an_abandoned_collection_can_be_read_back(
        pid: u64,
        number: u64,
        reason in any_reason(),
        cause in any_cause(),
        heap_before: usize,
        waited_ns: u64,
    ) {
        let abandoned = Abandoned { number, reason, cause, heap_before, waited_ns };
        let line = abandoned.line(pid);
        prop_assert_eq!(parse_abandoned(text(&line)), abandoned);
        prop_assert_eq!(number_of_process(text(&line)), pid);
    }
}

#[test]
fn that_there_are_no_generations_is_one_line_with_its_cause() {
    let line = untracked(7, Untracked::Kernel(38));
    assert_eq!(text(&line), "pid=7 generations=off cause=kernel errno=38\n");
    let line = untracked(7, Untracked::Closed);
    assert_eq!(text(&line), "pid=7 generations=off cause=closed errno=0\n");
}

#[test]
fn the_longest_lines_fit() {
    let line = report(u64::MAX).line(u64::MAX);
    assert!(line.length < LogLine::CAPACITY, "{} bytes", line.length);
    assert_eq!(parse(text(&line)), (u64::MAX, report(u64::MAX)));
    let thread = UnstoppedThread { tid: c_int::MAX, name: [0xff; 16], state: '\u{ff}' };
    let cause = StopError::Thread(thread).into();
    let abandoned = Abandoned {
        number: u64::MAX,
        reason: Reason::Memory,
        cause,
        heap_before: usize::MAX,
        waited_ns: u64::MAX,
    };
    assert_eq!(parse_abandoned(text(&abandoned.line(u64::MAX))), abandoned);
}

#[test]
fn a_line_reads_as_the_manual_describes() {
    let manual = include_str!("../../../../../docs/reference/tithe-settings.md");
    let example = manual.lines().find(|line| line.starts_with("pid=") && line.contains(" collection="));
    let example = format!("{}\n", example.expect("docs/reference/tithe-settings.md has an example"));
    let (pid, report) = parse(&example);
    assert_eq!(text(&report.line(pid)), example);
    let line = manual.lines().find(|line| line.starts_with("pid=") && line.contains(" abandoned="));
    let line = format!("{}\n", line.expect("docs/reference/tithe-settings.md has an example"));
    let abandoned = parse_abandoned(&line);
    assert_eq!(text(&abandoned.line(number(&pairs(&line), "pid"))), line);
    for key in pairs(&example).keys().chain(pairs(&line).keys()) {
        assert!(
            manual.contains(&format!("| `{key}` |")),
            "docs/reference/tithe-settings.md does not explain {key}"
        );
    }
}

#[test]
fn lines_are_appended_with_this_process_first() {
    let place = TempFile::new("append");
    fs::write(&place.0, "before\n").expect("a file");
    // Two processes that share a file have a descriptor each.
    let one = Sink::open(place.bytes()).expect("opened");
    let other = Sink::open(place.bytes()).expect("opened");
    assert!(write(&one, &report(1)) && write(&other, &report(2)) && write(&one, &report(3)));
    let text = place.text();
    let mut lines = text.split_inclusive('\n');
    assert_eq!(lines.next(), Some("before\n"));
    for number in 1..=3 {
        assert_eq!(parse(lines.next().expect("a line")), (u64::from(process::id()), report(number)));
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn the_descriptor_is_high_and_ends_with_exec() {
    let place = TempFile::new("high");
    for sink in [Sink::open(place.bytes()), Sink::open(b"-")] {
        let descriptor = sink.expect("opened").0.number();
        assert!(descriptor >= heaptoll_roots::HIGH[0], "{descriptor}");
        // SAFETY: the call takes no pointers, and reading flags changes nothing.
        let (flags, status) =
            unsafe { (libc::fcntl(descriptor, libc::F_GETFD), libc::fcntl(descriptor, libc::F_GETFL)) };
        assert_eq!(flags, libc::FD_CLOEXEC);
        assert_eq!(status & libc::O_NONBLOCK, 0);
    }
}

#[test]
fn a_descriptor_the_program_has_taken_over_is_left_alone() {
    let (place, theirs) = (TempFile::new("ours"), TempFile::new("theirs"));
    let sink = Sink::open(place.bytes()).expect("opened");
    let file = fs::File::create(&theirs.0).expect("a file");
    // SAFETY: dup2 takes no pointers; the test replaces the log's descriptor as a careless program would.
    assert!(unsafe { libc::dup2(file.as_raw_fd(), sink.0.number()) } >= 0);
    assert!(!write(&sink, &report(1)));
    assert_eq!((place.text(), theirs.text()), (String::new(), String::new()));
    let closed = Sink::open(place.bytes()).expect("opened");
    closed.0.close();
    assert!(!write(&closed, &report(1)));
}

#[test]
fn writing_leaves_errno_as_it_was() {
    let place = TempFile::new("errno");
    let sink = Sink::open(place.bytes()).expect("opened");
    let closed = Sink::open(place.bytes()).expect("opened");
    closed.0.close();
    for sink in [sink, closed] {
        // SAFETY: errno's address is valid for the calling thread.
        unsafe { *libc::__errno_location() = libc::EXDEV };
        write(&sink, &report(1));
        assert_eq!(errno(), libc::EXDEV);
    }
}

#[test]
fn a_full_device_is_reported() {
    let sink = Sink::open(b"/dev/full").expect("opened");
    assert!(!write(&sink, &report(1)));
}

#[test]
fn a_pipe_without_a_reader_is_refused_at_once() {
    let place = TempFile::new("pipe");
    let mut name = place.bytes().to_vec();
    name.push(0);
    // SAFETY: `name` ends with a zero.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr().cast(), 0o600) }, 0);
    assert_eq!(Sink::open(place.bytes()), Err(libc::ENXIO));
}

#[test]
fn a_tight_limit_on_open_files_leaves_a_lower_descriptor() {
    let place = TempFile::new("limit");
    // SAFETY: the child calls only what a child of a threaded process may, and leaves by _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let limit = libc::rlimit { rlim_cur: 60, rlim_max: 60 };
        // SAFETY: the limit is this child's own.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
        let status = match Sink::open(place.bytes()) {
            Ok(sink) if sink.write(b"here\n") => sink.0.number(),
            _ => 1,
        };
        // SAFETY: _exit takes no pointers; it skips destructors, which belong to the parent.
        unsafe { libc::_exit(status) };
    }
    let mut status = 0;
    // SAFETY: `child` was forked above; waitpid writes `status` only.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    let descriptor = libc::WEXITSTATUS(status);
    assert!((heaptoll_roots::HIGH[1]..60).contains(&descriptor), "{descriptor}");
    assert_eq!(place.text(), "here\n");
}

#[test]
fn numbers_have_their_digits() {
    for value in [0, 1, 9, 10, 1_000_000, u64::MAX] {
        assert_eq!(digits(value, &mut [0; 20]), value.to_string());
    }
}
