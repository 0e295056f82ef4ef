//! The programs' list, the help, and the launcher by itself.

use std::io::{BufRead, BufReader};
use std::os::fd::{AsRawFd, FromRawFd};
use std::process::{Command, Stdio};

use crate::fixture::{Fixture, UNPRIVILEGED, assert_none_left, eventually, marker, programs_with};

#[test]
fn the_catalog_is_listed() {
    Fixture::new().heaptoll(&["programs"]).exits(0).shows(&["cfrac", "gawk", "redis", "bundled"]);
}

#[test]
fn help_documents_the_exit_status() {
    let help = Fixture::new().heaptoll(&["run", "--help"]).exits(0).shows(&["Exit status:"]).out;
    // Wherever its lines are broken.
    let words: Vec<&str> = help.split_whitespace().collect();
    assert!(words.join(" ").contains("130 interrupted"), "{help}");
    Fixture::new().heaptoll(&["--version"]).exits(0).shows(&["heaptoll "]);
}

#[test]
fn a_missing_installation_is_explained() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("bin")).expect("makes");
    std::fs::copy(env!("CARGO_BIN_EXE_heaptoll"), fixture.path("bin/heaptoll")).expect("copies");
    let mut command = Command::new(fixture.path("bin/heaptoll"));
    fixture.prepare(&mut command);
    let output: crate::fixture::CommandOutput =
        command.env_remove("HEAPTOLL_HOME").args(["run", "--", "ls"]).output().expect("runs").into();
    output.exits(2).complains(&["heaptoll-launch", "make build", "HEAPTOLL_HOME"]);
}

#[test]
fn a_catalog_program_runs_and_its_output_is_the_expected_one() {
    let fixture = Fixture::new();
    let json = fixture.at("o.json");
    fixture
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
    let read = crate::fixture::read_json(&json);
    let row = crate::fixture::rows_of(&read, "glibc", "timed")[0];
    assert_eq!(row["outcome"]["kind"], "ok");
    assert_eq!(row["output_digest"], read["experiment"]["programs"][0]["expected_digest"]);
}

/// Starts the launcher as heaptoll does, with further words of its order; returns it and the lines of its report.
fn launch(
    fixture: &Fixture,
    order: &[&str],
    command: &[&str],
) -> (std::process::Child, BufReader<std::fs::File>) {
    launch_as(fixture, &[], order, command)
}

/// As [`launch`], through a command that execs its arguments (as another user, for example).
fn launch_as(
    fixture: &Fixture,
    through: &[&str],
    order: &[&str],
    command: &[&str],
) -> (std::process::Child, BufReader<std::fs::File>) {
    let mut ends = [0; 2];
    // SAFETY: `pipe` writes to the two ints, which are live; afterwards the reading end belongs to the `File` alone.
    let (ours, theirs) = unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        (std::fs::File::from_raw_fd(ends[0]), std::fs::File::from_raw_fd(ends[1]))
    };
    // Two tests at once must not hold each other's pipes open.
    // SAFETY: `fcntl` takes no pointers; the descriptor is open, `pipe` above has made it.
    unsafe { libc::fcntl(ours.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
    let report = theirs.as_raw_fd().to_string();
    let path = heaptoll_testing::staged::file("heaptoll-launch");
    let mut words: Vec<&std::ffi::OsStr> = through.iter().map(std::ffi::OsStr::new).collect();
    words.push(path.as_os_str());
    let mut launcher = Command::new(words[0]);
    fixture.prepare(&mut launcher);
    launcher.args(&words[1..]).args(["report", &report]).args(order).arg("--").args(command);
    let child = launcher.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the launcher starts");
    drop(theirs);
    (child, BufReader::new(ours))
}

fn line_of(report: &mut BufReader<std::fs::File>) -> String {
    let mut line = String::new();
    report.read_line(&mut line).expect("reads");
    line
}

#[test]
fn a_launcher_whose_parent_is_gone_already_runs_nothing() {
    let fixture = Fixture::new();
    let run = |parent: u32| {
        let parent = parent.to_string();
        let (mut child, mut report) = launch(&fixture, &["parent", &parent], &["touch", &fixture.at("ran")]);
        let line = line_of(&mut report);
        child.wait().expect("waits");
        line
    };
    // The number of a process that is not its parent, as after heaptoll's death.
    assert!(run(1).starts_with(&format!("ended setup-failed {} ", libc::ESRCH)));
    assert!(!fixture.path("ran").exists());
    assert!(run(std::process::id()).starts_with("started "));
    assert!(fixture.path("ran").exists());
}

/// A set-user-ID program of root's that sleeps, in a folder open to all; `None` where it cannot be made.
fn privileged_sleeper(fixture: &Fixture) -> Option<String> {
    use std::os::unix::fs::PermissionsExt;
    if !crate::fixture::is_root() {
        eprintln!("only root can make a set-user-ID program of root's; nothing to test");
        return None;
    }
    let open = |name: &str, mode| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(fixture.path(name), permissions).expect("chmod");
    };
    // Truly root: an effective user alone could still be signalled by the user it came from.
    let source = "int main(int c, char **v) { int failed = setuid(0) != 0; if (c < 2) return failed; for (;;) pause(); }";
    let sleeper = fixture.program("sleeper", source);
    open("sleeper", 0o4755);
    open(".", 0o777);
    let becomes_root = Command::new(UNPRIVILEGED[0]).args(&UNPRIVILEGED[1..]).arg(&sleeper).status();
    if !becomes_root.is_ok_and(|status| status.success()) {
        eprintln!("the temporary folder or the container forbids set-user-ID programs; nothing to test");
        return None;
    }
    Some(sleeper)
}

