//! The sweep layer, from outside: what is reachable stays, what is not goes, whatever the manager, the threads, the
//! forks and the settings. The layer's object is preloaded as by the tool.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fixture::{CommandOutput, Fixture, rows_of};

/// The C library's malloc, and every manager that is built and does not collect.
pub fn managers() -> Vec<Option<PathBuf>> {
    let names = [
        "mimalloc2",
        "mimalloc3",
        "jemalloc",
        "tcmalloc",
        "snmalloc",
        "rpmalloc",
        "knuth",
        "bestfit",
        "cartesian",
        "kingsley",
        "haertel",
        "buddy",
        "lea",
        "quickfit",
        "pow2",
        "bump",
        "tithe",
    ];
    let built =
        names.map(|name| heaptoll_testing::staged::home().join(format!("lib/heaptoll/managers/{name}.so")));
    std::iter::once(None).chain(built.into_iter().filter(|path| path.exists()).map(Some)).collect()
}

/// Each manager with each of these cases, or, where not `whole`, with one of them in turn.
fn cells<T: Copy>(cases: &[T], whole: bool) -> Vec<(Option<PathBuf>, T)> {
    let of = |number: usize| {
        if whole { cases.to_vec() } else { vec![cases[number % cases.len()]] }
    };
    let managers = managers().into_iter().enumerate();
    managers
        .flat_map(|(number, manager)| of(number).into_iter().map(move |case| (manager.clone(), case)))
        .collect()
}

fn swept(program: &str, arguments: &[&str], settings: &str, manager: Option<&Path>) -> CommandOutput {
    layered(("sweep", "HEAPTOLL_SWEEP"), program, arguments, settings, manager)
}

/// Runs a program under a layer, which has a name and a variable, in front of a manager's object or the C library's.
pub fn layered(
    (layer, variable): (&str, &str),
    program: &str,
    arguments: &[&str],
    settings: &str,
    manager: Option<&Path>,
) -> CommandOutput {
    let object = format!("layers/libheaptoll_{layer}.so");
    let mut preload = heaptoll_testing::staged::file(&object).into_os_string();
    if let Some(object) = manager {
        preload.push(":");
        preload.push(object);
    }
    // A program that hangs is killed and recognised by its status.
    Command::new("timeout")
        .args(["-s", "KILL", "60", program])
        .args(arguments)
        .env("LD_PRELOAD", preload)
        .env(variable, settings)
        .env("TITHE_MODE", "explicit")
        .output()
        .expect("it runs")
        .into()
}

/// usage: garbage BLOCKS BYTES. Makes blocks, drops them, collects, and prints how many are left, and whether those
/// that it still has are as they were.
const GARBAGE: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct census { uint32_t size, capacity, count, exact; uint64_t mapped, high, live, rest[5]; void *classes; };
struct control { uint32_t version, size; const char *name, *release; int (*census)(struct census *); int (*collect)(void);
                 int (*listen)(void *, void *); int (*check)(void); };
extern const struct control *heaptoll_control_v1(void) __attribute__((weak));
static char **kept;
static uint64_t live(void) {
    struct census census = {.size = sizeof census};
    heaptoll_control_v1()->census(&census);
    return census.live;
}
__attribute__((noinline)) static void make(long blocks, size_t bytes) {
    for (long i = 0; i < blocks; i++) {
        char *volatile block = malloc(bytes);
        memset(block, 0, bytes);
    }
}
__attribute__((noinline)) static void wipe(void) {
    volatile char below[65536];
    memset((void *)below, 0, sizeof below);
}
int main(int argc, char **argv) {
    long blocks = atol(argv[1]);
    size_t bytes = atol(argv[2]);
    kept = calloc(100, sizeof *kept);
    for (int i = 0; i < 100; i++) memset(kept[i] = malloc(1000 + i), i, 1000 + i);
    heaptoll_control_v1()->collect();
    uint64_t before = live();
    make(blocks, bytes);
    uint64_t full = live();
    wipe();
    if (heaptoll_control_v1()->collect() || heaptoll_control_v1()->check()) return 2;
    uint64_t after = live();
    for (int i = 0; i < 100; i++)
        for (int j = 0; j < 1000 + i; j++) if (kept[i][j] != (char)i) return 3;
    printf("made %d left %ld\n", full >= before + blocks * bytes, (long)(after - before) / (long)bytes);
    return 0;
}
"#;

fn what_is_dropped_goes_and_what_is_kept_stays(whole: bool) {
    let fixture = Fixture::new();
    let program = fixture.program("garbage", GARBAGE);
    for (manager, (blocks, bytes)) in cells(&[("20000", "48"), ("500", "20000"), ("40", "3000000")], whole) {
        let output = swept(&program, &[blocks, bytes], "every=4G", manager.as_deref());
        assert_eq!(output.code, Some(0), "{manager:?}: {}", output.err);
        let left: i64 = output
            .out
            .trim()
            .strip_prefix("made 1 left ")
            .and_then(|left| left.parse().ok())
            .unwrap_or_else(|| panic!("{manager:?}: {}", output.out));
        assert!(left <= 4, "{manager:?}: of {blocks} blocks of {bytes} bytes {left} are left");
    }
}

