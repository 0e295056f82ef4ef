//! Runs at once on one processor: which stacks take part, which do not and why, and what happens to the others when one
//! fails.

use std::collections::HashSet;

use crate::fixture::{
    Fixture, assert_none_left, eventually, marker, notes, outcomes, programs_with, read_json, rows, rows_of,
};

/// The words of a run that prints all its notes.
fn explained<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [&["run", "--explain"], words].concat()
}

/// Some milliseconds of allocating, then whatever the test has it do.
fn works(before_the_end: &str) -> String {
    allocates(300_000, before_the_end)
}

/// Makes this number of allocations, then does what the test wants.
fn allocates(blocks: u32, before_the_end: &str) -> String {
    format!(
        "#include <fcntl.h>\n#include <pthread.h>\n#include <sys/file.h>\n#include <sys/socket.h>\n\
         #include <sys/un.h>\n#include <sys/ipc.h>\n#include <sys/shm.h>\n\
         int main(void) {{ for (int i = 0; i < {blocks}; i++) {{ char *p = malloc(i % 500 + 1); *p = 1; free(p); }} \
         {before_the_end} puts(\"done\"); return 0; }}"
    )
}

#[test]
fn stacks_of_a_program_that_only_computes_run_at_once() {
    let fixture = Fixture::new();
    let program = fixture.program("computes", &works(""));
    let db = fixture.at("e.db");
    let output =
        fixture.heaptoll(&explained(&["-m", "glibc", "-m", "glibc", "-n", "3", "--db", &db, "--", &program]));
    output.exits(0).shows(&["in lockstep on one core", "Machine load during the runs: other work "]);
    let json = fixture.json(&db);
    for stack in ["glibc", "glibc#2"] {
        for phase in ["timed", "startup", "alone"] {
            assert_eq!(rows_of(&json, stack, phase).len(), 3, "{stack} {phase}");
        }
    }
    let begun = |stack: &str| -> Vec<f64> {
        rows_of(&json, stack, "timed").iter().filter_map(|row| row["started_unix_s"].as_f64()).collect()
    };
    assert_eq!(begun("glibc"), begun("glibc#2"), "a block begins once");
    let disturbed = |stack: &str, phase: &str| -> Vec<serde_json::Value> {
        rows_of(&json, stack, phase).iter().map(|row| row["disturbance"].clone()).collect()
    };
    assert_eq!(disturbed("glibc", "timed"), disturbed("glibc#2", "timed"), "a block is disturbed once");
    assert!(disturbed("glibc", "alone").iter().all(|one| one["seconds"].as_f64().is_some_and(|s| s > 0.0)));
    assert!(disturbed("glibc", "startup").iter().all(serde_json::Value::is_null));
    assert_eq!(json["comparison"]["tables"][0]["disturbance"]["blocks"], 3);
    let orders: HashSet<u64> = rows(&json).iter().filter_map(|row| row["order"].as_u64()).collect();
    assert_eq!(orders.len(), rows(&json).len(), "positions are unique");
}

