//! The programs' list, the help, and the launcher by itself.

use std::io::{BufRead, BufReader};
use std::os::fd::{AsRawFd, FromRawFd};
use std::process::{Command, Stdio};

use crate::bench::{Bench, assert_none_left, eventually, marker, programs_with};

#[test]
fn the_catalog_is_listed() {
    Bench::new().heaptoll(&["programs"]).exits(0).shows(&["cfrac", "gawk", "redis", "bundled"]);
}

#[test]
fn help_documents_the_exit_status() {
    Bench::new().heaptoll(&["run", "--help"]).exits(0).shows(&["Exit status:", "130 interrupted"]);
    Bench::new().heaptoll(&["--version"]).exits(0).shows(&["heaptoll "]);
}

#[test]
fn a_missing_installation_is_explained() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("bin")).expect("makes");
    std::fs::copy(env!("CARGO_BIN_EXE_heaptoll"), bench.path("bin/heaptoll")).expect("copies");
    let mut command = Command::new(bench.path("bin/heaptoll"));
    bench.furnish(&mut command);
    let said: crate::bench::Said =
        command.env_remove("HEAPTOLL_HOME").args(["run", "--", "ls"]).output().expect("runs").into();
    said.exits(2).complains(&["heaptoll-launch", "make build", "HEAPTOLL_HOME"]);
}

#[test]
fn a_catalog_program_runs_and_its_output_is_the_expected_one() {
    let bench = Bench::new();
    let json = bench.at("o.json");
    bench
        .heaptoll(&[
            "run",
            "--program",
            "cfrac",
            "--quick",
            "-m",
            "glibc",
            "-n",
            "1",
            "--warmup",
            "0",
            "--json",
            &json,
        ])
        .exits(0);
    let read = crate::bench::read_json(&json);
    let row = crate::bench::rows_of(&read, "glibc", "timed")[0];
    assert_eq!(row["outcome"]["kind"], "ok");
    assert_eq!(row["output_digest"], read["experiment"]["programs"][0]["expected_digest"]);
}

/// Starts the launcher as heaptoll does; gives it and the lines of its report.
fn launch(bench: &Bench, command: &[&str]) -> (std::process::Child, BufReader<std::fs::File>) {
    let mut ends = [0; 2];
    // SAFETY: pipe fills the two ints; afterwards the reading end belongs to the File alone.
    let (ours, theirs) = unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        (std::fs::File::from_raw_fd(ends[0]), std::fs::File::from_raw_fd(ends[1]))
    };
    let report = theirs.as_raw_fd().to_string();
    let mut launcher = Command::new(crate::marks::stage().join("lib/heaptoll/heaptoll-launch"));
    bench.furnish(&mut launcher);
    launcher.args(["report", &report, "timeout", "0", "thp", "", "counters", "0", "--"]).args(command);
    let child = launcher.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the launcher starts");
    drop(theirs);
    (child, BufReader::new(ours))
}

#[test]
fn a_termination_request_to_the_launcher_ends_the_tree_and_is_reported() {
    let bench = Bench::new();
    let mark = marker("launcher");
    let program = bench.program(
        "tree",
        "int main(int c, char **v) { signal(SIGTERM, SIG_IGN); if (!fork()) { setsid(); if (!fork()) for (;;) pause(); \
         for (;;) pause(); } for (;;) pause(); }",
    );
    let (mut child, mut report) = launch(&bench, &[&program, &mark]);
    let mut line = String::new();
    report.read_line(&mut line).expect("reads");
    assert!(line.starts_with("started "), "{line}");
    eventually("all three run", || programs_with(&mark).len() == 3);
    // SAFETY: a signal to our own child.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    line.clear();
    report.read_line(&mut line).expect("reads");
    assert!(line.starts_with("ended cancelled 0 "), "{line}");
    assert!(child.wait().expect("waits").success());
    assert_none_left(&mark);
}

#[test]
fn the_launcher_started_by_hand_explains_itself() {
    let launcher = crate::marks::stage().join("lib/heaptoll/heaptoll-launch");
    let said: crate::bench::Said = Command::new(launcher).arg("ls").output().expect("starts").into();
    said.exits(2).complains(&["is started by heaptoll, not by hand"]);
}
