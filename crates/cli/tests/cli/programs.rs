//! Programs that cannot be measured, and programs that can though they behave badly.

use std::os::unix::fs::{PermissionsExt, chown};

use crate::fixture::{CommandOutput, Fixture, is_root, line, notes, outcomes, read_json, rows, rows_of};

/// One repetition under glibc.
const ONCE: [&str; 7] = ["run", "-m", "glibc", "-n", "1", "--warmup", "0"];

fn once<'a>(rest: &[&'a str]) -> Vec<&'a str> {
    ONCE.iter().chain(rest).copied().collect()
}

#[test]
fn the_catalog_is_written_as_json() {
    let fixture = Fixture::new();
    let output = fixture.heaptoll(&["programs", "--json", "-"]).exits(0);
    let found: serde_json::Value = serde_json::from_str(&output.out).expect("JSON alone");
    let programs = found["programs"].as_array().expect("programs");
    let cfrac = programs.iter().find(|row| row["name"] == "cfrac").expect("cfrac");
    assert_eq!((&cfrac["installed"], &cfrac["package"]), (&true.into(), &"bundled".into()));
    fixture.heaptoll(&["programs", "--json", "/nowhere/p.json"]).exits(2).complains(&["/nowhere/p.json"]);
}

/// The bound is proved for whatever moves no block.
#[test]
fn robsons_game_drives_each_manager_to_the_bound() {
    let fixture = Fixture::new();
    let json = fixture.at("o.json");
    let managers = ["-m", "glibc", "-m", "kingsley", "-m", "cartesian", "-m", "mimalloc3"];
    let words = ["--program", "robson", "--size", "tiny", "--pairing", "interleaved", "--json", &json];
    fixture.heaptoll(&[&["run", "-n", "1", "--warmup", "0"], &managers[..], &words].concat()).exits(0);
    let found = read_json(&json);
    let played = rows(&found).iter().filter(|row| row["phase"] == "timed").map(|row| &row["figures"]);
    let shares: Vec<f64> = played.filter_map(|figures| figures["share"].as_f64()).collect();
    assert!(shares.len() == 4 && shares.iter().all(|share| *share > 0.98), "{shares:?}");
}

/// Found when python3 was refused: every program of the catalog must pass the preflight and end well.
#[test]
fn programs_of_the_catalog_are_served_and_print_the_same() {
    let fixture = Fixture::new();
    let json = fixture.at("some.json");
    let output = fixture.heaptoll(&[
        "run",
        "--program",
        "cfrac",
        "--program",
        "perl",
        "--program",
        "lua",
        "--size",
        "tiny",
        "-m",
        "glibc",
        "-m",
        "rpmalloc",
        "-n",
        "1",
        "--warmup",
        "0",
        "--json",
        &json,
    ]);
    let document = read_json(&json);
    assert_eq!(document["experiment"]["refused"].as_array().map(Vec::len), Some(0), "{document}");
    assert_eq!(document["experiment"]["programs"].as_array().map(Vec::len), Some(3), "{document}");
    output.exits(0);
}

#[test]
#[ignore = "slow: the whole catalog, some 150 CPU seconds"]
fn every_program_of_the_catalog_is_served_and_prints_the_same() {
    let fixture = Fixture::new();
    let json = fixture.at("all.json");
    let output = fixture.heaptoll(&[
        "run", "--all", "--quick", "-m", "glibc", "-m", "rpmalloc", "-n", "1", "--warmup", "0", "--json",
        &json,
    ]);
    let document = read_json(&json);
    assert_eq!(document["experiment"]["refused"].as_array().map(Vec::len), Some(0), "{document}");
    let programs = document["experiment"]["programs"].as_array().map_or(0, Vec::len);
    assert!(programs >= 12 || std::env::var_os("CI").is_none(), "only {programs} programs are installed");
    output.exits(0);
}

#[test]
fn a_missing_program_is_named() {
    let fixture = Fixture::new();
    let mut command = fixture.command(&once(&["--", "no-such-program"]));
    let output: CommandOutput = command.env("PATH", "/usr/bin:/bin").output().expect("runs").into();
    output.exits(2).complains(&["`no-such-program` was not found in PATH (/usr/bin:/bin)"]);
    fixture.heaptoll(&once(&["--", "/no/such"])).exits(2).complains(&["/no/such"]);
    assert!(!fixture.path("state").exists());
}

