//! The events layer under real programs that mark their requests, in C and C++, position-independent and not.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use heaptoll_event_log::layout::{PROCESSES, file_bytes};
use heaptoll_event_log::{EventsFile, ProcessEvents};

fn layer() -> PathBuf {
    heaptoll_testing::staged::file("layers/libheaptoll_events.so")
}

/// A collector that announces its collections.
fn tithe() -> PathBuf {
    heaptoll_testing::staged::file("managers/tithe.so")
}

/// A program, compiled, and a file of events.
struct Fixture {
    directory: tempfile::TempDir,
    program: PathBuf,
    file: EventsFile,
}

impl Fixture {
    fn new() -> Fixture {
        Fixture::with("c", &["-fPIE", "-pie"], 100)
    }

    fn with(language: &str, flags: &[&str], chunks: u32) -> Fixture {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let program = directory.path().join("marks");
        let (compiler, standard) = if language == "c" { ("cc", "-std=c11") } else { ("c++", "-std=c++11") };
        let output = Command::new(compiler)
            .args(["-x", language, standard, "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"])
            .arg(here.join("../../include"))
            .args(flags)
            .arg("-o")
            .arg(&program)
            .arg(here.join("tests/layer/programs/marks.c"))
            .output()
            .expect("the compiler runs");
        assert!(output.status.success(), "{flags:?}: {}", String::from_utf8_lossy(&output.stderr));
        let path = directory.path().join("heaptoll-test.events");
        let file = EventsFile::create(&path, file_bytes(chunks)).expect("the file is made");
        Fixture { directory, program, file }
    }

    fn run_with(&self, managers: &[&Path], environment: &[(&str, &str)], arguments: &[&str]) -> Output {
        let mut preload = OsString::from(layer());
        for object in managers {
            preload.push(":");
            preload.push(object);
        }
        Command::new(&self.program)
            .args(arguments)
            .env("LD_PRELOAD", preload)
            .env("HEAPTOLL_EVENTS", self.file.path())
            .envs(environment.iter().copied())
            .output()
            .expect("the program runs")
    }

    /// Runs the program; it must succeed.
    fn run(&self, arguments: &[&str]) -> Vec<ProcessEvents> {
        let output = self.run_with(&[], &[], arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        assert!(output.stderr.is_empty(), "{arguments:?}: {output:?}");
        self.read()
    }

    fn read(&self) -> Vec<ProcessEvents> {
        self.file.read().expect("the file is read")
    }
}

fn kinds(process: &ProcessEvents) -> Vec<u32> {
    process.requests.iter().map(|request| request.kind).collect()
}

#[test]
fn requests_of_c_and_cxx_programs_are_recorded_position_independent_or_not_by_any_linker() {
    let gold = Command::new("ld.gold").arg("--version").output().is_ok();
    let lld = Command::new("ld.lld").arg("--version").output().is_ok();
    let linkers = [("", true), ("-fuse-ld=gold", gold), ("-fuse-ld=lld", lld)];
    for language in ["c", "c++"] {
        for position in [["-fPIE", "-pie"], ["-fno-pie", "-no-pie"], ["-fno-plt", "-flto"]] {
            for (linker, _) in linkers.iter().filter(|(_, there)| *there) {
                let flags: Vec<&str> =
                    position.iter().copied().chain((!linker.is_empty()).then_some(*linker)).collect();
                let fixture = Fixture::with(language, &flags, 10);
                let [process] = &fixture.run(&["many", "25"])[..] else { panic!("one process") };
                assert_eq!(process.requests.len(), 25, "{language} {flags:?}");
            }
        }
    }
}

#[test]
fn a_static_program_runs_and_nothing_is_recorded() {
    for flags in [&["-static"][..], &["-static-pie", "-fPIE"]] {
        let fixture = Fixture::with("c", flags, 10);
        assert!(fixture.run(&["many", "25"]).is_empty());
    }
}

#[test]
fn without_the_layer_or_without_a_file_nothing_happens() {
    let fixture = Fixture::new();
    let plain = Command::new(&fixture.program)
        .args(["many", "1000"])
        .env("HEAPTOLL_EVENTS", fixture.file.path())
        .output();
    assert!(plain.expect("it runs").status.success());
    let none = fixture.directory.path().join("none");
    for path in ["", none.to_str().expect("text"), "/dev/null", "/proc/self/exe"] {
        let output = fixture.run_with(&[], &[("HEAPTOLL_EVENTS", path)], &["many", "1000"]);
        assert!(output.status.success() && output.stderr.is_empty(), "{path}: {output:?}");
    }
    assert!(fixture.read().is_empty());
}

#[test]
fn every_request_of_every_chunk_and_thread_is_there() {
    let fixture = Fixture::new();
    let [process] = &fixture.run(&["many", "10000"])[..] else { panic!("one process") };
    assert_eq!(kinds(process), (0..10_000).map(|number| number % 10).collect::<Vec<u32>>());
    assert!(process.requests.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns));
    assert!(
        process.requests.iter().all(|request| request.thread == process.pid),
        "the first thread's number"
    );

