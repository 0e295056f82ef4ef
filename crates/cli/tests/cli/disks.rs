//! Full and forbidden places: what was measured is shown and kept, and the exit status says that something is missing.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::bench::{Bench, Said, is_root, rows};

const RUN: [&str; 8] = ["run", "-m", "glibc", "-m", "glibc", "-n", "2", "--db"];

#[test]
fn a_full_device_as_output_fails_after_the_table_and_leaves_the_experiment_whole() {
    for form in ["--json", "--csv", "--html", "--parquet"] {
        let bench = Bench::new();
        let (db, good) = (bench.at("e.db"), bench.at("good.csv"));
        let mut arguments = RUN.to_vec();
        arguments.extend([&db, form, "/dev/full"]);
        if form != "--csv" {
            arguments.extend(["--csv", &good]);
        }
        arguments.extend(["--", "ls", "/"]);
        bench.heaptoll(&arguments).exits(1).shows(&["glibc#2"]).complains(&["/dev/full", "No space left"]);
        assert_eq!(rows(&bench.json(&db)).len(), 2 + 2 * 6);
        assert_eq!(form != "--csv", bench.path("good.csv").exists(), "the others are written");
    }
}

#[test]
fn a_full_standard_output_does_not_keep_files_from_being_written() {
    let bench = Bench::new();
    let (db, csv) = (bench.at("e.db"), bench.at("o.csv"));
    let mut command = bench.command(&[&RUN[..], &[&db, "--csv", &csv, "--", "ls", "/"]].concat());
    let full = std::fs::File::options().write(true).open("/dev/full").expect("opens");
    let said: Said = command.stdout(full).output().expect("runs").into();
    said.exits(1).complains(&["standard output", "No space left"]);
    assert!(bench.path("o.csv").exists());
    let full = std::fs::File::options().write(true).open("/dev/full").expect("opens");
    let mut command = bench.command(&["report", &db, "--json", &bench.at("o.json")]);
    let said: Said = command.stdout(full).output().expect("runs").into();
    said.exits(1).complains(&["standard output"]);
    assert!(bench.path("o.json").exists());
}

#[test]
fn outputs_that_cannot_be_written_are_refused_before_anything_runs() {
    let bench = Bench::new();
    let marker = bench.at("was-run");
    for form in ["--json", "--csv", "--html", "--parquet"] {
        let folder = bench.at(".");
        let touch = ["--", "touch", &marker];
        let run = |path: &str| bench.heaptoll(&[&["run", "-m", "glibc", form, path][..], &touch].concat());
        run(&folder).exits(2).complains(&["it is a folder"]);
        run("/no/such/folder/o").exits(2).complains(&["/no/such/folder", "there is no folder"]);
        run("/proc/o").exits(2).complains(&["/proc/o"]);
    }
    assert!(!bench.path("was-run").exists());
}