/// Forms of one program ran in different blocks, whose disturbance did not cancel between them.
#[test]
fn forms_of_one_program_run_in_one_block_with_all_their_managers() {
    let fixture = Fixture::new();
    let db = fixture.at("e.db");
    let run = |more: &[&str]| {
        let forms = ["-p", "cfrac:optimized", "-p", "cfrac:gc", "-p", "cfrac", "--size", "tiny", "--db", &db];
        let managers = ["-m", "glibc", "-m", "glibc", "-n", "2", "--warmup", "0"];
        fixture.heaptoll(&explained(&[&forms[..], &managers, more].concat()))
    };
    let together = ["--together", "cfrac:gc,cfrac:optimized"];
    run(&["--together", "cfrac:gc,lua"]).exits(2).complains(&["--together lua: it does not run", "-p lua"]);
    run(&["--together", "cfrac"]).exits(2).complains(&["name two programs or more"]);
    let interleaved = [&together[..], &["--pairing", "interleaved"]].concat();
    run(&interleaved).exits(2).complains(&["--together is for lockstep"]);
    run(&together).exits(0).shows(&["In lockstep with each other: cfrac:optimized and cfrac:gc"]);
    let json = fixture.json(&db);
    let begun = |program: &str| -> Vec<f64> {
        let timed = rows(&json).iter().filter(|row| row["program"] == program && row["phase"] == "timed");
        timed.filter_map(|row| row["started_unix_s"].as_f64()).collect()
    };
    let sorted = |program: &str| {
        let mut begun = begun(program);
        begun.sort_by(f64::total_cmp);
        begun
    };
    assert_eq!(sorted("cfrac:optimized").len(), 4);
    assert_eq!(sorted("cfrac:optimized"), sorted("cfrac:gc"), "a block begins once");
    assert!(sorted("cfrac").iter().all(|begun| !sorted("cfrac:gc").contains(begun)));
}

#[test]
fn interleaved_runs_are_available_by_option() {
    let fixture = Fixture::new();
    let program = fixture.program("computes", &works(""));
    let db = fixture.at("e.db");
    let paired = ["--pairing", "interleaved", "-m", "glibc", "-m", "glibc", "-n", "1"];
    fixture.heaptoll(&[&["run", "--db", &db], &paired[..], &["--", &program]].concat()).exits(0);
    let json = fixture.json(&db);
    assert!(rows_of(&json, "glibc", "alone").is_empty() && !notes(&json).contains("lockstep"));
}

/// Each of these would meet its copies, or does not share a processor as a program that only computes does.
#[test]
fn what_copies_would_meet_keeps_a_program_out_of_lockstep_with_the_reason() {
    let cases = [
        ("close(open(\"fixed\", O_WRONLY | O_CREAT, 0600));", "it writes "),
        ("close(open(\"fixed\", O_RDONLY | O_CREAT, 0600));", "it writes "),
        ("rename(\"nothing\", \"there\");", "it writes "),
        ("unlink(\"nothing\");", "it writes "),
        ("flock(open(\".\", O_RDONLY), LOCK_EX);", "it locks "),
        (
            "struct sockaddr_un a = {AF_UNIX, \"socket\"}; bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&a, sizeof a);",
            "it binds the socket ",
        ),
        ("shmctl(shmget(77, 4096, IPC_CREAT | 0600), IPC_RMID, 0);", "(shmget)"),
        (
            "char self[99]; sprintf(self, \"/proc/self/fd/%d\", open(\"there\", O_RDONLY)); open(self, O_WRONLY);",
            "it writes ",
        ),
        ("symlink(\"there\", \"link\"); close(open(\"link\", O_RDWR)); unlink(\"link\");", "it writes "),
        ("int f = open(\"there\", O_RDONLY); if (ftruncate(f, 0)) close(f);", "it writes "),
        ("chmod(\"there\", 0600);", "it writes "),
        ("open((char *)1, O_WRONLY);", "could not be read"),
        ("__asm__ volatile(\"int $0x80\" : : \"a\"(20) : \"memory\");", "another architecture"),
        ("kill(1, 0);", "did not start"),
        ("setsid();", "(setsid)"),
        ("nice(1);", "(setpriority)"),
        ("usleep(1000);", "(clock_nanosleep)"),
        ("alarm(100);", "(alarm)"),
        (
            "pthread_t t; pthread_create(&t, 0, (void *(*)(void *))sleep, 0); pthread_join(t, 0);",
            "several threads",
        ),
    ];
    let fixture = Fixture::new();
    std::fs::write(fixture.path("there"), "").expect("writes");
    for (number, (act, reason)) in cases.into_iter().enumerate() {
        let program = fixture.program(&format!("acts{number}"), &allocates(30_000, act));
        let file = fixture.at(&format!("{number}.json"));
        let mut run = fixture
            .command(&["run", "-m", "glibc", "-m", "glibc", "-n", "1", "--warmup", "0", "--json", &file]);
        run.args(["--", &program]).current_dir(fixture.path("."));
        let output: crate::fixture::CommandOutput = run.output().expect("starts").into();
        output.exits(0);
        let json = read_json(&file);
        let notes = notes(&json);
        assert!(notes.contains("not in lockstep") && notes.contains(reason), "{act}: {notes}");
        assert!(rows_of(&json, "glibc", "alone").is_empty(), "{act}");
    }
}

