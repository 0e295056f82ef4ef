//! Whole trees of processes: all of their CPU time is counted, and none outlives its measurement.

use crate::fixture::{
    Fixture, assert_none_left, eventually, marker, notes, processes_with, read_json, rows_of,
};

const ONCE: [&str; 9] = ["run", "-m", "glibc", "-n", "1", "--warmup", "0", "--json", "o.json"];

/// Runs a program once under glibc and returns its timed row.
fn once(fixture: &Fixture, options: &[&str], command: &[&str], code: i32) -> serde_json::Value {
    let arguments = [&ONCE[..], options, &["--"], command].concat();
    let output: crate::fixture::CommandOutput =
        fixture.command(&arguments).current_dir(fixture.path(".")).output().expect("runs").into();
    output.exits(code);
    read_json(&fixture.at("o.json"))
}

/// Runs a program eight times and returns its timed rows. A busy machine makes any of them longer, and none shorter.
fn several(fixture: &Fixture, command: &[&str]) -> (serde_json::Value, Vec<serde_json::Value>) {
    let file = fixture.at("several.json");
    let words = ["run", "-m", "glibc", "-n", "8", "--warmup", "0", "--json", &file, "--"];
    fixture.heaptoll(&[&words[..], command].concat()).exits(0);
    let json = read_json(&file);
    let rows = rows_of(&json, "glibc", "timed").into_iter().cloned().collect();
    (json, rows)
}

/// The least of some figures.
fn least(of: impl Iterator<Item = f64>) -> f64 {
    of.fold(f64::INFINITY, f64::min)
}

#[test]
fn the_time_limit_ends_the_whole_tree_and_marks_the_row() {
    let fixture = Fixture::new();
    let mark = marker("tree");
    // A child in a session of its own, and a grandchild that ignores what can be ignored.
    let program = fixture.program(
        "tree",
        "int main(int c, char **v) { free(malloc(9)); if (!fork()) { setsid(); if (!fork()) { \
         signal(SIGTERM, SIG_IGN); signal(SIGHUP, SIG_IGN); for (;;) pause(); } for (;;) pause(); } for (;;) pause(); }",
    );
    let json = once(&fixture, &["--timeout", "0.5"], &[&program, &mark], 1);
    let row = rows_of(&json, "glibc", "timed")[0];
    assert_eq!(row["outcome"]["kind"], "timeout");
    assert_eq!(row["outcome"]["detail"], 0.5);
    let wall = row["wall_s"].as_f64().expect("a number");
    assert!((0.5..5.0).contains(&wall), "{wall}");
    assert_none_left(&mark);
}

#[test]
fn a_daemon_that_outlives_its_run_is_ended_and_noted() {
    let fixture = Fixture::new();
    let mark = marker("daemon");
    let program = fixture.program(
        "daemon",
        "int main(int c, char **v) { free(malloc(9)); if (!fork()) { setsid(); if (!fork()) for (;;) pause(); _exit(0); } return 0; }",
    );
    let (json, rows) = several(&fixture, &[&program, &mark]);
    for row in &rows {
        assert_eq!((&row["outcome"]["kind"], &row["left_behind"]), (&"ok".into(), &1.into()));
    }
    assert!(notes(&json).contains("outlived"), "{}", notes(&json));
    let wall = least(rows.iter().filter_map(|row| row["wall_s"].as_f64()));
    assert!(wall < 0.25, "the wait for it is not the program's: {rows:?}");
    assert_none_left(&mark);
}