#[test]
fn a_program_that_may_not_be_executed_is_named() {
    let fixture = Fixture::new();
    let script = fixture.script("script", "#!/bin/sh\n");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o644)).expect("chmod");
    fixture.heaptoll(&once(&["--", &script])).exits(2).complains(&[
        &script,
        "may not be executed",
        "chmod +x",
    ]);
    let folder = fixture.at(".");
    fixture.heaptoll(&once(&["--", &folder])).exits(2).complains(&["not a regular file"]);
}

#[test]
fn a_file_that_is_no_program_and_a_script_without_its_interpreter_are_named() {
    let fixture = Fixture::new();
    let text = fixture.script("text", "just words\n");
    fixture.heaptoll(&once(&["--", &text])).exits(2).complains(&["neither an ELF program nor a script"]);
    let script = fixture.script("script", "#!/no/such/interpreter\n");
    fixture.heaptoll(&once(&["--", &script])).exits(2).complains(&["/no/such/interpreter", "not found"]);
}

#[test]
fn a_static_binary_is_refused() {
    let fixture = Fixture::new();
    let program = fixture.static_program("static", "int main(void) { return malloc(9) == 0; }");
    fixture.heaptoll(&once(&["--", &program])).exits(2).complains(&[&program, "statically linked"]);
}

#[test]
fn a_setuid_binary_is_refused() {
    if !is_root() {
        eprintln!("not root: a set-user-ID copy of another user cannot be made here");
        return;
    }
    let fixture = Fixture::new();
    let program = fixture.program("setuid", "int main(void) { return malloc(9) == 0; }");
    chown(&program, Some(65534), None).expect("chown");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).expect("chmod");
    fixture.heaptoll(&once(&["--", &program])).exits(2).complains(&[&program, "set-user-ID to user 65534"]);
}

#[test]
fn a_program_with_its_own_allocator_is_refused() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "own",
        "static char heap[1<<20]; static size_t used; \
         void *malloc(size_t n) { void *p = heap + used; used += (n + 15) & ~15; return p; } \
         void free(void *p) {} void *calloc(size_t n, size_t m) { return malloc(n * m); } \
         void *realloc(void *p, size_t n) { return malloc(n); } \
         int main(void) { return malloc(9) == 0; }",
    );
    fixture.heaptoll(&once(&["--", &program])).exits(2).complains(&["has its own malloc"]);
}

#[test]
fn a_program_that_closes_its_outputs_is_measured_like_any_other() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "closer",
        "int main(void) { close(1); close(2); close(0); \
         for (int i = 0; i < 2000; i++) { char *p = malloc(999); *p = 1; free(p); } \
         struct timespec t = {0, 50000000}; nanosleep(&t, 0); return 0; }",
    );
    let json = fixture.at("o.json");
    fixture.heaptoll(&once(&["--json", &json, "--", &program])).exits(0);
    let json = read_json(&json);
    let row = rows_of(&json, "glibc", "timed")[0];
    assert_eq!(row["outcome"]["kind"], "ok");
    assert_eq!(row["output_bytes"], 0);
    assert!(row["wall_s"].as_f64().expect("a number") >= 0.05, "waited to the end: {row}");
}

#[test]
fn a_flood_of_output_is_marked_at_the_time_limit_and_does_not_grow_heaptoll() {
    let fixture = Fixture::new();
    let json = fixture.at("o.json");
    let program = fixture.program(
        "flood",
        "static char block[65536]; int main(void) { free(malloc(9)); memset(block, 'y', sizeof block); \
         for (;;) { write(1, block, sizeof block); write(2, block, 4096); } }",
    );
    let arguments = once(&["--timeout", "2", "--json", &json, "--", &program]);
    // heaptoll's own peak, or that of the largest of its children, as its parent sees it.
    let peak = fixture.program(
        "peak",
        "int main(int c, char **v) { pid_t p = fork(); if (!p) { execv(v[1], v + 1); _exit(127); } \
         int s; struct rusage u; wait4(p, &s, 0, &u); \
         fprintf(stderr, \"PEAK %ld\\n\", u.ru_maxrss); return WEXITSTATUS(s); }",
    );
    let mut command = std::process::Command::new(peak);
    command.arg(env!("CARGO_BIN_EXE_heaptoll")).args(&arguments);
    fixture.prepare(&mut command);
    let output: CommandOutput = command.output().expect("runs").into();
    let output = output.exits(1).shows(&["over the time limit of 2 s"]);
    let kib: u64 =
        output.err.split("PEAK ").nth(1).and_then(|rest| rest.trim().parse().ok()).expect("the peak");
    assert!(kib < 200 * 1024, "heaptoll (or its launcher) took {kib} KiB");
    let json = read_json(&json);
    let row = rows_of(&json, "glibc", "timed")[0];
    assert_eq!(row["outcome"]["kind"], "timeout");
    assert!(row["output_bytes"].as_u64() > Some(1_000_000), "more than pipes hold was read: {row}");
    assert!(row["stderr_tail"].as_str().map_or(0, str::len) <= 2048);
}

