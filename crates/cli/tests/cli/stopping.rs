//! Ctrl-C, a kill, and going on afterwards: rows stay, no process stays, and the plan is completed as it was drawn.

use std::collections::HashSet;

use serde_json::Value;

use crate::fixture::{
    Fixture, assert_none_left, eventually, marker, processes_with, programs_with, read_json, rows, rows_of,
    stored, text,
};

/// C: `held(v)` stops the run with a certain number where a test wants it, for a signal at a fixed time would come
/// elsewhere in the run on a busy machine. Arguments are the experiment's file, a folder, and the number. Runs are
/// counted from when the file is there: that of the preflight is none of them. The run with the number, and those after
/// it, wait as long as the folder has a file `hold`.
const HELD: &str = r#"
    static void held(char **v) {
        char path[4096];
        if (access(v[1], F_OK)) return;
        snprintf(path, sizeof path, "%s/runs", v[2]);
        int runs = open(path, O_CREAT | O_WRONLY | O_APPEND, 0644);
        if (write(runs, "x", 1) != 1) _exit(1);
        long number = lseek(runs, 0, SEEK_END);
        close(runs);
        snprintf(path, sizeof path, "%s/hold", v[2]);
        while (number >= atol(v[3]) && !access(path, F_OK)) usleep(1000);
    }
"#;

/// Runs that are counted are made one by one.
const INTERLEAVED: [&str; 3] = ["--pairing", "interleaved", "--"];

/// How many runs [`HELD`] has counted.
fn runs(fixture: &Fixture) -> u64 {
    std::fs::metadata(fixture.path("runs")).map_or(0, |file| file.len())
}

fn hold(fixture: &Fixture) {
    std::fs::write(fixture.path("hold"), "").expect("writes");
}

fn let_go(fixture: &Fixture) {
    std::fs::remove_file(fixture.path("hold")).expect("removes");
}

/// A program that can be held and has a child that would live on.
const WITH_CHILD: &str = "int main(int c, char **v) { free(malloc(99)); pid_t p = fork(); if (!p) for (;;) pause(); \
                          held(v); puts(\"done\"); kill(p, SIGKILL); wait(0); return 0; }";
/// The same without the child.
const ALONE: &str = "int main(int c, char **v) { free(malloc(99)); held(v); puts(\"done\"); return 0; }";
/// A program that runs for a short time.
const QUICK: &str = "int main(int c, char **v) { free(malloc(99)); \
                     struct timespec t = {0, 30000000}; nanosleep(&t, 0); puts(\"done\"); return 0; }";

/// (stack, phase, repetition) of every row that was not called off, in the order made.
fn cells(json: &Value) -> Vec<(String, String, u64)> {
    rows(json)
        .iter()
        .filter(|row| row["outcome"]["kind"] != "interrupted")
        .map(|row| (text(&row["stack"]), text(&row["phase"]), row["repetition"].as_u64().expect("a number")))
        .collect()
}

#[test]
fn ctrl_c_keeps_rows_ends_processes_and_resume_completes_the_plan_in_its_order() {
    let fixture = Fixture::new();
    let program = fixture.program("program", &format!("{HELD}{ALONE}"));
    let manager = fixture.manager("other.so", "");
    let (whole, db, mark) = (fixture.at("whole.db"), fixture.at("stopped.db"), marker("ctrl-c"));
    // Held in its sixth run, of fourteen.
    let folder = fixture.at("");
    let words = [&program, &db, &folder, "6", &mark];
    let paired = ["-m", "glibc", "-m", &manager, "-n", "6", "--seed", "42", "--pairing", "interleaved", "--"];
    let common = [&paired, &words[..]].concat();
    fixture.heaptoll(&[&["run", "--db", &whole][..], &common].concat()).exits(0);
    let expected = cells(&fixture.json(&whole));
    assert_eq!(expected.len(), 2 + 6 * 4);

    hold(&fixture);
    let run = fixture.start(&[&["run", "--db", &db][..], &common].concat());
    eventually("it is held in the sixth run", || runs(&fixture) == 6);
    run.signal(libc::SIGINT);
    let output = run.wait().exits(130).complains(&["interrupted; go on with: heaptoll run --resume", &db]);
    assert!(output.out.contains("other.so"), "the table of what there is is printed:\n{}", output.out);
    assert_none_left(&mark);
    let kept = cells(&fixture.json(&db));
    assert!(kept.len() >= 5 && kept.len() < expected.len(), "{}", kept.len());
    assert_eq!(kept, expected[..kept.len()], "the same seed gives the same order");

    let_go(&fixture);
    fixture.heaptoll(&["run", "--resume", &db]).exits(0);
    let json = fixture.json(&db);
    assert_eq!(cells(&json), expected, "each cell once, in the order of an uninterrupted run");
    assert_eq!(json["experiment"]["complete"], true);
    let orders: HashSet<u64> = rows(&json).iter().filter_map(|row| row["order"].as_u64()).collect();
    assert_eq!(orders.len(), rows(&json).len(), "positions are unique");
    // Nothing is left to do, and nothing is done.
    fixture.heaptoll(&["run", "--resume", &db]).exits(0);
    assert_eq!(cells(&fixture.json(&db)), expected);
}