#[test]
fn the_cpu_time_of_children_is_counted_waited_for_or_not() {
    let fixture = Fixture::new();
    // Spins for the given milliseconds of CPU time.
    let spin = "static void spin(long ms) { struct timespec t; do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); \
                while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < ms); } ";
    let waited = fixture.program(
        "waited",
        &format!("{spin} int main(void) {{ free(malloc(9)); for (int i = 0; i < 2; i++) if (!fork()) {{ spin(50); _exit(0); }} \
                  while (wait(0) > 0); return 0; }}"),
    );
    // Its child works until it has used 60 ms, lets it end, and works 2 ms more: orphans may take 300 ms of elapsed
    // time to end by themselves, and on a busy machine no more work than that is done in it for certain.
    let orphaned = fixture.program(
        "orphaned",
        &format!(
            "{spin} int main(void) {{ char c = 0; int ready[2], ended[2]; free(malloc(9)); if (pipe(ready) || pipe(ended)) return 1; \
             if (!fork()) {{ close(ended[1]); spin(60); if (write(ready[1], &c, 1) != 1) _exit(1); \
             if (read(ended[0], &c, 1)) _exit(1); spin(62); _exit(0); }} return read(ready[0], &c, 1) != 1; }}"
        ),
    );
    let cpu = |rows: &[serde_json::Value]| {
        least(rows.iter().map(|row| {
            row["user_s"].as_f64().expect("a number") + row["system_s"].as_f64().expect("a number")
        }))
    };
    let (_, rows) = several(&fixture, &[&waited]);
    assert!((0.095..0.16).contains(&cpu(&rows)), "{rows:?}");
    let (_, rows) = several(&fixture, &[&orphaned]);
    assert!((0.055..0.12).contains(&cpu(&rows)), "the orphan's {rows:?}");
    assert!(rows.iter().any(|row| row["left_behind"] == 0), "it ended by itself: {rows:?}");
}

#[test]
fn peak_memory_is_the_programs_own() {
    let fixture = Fixture::new();
    // Touches 100 MiB and prints its own mark as its exit status cannot hold it: to a file.
    let program = fixture.program(
        "hundred",
        "int main(int c, char **v) { char *p = malloc(100 << 20); memset(p, 1, 100 << 20); char line[256]; long kib = 0; \
         FILE *f = fopen(\"/proc/self/status\", \"r\"); while (fgets(line, sizeof line, f)) sscanf(line, \"VmHWM: %ld\", &kib); \
         f = fopen(v[1], \"w\"); fprintf(f, \"%ld\", kib); fclose(f); free(p); return 0; }",
    );
    let own = fixture.at("own");
    let json = once(&fixture, &[], &[&program, &own], 0);
    let peak = rows_of(&json, "glibc", "timed")[0]["peak_rss_kib"].as_i64().expect("a number");
    let own: i64 = std::fs::read_to_string(own).expect("reads").parse().expect("a number");
    // With many processors the kernel's marks are off by some of their 512 KiB.
    assert!(own > 98 * 1024, "{own}");
    assert!((peak - own).abs() <= 2048, "reported {peak} KiB, its own mark {own} KiB");
}

#[test]
fn a_program_that_kills_its_whole_group_kills_nothing_of_ours() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "group",
        "int main(void) { free(malloc(9)); puts(\"x\"); fflush(stdout); kill(0, SIGKILL); return 0; }",
    );
    let json = once(&fixture, &[], &[&program], 1);
    assert_eq!(
        rows_of(&json, "glibc", "timed")[0]["outcome"],
        serde_json::json!({"kind": "signal", "detail": 9})
    );
}

#[test]
fn nothing_is_left_in_the_temporary_folder() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("tmp")).expect("makes");
    let mut command = fixture.command(&["run", "-m", "glibc", "-m", "glibc", "-n", "2", "--", "ls", "/"]);
    let output: crate::fixture::CommandOutput =
        command.env("TMPDIR", fixture.path("tmp")).output().expect("runs").into();
    output.exits(0);
    let left: Vec<_> = std::fs::read_dir(fixture.path("tmp")).expect("reads").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    eventually("no launcher stays", || processes_with(&fixture.at("tmp")).is_empty());
}

#[test]
fn a_program_finds_only_the_descriptors_that_its_caller_left_open() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "descriptors",
        "int main(void) { free(malloc(9)); int open = 0; \
         for (int i = 3; i < 200; i++) if (fcntl(i, F_GETFD) >= 0) open++; return open; }",
    );
    // A caller that leaves none.
    let script = "for fd in /proc/$$/fd/*; do n=${fd##*/}; [ \"$n\" -gt 2 ] && eval \"exec $n>&-\"; done; exec \"$0\" \"$@\"";
    let mut command = std::process::Command::new("bash");
    fixture.prepare(&mut command);
    command.args(["-c", script, env!("CARGO_BIN_EXE_heaptoll")]).args(ONCE).arg("--").arg(&program);
    let output: crate::fixture::CommandOutput =
        command.current_dir(fixture.path(".")).output().expect("runs").into();
    output.exits(0);
}

