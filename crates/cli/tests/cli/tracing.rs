//! What the commands under the tracer have in common: what they refuse, what they keep of a run that ends badly, and
//! what is stored. `heaptoll exact instructions` stands for all of them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fixture::{
    CommandOutput, Fixture, UnderWay, assert_none_left, eventually, is_root, marker, programs_with, rows,
};

/// 1500 blocks of sizes that are requested nowhere else; then what a test adds.
const HEAD: &str = "int main(int count, char **words) {
    for (int i = 0; i < 1500; i++) free(malloc(3000 + i));";

fn program(fixture: &Fixture, name: &str, tail: &str) -> String {
    fixture.program(name, &format!("{HEAD} {tail} return 0; }}"))
}

/// One that does not end. When the tracer has reported its calls, it writes its number to the file of its second
/// argument, if it has one.
fn endless(fixture: &Fixture, name: &str) -> String {
    let report = "for (volatile long i = 0; i < 5000000; i++);
        if (count > 2) dprintf(open(words[2], O_CREAT | O_TRUNC | O_WRONLY, 0644), \"%d\\n\", getpid());
        for (;;) pause();";
    program(fixture, name, report)
}

/// Whether an endless program has reported its calls under the tracer; in the preflight it had another number.
fn has_reported(word: &str, file: &str) -> bool {
    let number = std::fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok());
    number.is_some_and(|number| under_the_tracer(word, "").contains(&number))
}

/// Runs the command and returns the stored rows.
fn counted(fixture: &Fixture, options: &[&str], command: &[&str], code: i32) -> (Value, CommandOutput) {
    let db = fixture.at("e.db");
    let output = fixture
        .heaptoll(&[&["exact", "instructions", "--db", &db], options, &["--"], command].concat())
        .exits(code);
    (fixture.json(&db), output)
}

/// Processes with a marker that run under the tracer, with `preload` in their environment.
fn under_the_tracer(word: &str, preload: &str) -> Vec<i32> {
    let read =
        |pid: &i32, what: &str| std::fs::read_to_string(format!("/proc/{pid}/{what}")).unwrap_or_default();
    let is_one =
        |pid: &i32| read(pid, "cmdline").contains("--ring-dir") && read(pid, "environ").contains(preload);
    programs_with(word).into_iter().filter(is_one).collect()
}

/// A home with another tracer's folder: links to all of the real one but for `without`.
pub fn other_home(fixture: &Fixture, without: &[&str]) -> PathBuf {
    let (real, made) = (heaptoll_testing::staged::home(), fixture.path("home"));
    std::fs::create_dir_all(made.join("lib/heaptoll/tracer")).expect("makes");
    let link = |from: &Path, to: &Path, leave: &[&str]| {
        for entry in std::fs::read_dir(from).expect("it is staged: run `make build`").flatten() {
            let name = entry.file_name();
            if !leave.iter().any(|other| name == *other) {
                std::os::unix::fs::symlink(entry.path(), to.join(&name)).expect("links");
            }
        }
    };
    link(&real, &made, &["lib"]);
    link(&real.join("lib/heaptoll"), &made.join("lib/heaptoll"), &["tracer"]);
    link(&real.join("lib/heaptoll/tracer"), &made.join("lib/heaptoll/tracer"), without);
    made
}

#[test]
fn a_tracer_that_cannot_run_here_is_refused_with_its_remedy() {
    let fixture = Fixture::new();
    let program = program(&fixture, "p", "");
    let with = |home: &Path| -> CommandOutput {
        let mut command = fixture.command(&["exact", "instructions", "--", &program]);
        command.env("HEAPTOLL_HOME", home).output().expect("starts").into()
    };
    with(&other_home(&fixture, &["VERSION"])).exits(2).complains(&["VERSION", "make build"]);

    let fixture = Fixture::new();
    let without = other_home(&fixture, &["heaptoll-amd64-linux", "heaptoll-arm64-linux"]);
    with(&without).exits(2).complains(&["has no tracer", "apt-get install valgrind", "make build"]);
}