#[test]
fn files_of_a_run_s_own_keep_no_stack_out_of_lockstep() {
    let fixture = Fixture::new();
    let act = "char file[] = \"/tmp/heaptoll-own-XXXXXX\"; close(mkstemp(file)); close(open(file, O_RDWR)); \
               unlink(file); char folder[] = \"/tmp/heaptoll-own-XXXXXX\"; mkdtemp(folder); char in[99]; \
               sprintf(in, \"%s/in\", folder); close(open(in, O_WRONLY | O_CREAT, 0600)); unlink(in); rmdir(folder); \
               close(open(\"/dev/null\", O_RDWR)); usleep(0); close(open(\"/etc/passwd\", O_RDONLY));";
    let program = fixture.program("own", &works(act));
    let db = fixture.at("e.db");
    fixture
        .heaptoll(&explained(&["-m", "glibc", "-m", "glibc", "-n", "1", "--db", &db, "--", &program]))
        .exits(0)
        .shows(&["in lockstep on one core"]);
}

#[test]
fn a_manager_that_starts_threads_runs_by_itself_and_the_others_at_once() {
    let fixture = Fixture::new();
    let threaded = fixture.manager(
        "threaded.so",
        "#include <pthread.h>\nstatic void *wait_for_ever(void *x) { for (;;) pause(); return x; }\n\
         __attribute__((constructor)) static void begin(void) { pthread_t t; pthread_create(&t, 0, wait_for_ever, 0); }",
    );
    let program = fixture.program("computes", &works(""));
    let db = fixture.at("e.db");
    fixture
        .heaptoll(&explained(&[
            "-m", "glibc", "-m", &threaded, "-m", "glibc", "-n", "2", "--db", &db, "--", &program,
        ]))
        .exits(0)
        .shows(&["it starts threads in the program", "in lockstep on one core"]);
    let json = fixture.json(&db);
    assert!(rows_of(&json, &threaded, "timed").is_empty());
    assert_eq!(rows_of(&json, &threaded, "alone").len(), 2);
    assert_eq!(rows_of(&json, "glibc#2", "timed").len(), 2);
    let row = crate::fixture::line(&json, &threaded);
    assert_eq!(row["figures"]["cpu"]["ratio"]["pairs"], 2, "to runs of the baseline by itself: {row}");
}

#[test]
fn a_stack_that_is_slow_in_its_warm_up_runs_by_itself_and_the_others_at_once() {
    let fixture = Fixture::new();
    // Processor time, which no load of the machine makes more of.
    let slow = fixture.manager(
        "slow.so",
        "#include <time.h>\n__attribute__((destructor)) static void burn(void) \
         { while (clock() < CLOCKS_PER_SEC * 2 / 5) ; }",
    );
    let program = fixture.program("computes", &works(""));
    let db = fixture.at("e.db");
    fixture
        .heaptoll(&explained(&[
            "-m", "glibc", "-m", &slow, "-m", "glibc", "-n", "1", "--db", &db, "--", &program,
        ]))
        .exits(0)
        .shows(&["its warm-up took ", "in lockstep on one core"]);
    let json = fixture.json(&db);
    assert!(rows_of(&json, &slow, "timed").is_empty());
    assert_eq!(rows_of(&json, &slow, "alone").len(), 1);
    assert_eq!(rows_of(&json, "glibc#2", "timed").len(), 1);
    assert_eq!(json["experiment"]["complete"], true);
}

