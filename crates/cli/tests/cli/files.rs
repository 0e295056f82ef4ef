//! Experiment files: every form of output is readable, a report is the run's own table, and files that are not whole
//! or not heaptoll's are refused by name.

use rusqlite::Connection;

use crate::fixture::{CommandOutput, Fixture, read_json, rows};

/// A small experiment in a file.
fn experiment(fixture: &Fixture, name: &str) -> (String, String) {
    let db = fixture.at(name);
    let output = fixture
        .heaptoll(&["run", "-m", "glibc", "-m", "glibc", "-n", "6", "--db", &db, "--", "ls", "/"])
        .exits(0);
    (db, output.out)
}

#[test]
fn all_forms_of_output_are_readable_and_a_report_gives_the_same() {
    let fixture = Fixture::new();
    let forms =
        |prefix: &str| ["html", "json", "csv", "parquet"].map(|form| fixture.at(&format!("{prefix}.{form}")));
    let db = fixture.at("e.db");
    let with = |first: &[&str], files: &[String; 4], last: &[&str]| {
        let outputs = ["--html", &files[0], "--json", &files[1], "--csv", &files[2], "--parquet", &files[3]];
        fixture.heaptoll(&[first, &outputs[..], last].concat()).exits(0)
    };
    let ran =
        with(&["run", "-m", "glibc", "-m", "glibc", "-n", "6", "--db", &db], &forms("a"), &["--", "ls", "/"]);
    let reported = with(&["report", &db], &forms("b"), &[]);
    assert_eq!(ran.out, reported.out, "the same table");
    let json = read_json(&fixture.at("a.json"));
    assert_eq!(json, read_json(&fixture.at("b.json")));
    assert_eq!(json["schema"], "heaptoll.experiment/1");
    let count = rows(&json).len();
    // Watched, and a warm-up in lockstep; then in each repetition in lockstep, start-up, and alone.
    assert_eq!(count, 4 + 6 * 6);
    let csv = std::fs::read_to_string(fixture.path("a.csv")).expect("reads");
    assert_eq!(csv.lines().count(), 1 + count);
    assert!(csv.lines().next().is_some_and(|header| header.contains("peak_rss_kib")));
    let parquet = std::fs::read(fixture.path("a.parquet")).expect("reads");
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    let html = std::fs::read_to_string(fixture.path("a.html")).expect("reads");
    assert!(html.to_lowercase().contains("<!doctype html") && html.contains("glibc#2"));
    for name in ["csv", "parquet", "html"] {
        let read = |prefix: &str| std::fs::read(fixture.path(&format!("{prefix}.{name}"))).expect("reads");
        assert_eq!(read("a"), read("b"), "{name}");
    }
    assert!(ran.err.contains(&format!("heaptoll report {db}")), "{}", ran.err);
}

#[test]
fn nothing_but_text_goes_to_pipes() {
    let fixture = Fixture::new();
    let (db, out) = experiment(&fixture, "e.db");
    for arguments in [&["report", &db][..], &["programs"], &["diff", &db, &db]] {
        let output = fixture.heaptoll(arguments).exits(0);
        assert!(
            !output.out.contains('\x1b') && !output.err.contains('\x1b'),
            "{arguments:?}: {}",
            output.out
        );
    }
    assert!(!out.contains('\x1b'));
}