#[test]
fn ctrl_c_in_the_watched_run_leaves_one_track_a_stack() {
    let fixture = Fixture::new();
    let (db, mark) = (fixture.at("e.db"), marker("watched"));
    let program = fixture.program("program", &format!("{HELD}{ALONE}"));
    hold(&fixture);
    let folder = fixture.at("");
    let words = [&program, &db, &folder, "1", &mark];
    let run = fixture
        .start(&[&["run", "--db", &db, "-m", "glibc", "-m", "glibc", "-n", "1", "--"], &words[..]].concat());
    eventually("the watched run goes", || runs(&fixture) == 1);
    // So that something of it was seen.
    std::thread::sleep(std::time::Duration::from_millis(100));
    run.signal(libc::SIGINT);
    run.wait().exits(130);
    assert_none_left(&mark);
    let_go(&fixture);
    assert!(cells(&fixture.json(&db)).is_empty(), "it was in the first watched run");
    let output = fixture.heaptoll(&["run", "--explain", "--resume", &db]).exits(0);
    assert!(!output.out.contains("its peak memory is unreliable"), "{}", output.out);
    let json = fixture.json(&db);
    let tracks = json["experiment"]["tracks"].as_array().expect("tracks");
    let names: HashSet<String> = tracks.iter().map(|track| text(&track["stack"])).collect();
    assert_eq!(names.len(), tracks.len(), "one a stack: {names:?}");
}

#[test]
fn ctrl_c_before_anything_is_measured_is_reported_and_stores_nothing() {
    let fixture = Fixture::new();
    let mark = marker("early");
    let program = fixture.program("program", "int main(void) { free(malloc(99)); for (;;) pause(); }");
    let run = fixture.start(&["run", "-m", "glibc", "-m", "glibc", "--", &program, &mark]);
    eventually("the proof run goes", || !programs_with(&mark).is_empty());
    run.signal(libc::SIGINT);
    run.wait().exits(130).complains(&["interrupted before anything was measured"]);
    assert_none_left(&mark);
    assert!(!fixture.path("state").exists());
}

#[test]
fn ctrl_c_while_the_own_cost_is_measured_stores_nothing() {
    let fixture = Fixture::new();
    let mark = marker("own-cost");
    std::fs::create_dir(fixture.path(&mark)).expect("makes");
    // The own cost is that of running grep.
    let begun = fixture.at(&format!("{mark}/begun"));
    fixture.script(&format!("{mark}/grep"), &format!("#!/bin/sh\n: > {begun}\nsleep 0.3\n"));
    let path = format!("{}:{}", fixture.at(&mark), std::env::var("PATH").unwrap_or_default());
    let mut command = fixture.command(&["run", "-m", "glibc", "-m", "glibc", "-n", "1", "--", "ls", "/"]);
    command.env("PATH", path).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().expect("heaptoll starts");
    eventually("the own cost is being measured", || std::path::Path::new(&begun).exists());
    // SAFETY: `kill` takes no pointers; the child is not reaped yet, so that its number is still its own.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let output: crate::fixture::CommandOutput = child.wait_with_output().expect("ends").into();
    output.exits(130).complains(&["interrupted before anything was measured"]);
    assert!(!fixture.path("state").exists());
}