#[test]
fn a_program_that_fails_under_the_baseline_names_expect_status() {
    let fixture = Fixture::new();
    let db = fixture.at("e.db");
    let fails = "echo 'it hurts' >&2; exit 3";
    let output = fixture
        .heaptoll(&["run", "-m", "glibc", "-m", "glibc", "-n", "6", "--db", &db, "--", "sh", "-c", fails])
        .exits(1)
        .complains(&[
            "sh fails under the baseline glibc itself",
            "exit status 3",
            "it hurts",
            "--expect-status 3",
        ]);
    assert!(!output.err.contains("--timeout"), "{}", output.err);
    let json = fixture.json(&db);
    assert!(!rows(&json).is_empty(), "rows so far are kept");
    assert!(rows(&json).len() < 12, "it was called off early");
}

#[test]
fn a_single_failing_run_names_expect_status_too() {
    let fixture = Fixture::new();
    fixture.heaptoll(&once(&["--", "sh", "-c", "exit 3"])).exits(1).complains(&["--expect-status 3"]);
}

#[test]
fn an_expected_status_is_success_and_no_warning() {
    let fixture = Fixture::new();
    let json = fixture.at("o.json");
    let output = fixture
        .heaptoll(&once(&["--json", &json, "--expect-status", "3", "--", "sh", "-c", "exit 3"]))
        .exits(0);
    assert!(!output.out.contains("exit status 3"), "{}", output.out);
    let json = read_json(&json);
    assert_eq!(outcomes(&json, "glibc"), ["ok"]);
    // And the usual status is then the wrong one.
    fixture
        .heaptoll(&once(&["--expect-status", "3", "--", "sh", "-c", ":"]))
        .exits(1)
        .shows(&["1x exit status 0"]);
}

#[test]
fn a_program_too_slow_under_the_baseline_gets_advice_on_timeout_not_expect_status() {
    let fixture = Fixture::new();
    let output = fixture
        .heaptoll(&["run", "-m", "glibc", "-n", "3", "--timeout", "0.2", "--", "sh", "-c", "sleep 9; :"])
        .exits(1)
        .complains(&["over the time limit of 0.2 s", "--timeout"]);
    assert!(!output.err.contains("--expect-status"), "{}", output.err);
}

#[test]
fn the_proof_run_takes_no_longer_than_the_time_limit() {
    let fixture = Fixture::new();
    let begun = std::time::Instant::now();
    fixture.heaptoll(&once(&["--timeout", "0.3", "--", "sh", "-c", "sleep 60; :"])).exits(1);
    // It would sleep for a minute.
    assert!(begun.elapsed().as_secs_f64() < 30.0, "{:?}", begun.elapsed());
}

#[test]
fn output_that_differs_by_itself_is_noted_and_not_compared() {
    let fixture = Fixture::new();
    let json = fixture.at("o.json");
    fixture
        .heaptoll(&[
            "run", "-m", "glibc", "-m", "glibc", "-n", "2", "--json", &json, "--", "sh", "-c", "echo $$",
        ])
        .exits(0)
        .shows(&["Outputs are not compared, because under the baseline itself they differ"]);
    let json = read_json(&json);
    assert!(notes(&json).contains("Outputs are not compared"));
    assert_eq!(outcomes(&json, "glibc#2"), ["ok", "ok"]);
}