    fixture.file.clear().expect("it is cleared");
    let [process] = &fixture.run(&["threads", "8", "2", "5000"])[..] else { panic!("one process") };
    assert_eq!(process.requests.len(), 80_000);
    let mut threads: Vec<u32> = process.requests.iter().map(|request| request.thread).collect();
    threads.sort_unstable();
    assert!(threads.chunk_by(|a, b| a == b).all(|own| own.len() == 5000));
    assert_eq!(threads.chunk_by(|a, b| a == b).count(), 16);
}

#[test]
fn threads_reuse_the_chunks_of_threads_that_ended() {
    let fixture = Fixture::with("c", &[], 20);
    // With a chunk per thread it would take 2000.
    let [process] = &fixture.run(&["threads", "10", "200", "3"])[..] else { panic!("one process") };
    assert_eq!(process.requests.len(), 6000);
    assert!(fixture.file.lost().expect("it is read").is_none());
}

#[test]
fn what_a_killed_process_wrote_is_there() {
    let fixture = Fixture::new();
    let output = fixture.run_with(&[], &[], &["killed", "12345"]);
    assert!(!output.status.success());
    let [process] = &fixture.read()[..] else { panic!("one process") };
    assert_eq!(process.requests.len(), 12_345);
}

#[test]
fn a_full_file_ends_the_list_and_counts_the_rest() {
    let fixture = Fixture::with("c", &[], 2);
    let [process] = &fixture.run(&["many", "10000"])[..] else { panic!("one process") };
    let lost = fixture.file.lost().expect("it is read");
    assert!(process.requests.len() > 4000, "{}", process.requests.len());
    assert_eq!(process.requests.len() as u64 + lost.requests, 10_000);
    assert_eq!(
        kinds(process),
        (0..process.requests.len() as u32).map(|number| number % 10).collect::<Vec<u32>>()
    );
}

/// A disk of a given size, mounted on an empty folder in the mount namespace of one process.
struct Disk {
    holder: std::process::Child,
    folder: PathBuf,
}

impl Disk {
    /// `None` where mounting is not permitted.
    fn new(mib: u32, folder: &Path) -> Option<Disk> {
        let script =
            format!("mount -t tmpfs -o size={mib}m heaptoll-test \"$0\" && echo ready && read -r line");
        let mut holder = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script])
            .arg(folder)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .ok()?;
        let mut line = String::new();
        let stdout = holder.stdout.as_mut().map(|out| BufReader::new(out).read_line(&mut line));
        let disk =
            Disk { folder: PathBuf::from(format!("/proc/{}/root{}", holder.id(), folder.display())), holder };
        (matches!(stdout, Some(Ok(_))) && line == "ready\n").then_some(disk)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // The process ends when its input does.
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

#[test]
fn a_full_disk_ends_the_list_and_kills_no_process() {
    let mut fixture = Fixture::with("c", &[], 10);
    let folder = fixture.directory.path().join("disk");
    std::fs::create_dir(&folder).expect("a folder");
    let Some(disk) = Disk::new(34, &folder) else {
        eprintln!("mounting is not permitted here: full disks are not tried");
        return;
    };
    fixture.file =
        EventsFile::create(&disk.folder.join("heaptoll-test.events"), 100 << 20).expect("the file is made");
    let [process] = &fixture.run(&["many", "2000000"])[..] else { panic!("one process") };
    let lost = fixture.file.lost().expect("it is read");
    assert!(lost.requests > 0 && process.requests.len() > 1_000_000, "{lost:?}");
    assert_eq!(process.requests.len() as u64 + lost.requests, 2_000_000);
    // The disk is too full for another.
    let second = disk.folder.join("heaptoll-second.events");
    assert!(EventsFile::create(&second, 100 << 20).is_err());
    assert!(!second.exists());
    fixture.file.clear().expect("it is cleared");
    assert_eq!(fixture.run(&["many", "1000"])[0].requests.len(), 1000);
    assert!(fixture.file.lost().expect("it is read").is_none());
}

#[test]
fn children_of_fork_have_entries_of_their_own_and_do_not_end_their_parents_requests() {
    let fixture = Fixture::new();
    let processes = fixture.run(&["forks"]);
    assert_eq!(processes.iter().map(kinds).collect::<Vec<_>>(), [vec![0, 1, 3], vec![2], vec![4]]);
    assert_eq!(processes[1].parent_pid, processes[0].pid);
    assert_eq!(processes[2].parent_pid, processes[1].pid);
}