#[test]
fn a_termination_request_is_an_interruption_too() {
    let fixture = Fixture::new();
    let program = fixture.program("program", QUICK);
    let (db, mark) = (fixture.at("e.db"), marker("term"));
    let run =
        fixture.start(&["run", "--db", &db, "-m", "glibc", "-m", "glibc", "-n", "50", "--", &program, &mark]);
    eventually("some rows are stored", || stored(&db) >= 3);
    run.signal(libc::SIGTERM);
    run.wait().exits(130);
    assert_none_left(&mark);
}

#[test]
fn a_hangup_is_ignored_where_the_caller_ignores_it() {
    let fixture = Fixture::new();
    let program = fixture.program("program", QUICK);
    let db = fixture.at("e.db");
    let mut command = std::process::Command::new("nohup");
    let arguments = ["run", "--db", &db, "-m", "glibc", "-m", "glibc", "-n", "3", "--", &program];
    command.arg(env!("CARGO_BIN_EXE_heaptoll")).args(arguments);
    fixture.prepare(&mut command);
    command
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let child = command.spawn().expect("nohup starts");
    eventually("some rows are stored", || stored(&db) >= 2);
    // SAFETY: `kill` takes no pointers; the child is not reaped yet, so that its number is still its own.
    unsafe { libc::kill(child.id() as i32, libc::SIGHUP) };
    let output: crate::fixture::CommandOutput = child.wait_with_output().expect("ends").into();
    output.exits(0);
}

#[test]
fn a_killed_heaptoll_takes_its_program_along_and_can_be_resumed() {
    let fixture = Fixture::new();
    let program = fixture.program("program", &format!("{HELD}{WITH_CHILD}"));
    let (db, mark) = (fixture.at("e.db"), marker("kill"));
    let common = "-m glibc -m glibc -n 2 --warmup 0 --seed 7 --pairing interleaved --".split(' ');
    let common: Vec<&str> = common.chain([program.as_str()]).collect();
    let folder = fixture.at("");
    let words = [&db, &folder, "2", &mark];
    hold(&fixture);
    let run = fixture.start(&[&["run", "--db", &db], &common[..], &words].concat());
    eventually("it is held in the second run", || runs(&fixture) == 2);
    eventually("the program and its child run", || programs_with(&mark).len() == 2);
    run.signal(libc::SIGKILL);
    run.wait();
    eventually("its processes are gone", || processes_with(&mark).is_empty());
    let_go(&fixture);
    let before = cells(&fixture.json(&db));
    assert!(!before.is_empty());
    fixture.heaptoll(&["report", &db]).exits(0).shows(&["glibc#2", "incomplete"]);
    fixture.heaptoll(&["run", "--resume", &db]).exits(0);
    let after = cells(&fixture.json(&db));
    assert_eq!(after[..before.len()], before);
    assert_eq!(after.len(), 8);
    assert_eq!(after.iter().collect::<HashSet<_>>().len(), 8, "each cell once");
}

#[test]
fn resume_without_n_does_not_extend_and_with_a_larger_n_does() {
    let fixture = Fixture::new();
    let (db, whole) = (fixture.at("e.db"), fixture.at("whole.db"));
    let run = |db: &str, n: &str| {
        fixture
            .heaptoll(&[
                "run", "--db", db, "-m", "glibc", "-m", "glibc", "--seed", "9", "-n", n, "--", "ls", "/",
            ])
            .exits(0);
    };
    run(&db, "2");
    fixture.heaptoll(&["run", "--resume", &db]).exits(0);
    assert_eq!(rows_of(&fixture.json(&db), "glibc", "timed").len(), 2, "the default of -n is not used");
    fixture.heaptoll(&["run", "--resume", &db, "-n", "4"]).exits(0);
    let json = fixture.json(&db);
    assert_eq!(rows_of(&json, "glibc#2", "timed").len(), 4);
    assert_eq!(json["experiment"]["settings"]["repetitions"], 4);
    run(&whole, "4");
    assert_eq!(cells(&json), cells(&fixture.json(&whole)), "extended as if all had been requested at once");
    fixture
        .heaptoll(&["run", "--resume", &db, "-n", "3"])
        .exits(2)
        .complains(&["began with 4 repetitions", "only be extended"]);
    assert_eq!(rows_of(&fixture.json(&db), "glibc", "timed").len(), 4, "nothing is taken away");
}

