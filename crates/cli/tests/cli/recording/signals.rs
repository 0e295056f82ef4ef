//! Ctrl-C, signals of supervisors, and the recorder or the program ending first.

use std::fs::File;
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use super::Trace;
use crate::fixture::{CommandOutput, Fixture, assert_none_left, eventually, marker, processes_with};

/// A recording of a program under way, in the fixture's folder. Its output goes to files: a pipe would have no end
/// before that of the last process that holds it.
struct Recording {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Recording {
    fn start(fixture: &Fixture, command: &[&str]) -> Recording {
        let mut command = fixture.command(&[&["record", "-o", "t", "--"], command].concat());
        let (out, err) = (fixture.path("record.out"), fixture.path("record.err"));
        let make = |path| File::create(path).expect("makes");
        command.current_dir(fixture.path(".")).stdout(make(&out)).stderr(make(&err));
        Recording { child: command.spawn().expect("heaptoll starts"), out, err }
    }

    /// Sends a signal to heaptoll alone.
    fn signal(&self, signal: i32) {
        // SAFETY: `kill` takes no pointers; the child is not reaped before `end`, so that its number is still its own.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }

    /// Whether its standard error has these words by now.
    fn has_printed(&self, words: &str) -> bool {
        std::fs::read_to_string(&self.err).is_ok_and(|output| output.contains(words))
    }

    fn end(mut self) -> CommandOutput {
        let code = self.child.wait().expect("ends").code();
        let read = |path| std::fs::read_to_string(path).expect("reads");
        CommandOutput { code, out: read(&self.out), err: read(&self.err) }
    }
}

/// Waits, allocating now and then, until the file of its first argument is there.
const WAITS: &str = "int main(int c, char **v) { close(open(v[2], O_CREAT | O_WRONLY, 0644)); \
    while (access(v[1], F_OK)) { free(malloc(9)); usleep(1000); } puts(\"came to its end\"); return 4; }";

#[test]
fn the_first_interrupt_is_the_programs_and_the_recording_goes_on() {
    let fixture = Fixture::new();
    let program = fixture.program("waits", WAITS);
    let (stop, began) = (fixture.at("stop"), fixture.at("began"));
    let recording = Recording::start(&fixture, &[&program, &stop, &began]);
    eventually("it began", || fixture.path("began").exists());
    recording.signal(libc::SIGINT);
    std::thread::sleep(Duration::from_millis(100));
    std::fs::write(&stop, "").expect("writes");
    let output = recording.end().exits(4).shows(&["came to its end"]);
    assert!(output.err.contains("t: "), "{}", output.err);
    assert_eq!(Trace::read(fixture.path("t")).whole().how(), "exited with status 4");
}

#[test]
fn the_second_interrupt_stops_the_recording_and_leaves_the_program_alone() {
    let fixture = Fixture::new();
    let program = fixture.program("waits", WAITS);
    let (stop, began, mark) = (fixture.at("stop"), fixture.at("began"), marker("alone"));
    let recording = Recording::start(&fixture, &[&program, &stop, &began, &mark]);
    eventually("it began", || fixture.path("began").exists());
    recording.signal(libc::SIGINT);
    recording.signal(libc::SIGHUP);
    recording.end().exits(130);
    assert!(!processes_with(&mark).is_empty(), "the program lives");
    std::fs::write(&stop, "").expect("writes");
    eventually("it ends", || processes_with(&mark).is_empty());
    let out = std::fs::read_to_string(fixture.path("record.out")).expect("reads");
    assert_eq!(out, "came to its end\n");
    assert_eq!(Trace::read(fixture.path("t")).whole().how(), "recorder stopped");
}

#[test]
fn a_termination_is_passed_on_and_the_programs_answer_is_recorded() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "answers",
        "static void on(int s) { for (int i = 0; i < 1000; i++) free(malloc(11)); _exit(9); } \
         int main(int c, char **v) { signal(SIGTERM, on); free(malloc(5)); \
         close(open(v[1], O_CREAT | O_WRONLY, 0644)); for (;;) pause(); }",
    );
    let began = fixture.at("began");
    let recording = Recording::start(&fixture, &[&program, &began]);
    eventually("it began", || fixture.path("began").exists());
    recording.signal(libc::SIGTERM);
    recording.end().exits(9);
    let trace = Trace::read(fixture.path("t")).whole();
    assert_eq!((trace.how(), trace.made()), ("exited with status 9", 1001));
}

