//! The quarantine, from outside: how much it holds, what is freed when threads end and processes fork, what its check
//! finds. The layer's object is preloaded as by the tool, in front of several managers, with a spy between them that
//! counts the bytes which reach the manager.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fixture::{CommandOutput, Fixture, read_json, rows_of};

/// Counts the bytes of the blocks that come to be freed.
const SPY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
static _Atomic long freed;
static void *(*next_malloc)(size_t);
static void (*next_free)(void *);
static size_t (*next_size)(void *);
static void find(void) {
    next_size = dlsym(RTLD_NEXT, "malloc_usable_size");
    next_free = dlsym(RTLD_NEXT, "free");
    next_malloc = dlsym(RTLD_NEXT, "malloc");
}
void *malloc(size_t size) { if (!next_malloc) find(); return next_malloc(size); }
size_t malloc_usable_size(void *block) { if (!next_malloc) find(); return next_size(block); }
void free(void *block) {
    if (!next_malloc) find();
    if (block) freed += (long)next_size(block);
    next_free(block);
}
long spy_freed(void) { return freed; }
"#;

/// usage: hold BOUND. Ends with status 0 when all is as it should be.
const HOLD: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static long (*spy)(void);
static long bound;
#define DEMAND(condition, ...) do { if (!(condition)) { dprintf(2, __VA_ARGS__); _exit(1); } } while (0)

static long give(size_t bytes) {
    char *block = malloc(bytes);
    memset(block, 1, bytes);
    long usable = (long)malloc_usable_size(block);
    free(block);
    return usable;
}
/* Frees until all is released; returns the bytes of that one release. */
static long release(void) {
    for (long before = spy();; ) {
        give(100);
        if (spy() != before) return spy() - before;
    }
}
static pthread_barrier_t barrier;
static long other_holds;
static void *some(void *ends) {
    for (long i = 0; i < 50; i++) other_holds += give(40);
    if (!ends) { pthread_barrier_wait(&barrier); pthread_barrier_wait(&barrier); }
    return NULL;
}
int main(int argc, char **argv) {
    bound = atol(argv[1]);
    spy = (long (*)(void))dlsym(RTLD_DEFAULT, "spy_freed");
    DEMAND(spy, "no spy\n");
    /* One thread: never more than the bound after a free, and nothing back before it is passed. */
    release();
    unsigned state = 1;
    long held = 0, releases = 0, highest = 0, largest = 0;
    for (long i = 0; i < 200000 && (releases < 100 || i < 2000); i++) {
        state = state * 1103515245 + 12345;
        size_t bytes = 1 + (state >> 16) % 3000;
        long before = spy(), usable = give(bytes), back = spy() - before;
        if (usable > largest) largest = usable;
        if (back) {
            releases++;
            if (held + usable > highest) highest = held + usable;
            DEMAND(held + usable > bound, "given back at %ld of %ld\n", held + usable, bound);
            DEMAND(back == held + usable, "%ld of %ld given back\n", back, held + usable);
            held = 0;
        } else {
            held += usable;
        }
        DEMAND(held <= bound, "%ld held of %ld\n", held, bound);
    }
    DEMAND(releases >= 10, "%ld releases\n", releases);
    DEMAND(highest > bound && highest <= bound + largest, "%ld held of %ld and a block\n", highest, bound);
    /* A thread that ends gives back what it holds. */
    release();
    long before = spy();
    pthread_t thread;
    pthread_create(&thread, NULL, some, "ends");
    pthread_join(thread, NULL);
    DEMAND(spy() - before >= other_holds, "%ld of %ld given back by a thread that ended\n", spy() - before, other_holds);
    /* A child of fork takes over what another thread holds. */
    release();
    pthread_barrier_init(&barrier, NULL, 2);
    other_holds = 0;
    pthread_create(&thread, NULL, some, NULL);
    pthread_barrier_wait(&barrier);
    long theirs = bound > 2 * other_holds ? other_holds : 0; /* else it has given back already */
    pid_t child = fork();
    if (child == 0) {
        long back = release();
        DEMAND(back > theirs && (!theirs || back > bound), "the child gave back %ld, with %ld of a thread it does not have\n", back, theirs);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    DEMAND(status == 0, "the child failed\n");
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    return 0;
}
"#;

/// A library whose fork handlers are registered before the layer's: the prepare handler runs when the layer's has run.
const LIBRARY: &str = r#"
#include <pthread.h>
static void (*first)(void), (*then)(void);
static void prepare(void) { if (first) first(); }
static void after(void) { if (then) then(); }
void handlers(void (*prepare_now)(void), void (*after_now)(void)) { first = prepare_now; then = after_now; }
__attribute__((constructor)) static void register_them(void) { pthread_atfork(prepare, after, after); }
"#;

/// usage: forks lock|free. `lock`: the prepare handler takes a lock under which other threads free; `free`: it frees.
const FORKS: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int stop;
static void *block;
static void locks(void) { pthread_mutex_lock(&lock); }
static void unlocks(void) { pthread_mutex_unlock(&lock); }
static void frees(void) { free(block); block = malloc(3000); memset(block, 1, 3000); }
static void *works(void *unused) {
    while (!stop) {
        char *blocks[20];
        for (int i = 0; i < 20; i++) memset(blocks[i] = malloc(50 + i), i, 50 + i);
        pthread_mutex_lock(&lock);
        for (int i = 0; i < 20; i++) free(blocks[i]);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}
int main(int argc, char **argv) {
    void (*handlers)(void (*)(void), void (*)(void)) =
        (void (*)(void (*)(void), void (*)(void)))dlsym(RTLD_DEFAULT, "handlers");
    if (argc != 2 || !handlers) return 2;
    alarm(60);
    if (strcmp(argv[1], "lock") == 0) handlers(locks, unlocks);
    else handlers(frees, frees);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, works, NULL);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            void *blocks[50];
            for (int k = 0; k < 50; k++) blocks[k] = malloc(3000);
            for (int k = 0; k < 50; k++) free(blocks[k]);
            _exit(0);
        }
        int status;
        if (waitpid(child, &status, 0) != child || status != 0) return 3;
    }
    stop = 1;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