#[test]
fn the_thread_that_forked_never_writes_to_its_parents_chunk() {
    let fixture = Fixture::new();
    let processes = fixture.run(&["forks-threads"]);
    let [parent, child] = &processes[..] else { panic!("two processes, not {}", processes.len()) };
    assert_eq!((parent.requests.len(), child.requests.len()), (10, 12));
    assert!(parent.requests.iter().all(|request| request.thread == parent.pid));
}

#[test]
fn each_image_of_a_process_has_an_entry() {
    let fixture = Fixture::new();
    let processes = fixture.run(&["exec"]);
    assert_eq!(processes.iter().map(|process| process.requests.len()).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(processes[0].pid, processes[1].pid);
}

#[test]
fn an_end_alone_is_nothing_and_a_second_beginning_counts() {
    let fixture = Fixture::new();
    assert_eq!(kinds(&fixture.run(&["misuse"])[0]), [2]);
}

/// Requests of a handler that interrupted an end left a gap, at which the reader stops.
#[test]
fn signal_handlers_with_requests_cost_no_others_than_those_they_interrupt() {
    let fixture = Fixture::with("c", &[], 2000);
    let [process] = &fixture.run(&["handlers", "300000"])[..] else { panic!("one process") };
    let of = |kind: u32| process.requests.iter().filter(|request| request.kind == kind).count();
    assert_eq!(of(2), 1, "the last one");
    assert!(of(1) >= 150, "{} of a handler that ran 200 times", of(1));
    assert!(of(0) + 10 * of(1) >= 300_000, "{} of at least 300000, {} of the handler", of(0), of(1));
    assert!(fixture.file.lost().expect("it is read").is_none());
}

/// After a handler had interrupted an end and continued in another chunk, the thread wrote on in the old chunk, and
/// from there over the chunks of others.
#[test]
fn a_signal_handler_that_fills_a_chunk_does_not_lead_into_those_of_others() {
    let fixture = Fixture::with("c", &[], 4000);
    let [process] = &fixture.run(&["handlers-many"])[..] else { panic!("one process") };
    let of = |kind: u32| process.requests.iter().filter(|request| request.kind == kind).count();
    assert_eq!(of(2), 1, "the last one");
    // Of each handler's requests at most one is lost: the one that takes the place of the interrupted request.
    assert!(of(1) >= 300 * 2999, "{} of a handler that ran 300 times with 3000", of(1));
    assert!(fixture.file.lost().expect("it is read").is_none());
}

/// Each request of a process without an entry requested one again: each was counted as a lost process, and the count
/// overflowed.
#[test]
fn a_process_without_an_entry_is_lost_once() {
    let fixture = Fixture::with("c", &[], 3000);
    let more = 20;
    let processes = fixture.run(&["children", &(PROCESSES - 1 + more).to_string()]);
    assert_eq!(processes.len(), PROCESSES);
    let lost = fixture.file.lost().expect("it is read");
    assert_eq!((lost.processes, lost.requests), (more as u32, 3 * more as u64));
}

#[test]
fn errno_is_the_programs() {
    Fixture::new().run(&["errno"]);
}

#[test]
fn times_are_those_of_the_monotonic_clock() {
    let fixture = Fixture::new();
    let output = fixture.run_with(&[], &[], &["slow"]);
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let times: Vec<u64> = stdout.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    let [request] = fixture.read()[0].requests[..] else { panic!("one request") };
    // Two readings of two clocks a microsecond apart: 10 us is the largest permitted error of the clocks' comparison.
    assert!(
        request.start_ns + 10_000 >= times[0] && request.end_ns <= times[1] + 10_000,
        "{request:?} {times:?}"
    );
    assert!(request.end_ns - request.start_ns >= 30_000_000, "{request:?}");
}

#[test]
fn collections_of_the_manager_are_recorded_on_the_same_clock() {
    let fixture = Fixture::with("c", &["-fno-builtin"], 100);
    let environment = [("TITHE_MODE", "collect"), ("TITHE_EVERY", "1000000")];
    let output = fixture.run_with(&[&tithe()], &environment, &["garbage", "20000"]);
    assert!(output.status.success(), "{output:?}");
    let [process] = &fixture.read()[..] else { panic!("one process") };
    assert_eq!((process.observed, process.unobserved, process.requests.len()), (1, 0, 20_000));
    // 20 MB of blocks with a collection per MB.
    let numbers: Vec<u64> = process.collections.iter().map(|collection| collection.number).collect();
    assert!((15..=25).contains(&numbers.len()), "{numbers:?}");
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    for collection in &process.collections {
        // They are caused by mallocs, each of which is in a request.
        let inside = |request: &&heaptoll_event_log::Request| {
            request.start_ns <= collection.start_ns && collection.end_ns <= request.end_ns
        };
        assert_eq!(process.requests.iter().filter(inside).count(), 1, "{collection:?}");
        assert!(collection.live_bytes > 0 && collection.reason == 1, "{collection:?}");
    }
}