/// Runs a command on a terminal (of util-linux's `script`) and returns its output.
fn on_a_terminal(fixture: &Fixture, no_color: bool, db: &str) -> String {
    let mut command = std::process::Command::new("script");
    fixture.prepare(&mut command);
    command.args(["-qec", &format!("{} report {db}", env!("CARGO_BIN_EXE_heaptoll")), "/dev/null"]);
    if no_color {
        command.env("NO_COLOR", "1");
    }
    let output = command
        .env("TERM", "xterm-256color")
        .stdin(std::process::Stdio::null())
        .output()
        .expect("script runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn colour_is_for_terminals_without_no_color() {
    let fixture = Fixture::new();
    let (db, _) = experiment(&fixture, "e.db");
    let (with, without) = (on_a_terminal(&fixture, false, &db), on_a_terminal(&fixture, true, &db));
    assert!(with.contains("glibc#2") && without.contains("glibc#2"), "{with}{without}");
    assert!(with.contains("\x1b["), "coloured: {with}");
    assert!(!without.contains("\x1b["), "not coloured: {without}");
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let fixture = Fixture::new();
    let (db, _) = experiment(&fixture, "e.db");
    let script = "\"$0\" report \"$1\" | head -c 1 >/dev/null; echo ${PIPESTATUS[0]}";
    let mut command = std::process::Command::new("bash");
    fixture.prepare(&mut command);
    let output =
        command.args(["-c", script, env!("CARGO_BIN_EXE_heaptoll"), &db]).output().expect("bash runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// Before, status 0 came with an empty or a cut file.
#[test]
fn a_result_that_standard_output_does_not_take_is_an_error() {
    let fixture = Fixture::new();
    let (db, _) = experiment(&fixture, "e.db");
    let fails = |script: &str, form: &[&str]| {
        let mut command = std::process::Command::new("bash");
        fixture.prepare(&mut command);
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        command.args(["-c", script, env!("CARGO_BIN_EXE_heaptoll"), "report", &db]).args(form).stdout(writer);
        let output: CommandOutput = command.output().expect("bash runs").into();
        output.exits(1).complains(&["cannot write to standard output"]);
    };
    for form in [&["--json", "-"][..], &["--csv", "-"], &["--markdown", "-"]] {
        fails("exec \"$0\" \"$@\"", form);
        fails("exec \"$0\" \"$@\" >&-", form);
    }
    fails("exec \"$0\" \"$@\" >&- <&-", &[]);
}

#[test]
fn an_existing_file_is_never_overwritten_by_an_experiment() {
    let fixture = Fixture::new();
    let precious = fixture.at("precious");
    std::fs::write(&precious, "words").expect("writes");
    fixture
        .heaptoll(&["run", "-m", "glibc", "-n", "1", "--db", &precious, "--", "ls"])
        .exits(2)
        .complains(&["precious exists already", "--resume"]);
    assert_eq!(std::fs::read_to_string(&precious).expect("reads"), "words");
}

/// Every command that reads an experiment refuses this file, with these words.
#[track_caller]
fn refused_by_all(fixture: &Fixture, whole: &str, bad: &str, words: &[&str]) {
    let before = std::fs::read(bad).ok();
    for arguments in
        [&["report", bad][..], &["diff", whole, bad], &["diff", bad, whole], &["run", "--resume", bad]]
    {
        let output = fixture.heaptoll(arguments).exits(2).complains(words).complains(&[bad]);
        assert_eq!(output.out, "", "{arguments:?}");
        assert!(!output.err.contains("panicked"), "{}", output.err);
    }
    assert_eq!(std::fs::read(bad).ok(), before, "it is left as it was");
}

#[test]
fn files_of_others_are_refused() {
    let fixture = Fixture::new();
    let (whole, _) = experiment(&fixture, "e.db");
    refused_by_all(&fixture, &whole, &fixture.at("missing.db"), &["does not exist"]);
    let text = fixture.at("text.db");
    std::fs::write(&text, "words and words and words. ".repeat(100)).expect("writes");
    refused_by_all(&fixture, &whole, &text, &["not a heaptoll experiment"]);
    let empty = fixture.at("empty.db");
    std::fs::write(&empty, "").expect("writes");
    refused_by_all(&fixture, &whole, &empty, &["not a heaptoll experiment"]);
    let foreign = fixture.at("foreign.db");
    Connection::open(&foreign).and_then(|db| db.execute_batch("CREATE TABLE t (x)")).expect("makes");
    refused_by_all(&fixture, &whole, &foreign, &["SQLite file of another program"]);
    std::fs::create_dir(fixture.path("folder.db")).expect("makes");
    refused_by_all(&fixture, &whole, &fixture.at("folder.db"), &["folder.db"]);
}

#[test]
fn a_newer_layout_is_refused_with_the_advice_to_update() {
    let fixture = Fixture::new();
    let (whole, _) = experiment(&fixture, "e.db");
    let newer = fixture.at("newer.db");
    std::fs::copy(&whole, &newer).expect("copies");
    Connection::open(&newer).and_then(|db| db.pragma_update(None, "user_version", 99)).expect("updates");
    refused_by_all(&fixture, &whole, &newer, &["layout 99", "update heaptoll"]);
}

#[test]
fn damaged_files_are_refused() {
    let fixture = Fixture::new();
    let (whole, _) = experiment(&fixture, "e.db");
    let bytes = std::fs::read(&whole).expect("reads");
    for (name, cut) in
        [("head.db", 50), ("page.db", 4096), ("half.db", bytes.len() / 2), ("most.db", bytes.len() - 1)]
    {
        let bad = fixture.at(name);
        std::fs::write(&bad, &bytes[..cut]).expect("writes");
        refused_by_all(&fixture, &whole, &bad, &[]);
    }
    let mut dirty = bytes.clone();
    dirty[4096..].fill(0xa5);
    let bad = fixture.at("dirty.db");
    std::fs::write(&bad, dirty).expect("writes");
    refused_by_all(&fixture, &whole, &bad, &["damaged"]);
    for (name, sql) in [
        ("lost.db", "DROP TABLE observation"),
        ("key.db", "DELETE FROM description WHERE key = 'settings'"),
        ("json.db", "UPDATE description SET value = '{' WHERE key = 'stacks'"),
        ("type.db", "UPDATE observation SET user_s = 'soon' WHERE position = 2"),
        ("phase.db", "UPDATE observation SET phase = '\"later\"' WHERE position = 2"),
    ] {
        let bad = fixture.at(name);
        std::fs::copy(&whole, &bad).expect("copies");
        Connection::open(&bad).and_then(|db| db.execute_batch(sql)).expect("damages");
        refused_by_all(&fixture, &whole, &bad, &[]);
    }
}

#[test]
fn a_row_cut_short_by_a_crash_does_not_keep_the_others_from_being_read() {
    let fixture = Fixture::new();
    let (whole, _) = experiment(&fixture, "e.db");
    let count = rows(&fixture.json(&whole)).len();
    // What is on the disk when the machine stops in the middle of a transaction: changed pages, and the journal
    // that undoes them.
    let crashed = fixture.at("crashed.db");
    let db = Connection::open(&whole).expect("opens");
    db.execute_batch("PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN; UPDATE observation SET stderr_tail = hex(zeroblob(3000));")
        .expect("changes");
    std::fs::copy(&whole, &crashed).expect("copies");
    std::fs::copy(format!("{whole}-journal"), format!("{crashed}-journal")).expect("copies the journal");
    db.execute_batch("ROLLBACK").expect("rolls back");
    fixture.heaptoll(&["report", &crashed]).exits(0).shows(&["glibc#2"]);
    assert_eq!(rows(&fixture.json(&crashed)).len(), count);
}

#[test]
fn an_experiment_in_a_folder_that_cannot_be_written_can_be_read() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("archive")).expect("makes");
    let (db, out) = experiment(&fixture, "archive/e.db");
    for (path, mode) in [(db.clone(), 0o444), (fixture.at("archive"), 0o555)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("chmod");
    }
    assert_eq!(fixture.heaptoll(&["report", &db]).exits(0).out, out);
}

#[test]
fn two_experiments_are_compared_where_they_have_something_in_common() {
    let fixture = Fixture::new();
    let ((a, _), (b, _)) = (experiment(&fixture, "a.db"), experiment(&fixture, "b.db"));
    fixture.heaptoll(&["diff", &a, &b]).exits(0).shows(&["ls", "glibc#2", "CPU s", "peak RSS MiB"]);
    let other = fixture.at("other.db");
    fixture.heaptoll(&["run", "-m", "glibc", "-n", "1", "--db", &other, "--", "uname"]).exits(0);
    fixture.heaptoll(&["diff", &a, &other]).exits(2).complains(&["no program and manager in common"]);
}

#[test]
fn experiments_without_a_name_get_one_each_below_the_state_folder() {
    let fixture = Fixture::new();
    for _ in 0..2 {
        fixture.heaptoll(&["run", "-m", "glibc", "-n", "1", "--", "ls", "/"]).exits(0);
    }
    let names: Vec<String> = std::fs::read_dir(fixture.path("state/heaptoll"))
        .expect("the folder is there")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.iter().all(|name| name.contains("-ls") && name.ends_with(".db")), "{names:?}");
}