#[test]
fn the_seed_alone_decides_the_order() {
    let fixture = Fixture::new();
    let order = |seed: &str| {
        let json = fixture.at("o.json");
        let run =
            ["run", "-m", "glibc", "-m", "glibc", "-m", "glibc", "-n", "2", "--seed", seed, "--json", &json];
        fixture.heaptoll(&[&run[..], &["--", "ls", "/"]].concat()).exits(0);
        let read = read_json(&json);
        let padding: Vec<u64> = rows(&read).iter().filter_map(|row| row["env_padding"].as_u64()).collect();
        (cells(&read), padding)
    };
    assert_eq!(order("1"), order("1"));
    assert_ne!(order("1"), order("2"));
}

#[test]
fn resume_needs_what_the_experiment_preloads() {
    let fixture = Fixture::new();
    let manager = fixture.manager("gone.so", "");
    let db = fixture.at("e.db");
    fixture.heaptoll(&["run", "--db", &db, "-m", &manager, "-n", "1", "--", "ls", "/"]).exits(0);
    std::fs::remove_file(&manager).expect("removes");
    fixture
        .heaptoll(&["run", "--resume", &db, "-n", "2"])
        .exits(2)
        .complains(&["gone.so", "is missing; put it back"]);
}

#[test]
fn resume_goes_back_to_the_folder_where_the_experiment_was_begun() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("here")).expect("makes");
    fixture.script("here/program", "#!/bin/sh\ncat words\n");
    std::fs::write(fixture.path("here/words"), "words").expect("writes");
    let db = fixture.at("e.db");
    let mut begin = fixture.command(&["run", "--db", &db, "-m", "glibc", "-n", "1", "--", "./program"]);
    let output: crate::fixture::CommandOutput =
        begin.current_dir(fixture.path("here")).output().expect("runs").into();
    output.exits(0);
    let mut go_on = fixture.command(&["run", "--resume", "e.db", "-n", "2", "--json", "o.json"]);
    let output: crate::fixture::CommandOutput =
        go_on.current_dir(fixture.path(".")).output().expect("runs").into();
    output.exits(0);
    let json = read_json(&fixture.at("o.json"));
    let timed = rows_of(&json, "glibc", "timed");
    assert!(timed.len() == 2 && timed.iter().all(|row| row["output_bytes"] == 5), "{timed:?}");
    std::fs::remove_dir_all(fixture.path("here")).expect("removes");
    fixture
        .heaptoll(&["run", "--resume", &db, "-n", "3"])
        .exits(2)
        .complains(&["where the experiment began"]);
}

#[test]
fn a_file_that_another_run_writes_is_not_resumed_but_can_be_read() {
    let fixture = Fixture::new();
    let program = fixture.program("program", &format!("{HELD}{ALONE}"));
    let db = fixture.at("e.db");
    hold(&fixture);
    let folder = fixture.at("");
    let words = [&program, &db, &folder, "4"];
    let run = fixture.start(
        &[&["run", "--db", &db, "-m", "glibc", "-m", "glibc", "-n", "3"][..], &INTERLEAVED, &words[..]]
            .concat(),
    );
    eventually("it is held in the fourth run", || runs(&fixture) == 4);
    fixture.heaptoll(&["run", "--resume", &db]).exits(2).complains(&["another heaptoll run is writing"]);
    fixture.heaptoll(&["report", &db]).exits(0).shows(&["incomplete"]);
    run.signal(libc::SIGINT);
    run.wait().exits(130);
}

/// Allocates, counts its run in the file of the first argument, and runs until a signal ends it from the run on that the
/// second one names.
const SERVICE: &str = "int main(int c, char **v) { for (int i = 0; i < 200; i++) malloc(1000); \
    int runs = open(v[1], O_CREAT | O_WRONLY | O_APPEND, 0644); if (write(runs, \"x\", 1) != 1) return 1; \
    if (lseek(runs, 0, SEEK_END) < atol(v[2])) return 0; for (;;) pause(); }";