#[test]
fn what_is_dropped_goes_and_what_is_kept_stays_under_every_manager() {
    what_is_dropped_goes_and_what_is_kept_stays(false);
}

#[test]
#[ignore = "slow: every manager with blocks of every size; one of them in turn is in the fast tests"]
fn what_is_dropped_goes_and_what_is_kept_stays_in_every_size() {
    what_is_dropped_goes_and_what_is_kept_stays(true);
}

/// Threads that come and go build lists, cut them, resize, fork, and check every byte again and again.
const STRESS: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
struct node { struct node *next, *other; uint64_t key; size_t size; unsigned char data[]; };
static __thread uint64_t seed;
static uint64_t any(void) { seed ^= seed << 13; seed ^= seed >> 7; return seed ^= seed << 17; }
static void wrong(const char *what) { dprintf(2, "wrong: %s\n", what); abort(); }
static struct node *make(size_t extra) {
    struct node *n = NULL;
    size_t bytes = sizeof *n + extra;
    switch (any() % 5) {
    case 0: n = calloc(1, bytes); for (size_t i = 0; i < bytes; i++) if (((char *)n)[i]) wrong("calloc"); break;
    case 1: if (posix_memalign((void **)&n, 64, bytes) || (uintptr_t)n % 64) wrong("alignment"); break;
    case 2: n = realloc(malloc(bytes / 2 + 1), bytes); break;
    default: n = malloc(bytes);
    }
    if (!n) wrong("memory");
    n->next = n->other = NULL; n->key = any(); n->size = extra;
    memset(n->data, (unsigned char)n->key, extra);
    return n;
}
static void check(struct node *n) {
    for (; n; n = n->next) {
        for (size_t i = 0; i < n->size; i++) if (n->data[i] != (unsigned char)n->key) wrong("data");
        if (n->other && n->other->size && n->other->data[0] != (unsigned char)n->other->key) wrong("other");
    }
}
enum { SLOTS = 64 };
static int rounds, forks;
static pthread_key_t key;
static void at_end(void *node) { check(node); free(malloc(100)); }
static void *work(void *number) {
    seed = 0x9e3779b97f4a7c15ull * ((uintptr_t)number + 1);
    struct node **slots = any() % 2 ? malloc(SLOTS * sizeof *slots)
                                    : mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(slots, 0, SLOTS * sizeof *slots);
    pthread_setspecific(key, make(50));
    for (int r = 0; r < rounds; r++) {
        int i = any() % SLOTS;
        if (any() % 8 == 0) { check(slots[i]); slots[i] = NULL; }
        else { struct node *n = make(any() % (any() % 50 ? 200 : 20000)); n->next = slots[i]; n->other = slots[any() % SLOTS]; slots[i] = n; }
        if (any() % 32 == 0) { struct node *x = slots[i]; for (int d = 0; x && x->next && d < 20; d++) x = x->next; if (x) x->next = NULL; }
        if (any() % 16 == 0) free(malloc(any() % 1000));
        if (forks && r % (rounds / 2) == rounds / 3) {
            pid_t child = fork();
            if (child == 0) {
                for (int k = 0; k < 200; k++) { struct node *n = make(100); n->next = slots[k % SLOTS]; slots[k % SLOTS] = n; }
                for (int k = 0; k < SLOTS; k++) check(slots[k]);
                _exit(0);
            }
            int status;
            if (child < 0 || waitpid(child, &status, 0) != child || status) wrong("child");
        }
    }
    for (int i = 0; i < SLOTS; i++) check(slots[i]);
    return make(10);
}
static void tick(int signal) { (void)signal; }
int main(int argc, char **argv) {
    int threads = atoi(argv[1]);
    rounds = atoi(argv[2]);
    forks = atoi(argv[3]);
    pthread_key_create(&key, at_end);
    signal(SIGALRM, tick);
    struct itimerval often = {{0, 5000}, {0, 5000}};
    setitimer(ITIMER_REAL, &often, NULL);
    for (int generation = 0; generation < 2; generation++) {
        pthread_t all[16];
        for (int i = 0; i < threads; i++) if (pthread_create(&all[i], NULL, work, (void *)(uintptr_t)(generation * 100 + i))) wrong("thread");
        for (int i = 0; i < threads; i++) { void *last; pthread_join(all[i], &last); check(last); }
    }
    puts("fine");
    return 0;
}
"#;