fn end_survivors(mark: &str) {
    for pid in programs_with(mark) {
        // SAFETY: `kill` takes no pointers; the process has this test's own mark.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
    eventually("the survivors are gone", || programs_with(mark).is_empty());
}

#[test]
fn a_child_that_cannot_be_killed_does_not_hold_the_launcher() {
    let fixture = Fixture::new();
    let mark = marker("privileged");
    let Some(sleeper) = privileged_sleeper(&fixture) else { return };
    let begun = std::time::Instant::now();
    let (mut child, mut report) = launch_as(&fixture, &UNPRIVILEGED, &["timeout", "300"], &[&sleeper, &mark]);
    assert!(line_of(&mut report).starts_with("started "));
    let line = line_of(&mut report);
    assert!(child.wait().expect("waits").success());
    let survivors = programs_with(&mark).len();
    end_survivors(&mark);
    // Two seconds, and not the ten of one that cannot be killed for another reason.
    assert!(begun.elapsed() < std::time::Duration::from_secs(9), "{:?}", begun.elapsed());
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!((&words[..3], words[13]), (&["ended", "timeout", "0"][..], "1"), "{line}");
    assert_eq!(survivors, 1);
}

#[test]
fn a_run_with_a_child_that_cannot_be_killed_ends_with_a_warning() {
    let fixture = Fixture::new();
    let (mark, flag, db) = (marker("survivor"), fixture.at("flag"), fixture.at("e.db"));
    let Some(sleeper) = privileged_sleeper(&fixture) else { return };
    // Only when the file is there, and so not in the proof run.
    let program = fixture.program(
        "starts",
        "int main(int c, char **v) { free(malloc(9)); if (access(v[1], F_OK)) return 0; puts(\"out\"); \
         fflush(stdout); if (!fork()) { execv(v[2], v + 2); _exit(1); } for (;;) pause(); }",
    );
    let Some(unprivileged) = fixture.unprivileged() else { return };
    let run = ["run", "-m", "glibc", "-n", "1", "--warmup", "0", "--timeout", "2", "--db", &db];
    unprivileged(&[&run[..], &["--", &program, &flag, &sleeper, &mark]].concat()).exits(0);
    std::fs::write(&flag, "").expect("writes");
    let begun = std::time::Instant::now();
    let output = unprivileged(&["run", "--resume", &db, "-n", "2"]);
    let took = begun.elapsed();
    let survivors = programs_with(&mark).len();
    end_survivors(&mark);
    output.exits(1);
    assert!(took < std::time::Duration::from_secs(11), "{took:?}");
    let json = fixture.json(&db);
    let row = crate::fixture::rows_of(&json, "glibc", "timed")[1];
    assert_eq!((&row["outcome"]["kind"], survivors), (&"timeout".into(), 1));
    assert_eq!(row["output_bytes"], 4, "what it wrote before is kept: {row}");
    let output = crate::fixture::text(&row["stderr_tail"]);
    assert!(output.contains("heaptoll could not kill 1 process of another user; it still runs"), "{row}");
}

#[test]
fn a_termination_request_to_the_launcher_ends_the_tree_and_is_reported() {
    let fixture = Fixture::new();
    let mark = marker("launcher");
    let program = fixture.program(
        "tree",
        "int main(int c, char **v) { signal(SIGTERM, SIG_IGN); if (!fork()) { setsid(); if (!fork()) for (;;) pause(); \
         for (;;) pause(); } for (;;) pause(); }",
    );
    let (mut child, mut report) = launch(&fixture, &[], &[&program, &mark]);
    let mut line = String::new();
    report.read_line(&mut line).expect("reads");
    assert!(line.starts_with("started "), "{line}");
    eventually("all three run", || programs_with(&mark).len() == 3);
    // SAFETY: `kill` takes no pointers; the child is not reaped yet, so that its number is still its own.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    line.clear();
    report.read_line(&mut line).expect("reads");
    assert!(line.starts_with("ended cancelled 0 "), "{line}");
    assert!(child.wait().expect("waits").success());
    assert_none_left(&mark);
}

#[test]
fn the_launcher_started_by_hand_explains_itself() {
    let launcher = heaptoll_testing::staged::file("heaptoll-launch");
    let output: crate::fixture::CommandOutput =
        Command::new(launcher).arg("ls").output().expect("starts").into();
    output.exits(2).complains(&["is started by heaptoll, not by hand"]);
}