#[test]
fn standard_input_arrives() {
    let fixture = Fixture::new();
    std::fs::write(fixture.path("input"), "7 words\n".repeat(1000)).expect("writes");
    let (input, json) = (fixture.at("input"), fixture.at("o.json"));
    fixture.heaptoll(&once(&["--stdin", &input, "--json", &json, "--", "cat"])).exits(0);
    assert_eq!(rows_of(&read_json(&json), "glibc", "timed")[0]["output_bytes"], 8000);
    // Without it the program reads nothing, not our terminal.
    fixture.heaptoll(&once(&["--json", &json, "--", "cat"])).exits(0);
    assert_eq!(rows_of(&read_json(&json), "glibc", "timed")[0]["output_bytes"], 0);
}

#[test]
fn hash_seeds_are_pinned_unless_the_caller_sets_them() {
    let fixture = Fixture::new();
    let run = |seed: Option<&str>, expected: &str| {
        let test = format!("[ \"$PYTHONHASHSEED $PERL_HASH_SEED $PERL_PERTURB_KEYS\" = '{expected}' ]");
        let mut command = fixture.command(&once(&["--", "sh", "-c", &test]));
        command.env_remove("PYTHONHASHSEED").env_remove("PERL_HASH_SEED").env_remove("PERL_PERTURB_KEYS");
        seed.map(|seed| command.env("PYTHONHASHSEED", seed));
        let output: CommandOutput = command.output().expect("runs").into();
        output.exits(0);
    };
    run(None, "0 0 0");
    run(Some("17"), "17 0 0");
}

#[test]
fn what_the_caller_preloads_is_left_out_with_a_warning() {
    let fixture = Fixture::new();
    let shouting = fixture.object(
        "shout.so",
        "#include <unistd.h>\n__attribute__((constructor)) void f(void) { write(1, \"SHOUT\", 5); }",
    );
    let json = fixture.at("o.json");
    let mut command = fixture.command(&once(&["--json", &json, "--", "echo"]));
    let output: CommandOutput = command.env("LD_PRELOAD", &shouting).output().expect("runs").into();
    output.exits(0).complains(&["warning:", "LD_PRELOAD is set; heaptoll leaves it out"]);
    assert_eq!(rows_of(&read_json(&json), "glibc", "timed")[0]["output_bytes"], 1);
}

#[test]
fn settings_of_allocators_in_the_environment_are_warned_of() {
    let fixture = Fixture::new();
    let mut command = fixture.command(&once(&["--", "ls", "/"]));
    let output: CommandOutput = command.env("MALLOC_ARENA_MAX", "1").output().expect("runs").into();
    output.exits(0).complains(&["MALLOC_ARENA_MAX is set and applies to every run"]);
}

#[test]
fn huge_pages_can_be_forbidden_for_the_measured_processes_alone() {
    let fixture = Fixture::new();
    let json = fixture.at("o.json");
    let program = fixture.program(
        "thp",
        "int main(void) { free(malloc(9)); char line[256]; FILE *f = fopen(\"/proc/self/status\", \"r\"); \
         while (fgets(line, sizeof line, f)) if (!strncmp(line, \"THP_enabled:\", 12)) \
         return line[13] == '0' ? 7 : 8; return 9; }",
    );
    fixture
        .heaptoll(&once(&["--thp", "never", "--expect-status", "7", "--json", &json, "--", &program]))
        .exits(0);
    let read = read_json(&json);
    assert_eq!(read["experiment"]["settings"]["thp"], "never");
    assert_eq!(line(&read, "glibc")["good"], 1);
    fixture.heaptoll(&once(&["--expect-status", "8", "--", &program])).exits(0);
}

#[test]
fn a_programs_own_words_cannot_steer_the_terminal() {
    let fixture = Fixture::new();
    let fails = "printf '\\033[31mred\\033]0;title\\007' >&2; exit 3";
    let output = fixture
        .heaptoll(&["run", "-m", "glibc", "-n", "2", "--", "sh", "-c", fails])
        .exits(1)
        .complains(&["red"]);
    assert!(!output.err.contains(['\x1b', '\x07']), "{}", output.err);
    let load = format!("sh -c \"{fails}\"");
    let serve = ["run", "-m", "glibc", "-n", "1", "--warmup", "0", "--serve", "sh -c 'echo ready; sleep 9'"];
    let output = fixture
        .heaptoll(&[&serve[..], &["--ready", "ready", "--load", &load]].concat())
        .exits(1)
        .shows(&["red"]);
    assert!(!output.out.contains(['\x1b', '\x07']), "{}", output.out);
}