fn threads_and_forks_lose_nothing(whole: bool) {
    let fixture = Fixture::new();
    let program = fixture.program("stress", STRESS);
    let all = ["every=128K", "every=1M,free=honour", "every=512K,sweep=lazy,markers=2"];
    for (manager, settings) in cells(&all, whole) {
        // tcmalloc has no handlers for fork: by itself, 8 of 40 runs of this program's children hung on its locks.
        let name = manager.as_deref().and_then(Path::file_stem).unwrap_or_default();
        let forks = if name == "tcmalloc" { "0" } else { "1" };
        let output = swept(&program, &["4", "1500", forks], settings, manager.as_deref());
        let (code, out) = (output.code, output.out.as_str());
        assert_eq!((code, out), (Some(0), "fine\n"), "{settings} over {manager:?}: {}", output.err);
        assert_eq!(output.err, "", "{settings} over {manager:?}");
    }
}

#[test]
fn threads_and_forks_lose_nothing_under_every_manager() {
    threads_and_forks_lose_nothing(false);
}

#[test]
#[ignore = "slow: every manager with every setting; one of them in turn is in the fast tests"]
fn threads_and_forks_lose_nothing_with_every_setting() {
    threads_and_forks_lose_nothing(true);
}

#[test]
fn a_collection_before_each_allocation_loses_nothing() {
    let fixture = Fixture::new();
    let program = fixture.program("stress", STRESS);
    for settings in ["every=1", "every=1,reclaim=3", "every=1,sweep=lazy"] {
        let output = swept(&program, &["1", "400", "1"], settings, None);
        assert_eq!((output.code, output.out.as_str()), (Some(0), "fine\n"), "{settings}: {}", output.err);
    }
}

/// usage: limit BYTES. Holds these bytes in blocks of 100, drops as many again, and prints whether all were
/// allocated.
const LIMIT: &str = r#"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
static void **all;
int main(int argc, char **argv) {
    for (long held = atol(argv[1]); held > 0; held -= 100) {
        void **block = malloc(100);
        if (!block || !malloc(100)) { printf("none %d\n", errno == ENOMEM); return 0; }
        block[0] = all;
        all = block;
    }
    puts("all");
    return 0;
}
"#;

#[test]
fn a_heap_limit_is_kept_and_garbage_does_not_count() {
    let fixture = Fixture::new();
    let program = fixture.program("limit", LIMIT);
    for manager in managers() {
        let manager = manager.as_deref();
        swept(&program, &["1000000"], "heap=4M", manager).exits(0).shows(&["all"]);
        swept(&program, &["8000000"], "heap=4M", manager).exits(0).shows(&["none 1"]);
    }
}

#[test]
fn settings_that_are_not_possible_are_refused_with_what_is() {
    for (settings, pair) in
        [("every=0", "every=0"), ("every=1,sweep=soon", "sweep=soon"), ("size=1", "size=1")]
    {
        let output = swept("true", &[], settings, None);
        assert_eq!(output.code, Some(2), "{settings}");
        output.complains(&[&format!("`{pair}` is not possible"), "write every=SIZE"]);
    }
}

/// A script of perl that frees as it goes, and lines of a shell that fork.
pub const SCRIPT: &str = "my %h; $h{$_ % 997} .= chr(65 + $_ % 26) x ($_ % 90) for 1..20000; \
                          print join(',', map { length $h{$_} } sort { $a <=> $b } keys %h)";
pub const SHELL: &str = "ls / | sort | wc -l; (cd /; ls) | wc -l";

/// What the script of perl prints.
pub fn printed_by_perl() -> String {
    let plain = Command::new("perl").args(["-e", SCRIPT]).output().expect("perl");
    String::from_utf8(plain.stdout).expect("the script prints digits")
}

#[test]
fn real_programs_print_what_they_always_print() {
    let plain = printed_by_perl();
    for manager in managers() {
        let output = swept("perl", &["-e", SCRIPT], "every=64K", manager.as_deref()).exits(0);
        assert_eq!(output.out, plain, "{manager:?}");
        let output = swept("sh", &["-c", SHELL], "every=4K", manager.as_deref());
        assert_eq!(output.code, Some(0), "{manager:?}: {}", output.err);
    }
}

/// Over glibc its links, and what blocks held before, kept fifteen times as much of this program: 15.4 MB.
#[test]
fn what_a_block_held_before_keeps_nothing() {
    let fixture = Fixture::new();
    let stack = "sweep,every=64K/glibc";
    let output = fixture.heaptoll(&[
        "run",
        "-m",
        stack,
        "-p",
        "exchange",
        "--quick",
        "-n",
        "1",
        "--warmup",
        "0",
        "--db",
        &fixture.at("e.db"),
    ]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    let json = fixture.json(&fixture.at("e.db"));
    let row = rows_of(&json, stack, "timed")[0];
    assert!(row["used_high_bytes"].as_u64().is_some_and(|bytes| bytes < 4 << 20), "{row}");
}