#[test]
fn peak_memory_is_the_programs_own_even_below_a_fat_caller() {
    let fixture = Fixture::new();
    let fat = fixture.program(
        "fat",
        "int main(int c, char **v) { char *p = malloc(300 << 20); memset(p, 1, 300 << 20); \
         if (!fork()) { execv(v[1], v + 1); _exit(127); } int s; wait(&s); return WEXITSTATUS(s); }",
    );
    let mut command = std::process::Command::new(fat);
    fixture.prepare(&mut command);
    command.arg(env!("CARGO_BIN_EXE_heaptoll")).args(ONCE).args(["--", "ls", "/"]);
    let output: crate::fixture::CommandOutput =
        command.current_dir(fixture.path(".")).output().expect("runs").into();
    output.exits(0);
    let json = read_json(&fixture.at("o.json"));
    let peak = rows_of(&json, "glibc", "timed")[0]["peak_rss_kib"].as_u64();
    assert!(peak < Some(10_000), "{peak:?} KiB");
}

#[test]
fn a_program_that_kills_what_started_it_ends_the_run_with_the_rows_so_far() {
    let fixture = Fixture::new();
    let (mark, flag, db) = (marker("patricide"), fixture.at("flag"), fixture.at("e.db"));
    // Only when the file is there, and not in the proof run.
    let program = fixture.program(
        "patricide",
        "int main(int c, char **v) { free(malloc(9)); if (access(v[1], F_OK)) return 0; kill(getppid(), SIGKILL); \
         for (;;) pause(); }",
    );
    let run = ["-m", "glibc", "-n", "1", "--warmup", "0"];
    fixture.heaptoll(&[&["run", "--db", &db][..], &run, &["--", &program, &flag, &mark]].concat()).exits(0);
    std::fs::write(&flag, "").expect("writes");
    fixture
        .heaptoll(&["run", "--resume", &db, "-n", "2"])
        .exits(1)
        .shows(&["glibc"])
        .complains(&["the launcher ended without a report (signal: 9 (SIGKILL))"]);
    eventually("the program is gone with its launcher", || processes_with(&mark).is_empty());
    assert_eq!(rows_of(&fixture.json(&db), "glibc", "timed").len(), 1);
}

#[test]
fn a_program_that_runs_in_full_below_the_startup_layer_has_no_startup_figure() {
    let fixture = Fixture::new();
    // Linked by its own linker: it leaves for good where others call glibc's start, as Go's programs do.
    std::fs::write(
        fixture.path("own.c"),
        "#include <stdlib.h>\n#include <unistd.h>\n__attribute__((force_align_arg_pointer)) void _start(void) \
         { free(malloc(9)); write(1, \"ran\\n\", 4); _exit(0); }",
    )
    .expect("writes");
    let linked = std::process::Command::new("cc")
        .args(["-O1", "-fno-builtin", "-nostartfiles", "-o", &fixture.at("own"), &fixture.at("own.c")])
        .status();
    assert!(linked.is_ok_and(|status| status.success()));
    let json = once(&fixture, &[], &[&fixture.at("own")], 0);
    assert_eq!(rows_of(&json, "glibc", "timed")[0]["outcome"]["kind"], "ok");
    let ok = |json: &serde_json::Value| {
        rows_of(json, "glibc", "startup").iter().filter(|row| row["outcome"]["kind"] == "ok").count()
    };
    assert_eq!(ok(&json), 0, "{:?}", rows_of(&json, "glibc", "startup"));
    // One that does call it has.
    let usual = fixture.program("usual", "int main(void) { free(malloc(9)); return 0; }");
    assert!(ok(&once(&fixture, &[], &[&usual], 0)) > 0);
}
