//! `heaptoll ledger` has the peak, names who holds it, and ends where the program's end begins.

use serde_json::Value;

use crate::fixture::Fixture;

/// The text of the ledger of a command, and its figures.
#[track_caller]
fn ledger(fixture: &Fixture, options: &[&str], command: &[&str]) -> (String, Value) {
    let json = fixture.at("ledger.json");
    let mut arguments = vec!["ledger", "--json", &json];
    arguments.extend(options);
    arguments.push("--");
    arguments.extend(command);
    let output = fixture.heaptoll(&arguments);
    let figures = std::fs::read_to_string(&json).unwrap_or_else(|_| panic!("{}\n{}", output.out, output.err));
    (output.err, serde_json::from_str(&figures).expect("JSON"))
}

fn bytes(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no figure: {value}"))
}

/// Live bytes of the snapshot with the most, and of the whole run.
fn most_live(figures: &Value) -> (u64, u64) {
    let at = figures["most_live"].as_u64().expect("an index") as usize;
    (bytes(&figures["moments"][at]["live_bytes"]), bytes(&figures["max_live_bytes"]))
}

/// Blocks of 1000 bytes, of seven call sites: 7000 of `hold_7`, 6000 of `hold_6`, ..., and 16 bytes after each; `drop()`
/// frees all but those. `PER` blocks of `BYTES` bytes, if both are defined before, take the place of each thousand.
const CACHE: &str = r#"
    #ifndef PER
    #define PER 1000
    #define BYTES 1000
    #endif
    static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
    static char *kept[28000], *between[28000]; static int used;
    #define HOLD(n) __attribute__((noinline)) static void hold_##n(void) { \
        for (int at = 0; at < n * PER; at++) { \
            kept[used] = memset(malloc(BYTES), n, BYTES); between[used++] = memset(malloc(16), 1, 16); } }
    HOLD(1) HOLD(2) HOLD(3) HOLD(4) HOLD(5) HOLD(6) HOLD(7)
    static void hold(void) { small_pages(); hold_1(); hold_7(); hold_3(); hold_5(); hold_2(); hold_6(); hold_4(); }
    static void drop(void) { while (used > 0) free(kept[--used]); }
"#;

