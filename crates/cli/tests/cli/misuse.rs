//! Programs that request impossible sizes, and free what is no block, under managers and layers of ours. The objects
//! are preloaded as by the tool.

use std::path::PathBuf;
use std::process::Command;

use crate::fixture::{CommandOutput, Fixture};

fn manager(name: &str) -> PathBuf {
    heaptoll_testing::staged::file(&format!("managers/{name}.so"))
}

fn layer(name: &str) -> PathBuf {
    heaptoll_testing::staged::file(&format!("layers/libheaptoll_{name}.so"))
}

/// Each object with each setting of its environment.
fn ours() -> Vec<(PathBuf, &'static str, &'static str)> {
    let plain = ["bw16", "bw26", "treadmill", "lea", "kingsley", "buddy", "bestfit", "pow2"];
    let mut all: Vec<_> = plain.map(|name| (manager(name), "HEAPTOLL_NONE", "")).to_vec();
    all.extend(["hybrid", "collect", "explicit"].map(|mode| (manager("tithe"), "TITHE_MODE", mode)));
    all.extend(["free=ignore", "free=honour"].map(|free| (layer("sweep"), "HEAPTOLL_SWEEP", free)));
    all.push((layer("guard"), "HEAPTOLL_GUARD", ""));
    all
}

fn run(program: &str, arguments: &[&str], object: &PathBuf, variable: &str, value: &str) -> CommandOutput {
    Command::new("timeout")
        .args(["-s", "KILL", "120", program])
        .args(arguments)
        .env("LD_PRELOAD", object)
        .env(variable, value)
        .output()
        .expect("it runs")
        .into()
}

/// Prints how many requests were served, and how many collections they made.
const HUGE: &str = r#"
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
struct event { uint32_t size, kind; };
struct control { uint32_t version, size; const char *name, *release; int (*census)(void *); int (*collect)(void);
                 int (*listen)(void (*)(const struct event *, void *), void *); int (*check)(void); };
extern const struct control *heaptoll_control_v1(void) __attribute__((weak));
static int collections;
static void count(const struct event *event, void *none) { (void)none; collections += event->kind == 1; }
int main(void) {
    volatile size_t sizes[] = {SIZE_MAX - 100, (size_t)PTRDIFF_MAX + 1, PTRDIFF_MAX, (size_t)1 << 62, ((size_t)1 << 47) + 1};
    int served = 0, wrong = 0;
    void *volatile kept = malloc(100);
    if (heaptoll_control_v1()->listen(count, NULL)) return 2;
    for (int i = 0; i < 5; i++) {
#define REQUEST(block) do { errno = 0; served += (block) != NULL; wrong += errno != ENOMEM; } while (0)
        REQUEST(malloc(sizes[i]));
        REQUEST(calloc(1, sizes[i]));
        REQUEST(realloc(kept, sizes[i]));
        REQUEST(memalign(64, sizes[i]));
        REQUEST(memalign(sizes[3], 8));
    }
    printf("served %d, wrong %d, collections %d\n", served, wrong, collections);
    return 0;
}
"#;

/// The sweep layer made a full collection for each, bw16 and bw26 for those below PTRDIFF_MAX.
#[test]
fn what_can_never_be_served_is_refused_without_a_collection() {
    let fixture = Fixture::new();
    let program = fixture.program("huge", HUGE);
    for (object, variable, value) in ours() {
        let output = run(&program, &[], &object, variable, value).exits(0);
        assert_eq!(output.out, "served 0, wrong 0, collections 0\n", "{object:?} {value}");
    }
}

/// Prints how many blocks are smaller than requested, and how many move when they are resized to what they have.
const RESIZED: &str = r#"
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    int small = 0, moved = 0;
    for (size_t bytes = 1; bytes < 400000; bytes += bytes / 7 + 1) {
        char *block = malloc(bytes);
        size_t usable = malloc_usable_size(block);
        uintptr_t before = (uintptr_t)block;
        small += usable < bytes;
        block = realloc(block, usable);
        moved += (uintptr_t)block != before;
        free(block);
    }
    printf("small %d, moved %d\n", small, moved);
    return 0;
}
"#;

/// Under Tithe it moved every one: with the byte after the end it was a larger request than the block's own.
#[test]
fn a_block_that_is_resized_to_its_usable_size_stays_where_it_is() {
    let fixture = Fixture::new();
    let program = fixture.program("resized", RESIZED);
    for (object, variable, value) in ours() {
        let output = run(&program, &[], &object, variable, value).exits(0);
        assert_eq!(output.out, "small 0, moved 0\n", "{object:?} {value}");
    }
}

/// usage: wrong HOW.
const WRONG: &str = r#"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void give(uintptr_t address) { free((void *)address); }
static void *thread(void *none) {
    volatile char local[64];
    give(((uintptr_t)local + 15) & ~(uintptr_t)15);
    return none;
}
int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    char *block = malloc(200);
    pthread_t other;
    if (!strcmp(how, "stack")) thread(NULL);
    if (!strcmp(how, "thread") && !pthread_create(&other, NULL, thread, NULL)) pthread_join(other, NULL);
    if (!strcmp(how, "far")) give((uintptr_t)block + ((uintptr_t)1 << 44));
    if (!strcmp(how, "odd")) give((uintptr_t)block + 3);
    if (!strcmp(how, "twice")) give((uintptr_t)block);
    free(block);
    puts("end");
    return 0;
}
"#;

/// The manager crashed, or took it silently.
#[test]
fn what_is_plainly_no_block_is_named_under_check_and_goes_no_further() {
    let fixture = Fixture::new();
    let (program, quarantine) = (fixture.program("wrong", WRONG), layer("quarantine"));
    for (how, reason) in [
        ("stack", "it lies on the thread's stack"),
        ("thread", "it lies on the thread's stack"),
        ("far", "no memory is there"),
        ("odd", "it is not aligned as blocks are"),
    ] {
        let output = run(&program, &[how], &quarantine, "HEAPTOLL_QUARANTINE", "size=1M,check=on").exits(0);
        assert_eq!(output.out, "end\n", "{how}");
        output.complains(&["freed what is no block", reason, "freed at wrong+0x"]);
    }
    let output = run(&program, &["none"], &quarantine, "HEAPTOLL_QUARANTINE", "size=1M,check=on").exits(0);
    assert_eq!((output.out.as_str(), output.err.as_str()), ("end\n", ""));
}

/// Wrong frees were written once, and the process ended with status 0.
#[test]
fn with_abort_the_first_wrong_free_ends_the_process() {
    let fixture = Fixture::new();
    let program = fixture.program("wrong", WRONG);
    let ends = |how: &str, object: &PathBuf, variable: &str, value: &str| {
        let output = run(&program, &[how], object, variable, value);
        // No status: by a signal.
        assert_eq!((output.code, output.out.as_str()), (None, ""), "{how}: {}", output.err);
        output.err
    };
    let (tithe, quarantine) = (manager("tithe"), layer("quarantine"));
    for how in ["twice", "stack"] {
        assert!(ends(how, &tithe, "TITHE_ABORT", "on").contains("tithe: free(0x"), "{how}");
        let freed = ends(how, &quarantine, "HEAPTOLL_QUARANTINE", "size=1M,abort=on");
        assert!(freed.contains("freed"), "{freed}");
        run(&program, &[how], &tithe, "TITHE_ABORT", "off").exits(0).complains(&["the call is ignored"]);
    }
}