#[test]
fn it_needs_no_valgrind_on_the_machine() {
    let fixture = Fixture::new();
    let program = program(&fixture, "p", "");
    // A program that executes another: Valgrind then has the kernel execute its launcher.
    let through = fixture.script("through", &format!("#!/bin/sh\nexec {program}\n"));
    let db = fixture.at("e.db");
    let mut command = fixture.command(&["exact", "instructions", "-m", "glibc", "--db", &db, "--", &through]);
    let output: CommandOutput = command.env("PATH", fixture.path("empty")).output().expect("starts").into();
    output.exits(0);
    assert!(rows(&fixture.json(&db))[0]["exact"]["allocations"].as_u64() >= Some(1500));
}

#[test]
fn programs_that_are_not_there_or_not_ours_to_preload_are_refused_as_run_refuses_them() {
    let fixture = Fixture::new();
    let both = |program: &str| {
        let run = fixture.heaptoll(&["run", "-m", "glibc", "-n", "1", "--", program]).exits(2);
        let traced = fixture.heaptoll(&["exact", "instructions", "--", program]).exits(2);
        assert_eq!(run.err, traced.err);
        run.err
    };
    assert!(both("/no/such/program").contains("was not found"));
    assert!(both(&fixture.script("script", "#!/no/such/interpreter\n")).contains("/no/such/interpreter"));
    if is_root() {
        let program = program(&fixture, "privileged", "");
        std::os::unix::fs::chown(&program, Some(65534), None).expect("chowns");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).expect("chmod");
        assert!(both(&program).contains("set-user-ID to user 65534"));
    }
    fixture.heaptoll(&["exact", "instructions"]).exits(2).complains(&["nothing to run"]);
    fixture
        .heaptoll(&["exact", "instructions", "-m", "nonesuch", "--", "ls"])
        .exits(2)
        .complains(&["nonesuch"]);
    assert!(!fixture.path("state").exists(), "nothing is stored of what did not run");
}

#[test]
fn a_static_program_runs_as_it_is_and_other_managers_are_refused() {
    let fixture = Fixture::new();
    let program = fixture.static_program("p", &format!("{HEAD} return 0; }}"));
    let (json, output) = counted(&fixture, &["-m", "kingsley"], &[&program], 1);
    output.complains(&["statically linked"]).shows(&["own (malloc)", "statically linked", "kingsley"]);
    let [row] = &rows(&json)[..] else { panic!("{:?}", rows(&json)) };
    assert_eq!((row["stack"].as_str(), row["phase"].as_str()), (Some("own (malloc)"), Some("traced")));
    assert!(row["exact"]["allocations"].as_u64() >= Some(1500), "{row}");
    assert_eq!(json["experiment"]["refused"][0][1], "kingsley");
}

#[test]
fn a_crash_keeps_its_signal_and_what_was_counted() {
    let fixture = Fixture::new();
    let program = program(&fixture, "p", "fputs(\"about to\", stderr); raise(SIGSEGV);");
    let (json, output) = counted(&fixture, &[], &[&program], 1);
    output.shows(&["killed by signal 11"]);
    let row = &rows(&json)[0];
    assert_eq!(
        (row["outcome"]["kind"].as_str(), row["outcome"]["detail"].as_i64()),
        (Some("signal"), Some(11))
    );
    assert!(row["exact"]["allocations"].as_u64() >= Some(1500), "{row}");
    assert!(row["stderr_tail"].as_str().is_some_and(|tail| tail.contains("about to")), "{row}");
}

#[test]
fn an_exit_status_that_is_expected_is_no_trouble() {
    let fixture = Fixture::new();
    let program = program(&fixture, "p", "exit(7);");
    let (json, output) = counted(&fixture, &[], &[&program], 1);
    output.shows(&["exit status 7", "--expect-status 7"]);
    assert_eq!(rows(&json)[0]["outcome"]["detail"], 7);
    fixture.heaptoll(&["exact", "instructions", "--expect-status", "7", "--", &program]).exits(0);
}

/// Starts the counting of a program that does not end by itself.
fn start_traced(fixture: &Fixture, db: &str, command: &[&str]) -> UnderWay {
    let options = ["exact", "instructions", "--timeout", "300", "--db", db, "--"];
    fixture.start(&[&options[..], command].concat())
}