/// What destructors have freed was reported as fragmentation, at the "peak".
#[test]
fn a_cache_that_destructors_free_is_live_and_has_holders_however_the_program_ends() {
    let fixture = Fixture::new();
    let ends = ["return 0", "exit(0)", "_exit(0)", "quick_exit(0)", "pthread_exit(0)"];
    for (at, end) in ends.into_iter().enumerate() {
        let source = format!(
            "#include <pthread.h>\n#define PER 250\n#define BYTES 4080\n{CACHE} __attribute__((destructor)) static void last(void) {{ drop(); }}
            int main(void) {{ atexit(drop); at_quick_exit(drop); hold(); {end}; }}"
        );
        let program = fixture.program(&format!("cache{at}"), &source);
        let (text, figures) = ledger(&fixture, &[], &[&program]);
        assert!(most_live(&figures).0 >= 28 * 250 * (4080 + 16), "{end}: {text}");
        assert_eq!(figures["peak_is_known"], true, "{end}: {text}");
        let heading = text.find("At the peak, known within 5 %").unwrap_or_else(|| panic!("{end}: {text}"));
        let first = text[heading..].lines().nth(1).expect("a sentence");
        assert!(first.contains(" of RSS are live: 27."), "{end}: {first}");
        let five = ["hold_7", "hold_6", "hold_5", "hold_4", "hold_3"];
        let places: Vec<Option<usize>> = five.iter().map(|name| first.find(name)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{end}: {first}");
        assert!(!first.contains("hold_2"), "{end}: {first}");
        assert!(text.contains("Who allocated the live memory"), "{end}: {text}");
    }
}

#[test]
fn who_pins_what_is_mostly_free_is_named() {
    let fixture = Fixture::new();
    let program =
        fixture.program("holes", &format!("{CACHE} int main(void) {{ hold(); drop(); return 0; }}"));
    let (text, figures) = ledger(&fixture, &[], &[&program]);
    // All snapshots after the peak have the same resident set, or a page more: what is freed last does not lead.
    let peak = figures["peak"].as_u64().expect("an index") as usize;
    assert!(2 * bytes(&figures["moments"][peak]["live_bytes"]) >= most_live(&figures).0, "{text}");
    // What is not heap differs from machine to machine.
    let most = ["external fragmentation 8", "external fragmentation 9"];
    assert!(text.contains("hold_7 < main pins ") && most.iter().any(|words| text.contains(words)), "{text}");
}

/// Any later snapshot with a page more was described, as if nothing had ever been live.
#[test]
fn what_is_mostly_free_is_reported_as_fragmentation_first() {
    let fixture = Fixture::new();
    let source = format!(
        "{CACHE} static char more[1 << 18];
        int main(void) {{ double begun = now(); hold(); usleep(100000); drop(); memset(more, 1, sizeof more);
            double before = now() - begun;
            for (int at = 0; at < 100000 || now() - begun < 4 * before; at++) {{ \
                void *volatile block = malloc(3000); free(block); if (at % 1000 == 0) usleep(5000); }} }}"
    );
    let (text, figures) = ledger(&fixture, &[], &[&fixture.program("goes_on", &source)]);
    let peak = figures["peak"].as_u64().expect("an index") as usize;
    assert!(bytes(&figures["moments"][peak]["live_bytes"]) >= 20_000 * 1016, "{text}");
    let places = ["hold_7 < main pins ", " are freed later, and ", " are live: 2"];
    let places = places.map(|sentence| text.find(sentence).unwrap_or_else(|| panic!("{sentence}: {text}")));
    assert!(places.is_sorted(), "{text}");
    assert!(text.contains("of free memory are resident, on pages that live blocks pin"), "{text}");
}

/// It stayed at 104 MiB for 2.5 s without a snapshot, and then was killed.
#[test]
fn a_program_that_goes_idle_is_sampled_as_it_is_then() {
    let fixture = Fixture::new();
    let source = format!(
        "{CACHE}
        int main(void) {{ double begun = now(); hold(); drop(); hold(); usleep(500000 + 4e6 * (now() - begun)); \
         kill(getpid(), SIGKILL); }}"
    );
    let program = fixture.program("idle", &format!("#include <signal.h>\n{source}"));
    let (text, figures) = ledger(&fixture, &[], &[&program]);
    let last = figures["moments"].as_array().and_then(|all| all.last()).expect("snapshots");
    // The blocks between those that were dropped are 448 kB.
    assert_eq!(bytes(&last["live_bytes"]), 28_000 * 1000 + 2 * 28_000 * 16, "{text}");
    assert!(text.contains("At the peak, known within 5 %"), "{text}");
}

/// The peak is over before a recorder sees it.
#[test]
fn a_second_run_has_the_peak_exactly_and_states_where_the_runs_differ() {
    let fixture = Fixture::new();
    let burst = "static void *all[1000]; static void burst(int many) {
        for (int at = 0; at < many; at++) all[at] = malloc(1000);
        all[0] = realloc(all[0], 7777); free(all[0]);
        for (int at = 1; at < many; at++) free(all[at]); }";
    let same = format!(
        "{burst} int main(void) {{ burst(900); burst(1000); for (int at = 0; at < 500; at++) burst(800); }}"
    );
    let (text, figures) = ledger(&fixture, &["--exact"], &[&fixture.program("same", &same)]);
    assert_eq!(figures["first_run"]["events"], figures["live_peak"]["events"], "{text}");
    assert_eq!(most_live(&figures), (999 * 1000 + 7777, 999 * 1000 + 7777), "{text}");
    assert!(text.contains("Both runs had their live peak at the same call"), "{text}");
    let other = format!(
        "{burst} int main(int count, char **given) {{ burst(fopen(given[1], \"r\") ? 900 : 1000); fopen(given[1], \"w\"); }}"
    );
    let other = fixture.program("other", &other);
    let (text, figures) = ledger(&fixture, &["--exact"], &[&other, &fixture.at("flag")]);
    assert!(text.contains("The runs allocated differently"), "{text}");
    assert!(
        bytes(&figures["first_run"]["live_bytes"]) > bytes(&figures["live_peak"]["live_bytes"]),
        "{text}"
    );
}

