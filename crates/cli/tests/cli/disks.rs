//! Full and forbidden places: what was measured is shown and kept, and the exit status shows that something is missing.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::fixture::{CommandOutput, Fixture, rows};

const RUN: [&str; 8] = ["run", "-m", "glibc", "-m", "glibc", "-n", "2", "--db"];

#[test]
fn a_full_device_as_output_fails_after_the_table_and_leaves_the_experiment_whole() {
    for form in ["--json", "--csv", "--html", "--parquet"] {
        let fixture = Fixture::new();
        let (db, good) = (fixture.at("e.db"), fixture.at("good.csv"));
        let mut arguments = RUN.to_vec();
        arguments.extend([&db, form, "/dev/full"]);
        if form != "--csv" {
            arguments.extend(["--csv", &good]);
        }
        arguments.extend(["--", "ls", "/"]);
        fixture.heaptoll(&arguments).exits(1).shows(&["glibc#2"]).complains(&["/dev/full", "No space left"]);
        assert_eq!(rows(&fixture.json(&db)).len(), 4 + 2 * 6);
        assert_eq!(form != "--csv", fixture.path("good.csv").exists(), "the others are written");
    }
}

#[test]
fn a_full_standard_output_does_not_keep_files_from_being_written() {
    let fixture = Fixture::new();
    let (db, csv) = (fixture.at("e.db"), fixture.at("o.csv"));
    let mut command = fixture.command(&[&RUN[..], &[&db, "--csv", &csv, "--", "ls", "/"]].concat());
    let full = std::fs::File::options().write(true).open("/dev/full").expect("opens");
    let output: CommandOutput = command.stdout(full).output().expect("runs").into();
    output.exits(1).complains(&["standard output", "No space left"]);
    assert!(fixture.path("o.csv").exists());
    let full = std::fs::File::options().write(true).open("/dev/full").expect("opens");
    let mut command = fixture.command(&["report", &db, "--json", &fixture.at("o.json")]);
    let output: CommandOutput = command.stdout(full).output().expect("runs").into();
    output.exits(1).complains(&["standard output"]);
    assert!(fixture.path("o.json").exists());
}

#[test]
fn outputs_that_cannot_be_written_are_refused_before_anything_runs() {
    let fixture = Fixture::new();
    let marker = fixture.at("was-run");
    for form in ["--json", "--csv", "--html", "--parquet"] {
        let folder = fixture.at(".");
        let touch = ["--", "touch", &marker];
        let run = |path: &str| fixture.heaptoll(&[&["run", "-m", "glibc", form, path][..], &touch].concat());
        run(&folder).exits(2).complains(&["it is a folder"]);
        run("/no/such/folder/o").exits(2).complains(&["/no/such/folder", "there is no folder"]);
        run("/proc/o").exits(2).complains(&["/proc/o"]);
    }
    assert!(!fixture.path("was-run").exists());
}

#[test]
fn a_folder_without_permission_is_refused() {
    let fixture = Fixture::new();
    let folder = fixture.path("closed");
    std::fs::create_dir(&folder).expect("makes");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o555)).expect("chmod");
    let (json, db) = (fixture.at("closed/o.json"), fixture.at("closed/e.db"));
    // Root may write anywhere.
    let Some(run) = fixture.unprivileged() else { return };
    let once = ["run", "-m", "glibc", "-n", "1"];
    run(&[&once[..], &["--json", &json, "--", "ls"]].concat())
        .exits(2)
        .complains(&["no permission", "closed"]);
    run(&[&once[..], &["--db", &db, "--", "ls"]].concat())
        .exits(2)
        .complains(&["closed/e.db", "permissions"]);
    // The other user must be able to measure, too.
    let fine = fixture.at("o.json");
    run(&[&once[..], &["--json", &fine, "--", "ls"]].concat()).exits(0).shows(&["glibc"]);
}

