//! `heaptoll exact instructions`: on a manager whose every instruction is known, on programs that repeat and on programs that
//! do not, and compared with callgrind.

use std::process::Command;

use serde_json::Value;

use crate::fixture::{CommandOutput, Fixture, read_json};

/// A manager of five instructions a malloc (two loads, the return address one of them, and a store) and one a free (a
/// load), over 16 MiB of static data.
const FIVE: &str = r#"
#include <stddef.h>
#include <string.h>
char arena[16 << 20] __attribute__((aligned(4096), visibility("hidden")));
__asm__(
    ".data\n .balign 8\n next: .quad arena\n .text\n"
    ".globl malloc\n .type malloc,@function\n malloc:\n five:\n"
    " mov next(%rip), %rax\n lea 15(%rax,%rdi), %rcx\n and $-16, %rcx\n mov %rcx, next(%rip)\n ret\n"
    " .size malloc, .-malloc\n"
    ".globl free\n .type free,@function\n free: ret\n .size free, .-free\n"
    ".globl calloc\n .type calloc,@function\n calloc: imul %rsi, %rdi\n jmp five\n .size calloc, .-calloc\n");
void *malloc(size_t n);
void *realloc(void *p, size_t n) {
    void *q = malloc(n);
    return p ? memcpy(q, p, n) : q;
}
void *memalign(size_t a, size_t n) { return (void *)(((size_t)malloc(n + a) + a - 1) & -a); }
void *aligned_alloc(size_t a, size_t n) { return memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n) { *p = memalign(a, n); return 0; }
"#;

/// 1000 blocks of 40 bytes, 10 of them freed by name of C++, and enough work of its own.
const KNOWN: &str = r#"
    __attribute__((noipa)) void *_Znwm(size_t n) { return malloc(n); }
    __attribute__((noipa)) void _ZdlPv(void *p) { free(p); }
    static void *blocks[1000];
    int main(int count, char **words) {
        for (volatile int at = 0; at < 3000000; at++);
        for (int at = 0; at < 1000; at++) blocks[at] = malloc(40);
        for (int at = 0; at < 990; at++) free(blocks[at]);
        for (int at = 990; at < 1000; at++) _ZdlPv(blocks[at]);
        for (int at = 0; at < 30; at++) _ZdlPv(_Znwm(100));
        for (int at = 0; at < 3; at++) free(NULL);
        // That manager knows no end.
        return !under("five.so") && malloc(1UL << 62) != NULL;
    }
"#;

/// The command's JSON and its output.
fn counted(fixture: &Fixture, options: &[&str], command: &[&str]) -> (Value, CommandOutput) {
    let file = fixture.at("counted.json");
    let arguments = [&["exact", "instructions", "--json", &file], options, &["--"], command].concat();
    let output = fixture.heaptoll(&arguments).exits(0);
    (read_json(&file), output)
}

fn row<'a>(json: &'a Value, manager: &str) -> &'a Value {
    let rows = json["programs"][0]["managers"].as_array().expect("rows");
    rows.iter().find(|row| row["manager"] == manager).unwrap_or_else(|| panic!("no {manager} in {rows:#?}"))
}

fn routine<'a>(row: &'a Value, name: &str) -> &'a Value {
    let routines = row["figures"]["routines"].as_array().expect("routines");
    routines.iter().find(|one| one["routine"] == name).unwrap_or_else(|| panic!("no {name} in {row:#}"))
}

