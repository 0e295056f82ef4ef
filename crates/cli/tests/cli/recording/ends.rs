//! Recordings that end badly: heaptoll killed, disks full, files forbidden.

use std::path::Path;
use std::process::{Command, Stdio};

use heaptoll_trace::{Batch, EventKind, Reader};

use super::{Trace, record};
use crate::fixture::{CommandOutput, Fixture, eventually, is_root, marker, processes_with};

/// Allocates until the file of its first argument is there, and prints to its standard output whether the sum of what it
/// did is right.
const BUSY: &str = "int main(int c, char **v) { unsigned long sum = 0, n = 0; void *kept[256] = {0}; \
    do for (int i = 0; i < 1000; i++, n++) { unsigned long *p = malloc(8 + n % 300); *p = n; free(kept[n & 255]); \
    kept[n & 255] = p; sum += *p; } while (access(v[1], F_OK)); \
    printf(\"%d\\n\", sum == n * (n - 1) / 2); return 5; }";

/// Events of a trace that is being written: those in the file so far.
fn written(trace: &Path) -> usize {
    let Ok(mut reader) = Reader::open(trace) else { return 0 };
    let (mut batch, mut events) = (Batch::default(), 0);
    while matches!(reader.read(&mut batch), Ok(true)) {
        events += batch.events.len();
    }
    events
}

#[test]
fn when_heaptoll_is_killed_the_program_goes_on_and_the_trace_is_whole_up_to_there() {
    let fixture = Fixture::new();
    let program = fixture.program("busy", BUSY);
    let (stop, out, mark) = (fixture.at("stop"), fixture.at("out"), marker("orphan"));
    let mut command = fixture.command(&["record", "-o", "t", "--", &program, &stop, &mark]);
    let file = std::fs::File::create(&out).expect("makes");
    let mut child = command.current_dir(fixture.path(".")).stdout(file).spawn().expect("starts");
    eventually("the first of it is safe", || written(&fixture.path("t")) > 20_000);
    child.kill().expect("kills");
    child.wait().expect("waits");
    assert!(!processes_with(&mark).is_empty(), "the program lives");
    std::fs::write(&stop, "").expect("writes");
    eventually("it ends by itself", || processes_with(&mark).is_empty());
    assert_eq!(std::fs::read_to_string(&out).expect("reads"), "1\n", "it did its work");
    let trace = Trace::read(fixture.path("t"));
    assert!(trace.ending.is_none() && trace.made() > 10_000, "{:?}", trace.kinds);
    assert!(trace.gaps.is_empty());
}

#[test]
fn a_recorder_that_is_killed_leaves_the_call_stacks_of_all_events_that_it_wrote() {
    let fixture = Fixture::new();
    let program = fixture.program("busy", BUSY);
    let (stop, out, mark) = (fixture.at("stop"), fixture.at("out"), marker("stacks"));
    let mut command = fixture.command(&["record", "--sites", "-o", "t", "--", &program, &stop, &mark]);
    let file = std::fs::File::create(&out).expect("makes");
    let mut child = command.current_dir(fixture.path(".")).stdout(file).spawn().expect("starts");
    eventually("the first of it is safe", || written(&fixture.path("t")) > 20_000);
    child.kill().expect("kills");
    child.wait().expect("waits");
    std::fs::write(&stop, "").expect("writes");
    eventually("it ends by itself", || processes_with(&mark).is_empty());
    let mut reader = Reader::open(&fixture.path("t")).expect("a trace");
    let (mut batch, mut used) = (Batch::default(), std::collections::BTreeSet::new());
    while reader.read(&mut batch).expect("reads") {
        used.extend(batch.events.iter().filter(|event| event.kind.allocates()).map(|event| event.site));
    }
    let sites = reader.tables().sites.as_ref().expect("call stacks");
    let is_known = |site: &u32| sites.sites.get(*site as usize).is_some_and(|site| !site.frames.is_empty());
    assert!(!used.is_empty() && used.iter().all(is_known), "{used:?}");
    let objects: Vec<&str> = sites.frames.iter().map(|frame| frame.object.as_str()).collect();
    assert!(objects.contains(&program.as_str()), "{objects:?}");
    // Every command that shows figures of it states that it is cut off, how far it goes, and ends alike.
    let trace = fixture.at("t");
    let folded = fixture.at("folded");
    fixture.heaptoll(&["leaks", &trace]).exits(1).shows(&["busy+0x", "has no ending", "the run's first "]);
    fixture.heaptoll(&["trace", "stat", &trace]).exits(1).shows(&["has no ending", "the run's first "]);
    fixture
        .heaptoll(&["trace", "lifetimes", &trace, "--by", "site"])
        .exits(1)
        .shows(&["busy+0x", "the run's first "]);
    fixture.heaptoll(&["trace", "bound", &trace]).exits(1).shows(&["has no ending"]);
    fixture.heaptoll(&["ledger", &trace]).exits(2).complains(&["has no ledger"]);
    fixture.heaptoll(&["diff", &trace, &trace]).exits(1).shows(&["has no ending"]);
    fixture
        .heaptoll(&["trace", "export", &trace, "--to", "folded", "-o", &folded])
        .exits(1)
        .complains(&["has no ending"]);
    assert!(std::fs::read_to_string(&folded).expect("reads").contains("busy+0x"));
}

