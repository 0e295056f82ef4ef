//! The guard layer, from outside: a freed block that a word leads to is never anybody else's, whatever the manager, the
//! place of the word, the threads, the forks and the settings. The layer's object is preloaded as by the tool.

use std::path::{Path, PathBuf};

use crate::fixture::{CommandOutput, Fixture, rows_of};
use crate::sweeping::{SCRIPT, SHELL, layered, managers, printed_by_perl};

/// Runs a program under the layer.
pub fn guarded(program: &str, arguments: &[&str], settings: &str, manager: Option<&Path>) -> CommandOutput {
    layered(("guard", "HEAPTOLL_GUARD"), program, arguments, settings, manager)
}

/// One of each kind: the C library's, a present one, an old one.
fn three_managers() -> Vec<Option<PathBuf>> {
    let names = ["mimalloc3", "lea"];
    let is_one = |path: &PathBuf| names.iter().any(|name| path.file_stem().is_some_and(|stem| stem == *name));
    managers().into_iter().filter(|manager| manager.as_ref().is_none_or(is_one)).collect()
}

/// Keeps the address of a freed block in each place a pointer can be, at its start, in its middle and one past its end,
/// allocates much, and looks for those bytes in what it gets. Then it frees 20,000 blocks, forgets their addresses, and
/// prints how many of them still wait.
const PLACES: &str = r#"
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
struct census { uint32_t size, capacity, count, exact; uint64_t mapped, high, live, free, metadata, quarantined, unused, requested; void *classes; };
struct control { uint32_t version, size; const char *name, *release; int (*census)(struct census *); int (*collect)(void);
                 int (*listen)(void *, void *); int (*check)(void); };
extern const struct control *heaptoll_control_v1(void) __attribute__((weak));
enum { PLACES = 7, SIZES = 5, ALL = PLACES * SIZES * 3 };
static const size_t sizes[SIZES] = {1, 24, 100, 5000, 300000};
static char *volatile in_data[SIZES * 3];
static __thread char *volatile in_thread[SIZES * 3];
static struct __attribute__((packed)) { uint32_t before; char *volatile block; } packed[SIZES * 3] __attribute__((aligned(8)));
static char *volatile *in_other_stack;
static pthread_barrier_t barrier;
static struct { uintptr_t hidden; size_t bytes; } freed[ALL];
static int count;
static void *waits(void *none) {
    char *volatile own[SIZES * 3] = {0};
    in_other_stack = own;
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return none;
}
__attribute__((noinline)) static char *freed_block(size_t bytes, int how) {
    char *block = count % 4 == 3 ? aligned_alloc(64, (bytes + 63) / 64 * 64) : count % 4 == 2 ? calloc(1, bytes) : malloc(bytes);
    memset(block, 1, bytes);
    freed[count].hidden = ~(uintptr_t)block;
    freed[count++].bytes = bytes;
    free(block);
    return block + (how == 0 ? 0 : how == 1 ? bytes / 2 : bytes);
}
__attribute__((noinline)) static void keep(char *volatile *in_stack, char *volatile *in_block, char *volatile *in_map) {
    for (int at = 0; at < SIZES * 3; at++) {
        size_t bytes = sizes[at / 3];
        in_data[at] = freed_block(bytes, at % 3);
        in_thread[at] = freed_block(bytes, at % 3);
        packed[at].block = freed_block(bytes, at % 3);
        in_other_stack[at] = freed_block(bytes, at % 3);
        in_stack[at] = freed_block(bytes, at % 3);
        in_block[at] = freed_block(bytes, at % 3);
        in_map[at] = freed_block(bytes, at % 3);
    }
}
__attribute__((noinline)) static int churn(void) {
    int lost = 0;
    unsigned random = 1;
    char *live[64] = {0};
    for (int i = 0; i < 60000; i++) {
        random = random * 1103515245 + 12345;
        size_t bytes = random >> 28 ? (random >> 8) % 400 + 1 : i % 32 ? 5000 : 300000;
        uintptr_t block = (uintptr_t)(live[i % 64] = realloc(live[i % 64], bytes));
        for (int at = 0; at < ALL; at++) {
            uintptr_t start = ~freed[at].hidden;
            lost += block < start + freed[at].bytes && start < block + bytes;
        }
        memset((void *)block, 2, bytes < 512 ? bytes : 512);
        if (i % 3) { free(live[i % 64]); live[i % 64] = NULL; }
    }
    for (int i = 0; i < 64; i++) free(live[i]);
    return lost;
}
__attribute__((noinline)) static void wipe(void) {
    volatile char below[65536];
    memset((void *)below, 0, sizeof below);
}
__attribute__((noinline)) static void drop(void) {
    static char *all[20000];
    for (int i = 0; i < 20000; i++) all[i] = malloc(48);
    for (int i = 0; i < 20000; i++) { free(all[i]); all[i] = NULL; }
}
static uint64_t waiting(void) {
    wipe();
    if (heaptoll_control_v1()->collect() || heaptoll_control_v1()->check()) exit(2);
    struct census census = {.size = sizeof census};
    heaptoll_control_v1()->census(&census);
    return census.quarantined;
}
int main(void) {
    pthread_t other;
    char *volatile in_stack[SIZES * 3];
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&other, NULL, waits, NULL);
    pthread_barrier_wait(&barrier);
    char *volatile *volatile in_block = malloc(4096), *volatile *volatile in_map = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    keep(in_stack, in_block + 100, in_map);
    int lost = churn(), other_bytes = 0, usable = 0;
    uint64_t kept = waiting(), sum = 0;
    for (int at = 0; at < ALL; at++) {
        char *block = (char *)~freed[at].hidden;
        sum += freed[at].bytes;
        usable += malloc_usable_size(block) != 0;
        for (size_t byte = 0; byte < freed[at].bytes; byte++) other_bytes += block[byte] != 0;
    }
    drop();
    long left = (long)(waiting() - kept) / 48;
    printf("lost %d other %d usable %d kept %d left %ld\n", lost, other_bytes, usable, kept >= sum, left);
    pthread_barrier_wait(&barrier);
    pthread_join(other, NULL);
    return 0;
}
"#;