#[test]
fn a_stack_that_crashes_in_company_leaves_the_others_figures_alone() {
    let fixture = Fixture::new();
    let crashing = fixture.manager(
        "crashing.so",
        "#define BEFORE(bytes) if (getenv(\"HEAPTOLL_PADDING\") && ++calls > 5000) abort();\nstatic int calls;",
    );
    let program = fixture.program("computes", &works(""));
    let db = fixture.at("e.db");
    let managers = ["-m", "glibc", "-m", &crashing, "-m", "glibc", "-n", "3", "--db", &db, "--", &program];
    fixture.heaptoll(&[&["run"], &managers[..]].concat()).exits(1).shows(&["killed by signal 6"]);
    let json = fixture.json(&db);
    assert!(outcomes(&json, "glibc#2").iter().all(|outcome| outcome == "ok"));
    assert_eq!(rows_of(&json, "glibc#2", "timed").len(), 3);
}

#[test]
fn ctrl_c_in_lockstep_ends_all_runs_and_their_fillers() {
    let fixture = Fixture::new();
    let (db, mark) = (fixture.at("e.db"), marker("lockstep"));
    // Only in measured runs, which have padding, one of the two waits for ever; the other's fillers run at the same
    // time.
    let holding = fixture.manager(
        "holding.so",
        "#define BEFORE(bytes) if (bytes == 77 && getenv(\"HEAPTOLL_PADDING\")) for (;;) pause();",
    );
    let program = fixture.program("holds", "int main(void) { free(malloc(77)); puts(\"done\"); return 0; }");
    let common =
        ["-m", "glibc", "-m", &holding, "-n", "2", "--warmup", "0", "--db", &db, "--", &program, &mark];
    let run = fixture.start(&[&["run"], &common[..]].concat());
    eventually("the held one runs", || !programs_with(&mark).is_empty());
    run.signal(libc::SIGINT);
    run.wait().exits(130);
    assert_none_left(&mark);
}

#[test]
fn runs_go_on_until_the_time_is_over_or_intervals_are_narrow() {
    let fixture = Fixture::new();
    let program = fixture.program("computes", &works(""));
    // So wide that the first check is the last.
    let db = fixture.at("narrow.db");
    let common = ["-m", "glibc", "-m", "glibc", "--warmup", "0"];
    let precise = ["--precision", "100%", "--db", &db, "--", &program];
    let output = fixture.heaptoll(&[&["run"], &common[..], &precise].concat()).exits(0);
    output.complains(&["after 8 repetitions all 1 CPU intervals are within 100 %"]);
    let json = fixture.json(&db);
    assert_eq!(rows_of(&json, "glibc", "timed").len(), 8);
    assert_eq!(json["experiment"]["settings"]["precision"], 1.0);
    assert_eq!(
        json["comparison"]["alpha"], 0.04,
        "the level where an experiment decides itself when it ends"
    );
    // So short that there is no time for a second check.
    let db = fixture.at("short.db");
    let short = ["--precision", "0.01%", "--budget", "1", "--db", &db, "--", &program];
    fixture
        .heaptoll(&[&["run"], &common[..], &short].concat())
        .exits(0)
        .complains(&["1 of 1 CPU intervals are wider"]);
    assert!(rows_of(&fixture.json(&db), "glibc", "timed").len() >= 8);
    // What is decided by the spread is not given as a number, too.
    for both in [["--precision", "1%"], ["--budget", "5m"]] {
        fixture.heaptoll(&[&["run", "-n", "9"], &both[..], &["--", &program]].concat()).exits(2);
    }
    fixture.heaptoll(&["run", "--precision", "1", "--", &program]).exits(2).complains(&["such as 1%"]);
}