#[test]
fn the_command_that_repeats_an_experiment_repeats_it() {
    let fixture = Fixture::new();
    let json = fixture.at("o.json");
    let db = fixture.at("e.db");
    let run = ["run", "-m", "glibc", "-m", "glibc", "-n", "2", "--db", &db, "--json", &json, "--", "ls", "/"];
    fixture.heaptoll(&run).exits(0);
    let first = read_json(&json);
    let words: Vec<String> = first["experiment"]["settings"]["repeat_command"]
        .as_array()
        .expect("words")
        .iter()
        .map(crate::fixture::text)
        .collect();
    assert_eq!(words[0], "heaptoll");
    let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    fixture.heaptoll(&words).exits(0);
    let second = read_json(&json);
    assert_eq!(first["experiment"]["settings"]["seed"], second["experiment"]["settings"]["seed"]);
    let order = |json: &serde_json::Value| -> Vec<(String, String)> {
        rows(json).iter().map(|row| (row["stack"].to_string(), row["env_padding"].to_string())).collect()
    };
    assert_eq!(order(&first), order(&second));
}

/// Runs a command twice under glibc into a file of this name.
fn twice(fixture: &Fixture, name: &str, rest: &[&str]) -> String {
    let db = fixture.at(name);
    let run = ["run", "-m", "glibc", "-n", "2", "--warmup", "0", "--db", &db];
    fixture.heaptoll(&[&run[..], rest].concat()).exits(0);
    db
}