fn places(managers: Vec<Option<PathBuf>>) {
    let fixture = Fixture::new();
    let program = fixture.program("places", PLACES);
    for manager in managers {
        for settings in ["", "headroom=1", "markers=3,waiting=4K"] {
            let output = guarded(&program, &[], settings, manager.as_deref());
            assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{settings} over {manager:?}");
            let left = output.out.trim().strip_prefix("lost 0 other 0 usable 0 kept 1 left ");
            let left = left.and_then(|left| left.parse::<i64>().ok());
            assert!(left.is_some_and(|left| left <= 8), "{settings} over {manager:?}: {}", output.out);
        }
    }
}

#[test]
fn a_freed_block_that_a_word_leads_to_is_never_handed_out() {
    places(three_managers());
}

#[test]
#[ignore = "slow: every manager"]
fn a_freed_block_that_a_word_leads_to_is_never_handed_out_under_every_manager() {
    places(managers());
}

/// Threads that come and go use blocks, free them and keep their addresses: a freed block must read as zeroes, though all
/// others write to theirs.
const STRESS: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
static __thread uint64_t seed;
static uint64_t any(void) { seed ^= seed << 13; seed ^= seed >> 7; return seed ^= seed << 17; }
static void wrong(const char *what) { dprintf(2, "wrong: %s\n", what); abort(); }
enum { SLOTS = 64 };
struct slot { unsigned char *block; size_t bytes; int freed; };
static void check(struct slot *slot) {
    for (size_t i = 0; i < slot->bytes; i++)
        if (slot->block[i] != (slot->freed ? 0 : (unsigned char)slot->bytes + 1)) wrong(slot->freed ? "freed" : "live");
}
static void fill(struct slot *slot) {
    size_t bytes = slot->bytes = any() % (any() % 40 ? 300 : 100000) / 256 * 256 + any() % 255;
    void *block = NULL;
    switch (any() % 4) {
    case 0: block = calloc(1, bytes); for (size_t i = 0; i < bytes; i++) if (((char *)block)[i]) wrong("calloc"); break;
    case 1: if (posix_memalign(&block, 64, bytes) || (uintptr_t)block % 64) wrong("alignment"); break;
    case 2: block = realloc(malloc(bytes / 2 + 1), bytes + 1); break;
    default: block = malloc(bytes);
    }
    if (!block) wrong("memory");
    memset(slot->block = block, (unsigned char)bytes + 1, bytes);
    slot->freed = 0;
}
static int rounds, forks;
static pthread_key_t key;
static void turn(struct slot *slot) {
    check(slot);
    if (slot->block && !slot->freed) { free(slot->block); slot->freed = 1; check(slot); }
    else fill(slot);
}
static void at_end(void *slot) { turn(slot); turn(slot); turn(slot); free(slot); }
static void *work(void *number) {
    seed = 0x9e3779b97f4a7c15ull * ((uintptr_t)number + 1);
    struct slot *slots = calloc(SLOTS, sizeof *slots), *last = calloc(1, sizeof *last);
    fill(last);
    pthread_setspecific(key, last);
    for (int r = 0; r < rounds; r++) {
        turn(&slots[any() % SLOTS]);
        if (forks && r % (rounds / 2) == rounds / 3) {
            pid_t child = fork();
            if (child == 0) {
                for (int k = 0; k < 2000; k++) turn(&slots[any() % SLOTS]);
                for (int k = 0; k < SLOTS; k++) check(&slots[k]);
                _exit(0);
            }
            int status;
            if (child < 0 || waitpid(child, &status, 0) != child || status) wrong("child");
        }
    }
    for (int i = 0; i < SLOTS; i++) { check(&slots[i]); if (!slots[i].freed) free(slots[i].block); }
    free(slots);
    return NULL;
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
        for (int i = 0; i < threads; i++) pthread_join(all[i], NULL);
    }
    puts("fine");
    return 0;
}
"#;