#[test]
fn a_program_killed_in_mid_run_leaves_what_it_did() {
    let fixture = Fixture::new();
    let (db, word) = (fixture.at("e.db"), marker("killed"));
    let (program, file) = (endless(&fixture, "p"), fixture.at("number"));
    let running = start_traced(&fixture, &db, &[&program, &word, &file]);
    eventually("the program has reported its calls", || has_reported(&word, &file));
    for pid in under_the_tracer(&word, "") {
        // SAFETY: `kill` takes no pointers; the process was started by this test and has its mark.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
    running.wait().exits(1).shows(&["killed"]);
    let json = fixture.json(&db);
    let row = &rows(&json)[0];
    assert_eq!(row["outcome"]["detail"], 9);
    assert_eq!(row["exact"]["whole"], false);
    assert!(row["exact"]["allocations"].as_u64() >= Some(1500), "{row}");
    assert_none_left(&word);
}

#[test]
fn ctrl_c_shows_and_keeps_what_was_finished() {
    let fixture = Fixture::new();
    let (db, word) = (fixture.at("e.db"), marker("interrupted"));
    let slow = fixture.manager("slow.so", "");
    let program =
        program(&fixture, "p", "puts(\"same\"); fflush(stdout); if (under(\"slow.so\")) for (;;) pause();");
    let running = fixture.start(&["exact", "instructions", "-m", &slow, "--db", &db, "--", &program, &word]);
    eventually("it comes to the second", || !under_the_tracer(&word, "slow.so").is_empty());
    std::thread::sleep(Duration::from_secs(1));
    running.signal(libc::SIGINT);
    running.wait().exits(130).shows(&["glibc"]).complains(&["interrupted"]);
    assert_none_left(&word);
    let json = fixture.json(&db);
    let kinds: Vec<_> = rows(&json).iter().map(|row| row["outcome"]["kind"].clone()).collect();
    assert_eq!(kinds, ["ok", "interrupted"]);
    assert_eq!(json["experiment"]["complete"], false);
}

#[test]
fn over_the_time_limit_is_shown_and_marked() {
    let fixture = Fixture::new();
    // Time enough for its calls, and the tracer's own start, on this machine as it is now.
    let begun = Instant::now();
    let short = program(&fixture, "short", "");
    fixture.heaptoll(&["exact", "instructions", "--", &short]).exits(0);
    let limit = (4.0 + 2.0 * begun.elapsed().as_secs_f64()).ceil().to_string();
    let program = endless(&fixture, "p");
    let (json, output) = counted(&fixture, &["--timeout", &limit], &[&program], 1);
    output.shows(&[&format!("time limit of {limit} s"), "--timeout"]);
    let row = &rows(&json)[0];
    assert_eq!(
        (row["outcome"]["kind"].as_str(), row["exact"]["whole"].as_bool()),
        (Some("timeout"), Some(false))
    );
    assert!(row["exact"]["allocations"].as_u64() >= Some(1500), "{row}");
}

#[test]
fn memory_that_runs_out_in_heaptoll_ends_the_run_and_keeps_its_part() {
    let fixture = Fixture::new();
    let (db, word) = (fixture.at("e.db"), marker("memory"));
    let (program, file) = (endless(&fixture, "p"), fixture.at("number"));
    let running = start_traced(&fixture, &db, &[&program, &word, &file]);
    eventually("the program has reported its calls", || has_reported(&word, &file));
    let size = std::fs::read_to_string(format!("/proc/{}/statm", running.pid())).expect("it runs");
    let pages: u64 = size.split(' ').next().and_then(|pages| pages.parse().ok()).expect("a number");
    let limit = libc::rlimit { rlim_cur: pages * 4096 + (40 << 20), rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `prlimit` reads the new limit, which is live during the call; the pointer to the old one is null.
    assert_eq!(unsafe { libc::prlimit(running.pid(), libc::RLIMIT_AS, &limit, std::ptr::null_mut()) }, 0);
    running.wait().exits(1).shows(&["memory runs out"]);
    let json = fixture.json(&db);
    let row = &rows(&json)[0];
    assert_eq!(row["exact"]["whole"], false);
    assert!(row["exact"]["allocations"].as_u64() >= Some(1500), "{row}");
    assert_none_left(&word);
}

#[test]
fn other_output_than_the_baselines_is_marked() {
    let fixture = Fixture::new();
    let other = fixture.manager("other.so", "");
    let program = program(&fixture, "p", "puts(under(\"other.so\") ? \"b\" : \"a\");");
    let (_, output) = counted(&fixture, &["-m", &other], &[&program], 1);
    output.shows(&["output differs"]);
}

#[test]
fn processes_and_threads_are_all_counted() {
    let fixture = Fixture::new();
    let child = program(&fixture, "child", "");
    let source = format!(
        "static void *work(void *n) {{ for (int i = 0; i < 700; i++) free(malloc(5000 + i)); return n; }}
        {HEAD}
        pthread_t t[3];
        for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, work, 0);
        for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
        for (int i = 0; i < 2; i++) if (fork() == 0) {{
            work(0);
            if (i) execl(\"{child}\", \"child\", (char *)0);
            _exit(0);
        }}
        while (wait(0) > 0);
        return 0; }}"
    );
    let parent = fixture.program("parent", &format!("#include <pthread.h>\n{source}"));
    let (json, _) = counted(&fixture, &[], &[&parent], 0);
    let exact = &rows(&json)[0]["exact"];
    assert_eq!((exact["images"].as_u64(), exact["whole"].as_bool()), (Some(4), Some(true)));
    // Parent, its three threads, two children, and what one of them becomes.
    let expected = 1500 + 3 * 700 + 2 * 700 + 1500;
    let calls = exact["allocations"].as_u64().expect("a number");
    assert!((expected..expected + 50).contains(&calls), "{calls} of {expected}");
}

