//! `realloc` under the guard layer, also while another thread frees the same block; and what a block that was written
//! late hands on.

use std::path::Path;

use crate::fixture::{Fixture, rows_of};
use crate::guarding::guarded;

/// usage: resizer RESIZES. Frees by `realloc` only.
const RESIZER: &str = r#"
int main(int argc, char **argv) {
    char *block = malloc(1000);
    for (int i = 0; i < atoi(argv[1]); i++) {
        size_t bytes = i % 2 ? 9000 : 1000;
        memset(block = realloc(block, bytes), 1, bytes);
    }
    puts("end");
    return 0;
}
"#;

/// Before, only calls of `free` made a pass due: what `realloc` freed waited for ever.
#[test]
fn what_only_realloc_frees_makes_passes_due() {
    let fixture = Fixture::new();
    let program = fixture.program("resizer", RESIZER);
    let stack = "guard,waiting=1M/glibc";
    let db = fixture.at("r.db");
    let words = ["run", "-m", stack, "-n", "1", "--warmup", "0", "--db", &db, "--", &program, "4000"];
    fixture.heaptoll(&words).exits(0);
    let json = fixture.json(&db);
    let row = rows_of(&json, stack, "timed")[0];
    let held = row["held_high_bytes"].as_u64().expect("held");
    assert!(held < (1 << 20) + 10_000, "{row}");
    assert!(row["collections"]["count"].as_u64().is_some_and(|passes| passes >= 15), "{row}");
}

/// glibc's malloc, which calls the program back: before an allocation, and where a block's size is requested.
const CALLING_BACK: &str = r#"
static int (*volatile called)(size_t);
void call_back(int (*function)(size_t)) { called = function; }
#define BEFORE(bytes) if (called && called(bytes)) { errno = ENOMEM; return NULL; }
size_t malloc_usable_size(void *block) { return called ? called(0), 40 : 0; }
"#;

/// usage: race HOW. While `realloc` is in the manager another thread frees the block, once.
const RACE: &str = r#"
#include <pthread.h>
void call_back(int (*function)(size_t)) __attribute__((weak));
enum { GROWS = 36, MOVES = 5000 };
static char *volatile block;
static volatile int grows, refuses, done;
static pthread_barrier_t barrier;
static void *other(void *none) {
    free(malloc(10));
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    free(block);
    pthread_barrier_wait(&barrier);
    return none;
}
static int called(size_t bytes) {
    if (done || (grows ? bytes : bytes < MOVES)) return 0;
    done = 1;
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return refuses;
}
int main(int argc, char **argv) {
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    grows = !strcmp(argv[1], "grows");
    refuses = !strcmp(argv[1], "refused");
    memset(block = malloc(24), 7, 24);
    pthread_create(&thread, NULL, other, NULL);
    pthread_barrier_wait(&barrier);
    call_back(called);
    char *volatile resized = realloc(block, grows ? GROWS : MOVES);
    pthread_join(thread, NULL);
    int again = 0;
    for (int i = 0; i < 20000; i++) { char *volatile new = malloc(24); again += new == block; free(new); }
    printf("resized %d again %d\n", resized != NULL, again);
    fflush(stdout);
    free(block);
    return 0;
}
"#;

/// Before, the block entered both tables, or the manager resized one that waited.
#[test]
fn a_block_that_is_freed_while_it_is_resized_waits_as_any_other() {
    let fixture = Fixture::new();
    let manager = fixture.manager("calling-back.so", CALLING_BACK);
    let program = fixture.program("race", RACE);
    let late = "resized after it was freed: the 32-byte block at 0x";
    for (how, resized, first) in
        [("grows", 0, late), ("refused", 0, late), ("moves", 1, "freed twice: the 32-byte block at 0x")]
    {
        let output = guarded(&program, &[how], "headroom=1", Some(Path::new(&manager))).exits(0);
        assert_eq!(output.out, format!("resized {resized} again 0\n"), "{how}: {}", output.err);
        let lines: Vec<_> = output.err.lines().collect();
        assert_eq!(lines.len(), 2, "{how}: {}", output.err);
        assert!(lines[0].contains(first), "{how}: {}", output.err);
        assert!(lines[1].contains("freed twice: the 32-byte block at 0x"), "{how}: {}", output.err);
    }
}

/// Writes to 100 blocks after their free, forgets them, and prints how many of those it gets again have what it wrote.
const LATE: &str = r#"
enum { BLOCKS = 100, BYTES = 200, MORE = 20000 };
static uintptr_t hidden[BLOCKS];
__attribute__((noinline)) static void write_late(void) {
    char *all[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) hidden[i] = ~(uintptr_t)(all[i] = malloc(BYTES));
    for (int i = 0; i < BLOCKS; i++) { free(all[i]); all[i][100] = 42; }
}
__attribute__((noinline)) static void wipe(void) {
    volatile char below[65536];
    memset((void *)below, 0, sizeof below);
}
int main(void) {
    int again = 0, dirty = 0;
    write_late();
    wipe();
    for (int i = 0; i < MORE; i++) {
        char *volatile block = malloc(BYTES);
        for (int k = 0; k < BLOCKS; k++) {
            if (~hidden[k] != (uintptr_t)block) continue;
            again++;
            dirty += block[100] != 0;
        }
        free(block);
    }
    printf("again %d dirty %d\n", again > 0, dirty);
    return 0;
}
"#;

#[test]
fn what_was_written_after_a_free_is_gone_from_what_the_manager_hands_out() {
    let fixture = Fixture::new();
    let program = fixture.program("late", LATE);
    let output = guarded(&program, &[], "waiting=64K,report=off", None).exits(0);
    assert_eq!((output.out.as_str(), output.err.as_str()), ("again 1 dirty 0\n", ""));
}