/// Whether file systems can be mounted here.
fn mounts() -> bool {
    let tried = Command::new("unshare")
        .args(["--mount", "sh", "-c", "mount -t tmpfs -o size=64k heaptoll-test /mnt"])
        .output();
    let mounts = tried.is_ok_and(|output| output.status.success());
    if !mounts {
        eprintln!("mounting is not permitted here: only the file size limit is tried");
    }
    mounts
}

/// Random sizes, which do not compress to nothing.
const NOISE: &str = "int main(void) { unsigned x = 1; void *kept[4096] = {0}; for (int i = 0; i < 1000000; i++) { \
    x = x * 1103515245u + 12345; unsigned at = x >> 9 & 4095; free(kept[at]); kept[at] = malloc(x >> 18); } \
    puts(\"done\"); return 0; }";

fn has_a_marked_gap(trace: &Trace, whole: u64) {
    let lost: u64 = trace.gaps.iter().filter_map(|gap| gap.events).sum();
    assert!(trace.gaps.iter().any(|gap| gap.why.contains("full")), "{:?}", trace.gaps);
    let kept: u64 = trace.kinds.values().sum();
    assert!(kept > 1000 && lost > 1000 && kept + lost >= whole, "{kept} kept, {lost} lost");
    assert_eq!(trace.how(), "exited with status 0");
}

#[test]
fn a_disk_that_fills_up_does_not_disturb_the_program_and_leaves_a_marked_gap() {
    if !mounts() {
        return;
    }
    let fixture = Fixture::new();
    let program = fixture.program("noise", NOISE);
    let kept = fixture.at("kept");
    let script = "mount -t tmpfs -o size=512k heaptoll-test /mnt || exit 99; \
                  \"$0\" record -o /mnt/t -- \"$1\"; code=$?; cp /mnt/t \"$2\"; exit $code";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_heaptoll"), &program, &kept]);
    fixture.prepare(&mut command);
    let output: CommandOutput = command.output().expect("unshare runs").into();
    let output =
        output.exits(1).complains(&["/mnt/t is incomplete", "No space left", "heaptoll trace stat /mnt/t"]);
    assert_eq!(output.err.matches("the program goes on").count(), 1, "printed once: {}", output.err);
    assert_eq!(output.out, "done\n");
    has_a_marked_gap(&Trace::read(&kept), 1_990_000);
}

#[test]
fn a_limit_of_file_sizes_is_as_good_as_a_full_disk() {
    let fixture = Fixture::new();
    let program = fixture.program("noise", NOISE);
    // The soft limit: what makes the rings may go beyond it, what a trace is written to may not.
    let script = "ulimit -S -f 600; exec \"$0\" record -o t -- \"$1\"";
    let mut command = Command::new("bash");
    command.args(["-c", script, env!("CARGO_BIN_EXE_heaptoll"), &program]).current_dir(fixture.path("."));
    fixture.prepare(&mut command);
    let output: CommandOutput = command.output().expect("bash runs").into();
    let output = output.exits(1).complains(&["t is incomplete"]);
    assert_eq!(output.out, "done\n");
    has_a_marked_gap(&Trace::read(fixture.path("t")), 1_990_000);
}