#[test]
fn full_places_cost_what_should_have_gone_there_and_nothing_else() {
    let fixture = Fixture::new();
    let program = program(&fixture, "p", "");
    let (db, json) = (fixture.at("e.db"), fixture.at("o.json"));
    fixture
        .heaptoll(&[
            "exact",
            "instructions",
            "--db",
            &db,
            "--html",
            "/dev/full",
            "--json",
            &json,
            "--",
            &program,
        ])
        .exits(1)
        .shows(&["glibc"])
        .complains(&["/dev/full", "No space left"]);
    assert!(fixture.path("o.json").exists());
    assert_eq!(rows(&fixture.json(&db)).len(), 1);
    fixture
        .heaptoll(&["exact", "instructions", "--db", &db, "--", &program])
        .exits(2)
        .complains(&["exists already"]);
    fixture
        .heaptoll(&["exact", "instructions", "--db", "/proc/e.db", "--", &program])
        .exits(2)
        .complains(&["/proc/e.db"]);
    let full = std::fs::File::options().write(true).open("/dev/full").expect("opens");
    let db = fixture.at("f.db");
    let mut command = fixture.command(&["exact", "instructions", "--db", &db, "--", &program]);
    let output: CommandOutput = command.stdout(full).output().expect("runs").into();
    output.exits(1).complains(&["standard output"]);
    assert_eq!(rows(&fixture.json(&db)).len(), 1);
}

#[test]
fn what_was_traced_is_reported_again_in_every_form() {
    let fixture = Fixture::new();
    let program = program(&fixture, "p", "");
    let (json, output) = counted(&fixture, &["-m", "kingsley"], &[&program], 0);
    output.complains(&["every run is kept in"]);
    let exact = &rows(&json)[1]["exact"];
    assert!(exact["instructions"]["allocator"].as_u64() > Some(1500 * 10), "{exact}");
    assert!(exact["heap_high_water_bytes"].as_u64() > Some(4096), "{exact}");
    let (csv, html) = (fixture.at("o.csv"), fixture.at("o.html"));
    let db = fixture.at("e.db");
    fixture
        .heaptoll(&["report", &db, "--csv", &csv, "--html", &html])
        .exits(0)
        .shows(&["kingsley", "instructions"]);
    let csv = std::fs::read_to_string(csv).expect("is written");
    let head: Vec<&str> = csv.lines().next().expect("a head").split(',').collect();
    let at = head.iter().position(|name| *name == "allocation_calls").expect("the column");
    let calls: Vec<u64> =
        csv.lines().skip(1).filter_map(|line| line.split(',').nth(at)?.parse().ok()).collect();
    assert!(calls.len() == 2 && calls.iter().all(|&calls| calls >= 1500), "{calls:?}");
}

#[test]
fn a_server_of_the_catalog_is_refused() {
    let fixture = Fixture::new();
    fixture
        .heaptoll(&["exact", "instructions", "--program", "redis", "--quick"])
        .exits(2)
        .complains(&["redis"]);
}