#[test]
fn files_made_under_the_same_name_in_each_run_keep_a_program_out_of_lockstep() {
    let fixture = Fixture::new();
    let cases = [
        "if (open(\"lock\", O_WRONLY | O_CREAT | O_EXCL, 0600) < 0) return 3; unlink(\"lock\");",
        "if (mkdir(\"build\", 0700)) return 4; rmdir(\"build\");",
    ];
    for (number, act) in cases.into_iter().enumerate() {
        let program = fixture.program(&format!("makes{number}"), &works(&format!("{act} usleep(0);")));
        let db = fixture.at(&format!("{number}.db"));
        let mut run = fixture.command(&explained(&["-m", "glibc", "-m", "glibc", "-n", "2", "--db", &db]));
        run.args(["--", &program]).current_dir(fixture.path("."));
        let output: crate::fixture::CommandOutput = run.output().expect("starts").into();
        output.exits(0).shows(&["not in lockstep: it creates ", "in each run"]);
        assert!(outcomes(&fixture.json(&db), "glibc").iter().all(|outcome| outcome == "ok"));
    }
}

#[test]
fn fillers_remove_the_files_of_the_program() {
    let fixture = Fixture::new();
    let folder = fixture.at("own");
    std::fs::create_dir(&folder).expect("makes");
    let act = "char file[999]; sprintf(file, \"%s/XXXXXX\", getenv(\"OWN\")); close(mkstemp(file)); \
               for (int i = 0; i < 300000; i++) free(malloc(i % 100)); unlink(file);";
    let program = fixture.program("temporary", &works(act));
    let slow = fixture.manager("slow.so", "#define BEFORE(bytes) for (volatile int i = 0; i < 50; i++);");
    let mut run = fixture
        .command(&explained(&["-m", "glibc", "-m", &slow, "-n", "3", "--warmup", "0", "--", &program]));
    let output: crate::fixture::CommandOutput = run.env("OWN", &folder).output().expect("starts").into();
    output.exits(0).shows(&["in lockstep on one core"]);
    assert_eq!(std::fs::read_dir(&folder).expect("reads").count(), 0);
}

#[test]
fn a_program_that_writes_where_it_runs_is_in_lockstep_in_copies_of_the_folder() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "writes",
        &works(
            "FILE *f = fopen(\"fixed\", \"a+\"); fprintf(f, \"x\"); fflush(f); long all = ftell(f); fclose(f); \
             printf(\"%ld\\n\", all);",
        ),
    );
    let (db, here) = (fixture.at("e.db"), fixture.path("here"));
    std::fs::create_dir(&here).expect("a folder");
    let heaptoll_in = |folder: &std::path::Path, words: &[&str]| -> crate::fixture::CommandOutput {
        fixture.command(words).current_dir(folder).output().expect("heaptoll starts").into()
    };
    let run =
        explained(&["--working-copy", "-m", "glibc", "-m", "glibc", "-n", "2", "--db", &db, "--", &program]);
    heaptoll_in(&here, &run).exits(0).shows(&["in lockstep on one core"]);
    let json = fixture.json(&db);
    assert_eq!(rows_of(&json, "glibc#2", "timed").len(), 2);
    // Each run begins with the folder as it is: one byte is written to a file that is not there, and it stays so.
    let full_runs = rows(&json).iter().filter(|row| row["phase"] != "startup");
    let digests: HashSet<&str> = full_runs.filter_map(|row| row["output_digest"].as_str()).collect();
    assert_eq!(digests.len(), 1, "{digests:?}");
    let exact = heaptoll_in(&here, &["run", "--resume", &db, "--exact"]);
    exact.exits(0);
    assert_eq!(rows_of(&fixture.json(&db), "glibc", "traced").len(), 1);
    assert!(!here.join("fixed").exists());
    let of_all = ["run", "--working-copy", "--", "/bin/true"];
    heaptoll_in(std::path::Path::new("/"), &of_all).exits(2).complains(&["TMPDIR"]);
}