#[test]
fn a_folder_without_permission_is_refused() {
    let bench = Bench::new();
    let folder = bench.path("closed");
    std::fs::create_dir(&folder).expect("makes");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o555)).expect("chmod");
    let (json, db) = (bench.at("closed/o.json"), bench.at("closed/e.db"));
    // Root may write anywhere: as somebody else then.
    let run = |arguments: &[&str]| -> Said {
        let mut command = if is_root() {
            std::fs::set_permissions(bench.path("."), std::fs::Permissions::from_mode(0o777)).expect("chmod");
            let mut command = Command::new("setpriv");
            command
                .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
                .arg(env!("CARGO_BIN_EXE_heaptoll"));
            command
        } else {
            Command::new(env!("CARGO_BIN_EXE_heaptoll"))
        };
        bench.furnish(&mut command);
        let output = command.args(arguments).current_dir("/tmp").output();
        output.map_or_else(|_| Said { code: None, out: String::new(), err: String::new() }, Said::from)
    };
    if run(&["managers"]).code != Some(0) {
        eprintln!("heaptoll lies where others cannot reach it: only root could run it here");
        return;
    }
    let once = ["run", "-m", "glibc", "-n", "1"];
    run(&[&once[..], &["--json", &json, "--", "ls"]].concat())
        .exits(2)
        .complains(&["no permission", "closed"]);
    run(&[&once[..], &["--db", &db, "--", "ls"]].concat())
        .exits(2)
        .complains(&["closed/e.db", "permissions"]);
    // Somebody else is somebody who can measure, too.
    let fine = bench.at("o.json");
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
    let bench = Bench::new();
    let kept = bench.at("kept.db");
    // A file system that exists only for this shell and what it starts; it holds the tables and some rows.
    let script = "mount -t tmpfs -o size=100k heaptoll-test \"$MNT\" && \
        \"$HT\" run -m glibc -m glibc -n 300 --db \"$MNT/e.db\" -- ls /; code=$?; cp \"$MNT/e.db\" \"$KEPT\"; exit $code";
    std::fs::create_dir(bench.path("mnt")).expect("makes");
    let mut command = Command::new("unshare");
    bench.furnish(&mut command);
    command.args(["--mount", "sh", "-c", script]);
    command.env("HT", env!("CARGO_BIN_EXE_heaptoll")).env("MNT", bench.path("mnt")).env("KEPT", &kept);
    let said: Said = command.output().expect("runs").into();
    said.exits(1)
        .shows(&["glibc#2", "baseline"])
        .complains(&["e.db", "the disk is full or failing; rows so far are kept"]);
    let rows_kept = rows(&bench.json(&kept)).len();
    assert!(rows_kept > 10 && rows_kept < 1200, "{rows_kept} rows");
}

#[test]
fn a_file_size_limit_ends_the_run_with_the_rows_so_far() {
    let bench = Bench::new();
    let db = bench.at("e.db");
    bench.heaptoll(&["run", "-m", "glibc", "-m", "glibc", "-n", "1", "--db", &db, "--", "ls", "/"]).exits(0);
    // In blocks of 512 bytes, too few for the proof run's own files: the experiment exists already.
    let mut command = Command::new("sh");
    bench.furnish(&mut command);
    command.args(["-c", "ulimit -f 160; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_heaptoll")]);
    command.args(["run", "--resume", &db, "-n", "300"]);
    let said: Said = command.output().expect("runs").into();
    said.exits(1).shows(&["glibc#2", "baseline"]).complains(&["e.db", "rows so far are kept"]);
    let rows_kept = rows(&bench.json(&db)).len();
    assert!(rows_kept > 10, "{rows_kept} rows");
}

#[test]
fn a_full_temporary_folder_is_named() {
    let bench = Bench::new();
    let mut command = bench.command(&["run", "-m", "glibc", "-n", "1", "--", "ls", "/"]);
    let said: Said = command.env("TMPDIR", "/no/such/folder").output().expect("runs").into();
    said.exits(2).complains(&["scratch folder", "is the temporary folder writable"]);
}

#[test]
fn a_state_folder_that_cannot_be_made_asks_for_a_name() {
    let bench = Bench::new();
    let mut command = bench.command(&["run", "-m", "glibc", "-n", "1", "--", "ls", "/"]);
    let said: Said = command.env("XDG_STATE_HOME", "/proc/state").output().expect("runs").into();
    said.exits(2).complains(&["/proc/state", "name a file with --db"]);
}

#[test]
fn a_temporary_folder_that_fills_up_ends_the_run_with_the_rows_so_far() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("tmp")).expect("makes");
    let (db, tmp) = (bench.at("e.db"), bench.at("tmp"));
    // The program itself takes the folder away in its second timed run.
    let count = bench.at("count");
    let script = "echo x >> \"$0\"; [ $(wc -l < \"$0\") -lt 4 ] || rm -rf \"$1\"";
    let run = [
        "run", "-m", "glibc", "-n", "5", "--warmup", "0", "--db", &db, "--", "sh", "-c", script, &count, &tmp,
    ];
    let said: Said = bench.command(&run).env("TMPDIR", &tmp).output().expect("runs").into();
    said.exits(1).shows(&["baseline"]).complains(&["cannot make a scratch folder"]);
    assert!(!rows(&bench.json(&db)).is_empty());
}