/// Interrupts a command as a terminal would, in each of these runs of the program, and returns what it showed. Of two
/// runs the first is without the tracer, in a session of its own.
fn interrupted(options: &[&str], all: u64) -> crate::fixture::CommandOutput {
    let fixture = Fixture::new();
    let (program, counted) = (fixture.program("service", SERVICE), fixture.at("runs"));
    let mark = marker("interrupted-service");
    let output = fixture.at("output");
    let named: &[&str] = if options[0] == "record" { &["-o", &output] } else { &[] };
    let under_way = fixture.start(&[options, named, &["--", &program, &counted, "1", &mark]].concat());
    for run in 1..=all {
        eventually("the run goes", || runs(&fixture) == run);
        let reached = if run == all { programs_with(&mark) } else { vec![] };
        for pid in reached.into_iter().chain([under_way.pid()]) {
            // SAFETY: `kill` takes no pointers; the processes were started by this test and have its mark.
            unsafe { libc::kill(pid, libc::SIGINT) };
        }
    }
    let shown = under_way.wait().exits(130);
    assert_none_left(&mark);
    shown
}

/// Commands that show figures of one run, how many runs are interrupted (the first proves the manager where the second
/// is traced), and what they show of the last.
const OF_ONE_RUN: [(&[&str], u64, &[&str]); 9] = [
    (&["leaks"], 2, &["lost 195 KiB in 200 objects", "the run is incomplete (killed by signal 2)"]),
    (
        &["exact", "instructions"],
        2,
        &["glibc (not whole)", "interrupted: the figures cover the run until then"],
    ),
    (&["ledger"], 1, &["Where the memory is", "the run is incomplete (killed by signal 2)"]),
    (&["ledger", "--exact"], 1, &["Where the memory is", "the run is incomplete (killed by signal 2)"]),
    (&["record"], 1, &["output: 200 events"]),
    (&["record", "--graph"], 2, &["200 objects"]),
    (&["record", "--sample", "1"], 1, &["output: 200 samples", "195 KiB (exact)"]),
    (
        &["exact", "locality"],
        2,
        &["Locality of service", "interrupted: the figures cover the run until then"],
    ),
    (
        &["exact", "drag"],
        2,
        &["200 objects (195 KiB) are not freed", "interrupted: the figures cover the run until then"],
    ),
];

#[track_caller]
fn show_what_they_had(commands: &[(&[&str], u64, &[&str])]) {
    for (options, runs, words) in commands {
        let output = interrupted(options, *runs);
        let all = output.out + &output.err;
        for word in *words {
            assert!(all.contains(word), "{options:?}: no {word:?} in\n{all}");
        }
    }
}

#[test]
fn a_command_that_ctrl_c_ends_in_each_run_shows_what_the_last_one_had() {
    // A ledger has a snapshot only when the recorder has had its turn, which a busy machine may delay.
    show_what_they_had(&OF_ONE_RUN[..2]);
}

#[test]
#[ignore = "slow: nine commands, most of them under the tracer"]
fn every_command_that_ctrl_c_ends_shows_what_its_run_had() {
    show_what_they_had(&OF_ONE_RUN);
}

#[test]
fn the_second_ctrl_c_kills_a_traced_program_that_ignores_the_first() {
    let fixture = Fixture::new();
    let ignores =
        SERVICE.replace("for (;;)", "signal(SIGINT, SIG_IGN); close(open(v[3], O_CREAT, 0644)); for (;;)");
    let program = fixture.program("service", &ignores);
    let (counted, ready, mark) = (fixture.at("runs"), fixture.at("ready"), marker("ignores"));
    let run = fixture.start(&["leaks", "--", &program, &counted, "2", &ready, &mark]);
    eventually("it ignores the signal", || fixture.path("ready").exists());
    run.signal(libc::SIGINT);
    run.signal(libc::SIGTERM);
    run.wait().exits(130).shows(&["the run is incomplete (killed)", "lost "]);
    assert_none_left(&mark);
}