#[test]
fn different_work_is_compared_only_on_demand() {
    let fixture = Fixture::new();
    let a = twice(&fixture, "a.db", &["--", "sh", "-c", "seq 2000"]);
    let b = twice(&fixture, "b.db", &["--", "sh", "-c", "seq 20"]);
    let words = ["sh: the command is", "seq 2000", "seq 20'"];
    let output = fixture.heaptoll(&["diff", &a, &b]).exits(2).complains(&words).complains(&["--anyway"]);
    assert_eq!(output.out, "");
    let output = fixture.heaptoll(&["diff", "--anyway", &a, &b]).exits(0).shows(&["CPU s"]);
    output.complains(&words).complains(&["warning:", "the output differs"]);
    let same_work = fixture.heaptoll(&["diff", &a, &a]).exits(0);
    assert_eq!(same_work.err, "", "the same work is compared without a warning");
}

#[test]
fn another_standard_input_is_other_work() {
    let fixture = Fixture::new();
    let with = |name: &str, words: &str| {
        std::fs::write(fixture.path(words), words).expect("writes");
        twice(&fixture, name, &["--stdin", &fixture.at(words), "--", "cat"])
    };
    let (a, b) = (with("a.db", "one"), with("b.db", "two"));
    fixture.heaptoll(&["diff", &a, &b]).exits(2).complains(&[
        "cat: standard input is",
        "/one in A",
        "/two in B",
    ]);
}

#[test]
fn the_same_command_with_other_output_huge_pages_or_manager_is_warned_of() {
    let fixture = Fixture::new();
    let file = fixture.at("words");
    let with = |name: &str, words: &str, rest: &[&str]| {
        std::fs::write(&file, words).expect("writes");
        twice(&fixture, name, &[rest, &["--", "cat", &file]].concat())
    };
    let (a, b) = (with("a.db", "one", &[]), with("b.db", "two", &["--thp", "never"]));
    let change = "UPDATE description SET value = replace(value, '\"version\":\"unknown\"', '\"version\":\"9\"') \
                  WHERE key = 'stacks'";
    fixture
        .heaptoll(&["diff", &a, &b])
        .exits(0)
        .shows(&["cat"])
        .complains(&["cat: the output differs", "other input"]);
    let manager = fixture.manager("other.so", "");
    let (c, d) = (with("c.db", "one", &["-m", &manager]), with("d.db", "one", &["-m", &manager]));
    Connection::open(&d).and_then(|db| db.execute_batch(change)).expect("updates");
    let version = ["other.so's version differs: unknown in A, 9 in B"];
    fixture.heaptoll(&["diff", &c, &d]).exits(0).complains(&version);
    // Where the system has no huge pages to forbid, there is nothing to differ in.
    if fixture.json(&a)["experiment"]["machine"]["thp"] != "never" {
        fixture.heaptoll(&["diff", &a, &b]).exits(0).complains(&["huge pages differs", "never in B"]);
    }
}

#[test]
fn a_program_with_other_input_is_left_out_and_the_others_are_compared() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("catalog")).expect("makes");
    for (name, word) in [("same", "3"), ("other", "{rounds}")] {
        let entry = format!(
            "name = \"{name}\"\nabout = \"made for a test\"\nthreads = 1\ncommand = [\"/usr/bin/seq\", \"{word}\"]\n\
             [sizes.quick]\nparameters = {{ rounds = 2 }}\n[sizes.demo]\nparameters = {{ rounds = 4 }}\n"
        );
        std::fs::write(fixture.path(&format!("catalog/{name}.toml")), entry).expect("writes");
    }
    let catalog = fixture.at("catalog");
    let run = |name: &str, size: &str| {
        let rest = ["--catalog", &catalog, "--program", "same", "--program", "other", "--size", size];
        twice(&fixture, name, &rest)
    };
    let (a, b) = (run("a.db", "quick"), run("b.db", "demo"));
    let output = fixture.heaptoll(&["diff", &a, &b]).exits(0).shows(&["same"]);
    assert!(!output.out.contains("other"), "{}", output.out);
    output.complains(&["left out", "other: the command is `/usr/bin/seq 2` in A"]);
}

#[test]
fn a_home_that_is_none_is_refused_instead_of_taking_another() {
    let fixture = Fixture::new();
    let mut command = fixture.command(&["managers"]);
    command.env("HEAPTOLL_HOME", fixture.path("nowhere"));
    let output = CommandOutput::from(command.output().expect("starts"));
    output.exits(2).complains(&["nowhere", "HEAPTOLL_HOME"]);
}