/// Prints what it would take to see this fail when it is skipped.
fn mounts() -> bool {
    let mounts = Command::new("unshare")
        .args(["--mount", "sh", "-c", "mount -t tmpfs -o size=64k heaptoll-test /mnt"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !mounts {
        eprintln!("mounting is not permitted here: only the file size limit is tried");
    }
    mounts
}

#[test]
fn a_disk_that_fills_up_ends_the_run_with_the_rows_so_far() {
    if !mounts() {
        return;
    }
    let fixture = Fixture::new();
    let kept = fixture.at("kept.db");
    // A file system that exists only for this shell and what it starts; it holds the tables and some rows.
    let script = "mount -t tmpfs -o size=100k heaptoll-test \"$MNT\" && \
        \"$HT\" run -m glibc -m glibc -n 300 --db \"$MNT/e.db\" -- ls /; code=$?; cp \"$MNT/e.db\" \"$KEPT\"; exit $code";
    std::fs::create_dir(fixture.path("mnt")).expect("makes");
    let mut command = Command::new("unshare");
    fixture.prepare(&mut command);
    command.args(["--mount", "sh", "-c", script]);
    command.env("HT", env!("CARGO_BIN_EXE_heaptoll")).env("MNT", fixture.path("mnt")).env("KEPT", &kept);
    let output: CommandOutput = command.output().expect("runs").into();
    output
        .exits(1)
        .shows(&["glibc#2", "baseline"])
        .complains(&["e.db", "the disk is full or failing; rows so far are kept"]);
    let rows_kept = rows(&fixture.json(&kept)).len();
    assert!(rows_kept > 10 && rows_kept < 1200, "{rows_kept} rows");
}

#[test]
fn a_file_size_limit_ends_the_run_with_the_rows_so_far() {
    let fixture = Fixture::new();
    let db = fixture.at("e.db");
    fixture
        .heaptoll(&["run", "-m", "glibc", "-m", "glibc", "-n", "1", "--db", &db, "--", "ls", "/"])
        .exits(0);
    // In blocks of 512 bytes, too few for the proof run's own files: the experiment exists already.
    let mut command = Command::new("sh");
    fixture.prepare(&mut command);
    command.args(["-c", "ulimit -f 160; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_heaptoll")]);
    command.args(["run", "--resume", &db, "-n", "300"]);
    let output: CommandOutput = command.output().expect("runs").into();
    output.exits(1).shows(&["glibc#2", "baseline"]).complains(&["e.db", "rows so far are kept"]);
    let rows_kept = rows(&fixture.json(&db)).len();
    assert!(rows_kept > 10, "{rows_kept} rows");
}

#[test]
fn a_full_temporary_folder_is_named() {
    let fixture = Fixture::new();
    let mut command = fixture.command(&["run", "-m", "glibc", "-n", "1", "--", "ls", "/"]);
    let output: CommandOutput = command.env("TMPDIR", "/no/such/folder").output().expect("runs").into();
    output.exits(2).complains(&["scratch folder", "is the temporary folder writable"]);
}

#[test]
fn a_state_folder_that_cannot_be_made_makes_db_required() {
    let fixture = Fixture::new();
    let mut command = fixture.command(&["run", "-m", "glibc", "-n", "1", "--", "ls", "/"]);
    let output: CommandOutput = command.env("XDG_STATE_HOME", "/proc/state").output().expect("runs").into();
    output.exits(2).complains(&["/proc/state", "name a file with --db"]);
}

/// Before, all candidates had been searched when it was refused, with advice that `choose` has no option for.
#[test]
fn a_state_folder_that_cannot_be_made_ends_a_choice_before_its_search() {
    let fixture = Fixture::new();
    let words = ["choose", "-m", "knuth", "-m", "bump", "-m", "buddy", "--", "ls", "/"];
    let mut command = fixture.command(&words);
    let output: CommandOutput = command.env("XDG_STATE_HOME", "/proc/state").output().expect("runs").into();
    assert!(!output.err.contains("round 1"), "{}", output.err);
    output.exits(2).complains(&["/proc/state", "XDG_STATE_HOME"]);
}

#[test]
fn a_temporary_folder_that_fills_up_ends_the_run_with_the_rows_so_far() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("tmp")).expect("makes");
    let (db, tmp) = (fixture.at("e.db"), fixture.at("tmp"));
    // The program itself takes the folder away in its second timed run.
    let count = fixture.at("count");
    let script = "echo x >> \"$0\"; [ $(wc -l < \"$0\") -lt 4 ] || rm -rf \"$1\"";
    let run = [
        "run", "-m", "glibc", "-n", "5", "--warmup", "0", "--db", &db, "--", "sh", "-c", script, &count, &tmp,
    ];
    let output: CommandOutput = fixture.command(&run).env("TMPDIR", &tmp).output().expect("runs").into();
    output.exits(1).shows(&["baseline"]).complains(&["cannot make a scratch folder"]);
    assert!(!rows(&fixture.json(&db)).is_empty());
}