fn stress(managers: Vec<Option<PathBuf>>) {
    let fixture = Fixture::new();
    let program = fixture.program("stress", STRESS);
    for manager in managers {
        for settings in ["headroom=1", "waiting=4K,markers=2"] {
            // tcmalloc has no handlers for fork.
            let name = manager.as_deref().and_then(Path::file_stem).unwrap_or_default();
            let forks = if name == "tcmalloc" { "0" } else { "1" };
            let output = guarded(&program, &["4", "4000", forks], settings, manager.as_deref());
            let (code, out) = (output.code, output.out.as_str());
            assert_eq!((code, out), (Some(0), "fine\n"), "{settings} over {manager:?}: {}", output.err);
            assert_eq!(output.err, "", "{settings} over {manager:?}");
        }
    }
}

#[test]
fn threads_and_forks_read_zeroes_from_what_they_freed() {
    stress(three_managers());
}

#[test]
#[ignore = "slow: every manager"]
fn threads_and_forks_read_zeroes_from_what_they_freed_under_every_manager() {
    stress(managers());
}

/// usage: wrong HOW.
const WRONG: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
    const char *how = argv[1];
    char local[64], *volatile block = malloc(200), *volatile large = malloc(500000);
    volatile uintptr_t address = (uintptr_t)block;
    memset(large, 1, 500000);
    free(block);
    if (!strcmp(how, "twice")) free((void *)address);
    if (!strcmp(how, "resized")) printf("%d\n", realloc((void *)address, 300) == NULL);
    if (!strcmp(how, "inside")) free((void *)(address + 8));
    if (!strcmp(how, "odd")) free((void *)(address + 3));
    if (!strcmp(how, "stack")) { address = (uintptr_t)local & ~(uintptr_t)15; free((void *)address); }
    if (!strcmp(how, "far")) free((void *)(address ^ (uintptr_t)1 << 44));
    if (!strcmp(how, "written")) block[24] = 42;
    free(large);
    if (!strcmp(how, "large")) large[300000] = 42;
    puts("end");
    return 0;
}
"#;

#[test]
fn what_is_wrong_with_a_free_is_named_and_goes_no_further() {
    let fixture = Fixture::new();
    let program = fixture.program("wrong", WRONG);
    for manager in three_managers() {
        let manager = manager.as_deref();
        for (how, words) in [
            ("twice", ["freed twice: the ", ", which waits already; the call is ignored"]),
            ("resized", ["resized after it was freed: the ", ", which waits already; the call is ignored"]),
            ("inside", ["freed what is no block: 0x", "; the call is ignored"]),
            ("odd", ["freed what is no block: 0x", "; the call is ignored"]),
            ("stack", ["freed what is no block: 0x", "; the call is ignored"]),
            ("far", ["freed what is no block: 0x", "; the call is ignored"]),
            ("written", ["written after free: 1 byte at offset 24 of the 208-byte block at 0x", ": 2a\n"]),
            ("large", ["written after free: 1 byte at offset 300000 of the ", ": 2a\n"]),
        ] {
            let output = guarded(&program, &[how], "", manager).exits(0).shows(&["end\n"]).complains(&words);
            assert_eq!(output.err.lines().count(), 1, "{how}: {}", output.err);
            assert_eq!(guarded(&program, &[how], "report=off", manager).exits(0).err, "", "{how}");
            let output = guarded(&program, &[how], "report=off,abort=on", manager).complains(&words[..1]);
            assert!(!output.err.contains("ignored"), "{how}: {}", output.err);
            // No status: by a signal.
            assert_eq!(output.code, None, "{how}: {}", output.err);
        }
        assert_eq!(guarded(&program, &["none"], "", manager).exits(0).err, "");
    }
}

