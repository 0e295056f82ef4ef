//! What goes wrong under one manager only: its row is marked and leaves the averages, the others are not touched.

use crate::fixture::{Fixture, line, outcomes, read_json, rows, text};

const PLAIN: &str = "int main(int c, char **v) { for (int i = 0; i < 3000; i++) { char *p = malloc(100); \
                     if (!p) { fprintf(stderr, \"no memory\\n\"); return 12; } *p = 1; free(p); } puts(\"done\"); ";

/// Runs under glibc, a good manager and a bad one; asserts that only the bad one is marked, with `mark`.
#[track_caller]
fn only_the_bad_one_is_marked(program: &str, manager: &str, outcome: &str, mark: &str) {
    only_the_bad_one_is_marked_within("60", program, manager, outcome, mark);
}

/// The same with a time limit, in s.
#[track_caller]
fn only_the_bad_one_is_marked_within(limit: &str, program: &str, manager: &str, outcome: &str, mark: &str) {
    let fixture = Fixture::new();
    let program = fixture.program("program", program);
    let good = fixture.manager("good.so", "");
    let bad = fixture.manager("bad.so", manager);
    let (json, db) = (fixture.at("o.json"), fixture.at("e.db"));
    let run = ["run", "-m", "glibc", "-m", &good, "-m", &bad, "-n", "3", "--timeout", limit, "--json", &json];
    let output =
        fixture.heaptoll(&[&run[..], &["--db", &db, "--", &program]].concat()).exits(1).shows(&[mark]);
    let read = read_json(&json);
    for stack in ["glibc", &good] {
        assert_eq!(outcomes(&read, stack), ["ok", "ok", "ok"], "{}", output.out);
        assert_eq!(line(&read, stack)["good"], 3);
        assert_eq!(line(&read, stack)["marks"], serde_json::json!([]));
    }
    assert!(outcomes(&read, &bad).iter().all(|kind| kind == outcome), "{:?}", outcomes(&read, &bad));
    // The manager is dropped after two failures, which may be the watched run's and that of a run by itself.
    assert!(rows(&read).iter().any(|row| row["stack"] == *bad && row["phase"] != "startup"));
    let bad_line = line(&read, &bad);
    assert_eq!(bad_line["good"], 0, "left out of the averages");
    assert_eq!(bad_line["figures"], serde_json::json!({}), "no figures: {bad_line}");
    assert!(text(&bad_line["verdict"]).starts_with("failed: "), "{bad_line}");
    // Stored as it was, and shown again the same.
    let again = fixture.heaptoll(&["report", &db]).exits(0);
    assert_eq!(again.out, output.out);
}

#[test]
fn a_manager_that_runs_out_of_memory_is_marked() {
    // Enough for the loader, the preflight's layer and `sh -c :`.
    only_the_bad_one_is_marked(
        &format!("{PLAIN} return 0; }}"),
        "static int calls; \n#define BEFORE(n) if (++calls > 1500) { errno = ENOMEM; return 0; }",
        "exit",
        "exit status 12",
    );
}

#[test]
fn a_manager_that_aborts_is_marked() {
    only_the_bad_one_is_marked(
        &format!("{PLAIN} return 0; }}"),
        "static int calls; \n#define BEFORE(n) if (++calls > 1500) abort();",
        "signal",
        "killed by signal 6",
    );
}

#[test]
fn a_program_killed_under_one_manager_only_is_marked() {
    only_the_bad_one_is_marked(
        &format!("{PLAIN} fflush(stdout); if (under(\"bad.so\")) raise(SIGSEGV); return 0; }}"),
        "",
        "signal",
        "killed by signal 11",
    );
}

#[test]
fn another_output_under_one_manager_only_is_marked_wrong() {
    only_the_bad_one_is_marked(
        &format!("{PLAIN} printf(\"%d\\n\", (int)malloc_usable_size(malloc(100)) > 1000); return 0; }}"),
        "size_t malloc_usable_size(void *p) { return 4000; }",
        "wrong_output",
        "wrong output",
    );
}

#[test]
fn a_program_that_hangs_under_one_manager_only_is_marked() {
    only_the_bad_one_is_marked_within(
        "4",
        &format!("{PLAIN} fflush(stdout); while (under(\"bad.so\")) pause(); return 0; }}"),
        "",
        "timeout",
        "over the time limit of 4 s",
    );
}

#[test]
fn a_stack_that_fails_again_and_again_is_given_up() {
    let fixture = Fixture::new();
    let program = fixture.program("p", &format!("{PLAIN} if (under(\"bad.so\")) return 4; return 0; }}"));
    let bad = fixture.manager("bad.so", "");
    let json = fixture.at("o.json");
    fixture.heaptoll(&["run", "-m", &bad, "-n", "8", "--json", &json, "--", &program]).exits(1);
    let read = read_json(&json);
    assert_eq!(outcomes(&read, "glibc").len(), 8);
    assert!(outcomes(&read, &bad).len() <= 2, "{:?}", outcomes(&read, &bad));
}

#[test]
fn one_program_that_fails_under_the_baseline_does_not_end_the_others() {
    let fixture = Fixture::new();
    let json = fixture.at("o.json");
    // The catalog's interpreter is replaced by one that fails.
    std::fs::create_dir_all(fixture.path("home/share/heaptoll/programs")).expect("makes");
    let home = heaptoll_testing::staged::home();
    std::os::unix::fs::symlink(home.join("lib"), fixture.path("home/lib")).expect("links");
    for (name, status) in [("fails", 5), ("works", 0)] {
        let entry = format!(
            "name = \"{name}\"\nabout = \"ends with {status}\"\ncommand = [\"/bin/sh\", \"-c\", \"ls / ; exit {status}\"]\n\
             [sizes.quick]\n[sizes.demo]\n[sizes.full]\n"
        );
        std::fs::write(fixture.path(&format!("home/share/heaptoll/programs/{name}.toml")), entry)
            .expect("writes");
    }
    let arguments = [
        "run",
        "--program",
        "fails",
        "--program",
        "works",
        "--quick",
        "-m",
        "glibc",
        "-m",
        "glibc",
        "-n",
        "3",
    ];
    let mut command = fixture.command(&[&arguments[..], &["--json", &json]].concat());
    let output: crate::fixture::CommandOutput =
        command.env("HEAPTOLL_HOME", fixture.path("home")).output().expect("runs").into();
    output.exits(1).shows(&["exit status 5"]);
    let read = read_json(&json);
    let good = |program: &str| {
        let rows = crate::fixture::rows(&read);
        rows.iter().filter(|row| row["program"] == program && row["phase"] == "timed").count()
    };
    assert_eq!(good("works"), 6);
    assert!(good("fails") <= 2);
}
