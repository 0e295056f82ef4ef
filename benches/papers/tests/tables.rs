//! The command as it is used: real programs, real counts, and requests that cannot be carried out.

use std::process::{Command, Output};

use serde_json::Value;

fn papers(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_heaptoll-papers")).args(arguments).output().expect("it starts")
}

/// Its JSON, printed to standard output.
#[track_caller]
fn json(arguments: &[&str]) -> Value {
    let output = papers(arguments);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {message}", output.status);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("no {key} in {row}"))
}

/// Callgrind's count of cfrac's calls agrees with the known number, and the costs are of the known order.
#[test]
fn instructions_of_cfrac_are_counted_and_the_lock_apart() {
    let arguments = ["instructions", "-m", "glibc", "-m", "kingsley", "-p", "cfrac", "--size", "quick"];
    let counted = json(&[&arguments[..], &["--json", "-"]].concat());
    let rows = counted["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2);
    for row in rows {
        let calls = number(row, "malloc_calls_1e3") + number(row, "calloc_calls_1e3");
        // docs/guide/programs.md: 2,572 thousand.
        assert!((2550.0..2600.0).contains(&calls), "{calls}");
        assert!((5.0..120.0).contains(&number(row, "instructions_per_malloc")), "{row}");
        assert!((5.0..200.0).contains(&number(row, "instructions_per_free")), "{row}");
    }
    let (glibc, kingsley) = (&rows[0], &rows[1]);
    assert_eq!(glibc["published_instructions_per_malloc"], Value::Null);
    // Tables IV and V.
    assert_eq!(kingsley["stands_for"], "ultrix");
    assert_eq!(number(kingsley, "published_instructions_per_malloc"), 47.0);
    assert_eq!(number(kingsley, "published_instructions_per_free"), 18.0);
    // Its one lock is taken by both, another way with the second thread: an atomic instruction may stand for several
    // plain ones, so that the difference has either sign.
    for key in ["lock_instructions_per_malloc", "lock_instructions_per_free"] {
        assert!((0.5..30.0).contains(&number(kingsley, key).abs()), "{kingsley}");
    }
    assert!(
        counted["verdict"][0].as_str().is_some_and(|message| message.contains("no verdict")),
        "{counted}"
    );
}

/// With it preloaded the C library no longer takes the program for single-threaded, and nothing else changes: signals
/// are the program's own.
#[test]
fn the_sleeping_thread_is_there_and_does_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let program = "#include <signal.h>\n#include <stdio.h>\n#include <sys/single_threaded.h>\n\
        #include <sys/syscall.h>\n#include <unistd.h>\nstatic volatile pid_t by;\n\
        static void caught(int n) { by = syscall(SYS_gettid); }\n\
        int main(void) { signal(SIGUSR1, caught); kill(getpid(), SIGUSR1);\n\
          printf(\"%d %d\", __libc_single_threaded, by == getpid()); return 0; }\n";
    std::fs::write(path("program.c"), program).expect("writes");
    let sleeper = concat!(env!("CARGO_MANIFEST_DIR"), "/sleeper.c");
    for (out, source, flags) in [
        (path("program"), path("program.c"), &["-w"][..]),
        (
            path("sleeper.so"),
            sleeper.into(),
            &["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-lpthread"],
        ),
    ] {
        let status = Command::new("cc").arg("-O1").args(flags).arg("-o").arg(out).arg(source).status();
        assert!(status.is_ok_and(|status| status.success()));
    }
    let output_with = |preload: &str| {
        let output = Command::new(path("program")).env("LD_PRELOAD", preload).output().expect("it runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(output_with(""), "1 1");
    assert_eq!(output_with(&path("sleeper.so").display().to_string()), "0 1");
}

#[test]
fn expansion_has_the_programs_demand_and_the_managers_heap() {
    let arguments =
        ["expansion", "-m", "glibc", "-m", "knuth", "-p", "cfrac", "-p", "gawk", "--size", "quick"];
    let result = json(&[&arguments[..], &["--json", "-"]].concat());
    let rows = result["rows"].as_array().expect("rows");
    let of = |program: &str, manager: &str| {
        rows.iter()
            .find(|row| row["program"] == program && row["manager"] == manager)
            .unwrap_or_else(|| panic!("no row of {program} under {manager}: {result}"))
    };
    for program in ["cfrac", "gawk"] {
        assert_eq!(of(program, "glibc")["heap_high_kib"], "not reported");
        let row = of(program, "knuth");
        let (live, heap) = (number(row, "live_high_kib"), number(row, "heap_high_kib"));
        assert!(live > 50.0 && heap > live, "{row}");
        assert!((number(row, "expansion") - heap / live).abs() < 1e-9, "{row}");
        assert_eq!(number(of(program, "glibc"), "live_high_kib"), live);
        let (mean, longest) = (number(row, "search_mean_blocks"), number(row, "search_longest_blocks"));
        assert!(mean >= 1.0 && longest >= mean, "{row}");
        assert_eq!(of(program, "glibc")["search_mean_blocks"], Value::Null);
    }
    assert!(number(of("(geometric mean)", "knuth"), "expansion") > 1.0);
    // Table II has 21.4 thousand bytes for cfrac.
    assert!((number(of("cfrac", "knuth"), "published_live_high_kib") - 21_400.0 / 1024.0).abs() < 1e-9);
}

#[test]
fn cfrac_under_glibc_and_itself_is_within_the_limit() {
    let libc = std::fs::read_to_string("/proc/self/maps")
        .expect("maps")
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .find(|path| path.ends_with("/libc.so.6"))
        .expect("the C library")
        .to_owned();
    let folder = tempfile::tempdir().expect("a folder");
    let csv = folder.path().join("cfrac.csv");
    // Two runs give a range and no claim; the test is of the way, not of this machine's noise.
    let arguments = ["cfrac", "-m", &libc, "-n", "2", "--size", "quick", "--no-callgrind", "--json", "-"];
    let result = Command::new(env!("CARGO_BIN_EXE_heaptoll-papers"))
        .args(arguments)
        .arg("--csv")
        .arg(&csv)
        .output()
        .expect("it starts");
    let result: Value = serde_json::from_slice(&result.stdout).expect("JSON");
    let rows = result["rows"].as_array().expect("rows");
    assert_eq!((rows.len(), &rows[0]["judgement"]), (2, &Value::from("the baseline")));
    assert_eq!(rows[1]["manager"], "libc.so");
    for key in ["cpu_ratio", "locked_cpu_ratio"] {
        assert!((0.4..2.5).contains(&number(&rows[1], key)), "{result}");
    }
    let csv = std::fs::read_to_string(csv).expect("the CSV file");
    assert!(csv.starts_with("manager,cpu_s,cpu_ratio,") && csv.lines().count() == 3, "{csv}");
}

/// First fit makes one search a malloc, and the lists of powers of two none.
#[test]
fn cfrac_shows_how_far_a_manager_searched() {
    let arguments = ["cfrac", "-m", "glibc", "-m", "knuth", "-m", "kingsley", "-n", "2", "--size", "quick"];
    let output = papers(&[&arguments[..], &["--no-callgrind", "--json", "-"]].concat());
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let row = |manager: &str| {
        let rows = result["rows"].as_array().expect("rows");
        rows.iter().find(|row| row["manager"] == manager).unwrap_or_else(|| panic!("no {manager}: {result}"))
    };
    let knuth = row("knuth");
    assert!((0.99..1.01).contains(&number(knuth, "searches_per_malloc")), "{knuth}");
    let (mean, longest) = (number(knuth, "search_mean_blocks"), number(knuth, "search_longest_blocks"));
    assert!((1.5..50.0).contains(&mean) && longest > mean, "{knuth}");
    for manager in ["glibc", "kingsley"] {
        assert_eq!(row(manager)["search_mean_blocks"], Value::Null);
        assert!(number(row(manager), "page_faults") > 10.0);
    }
}

/// The project's document has a block for every table, and a table goes into its own block and leaves the rest alone.
#[test]
fn the_document_takes_every_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("papers.md");
    let before =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/papers.md"))
            .expect("reads");
    std::fs::write(&copy, &before).expect("writes");
    let document = copy.display().to_string();
    let now = || std::fs::read_to_string(&copy).expect("reads");

    // All three blocks are there, so it is the manager that stops it.
    let output = papers(&["all", "-m", "absent", "--markdown", &document]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("no manager `absent`"), "{message}");
    assert_eq!(now(), before);

    let begin = "<!-- made by: heaptoll-papers expansion -->";
    let end = "<!-- end of: heaptoll-papers expansion -->";
    let around = |text: &str| {
        let (head, rest) = text.split_once(begin).expect("the block's begin");
        let (block, tail) = rest.split_once(end).expect("the block's end");
        (format!("{head}{tail}"), block.to_owned())
    };
    let arguments =
        ["expansion", "-m", "kingsley", "-p", "cfrac", "--size", "quick", "--markdown", &document];
    assert_eq!(papers(&arguments).status.code(), Some(0));
    let (rest, block) = around(&now());
    assert_eq!(rest, around(&before).0);
    assert!(block.contains("| cfrac") && block.contains("kingsley"), "{block}");

    // Without one of the blocks nothing is measured.
    std::fs::write(&copy, before.replace(begin, "")).expect("writes");
    let output = papers(&["all", "-m", "absent", "--markdown", &document]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains(begin) && !message.contains("absent"), "{message}");
}

#[test]
fn what_cannot_be_done_is_reported_with_a_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let empty = folder.path().display().to_string();
    let document = folder.path().join("doc.md");
    std::fs::write(&document, "no block\n").expect("writes");
    let document = document.display().to_string();
    for (arguments, words) in [
        (vec!["instructions", "-p", "cfracc"], vec!["cfracc", "cfrac"]),
        (vec!["instructions", "-m", "absent"], vec!["no manager `absent`", "glibc"]),
        (vec!["expansion", "-m", "./nothing.so"], vec!["nothing.so"]),
        (vec!["expansion", "--published", &empty], vec!["table10", "studies/published"]),
        (
            vec!["expansion", "-m", "glibc", "-p", "cfrac", "--size", "quick", "--markdown", &document],
            vec!["doc.md", "made by: heaptoll-papers expansion"],
        ),
    ] {
        let output = papers(&arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(words.iter().all(|word| message.contains(word)), "{arguments:?}: {message}");
    }
}

/// A manager under which the program dies loses its row and the command its zero, and the other rows stay.
#[test]
fn a_failing_manager_is_left_out_and_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, object) = (folder.path().join("bad.c"), folder.path().join("bad.so"));
    std::fs::write(
        &source,
        "#include <stdlib.h>\n#include <unistd.h>\nvoid *malloc(size_t n) { _exit(7); }\n",
    )
    .expect("writes");
    let status = Command::new("cc")
        .args(["-O1", "-w", "-shared", "-fPIC", "-fno-builtin", "-o"])
        .arg(&object)
        .arg(&source)
        .status();
    assert!(status.is_ok_and(|status| status.success()));
    let object = object.display().to_string();
    let arguments =
        ["expansion", "-m", "glibc", "-m", &object, "-p", "cfrac", "--size", "quick", "--json", "-"];
    let output = papers(&arguments);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(result["rows"].as_array().map(Vec::len), Some(1));
    let notes = result["notes"].to_string();
    assert!(notes.contains("cfrac under bad: it ended with status 7"), "{notes}");
}