/// Allocates and frees more than the process may have, with its address space limited. By what is live no pass is due.
const SCARCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
int main(void) {
    static char *live[64];
    for (int i = 0; i < 64; i++) memset(live[i] = malloc(100000), 1, 100000);
    for (int i = 0; i < 20000; i++) free(malloc(100));
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages;
    if (!file || fscanf(file, "%lu", &pages) != 1) return 2;
    fclose(file);
    struct rlimit limit = {pages * 4096 + (256 << 20), pages * 4096 + (256 << 20)};
    setrlimit(RLIMIT_AS, &limit);
    for (int i = 0; i < 40; i++) {
        char *volatile block = malloc(48 << 20);
        if (!block) { printf("none after %d\n", i); return 0; }
        memset(block, 1, 1 << 20);
        free(block);
        block = NULL;
    }
    puts("all");
    return 0;
}
"#;

#[test]
fn memory_that_cannot_be_served_comes_from_what_waits() {
    let fixture = Fixture::new();
    let program = fixture.program("scarce", SCARCE);
    guarded(&program, &[], "headroom=10000", None).exits(0).shows(&["all"]);
}

/// usage: keeper BLOCKS. Frees blocks of 100 bytes and keeps all addresses.
const KEEPER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    long blocks = atol(argv[1]);
    char **kept = malloc(blocks * sizeof *kept);
    for (long i = 0; i < blocks; i++) free(kept[i] = malloc(100));
    char *volatile last = kept[blocks - 1];
    last[50] = 1;
    puts("end");
    return 0;
}
"#;

/// Nothing can be given back: passes go on, but not one for each free.
#[test]
fn a_run_counts_passes_what_waits_and_late_writes() {
    let fixture = Fixture::new();
    let program = fixture.program("keeper", KEEPER);
    let stack = "guard,waiting=64K/glibc";
    let db = fixture.at("g.db");
    let words = ["run", "-m", stack, "-n", "1", "--warmup", "0", "--db", &db, "--", &program, "20000"];
    fixture
        .heaptoll(&words)
        .exits(0)
        .shows(&["wrote to freed memory in 2 of 2 runs", "at offset 50 of the 104-byte block"]);
    let json = fixture.json(&db);
    let row = rows_of(&json, stack, "timed")[0];
    let held = row["held_high_bytes"].as_u64().expect("held");
    // The padded blocks.
    assert!((2_080_000..2_200_000).contains(&held), "{row}");
    let passes = row["collections"]["count"].as_u64().expect("passes");
    assert!((7..=9).contains(&passes), "{row}");
    assert_eq!(row["written_after_free"], 1, "{row}");
}

/// Blocks with a page that cannot be accessed, as stacks of coroutines have, while passes are made.
const PROTECTED: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
int main(void) {
    char *volatile small = aligned_alloc(4096, 16384), *volatile large = aligned_alloc(4096, 1 << 20);
    small[0] = large[0] = 1;
    if (mprotect(small, 4096, PROT_NONE) || mprotect(large + 8192, 4096, PROT_NONE)) return 2;
    char **volatile place = (char **)(small + 8192);
    place[1] = malloc(50);
    free(place[1]);
    int again = 0;
    for (int i = 0; i < 50000; i++) { char *volatile block = malloc(50); again += block == place[1]; free(block); }
    if (mprotect(small, 4096, PROT_READ | PROT_WRITE) || mprotect(large + 8192, 4096, PROT_READ | PROT_WRITE)) return 3;
    printf("again %d kept %d\n", again, small[0] + large[0]);
    return 0;
}
"#;

#[test]
fn a_page_without_access_in_a_block_is_passed_over() {
    let fixture = Fixture::new();
    let program = fixture.program("protected", PROTECTED);
    for manager in three_managers() {
        let output = guarded(&program, &[], "headroom=1", manager.as_deref()).exits(0);
        assert_eq!(output.out, "again 0 kept 2\n", "{manager:?}");
    }
}

#[test]
fn settings_that_are_not_possible_are_refused_with_what_is() {
    for (settings, pair) in
        [("headroom=0", "headroom=0"), ("waiting=1M,report=log", "report=log"), ("every=1", "every=1")]
    {
        let output = guarded("true", &[], settings, None);
        assert_eq!(output.code, Some(2), "{settings}");
        output.complains(&[&format!("HEAPTOLL_GUARD: `{pair}` is not possible"), "write waiting=SIZE"]);
    }
}

#[test]
fn real_programs_print_what_they_always_print() {
    let plain = printed_by_perl();
    for manager in three_managers() {
        let output = guarded("perl", &["-e", SCRIPT], "headroom=1", manager.as_deref()).exits(0);
        assert_eq!((output.out.as_str(), output.err.as_str()), (&*plain, ""), "{manager:?}");
        let output = guarded("sh", &["-c", SHELL], "waiting=4K", manager.as_deref()).exits(0);
        assert_eq!(output.err, "", "{manager:?}");
    }
}