fn class(classes: &Value, up_to: u64) -> &Value {
    let classes = classes.as_array().expect("classes");
    let found = classes.iter().find(|one| one["class"]["up_to_bytes"] == up_to);
    found.unwrap_or_else(|| panic!("none up to {up_to} in {classes:#?}"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no figure: {value}"))
}

#[test]
fn known_costs_are_counted_to_the_instruction() {
    let fixture = Fixture::new();
    let (program, five) = (fixture.program("known", KNOWN), fixture.object("five.so", FIVE));
    let page = fixture.at("page.html");
    let (json, output) = counted(&fixture, &["-m", &five, "--html", &page], &[&program]);
    output.shows(&[
        "a malloc",
        "% of application",
        "mapped at most",
        "pages with blocks",
        "before main",
        "33 to 64 B",
    ]);
    assert_eq!(json["schema"], "heaptoll-instructions/1");
    let (glibc, five) = (row(&json, "glibc"), row(&json, &five));

    let malloc = class(&routine(five, "malloc")["classes"], 40);
    assert_eq!((number(&malloc["calls"]), number(&malloc["cost"]["instructions"])), (1000, 5000));
    assert_eq!((number(&malloc["cost"]["loads"]), number(&malloc["cost"]["stores"])), (2000, 1000));
    assert_eq!((&malloc["per_call"]["p50"], &malloc["per_call"]["max"]), (&5.into(), &5.into()));
    let free = class(&routine(five, "free")["classes"], 40);
    assert_eq!((number(&free["calls"]), number(&free["cost"]["instructions"])), (990, 990));

    // What is called within the family belongs to the outermost call.
    let (new, delete) = (routine(five, "operator new"), routine(five, "operator delete"));
    assert_eq!((number(&new["calls"]), number(&delete["calls"])), (30, 40));
    assert!(number(&new["per_call"]["p50"]) > 5, "the jump to malloc is part of it");

    for row in [glibc, five] {
        assert_eq!(routine(row, "free")["null_calls"], 3);
        assert_eq!(number(&class(&routine(row, "malloc")["classes"], 40)["calls"]), 1000);
        assert!(number(&row["figures"]["startup_instructions"]) > 10_000, "the loader");
    }
    assert_eq!(routine(glibc, "malloc")["failed_calls"], 1);
    assert_eq!(routine(five, "malloc")["failed_calls"], 0);

    // The static data holds the blocks, so it is the heap, and all of it.
    let heap = number(&five["figures"]["heap"]["high_water_bytes"]);
    assert!((16 << 20..(16 << 20) + 65536).contains(&heap), "{heap}");
    // Blocks lie in the first pages of it: 1000 of 48 bytes, 30 of 112, and what the C library requests.
    let pages = number(&five["figures"]["heap"]["pages_with_blocks_bytes"]);
    assert!((51_360..250_000).contains(&pages) && pages.is_multiple_of(4096), "{pages}");
    let live = number(&five["figures"]["heap"]["most_live_bytes"]);
    assert_eq!(five["figures"]["heap"]["expansion"], pages as f64 / live as f64);

    let page = std::fs::read_to_string(page).expect("it was written");
    for title in ["A call that makes a block", "A call that frees a block", "Shares of all instructions"] {
        assert!(page.contains(title), "no chart {title}");
    }
}

#[test]
fn application_instructions_are_the_same_under_all_managers() {
    let fixture = Fixture::new();
    let program = fixture.program("known", KNOWN);
    let (json, _) = counted(&fixture, &["-m", "kingsley", "-m", "knuth"], &[&program]);
    assert_eq!(json["programs"][0]["warnings"].as_array().map(Vec::len), Some(0), "{json:#}");
    let application = |manager: &str| {
        let row = row(&json, manager);
        number(&row["figures"]["owners"]["program"]["instructions"])
            - number(&row["figures"]["startup_instructions"])
    };
    let glibc = application("glibc");
    assert!(glibc > 9_000_000, "{glibc}");
    for manager in ["kingsley", "knuth"] {
        assert!(glibc.abs_diff(application(manager)) < glibc / 1000, "{manager}");
    }
}

/// Has a thread of its own from its constructor on, and wraps `pthread_create` to count the program's.
const OWN_THREAD: &str = r#"
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <pthread.h>
    static void *mark(void *none) {
        for (volatile int at = 0; at < 2000000; at++);
        return none;
    }
    int pthread_create(pthread_t *id, const pthread_attr_t *how, void *(*work)(void *), void *with) {
        int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
        int failed = create(id, how, work, with);
        __asm__ volatile("" : : "r"(failed) : "memory");
        return failed;
    }
    __attribute__((constructor)) static void begin(void) {
        pthread_t id;
        pthread_create(&id, NULL, mark, NULL);
        pthread_join(id, NULL);
    }
"#;

/// Has a thread too, that does half as much.
const WITH_THREAD: &str = r#"
    #include <pthread.h>
    static void *work(void *none) {
        for (volatile int at = 0; at < 1000000; at++);
        return none;
    }
    int main(void) {
        pthread_t id;
        free(malloc(40));
        return pthread_create(&id, NULL, work, NULL) || pthread_join(id, NULL);
    }
"#;

#[test]
fn a_thread_of_a_managers_constructor_is_not_the_programs() {
    let fixture = Fixture::new();
    let program = fixture.program("threaded", WITH_THREAD);
    let own = fixture.object("own.so", &format!("{OWN_THREAD}{FIVE}"));
    let (json, _) = counted(&fixture, &["-m", &own], &[&program]);
    let (glibc, own) = (row(&json, "glibc"), row(&json, &own));
    let of = |row: &Value, owner: &str| number(&row["figures"]["owners"][owner]["instructions"]);
    assert!(of(own, "collector") > 2_000_000, "{own:#}");
    assert_eq!(of(glibc, "collector"), 0);
    assert!(of(glibc, "program") > 1_000_000, "the program's own thread is the program's: {glibc:#}");
    let difference = of(own, "program").abs_diff(of(glibc, "program"));
    assert!(difference < 1_000_000, "only the loader's work differs: {difference}");
    let threads = |row: &Value| {
        (number(&row["figures"]["threads_started"]), number(&row["figures"]["manager_threads_started"]))
    };
    assert_eq!((threads(glibc), threads(own)), ((1, 0), (2, 1)));
}

#[test]
fn two_runs_of_a_deterministic_program_agree_exactly() {
    let fixture = Fixture::new();
    let program = fixture.program("known", KNOWN);
    let (once, _) = counted(&fixture, &["-m", "lea", "-n", "2"], &[&program]);
    let (again, _) = counted(&fixture, &["-m", "lea"], &[&program]);
    for manager in ["glibc", "lea"] {
        let (once, again) = (row(&once, manager), row(&again, manager));
        assert_eq!((&once["runs"], &once["agree"]), (&2.into(), &true.into()), "{once:#}");
        assert_eq!(once["figures"], again["figures"]);
        assert_eq!(once["figures"]["startup_instructions"], again["figures"]["startup_instructions"]);
    }
}

/// Depends on its process number, which is not pinned, and prints nothing of it.
const BY_NUMBER: &str =
    "int main(void) { for (volatile int at = getpid() % 50000; at > 0; at--); free(malloc(9)); }";

#[test]
fn runs_that_do_not_agree_are_reported() {
    let fixture = Fixture::new();
    let program = fixture.program("numbered", BY_NUMBER);
    let (json, output) = counted(&fixture, &["-n", "3"], &[&program]);
    output.shows(&["3 runs do not agree"]);
    let glibc = row(&json, "glibc");
    assert_eq!(glibc["agree"], false);
    assert!(number(&glibc["differ_by"]["application_instructions"]) > 0, "{glibc:#}");
    assert_eq!(glibc["differ_by"]["allocation_instructions"], 0);
}

/// Depends on the address of a block.
const BY_ADDRESS: &str = r#"
    int main(void) {
        volatile size_t left = (size_t)malloc(100000) >> 4;
        for (left = 100000 + left % 50021 * 40; left > 0; left--);
        return 0;
    }
"#;

#[test]
fn a_program_that_depends_on_addresses_is_reported() {
    let fixture = Fixture::new();
    let (program, five) = (fixture.program("hashes", BY_ADDRESS), fixture.object("five.so", FIVE));
    let (json, _) = counted(&fixture, &["-m", &five], &[&program]);
    let warnings = json["programs"][0]["warnings"].to_string();
    assert!(warnings.contains("application instructions than under glibc"), "{warnings}");
    assert!(warnings.contains("pointer hashes"), "{warnings}");
}

#[test]
fn a_block_of_unknown_origin_is_reported() {
    let fixture = Fixture::new();
    let five = fixture.object("five.so", FIVE);
    let program =
        fixture.program("stray", "static char byte; int main(void) { free(&byte); free(malloc(8)); }");
    let (json, output) = counted(&fixture, &["--baseline", &five], &[&program]);
    output.shows(&["were given a block that no call made"]);
    assert_eq!(routine(row(&json, &five), "free")["unknown_calls"], 1);
}

/// Where debugging symbols of the C library are installed, its first name for it is a local one.
#[test]
fn posix_memalign_of_the_c_library_is_recognised() {
    let fixture = Fixture::new();
    let source = "#include <stdlib.h>\nint main(void) { void *block; for (int i = 0; i < 50; i++) {\n\
        if (posix_memalign(&block, 64, 100)) return 1; free(block); } return 0; }";
    let program = fixture.program("aligned", source);
    let (json, _) = counted(&fixture, &[], &[&program]);
    let glibc = row(&json, "glibc");
    assert_eq!(routine(glibc, "posix_memalign")["calls"], 50);
    assert_eq!(routine(glibc, "free")["unknown_calls"], 0);
}

#[test]
fn of_several_process_images_the_busiest_is_tabled_and_all_are_summed() {
    let fixture = Fixture::new();
    let program = fixture.program("known", KNOWN);
    let (json, output) =
        counted(&fixture, &[], &["/bin/sh", "-c", &format!("{program}; {program} again; :")]);
    output.shows(&["All process images together"]);
    let glibc = row(&json, "glibc");
    assert_eq!(glibc["all_images"]["images"], 5, "the shell, what it forked, and two programs");
    assert!(number(&glibc["figures"]["startup_instructions"]) > 10_000, "its own loader");
    assert!(glibc["image"]["command"].to_string().contains("known"), "{glibc:#}");
    let (one, all) = (&glibc["figures"], &glibc["all_images"]);
    let mallocs = |of: &Value| number(&of["groups"]["allocate"]["calls"]);
    assert!(mallocs(all) >= 2 * mallocs(one), "{} and {}", mallocs(all), mallocs(one));
}

/// Allocates and frees blocks of many sizes, in an order that leaves holes.
const MIXED: &str = r#"
    static void *blocks[512];
    int main(void) {
        unsigned dice = 1;
        for (int at = 0; at < 60000; at++) {
            dice = dice * 1664525 + 1013904223;
            free(blocks[dice >> 23]);
            blocks[dice >> 23] = malloc((dice >> 8) % 2000);
        }
        return 0;
    }
"#;

/// Instructions within a function, with what it calls.
fn callgrind(function: &str, program: &str) -> u64 {
    let output = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            &format!("--toggle-collect={function}"),
            program,
        ])
        .output()
        .expect("valgrind runs: scripts/setup installs it");
    let output = String::from_utf8_lossy(&output.stderr).into_owned();
    let line =
        output.lines().find_map(|line| line.split_once("Collected :")).unwrap_or_else(|| panic!("{output}"));
    line.1.trim().parse().unwrap_or_else(|_| panic!("{output}"))
}