#[test]
fn a_very_short_time_limit_does_not_cut_the_proof_run_short() {
    let fixture = Fixture::new();
    fixture
        .heaptoll(&once(&["--timeout", "0.001", "--", "sh", "-c", "sleep 0.2; :"]))
        .exits(1)
        .shows(&["over the time limit of 0.001 s"]);
}

/// A folder with two entries of the catalog: one that can be measured, and one that is linked statically.
fn own_catalog(fixture: &Fixture) -> String {
    let source = "int main(void) { free(malloc(99)); puts(\"done\"); return 0; }";
    let programs =
        [("dyn", fixture.program("dyn", source)), ("stat", fixture.static_program("stat", source))];
    std::fs::create_dir(fixture.path("catalog")).expect("makes");
    for (name, path) in programs {
        let entry = format!(
            "name = \"{name}\"\nabout = \"made for a test\"\nthreads = 1\ncommand = [\"{path}\"]\n[sizes.quick]\n"
        );
        std::fs::write(fixture.path(&format!("catalog/{name}.toml")), entry).expect("writes");
    }
    fixture.at("catalog")
}

#[test]
fn a_named_program_that_the_baseline_refuses_is_reported_and_is_trouble() {
    let fixture = Fixture::new();
    let (catalog, db, html) = (own_catalog(&fixture), fixture.at("e.db"), fixture.at("o.html"));
    let two =
        ["-m", "glibc", "-n", "1", "--quick", "--catalog", &catalog, "--program", "dyn", "--program", "stat"];
    let words = ["stat is left out", "statically linked"];
    fixture.heaptoll(&[&["run", "--db", &db, "--html", &html][..], &two].concat()).exits(1).shows(&words);
    let page = std::fs::read_to_string(&html).expect("reads");
    assert!(words.iter().all(|word| page.contains(word)));
    fixture.heaptoll(&["run", "--resume", &db, "-n", "2"]).exits(1).shows(&words);
    fixture.heaptoll(&["report", &db]).exits(0).shows(&words);
}

#[test]
fn a_named_manager_that_is_refused_stays_trouble_when_the_experiment_is_gone_on_with() {
    let fixture = Fixture::new();
    let (empty, db) = (fixture.object("empty.so", "int nothing;"), fixture.at("e.db"));
    let run = ["run", "--db", &db, "-m", "glibc", "-m", "glibc", "-m", &empty, "-n", "1", "--", "ls", "/"];
    fixture.heaptoll(&run).exits(1).shows(&["empty.so refused"]);
    fixture.heaptoll(&["run", "--resume", &db, "-n", "2"]).exits(1).shows(&["empty.so refused"]);
}

/// Found in the demo: its first table came after eleven minutes, when all programs had all their runs.
#[test]
fn programs_measured_one_by_one_show_each_table_before_the_next_begins() {
    let fixture = Fixture::new();
    let json = fixture.at("o.json");
    let managers = ["-m", "glibc", "-m", "tithe", "-m", "tithe-collect"];
    let words = ["-p", "cfrac", "-p", "robson", "--size", "tiny", "-n", "2", "--json", &json];
    let output = fixture.heaptoll(&[&["run", "--by-program"], &managers[..], &words].concat()).exits(0);
    let at = |word: &str| output.out.find(word).unwrap_or_else(|| panic!("{word} is not in {}", output.out));
    let order = [
        "cfrac\n",
        "robson\n",
        "overall:",
        "How it was measured",
        "Explicit management",
        "The same allocator",
    ];
    assert!(order.map(at).is_sorted(), "{}", output.out);
    assert!(output.out.lines().all(|line| !line.contains("verdict") || line.contains("programs")));
    let found = read_json(&json);
    assert_eq!(found["experiment"]["complete"], true);
    let programs: Vec<&str> = rows(&found).iter().filter_map(|row| row["program"].as_str()).collect();
    let changes = programs.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!((changes, programs.first()), (1, Some(&"cfrac")), "one after the other");
    fixture
        .heaptoll(&["run", "--by-program", "--budget", "1m", "-p", "cfrac"])
        .exits(2)
        .complains(&["--by-program", "--budget"]);
}