#[test]
fn a_daemon_is_waited_for_and_spoken_of() {
    let fixture = Fixture::new();
    // It prints nothing before its first process has ended.
    let program = fixture.program(
        "daemon",
        "int main(int c, char **v) { free(malloc(3)); if (fork()) return 0; setsid(); if (fork()) _exit(0); \
         usleep(200000); for (int i = 0; i < 100; i++) malloc(i); while (access(v[1], F_OK)) usleep(1000); \
         for (int i = 0; i < 100; i++) malloc(i); return 0; }",
    );
    let (stop, mark) = (fixture.at("stop"), marker("waited-for"));
    let recording = Recording::start(&fixture, &[&program, &stop, &mark]);
    eventually("it is spoken of", || recording.has_printed("; Ctrl-C ends the recording without"));
    std::fs::write(&stop, "").expect("writes");
    recording.end().exits(0).complains(&[" not: ", "daemon (", "Ctrl-C"]);
    assert!(Trace::read(fixture.path("t")).whole().made() >= 1);
    let daemon = super::children(&fixture);
    assert_eq!(daemon.len(), 1, "{daemon:?}");
    let trace = Trace::read(&daemon[0]).whole();
    assert_eq!((trace.made(), trace.how()), (200, "ended"));
}

#[test]
fn an_interrupt_ends_the_wait_for_a_daemon_that_never_ends() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "daemon",
        "int main(int c, char **v) { if (fork()) return 6; setsid(); for (int i = 0; i < 100; i++) malloc(i); \
         close(open(v[2], O_CREAT | O_WRONLY, 0644)); for (;;) { free(malloc(1)); usleep(1000); } }",
    );
    let (began, mark) = (fixture.at("began"), marker("left"));
    let recording = Recording::start(&fixture, &[&program, &mark, &began]);
    eventually("it began", || fixture.path("began").exists());
    // Until the first process has ended, an interrupt is the program's.
    eventually("it waits for the daemon", || recording.has_printed("; Ctrl-C ends the recording without"));
    recording.signal(libc::SIGINT);
    recording.end().exits(6);
    let left = processes_with(&mark);
    assert_eq!(left.len(), 1, "the daemon lives");
    // SAFETY: `kill` takes no pointers; the process was started by this test and has its mark.
    unsafe { libc::kill(left[0], libc::SIGKILL) };
    let daemon = Trace::read(&super::children(&fixture)[0]).whole();
    assert_eq!(daemon.how(), "recorder stopped");
    assert!(daemon.made() >= 100);
}

#[test]
fn an_exit_status_above_128_is_no_signal() {
    let fixture = Fixture::new();
    let program = fixture.program("exits", "int main(void) { free(malloc(9)); return 255; }");
    let output = fixture.heaptoll(&["record", "-o", &fixture.at("t"), "--", &program]).exits(255);
    assert!(!output.err.contains("killed"), "{}", output.err);
    let program = fixture.program("dies", "int main(void) { free(malloc(9)); return raise(SIGTERM); }");
    fixture
        .heaptoll(&["record", "-o", &fixture.at("u"), "--", &program])
        .exits(128 + libc::SIGTERM)
        .complains(&["killed by signal 15"]);
}

/// Before, a service could be recorded for a time by another program alone, whose signal its children did not get.
#[test]
fn a_recording_for_a_time_ends_the_program_and_all_that_it_started_by_the_signal_of_ctrl_c() {
    let fixture = Fixture::new();
    let mark = marker("for");
    let program = fixture.program("serves", "int main(void) { for (;;) { malloc(9); usleep(1000); } }");
    let script = format!("{program} {mark}; exit 0");
    let record = |rest: &[&str]| fixture.heaptoll(&[&["record", "--for", "1s", "-f", "-o"], rest].concat());
    let trace = fixture.at("t");
    record(&[&trace, "--", &program]).exits(0);
    record(&[&trace, "--", "sh", "-c", &script]).exits(0);
    assert_none_left(&mark);
    record(&[&fixture.at("p.pb.gz"), "--sample", "1", "--", &program]).exits(0);
    fixture.heaptoll(&["ledger", "--for", "1s", "--", &program]).exits(0).complains(&["killed by signal 2"]);
    // Its own status is passed on, and one that ignores the signal goes on by itself.
    let own = "trap 'exit 7' INT; while :; do sleep 0.1; done";
    record(&[&trace, "--", "sh", "-c", own]).exits(7);
    record(&[&trace, "--", "sh", "-c", "trap '' INT; exec sleep 20"])
        .exits(130)
        .complains(&["the program still runs; it goes on unrecorded (process "]);
}