/// Before, heaptoll mapped 2.18 GB at once, and recorded nothing in a shell with a limit below.
#[test]
fn a_limit_of_the_address_space_of_heaptoll_itself_makes_its_file_smaller() {
    let fixture = Fixture::new();
    let program = fixture.program("small", "int main(void) { free(malloc(9)); return 0; }");
    let script = "ulimit -v 800000; exec \"$0\" record --sites -o t -- \"$1\"";
    let mut command = Command::new("bash");
    command.args(["-c", script, env!("CARGO_BIN_EXE_heaptoll"), &program]).current_dir(fixture.path("."));
    fixture.prepare(&mut command);
    let output: CommandOutput = command.output().expect("bash runs").into();
    output.exits(0).complains(&["events"]);
}

#[test]
fn the_programs_own_failure_is_what_a_failed_disk_does_not_hide() {
    let fixture = Fixture::new();
    let program = fixture
        .program("fails", "int main(void) { for (int i = 0; i < 100; i++) free(malloc(i)); return 3; }");
    let arguments = ["record", "-o", "/dev/full", "--", &program];
    // Not even the beginning of the trace can be written: the program runs all the same.
    fixture.heaptoll(&arguments).exits(3).complains(&["/dev/full", "No space left"]);
}

#[test]
fn folders_that_cannot_be_written_to_are_refused_before_anything_runs() {
    let fixture = Fixture::new();
    let ran = fixture.at("ran");
    let run = |output: &str| fixture.heaptoll(&["record", "-o", output, "--", "touch", &ran]);
    run("/no/such/folder/t").exits(2).complains(&["/no/such/folder/t", "No such file"]);
    run("/proc/t").exits(2).complains(&["/proc/t"]);
    run(&fixture.at(".")).exits(2).complains(&["is a folder"]);
    run("-").exits(2).complains(&["standard output", "-o"]);
    std::fs::write(fixture.path("there"), "precious").expect("writes");
    run(&fixture.at("there")).exits(2).complains(&["exists", "--force"]);
    assert_eq!(std::fs::read_to_string(fixture.path("there")).expect("reads"), "precious");
    assert!(!fixture.path("ran").exists());
    if !is_root() {
        let closed = fixture.path("closed");
        std::fs::create_dir(&closed).expect("makes");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o555);
        std::fs::set_permissions(&closed, mode).expect("chmod");
        run(&fixture.at("closed/t")).exits(2).complains(&["closed/t", "ermission"]);
    }
}

#[test]
fn force_overwrites() {
    let fixture = Fixture::new();
    std::fs::write(fixture.path("t"), "old").expect("writes");
    record(&fixture, &["--force"], &["ls", "/"]).exits(0);
    assert!(Trace::read(fixture.path("t")).whole().made() > 10);
}

#[test]
fn a_program_that_crashes_is_recorded_to_its_last_call() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "crash",
        "int main(void) { signal(SIGSEGV, SIG_DFL); for (int i = 0; i < 5000; i++) malloc(i); \
         malloc(77777); *(volatile int *)8 = 1; }",
    );
    record(&fixture, &[], &[&program]).exits(139);
    let trace = Trace::read(fixture.path("t")).whole();
    assert_eq!(trace.how(), "killed by signal 11");
    assert_eq!(trace.of(&[EventKind::Malloc]), 5001);
    assert_eq!(trace.requested, 5000 * 4999 / 2 + 77777);
}

#[test]
fn a_program_that_closes_all_its_descriptors_is_recorded_all_the_same() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "closes",
        "int main(void) { for (int i = 0; i < 1000; i++) malloc(3); for (int i = 0; i < 4096; i++) close(i); \
         for (int i = 0; i < 500000; i++) free(malloc(7)); return 0; }",
    );
    record(&fixture, &[], &[&program]).exits(0);
    let trace = Trace::read(fixture.path("t")).whole();
    assert_eq!((trace.made(), trace.freed()), (501_000, 500_000));
}

#[test]
fn what_heaptoll_made_for_the_recording_is_gone_afterwards() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("run")).expect("makes");
    let mut command = fixture.command(&["record", "-o", "t", "--", "ls", "/"]);
    command.env("XDG_RUNTIME_DIR", fixture.path("run")).env("TMPDIR", fixture.path("run"));
    let output: CommandOutput =
        command.current_dir(fixture.path(".")).stdout(Stdio::piped()).output().expect("starts").into();
    output.exits(0);
    assert!(std::fs::read_dir(fixture.path("run")).expect("reads").next().is_none());
}