"#;

fn layer() -> PathBuf {
    heaptoll_testing::staged::file("layers/libheaptoll_quarantine.so")
}

/// glibc (nothing to preload), and those of these managers that are built.
fn managers() -> Vec<Option<PathBuf>> {
    let built = ["mimalloc3", "jemalloc", "tcmalloc", "snmalloc", "knuth", "kingsley", "tithe"]
        .map(|name| heaptoll_testing::staged::home().join(format!("lib/heaptoll/managers/{name}.so")));
    std::iter::once(None).chain(built.into_iter().filter(|path| path.exists()).map(Some)).collect()
}

/// Runs a command with the layer preloaded, and these objects after it.
fn held(program: &Path, arguments: &[&str], settings: &str, objects: &[&Path]) -> CommandOutput {
    let mut preload = layer().into_os_string();
    for object in objects {
        preload.push(":");
        preload.push(object);
    }
    Command::new(program)
        .args(arguments)
        .env("LD_PRELOAD", preload)
        .env("HEAPTOLL_QUARANTINE", settings)
        .env("TITHE_MODE", "explicit")
        .output()
        .expect("it runs")
        .into()
}

#[test]
fn a_delay_of_n_bytes_holds_n_bytes_within_one_block() {
    let fixture = Fixture::new();
    let (spy, hold) = (fixture.object("spy.so", SPY), fixture.program("hold", HOLD));
    for manager in managers() {
        for bound in ["1", "4096", "65536", "2097152"] {
            let objects: Vec<&Path> = std::iter::once(Path::new(&spy)).chain(manager.as_deref()).collect();
            let output = held(Path::new(&hold), &[bound], &format!("size={bound}"), &objects);
            assert_eq!(output.code, Some(0), "{bound} in front of {manager:?}: {}", output.err);
        }
    }
}