#[test]
fn what_is_no_heap_is_named_by_its_variables_and_callers_of_mmap() {
    let fixture = Fixture::new();
    let source = "#include <sys/mman.h>
        static char buffer[24 << 20]; static int table[2 << 20] = { 7 }; char untouched[99 << 20];
        __attribute__((noinline)) static void pool(int mib) {
            void *place = mmap(0, mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memset(place, 1, mib << 20); }
        int main(void) { small_pages(); void *volatile block = malloc(100); free(block);
            memset(buffer, 1, sizeof buffer); memset(table, 2, sizeof table); pool(12); pool(4); return untouched[5]; }";
    let program = fixture.program("elsewhere", source);
    let (text, figures) = ledger(&fixture, &[], &[&program]);
    assert!(text.contains("are static data: 32."), "{text}");
    assert!(
        text.contains("The largest: buffer of elsewhere 24.0 MiB; table of elsewhere 8.00 MiB"),
        "{text}"
    );
    let sentence = text.lines().find(|line| line.contains("The largest: ")).expect("a sentence");
    assert!(!sentence.contains("untouched"), "{text}");
    assert!(text.contains("Who called mmap: pool < main 16.0 MiB"), "{text}");
    assert!(text.contains(" from malloc: the rest is mappings or an allocator of its own"), "{text}");
    let named = figures["static_variables"].as_array().expect("variables");
    assert!((2..=5).contains(&named.len()), "{named:?}");
}

/// Before, the memory of a mapping that `mremap` had moved or enlarged had no caller, and the ledger of a program that
/// makes no call of malloc ended with 1.
#[test]
fn a_mapping_that_mremap_changed_has_the_caller_that_made_it() {
    let fixture = Fixture::new();
    let source = "#include <sys/mman.h>
        #define MIB (1 << 20)
        #define CALLER(name, call) __attribute__((noinline)) static char *name(void) { \
            char *place = call; if (place != MAP_FAILED) *place = 1; return place; }
        #define MAP(bytes) mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        CALLER(moved, MAP(2 * MIB)) CALLER(reserved, MAP(64 * MIB)) CALLER(shrunk, MAP(9 * MIB)) CALLER(placed, MAP(3 * MIB))
        CALLER(small, MAP(4096)) CALLER(grown, mremap(small(), 4096, 5 * MIB, MREMAP_MAYMOVE))
        int main(void) { small_pages();
            char *there = reserved() + MIB;
            memset(mremap(moved(), 2 * MIB, 12 * MIB, MREMAP_MAYMOVE), 1, 12 * MIB);
            memset(mremap(shrunk(), 9 * MIB, 6 * MIB, 0), 1, 6 * MIB);
            memset(mremap(placed(), 3 * MIB, 3 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, there), 1, 3 * MIB);
            memset(grown(), 1, 5 * MIB); usleep(100000); return 0; }";
    let program = fixture.program("remapping", source);
    let text = fixture.heaptoll(&["ledger", "--", &program]).exits(0).err;
    for row in
        ["moved < main 12.0 MiB", "shrunk < main 6.00 MiB", "grown < main 5.00 MiB", "placed < main 3.00 MiB"]
    {
        assert!(text.contains(row), "{row}: {text}");
    }
}

/// Where shared memory or stacks were most of the resident set, no sentence named them.
#[test]
fn shared_memory_has_callers_of_mmap_and_shmat_and_stacks_have_threads() {
    let fixture = Fixture::new();
    let source = "#include <pthread.h>
        #include <sys/shm.h>
        #define MIB (1 << 20)
        #define POOL __attribute__((noinline)) static void
        #define MAP(bytes, flags, file) memset(mmap(0, bytes, PROT_READ | PROT_WRITE, flags, file, 0), 1, bytes)
        POOL of_memfd(void) { int file = memfd_create(\"pool\", 0); ftruncate(file, 12 * MIB);
            MAP(12 * MIB, MAP_SHARED, file); }
        POOL of_segment(void) { int segment = shmget(IPC_PRIVATE, 6 * MIB, 0600);
            void *place = shmat(segment, 0, 0); shmctl(segment, IPC_RMID, 0); memset(place, 1, 6 * MIB); }
        POOL nameless(void) { MAP(3 * MIB, MAP_SHARED | MAP_ANONYMOUS, -1); }
        static pthread_barrier_t deep, over;
        static void *thread(void *given) { volatile char frame[7 * MIB]; memset((char *)frame, 1, sizeof frame);
            pthread_barrier_wait(&deep); pthread_barrier_wait(&over); return given; }
        static void allocate(void) { void *volatile block = malloc(100); free(block); }
        int main(int count, char **given) { small_pages(); allocate();
            if (count == 1) { of_memfd(); of_segment(); nameless(); allocate(); usleep(100000); allocate(); return 0; }
            pthread_t all[4]; pthread_barrier_init(&deep, 0, 5); pthread_barrier_init(&over, 0, 5);
            for (int at = 0; at < 4; at++) pthread_create(all + at, 0, thread, 0);
            pthread_barrier_wait(&deep); usleep(100000); allocate(); pthread_barrier_wait(&over);
            for (int at = 0; at < 4; at++) pthread_join(all[at], 0); }";
    let program = fixture.program("elsewhere", source);
    let first = |text: &str| {
        let heading = text.find("At the peak, known within 5 %").unwrap_or_else(|| panic!("{text}"));
        text[heading..].lines().nth(1).expect("a sentence").to_owned()
    };
    let (text, _) = ledger(&fixture, &[], &[&program]);
    let sentence = first(&text);
    assert!(sentence.contains(" of RSS are shared memory and files: 21."), "{text}");
    let names = ["of_memfd < main 12.0 MiB", "of_segment < main 6.00 MiB", "nameless < main 3.00 MiB"];
    assert!(names.iter().all(|name| sentence.contains(name)), "{text}");
    let (text, _) = ledger(&fixture, &[], &[&program, "threads"]);
    let sentence = first(&text);
    assert!(sentence.contains(" of RSS are stacks: 28."), "{text}");
    assert!(sentence.ends_with(" of 5 threads."), "{text}");
}