/// Before, the leaks of the program itself were lost with the trace of a child.
#[test]
fn a_child_whose_trace_cannot_be_made_costs_its_events_and_nothing_else() {
    let fixture = Fixture::new();
    let child = "#include <stdlib.h>\n#include <unistd.h>\n#include <sys/wait.h>\nint main(void) { \
        if (!fork()) { free(malloc(100)); return 0; } free(malloc(200)); return wait(0) < 0; }";
    let program = fixture.program("child", child);
    let graph = fixture.at("x.graph");
    std::fs::write(fixture.path("x.graph.children"), "a file").expect("writes");
    let lost = ["x.graph.children", "the events of that process are lost"];
    let leaks = ["leaks", "-o", &graph, "--force", "--", &program];
    fixture.heaptoll(&leaks).exits(1).shows(&["What leaks in"]).complains(&lost);
    let record = ["record", "--graph", "--force", "-o", &graph, "--", &program];
    fixture.heaptoll(&record).exits(1).complains(&lost);
}

/// Before, heaptoll died of SIGBUS in the ring of a process for which there was no space, without a word, and left its
/// folders.
#[test]
fn a_folder_without_space_for_each_process_costs_their_events_and_nothing_else() {
    if !mounts() {
        return;
    }
    let fixture = Fixture::new();
    let several = "#include <unistd.h>\n#include <sys/wait.h>\nint main(void) { int hold[2]; if (pipe(hold)) return 2; \
        for (int i = 0; i < 8; i++) if (!fork()) { char c; close(hold[1]); free(malloc(100)); return read(hold[0], &c, 1); } \
        usleep(200000); close(hold[1]); while (wait(0) > 0); return 0; }";
    let script = "mount -t tmpfs -o size=400k heaptoll-test /dev/shm && mount -t tmpfs -o size=800k heaptoll-test \"$TMPDIR\" \
        && { \"$HT\" leaks -- \"$PROGRAM\"; code=$?; ls \"$TMPDIR\" /dev/shm >\"$LEFT\"; exit $code; }";
    std::fs::create_dir(fixture.path("mnt")).expect("makes");
    let mut command = Command::new("unshare");
    fixture.prepare(&mut command);
    command.args(["--mount", "sh", "-c", script]).env("HT", env!("CARGO_BIN_EXE_heaptoll"));
    command.env("PROGRAM", fixture.program("several", several)).env("LEFT", fixture.path("left"));
    let output: CommandOutput = command.env("TMPDIR", fixture.path("mnt")).output().expect("runs").into();
    output.shows(&["What leaks in"]).complains(&["there is no space in", "TMPDIR"]);
    let left = std::fs::read_to_string(fixture.path("left")).expect("a list");
    assert!(!left.contains("scratch"), "{left}");
}