#[test]
fn check_finds_the_planted_write_and_the_second_free_and_names_the_place() {
    let planted = heaptoll_testing::staged::file("programs/planted");
    for manager in managers() {
        let objects: Vec<&Path> = manager.iter().map(PathBuf::as_path).collect();
        let run = |defect, settings| {
            held(&planted, &[defect], settings, &objects).exits(0).shows(&["1 left, 4 stay"])
        };
        let checked = "size=1M,check=on";
        assert_eq!(run("none", checked).err, "", "in front of {manager:?}");
        run("news", checked).complains(&[
            "written after free: 8 bytes at offset 24",
            "2a 00 00",
            "freed at planted+0x",
        ]);
        run("twice", checked).complains(&["freed twice", "first freed at planted+0x", "then at planted+0x"]);
        assert_eq!(run("news", "size=1M").err, "", "nothing is checked without check=on");
    }
}

/// Where other handlers run while the check's lock is held over a fork: none waits for ever, and there is no false
/// report. (Over other managers, jemalloc for one, such a program hangs without any layer: of the handlers only glibc's
/// own are always the last.)
#[test]
fn a_fork_with_the_handlers_of_others_does_not_hang_under_check() {
    let fixture = Fixture::new();
    let (library, forks) = (fixture.object("library.so", LIBRARY), fixture.program("forks", FORKS));
    for settings in ["size=64K", "size=64K,check=on", "size=1,check=on", "size=64K,check=on,evict=random"] {
        for handlers in ["free", "lock"] {
            let preload = format!("{}:{library}", layer().display());
            let output: CommandOutput = Command::new(&forks)
                .arg(handlers)
                .env("LD_PRELOAD", preload)
                .env("HEAPTOLL_QUARANTINE", settings)
                .output()
                .expect("it runs")
                .into();
            assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{settings}, {handlers}");
        }
    }
}

#[test]
fn what_check_finds_is_counted_in_the_experiment() {
    let fixture = Fixture::new();
    let (json, planted) = (fixture.at("o.json"), heaptoll_testing::staged::file("programs/planted"));
    let planted = planted.display().to_string();
    let words = [
        "run",
        "-n",
        "1",
        "--warmup",
        "0",
        "-m",
        "quarantine=1M,check=on/glibc",
        "--json",
        &json,
        "--",
        &planted,
    ];
    fixture.heaptoll(&words).exits(0);
    let read = read_json(&json);
    let rows = rows_of(&read, "quarantine=1M,check=on/glibc", "timed");
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["written_after_free"], 1, "{}", rows[0]);
}

#[test]
fn settings_that_mean_nothing_end_the_process_with_what_they_may_be() {
    for settings in ["size=0", "size=2X", "delay=1", "check", "evict=some"] {
        held(Path::new("/bin/true"), &[], settings, &[]).exits(2).complains(&[
            "HEAPTOLL_QUARANTINE",
            settings,
            "check=on|off",
        ]);
    }
}

#[test]
fn a_manager_without_usable_sizes_is_refused_with_the_reason() {
    let fixture = Fixture::new();
    let bare = fixture.object(
        "bare.so",
        "#define _GNU_SOURCE\n#include <stddef.h>\nstatic char pool[1 << 24];\nstatic size_t used;\n\
         void *malloc(size_t n) { void *p = pool + used; used += (n + 31) & ~15ul; return p; }\n\
         void free(void *p) { (void)p; }\n",
    );
    let output = held(Path::new("/bin/true"), &[], "size=1", &[Path::new(&bare)]);
    assert_ne!(output.code, Some(0));
    output.complains(&["malloc_usable_size", "take another manager"]);
}