#[test]
fn slices_are_for_runs_at_once_and_of_lengths_that_the_kernel_gives() {
    let fixture = Fixture::new();
    let program = fixture.program("computes", &works(""));
    let run = |words: &[&str]| {
        fixture.heaptoll(&[&["run", "-m", "glibc", "-n", "1"], words, &["--", &program]].concat())
    };
    run(&["--slice", "10ms", "--pairing", "interleaved"]).exits(2).complains(&["--slice is for lockstep"]);
    run(&["--slice", "1s"]).exits(2).complains(&["between .1ms and 100ms"]);
    let db = fixture.at("e.db");
    let sliced = run(&["--slice", "10ms", "-m", "glibc", "--db", &db]);
    // Before Linux 6.12 it is refused.
    if sliced.code == Some(2) {
        sliced.complains(&["6.12"]);
    } else {
        assert_eq!(fixture.json(&db)["experiment"]["settings"]["slice_s"], 0.01);
    }
}

#[test]
fn where_memory_is_short_managers_take_turns_with_the_baseline_in_each_block() {
    let fixture = Fixture::new();
    let holds = "char *large = malloc(12 << 20); memset(large, 1, 12 << 20); free(large);";
    let program = fixture.program(
        "holds",
        &works(holds).replace("#include <fcntl.h>", "#include <fcntl.h>\n#include <string.h>"),
    );
    let db = fixture.at("e.db");
    let managers = ["-m", "glibc", "-m", "glibc", "-m", "glibc", "-m", "glibc"];
    let run = explained(&["-n", "2", "--db", &db, "--memory-at-once", "42M"]);
    let output = fixture.heaptoll(&[&run[..], &managers, &["--", &program]].concat());
    output.exits(0).shows(&[
        "in lockstep on one core",
        "3 of 4 managers at a time (glibc in each",
        "more than the limit of 42.0 MiB",
    ]);
    let count = |json: &serde_json::Value, stack: &str, phase: &str| rows_of(json, stack, phase).len();
    let json = fixture.json(&db);
    // Two turns a round: the baseline is in each, the others in one.
    for phase in ["timed", "startup", "alone"] {
        assert_eq!(count(&json, "glibc", phase), 4, "{phase}");
        assert!(
            ["glibc#2", "glibc#3", "glibc#4"].iter().all(|stack| count(&json, stack, phase) == 2),
            "{phase}"
        );
    }
    for row in rows_of(&json, "glibc#3", "timed") {
        let with_it = |other: &&serde_json::Value| other["repetition"] == row["repetition"];
        let baseline = rows_of(&json, "glibc", "timed").into_iter().find(with_it).expect("the baseline's");
        assert_eq!(baseline["started_unix_s"], row["started_unix_s"], "they ran at once");
    }
    // It goes on with the same turns.
    fixture.heaptoll(&["run", "--resume", &db, "-n", "7"]).exits(0);
    let json = fixture.json(&db);
    assert_eq!((count(&json, "glibc", "timed"), count(&json, "glibc#4", "timed")), (14, 7));
    let pairs = |row: &serde_json::Value| row["figures"]["cpu"]["ratio"]["pairs"].as_u64();
    let table = json["comparison"]["tables"][0]["rows"].as_array().expect("rows");
    assert_eq!(table.iter().filter_map(pairs).collect::<Vec<_>>(), [7, 7, 7]);
    let both = ["run", "--pairing", "interleaved", "--memory-at-once", "1G", "--", &program];
    fixture.heaptoll(&both).exits(2).complains(&["--memory-at-once is for lockstep"]);
    fixture
        .heaptoll(&["run", "--memory-at-once", "much", "--", &program])
        .exits(2)
        .complains(&["such as 4G"]);
}

#[test]
fn where_memory_is_too_short_for_two_managers_run_one_after_the_other() {
    let fixture = Fixture::new();
    let program = fixture.program("computes", &works(""));
    let run = explained(&["-m", "glibc", "-m", "glibc", "-n", "1", "--memory-at-once", "8K", "--", &program]);
    fixture.heaptoll(&run).exits(0).shows(&["not in lockstep: 2 together would take "]);
}