#[test]
fn callgrind_counts_the_same() {
    let fixture = Fixture::new();
    let program = fixture.program("mixed", MIXED);
    let (json, _) = counted(&fixture, &[], &[&program]);
    let glibc = row(&json, "glibc");
    for name in ["malloc", "free"] {
        let (ours, theirs) =
            (number(&routine(glibc, name)["cost"]["instructions"]), callgrind(name, &program));
        assert!(ours > 3_000_000, "{name}: {ours}");
        assert!(ours.abs_diff(theirs) <= theirs / 10_000, "{name}: {ours} here, {theirs} by callgrind");
    }
}

/// What callgrind_annotate reads: the routines with their counts, and sums that close.
#[test]
fn callgrinds_file_has_the_counts_of_the_json() {
    let fixture = Fixture::new();
    let manager = fixture.object("five.so", FIVE);
    let program = fixture.program("known", KNOWN);
    let (json, output) = counted(&fixture, &["-m", &manager, "--callgrind", &fixture.at(".")], &[&program]);
    output.complains(&["callgrind.out.known.glibc"]);
    for entry in json["programs"][0]["managers"].as_array().expect("rows") {
        let name = entry["manager"].as_str().expect("a name").replace('/', "_");
        let file = fixture.at(&format!("callgrind.out.known.{name}"));
        let text = std::fs::read_to_string(&file).expect("written");
        let owners = &entry["figures"]["owners"];
        let sum = |what: &str| {
            ["program", "allocator"].iter().filter_map(|owner| owners[owner][what].as_u64()).sum::<u64>()
        };
        let summary = format!("summary: {} {} {}\n", sum("instructions"), sum("loads"), sum("stores"));
        assert!(text.contains(&summary), "{summary} in {text}");
        let malloc = routine(entry, "malloc");
        let calls = format!("cfn=malloc\ncalls={} 0\n0 {} ", malloc["calls"], malloc["cost"]["instructions"]);
        assert!(text.contains(&calls), "{calls} in {text}");
    }
    let missing = fixture.at("no/such");
    let refused = fixture.heaptoll(&["exact", "instructions", "--callgrind", &missing, "--", &program]);
    refused.exits(2).complains(&["cannot write callgrind's files"]);
}

#[test]
#[ignore = "slow: starts callgrind_annotate of Valgrind"]
fn callgrind_annotate_shows_the_routines() {
    let fixture = Fixture::new();
    let program = fixture.program("known", KNOWN);
    let (json, _) = counted(&fixture, &["--callgrind", &fixture.at(".")], &[&program]);
    let output = Command::new("callgrind_annotate").arg(fixture.at("callgrind.out.known.glibc")).output();
    let output: CommandOutput = output.expect("callgrind_annotate runs").into();
    let output = output.exits(0);
    assert_eq!(output.err, "");
    let counted = routine(row(&json, "glibc"), "malloc")["cost"]["instructions"].as_u64().expect("a number");
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    let line =
        output.out.lines().find(|line| line.contains(":malloc ")).unwrap_or_else(|| panic!("{}", output.out));
    let first = line.split_whitespace().next().unwrap_or_default();
    assert_eq!(digits(first), counted.to_string(), "{line}");
}
