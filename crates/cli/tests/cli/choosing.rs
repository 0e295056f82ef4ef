//! `heaptoll choose`: finds what is better for certain, keeps the default where nothing is, and refuses what makes no
//! sense.

use crate::fixture::{Fixture, read_json};

/// A program that holds this many blocks of 100 bytes.
fn holder(fixture: &Fixture, blocks: u32) -> String {
    let source =
        "int main(void) { for (int at = 0; at < BLOCKS; at++) memset(malloc(100), 1, 100); return 0; }";
    fixture.program("holder", &format!("#define BLOCKS {blocks}\n{source}"))
}

/// A manager that takes 12 MiB more than glibc.
const LARGE: &str = "#include <sys/mman.h>\nstatic char *extra;\n#define BEFORE(bytes) if (!extra) { extra = mmap(0, 12 << \
                     20, 3, 34, -1, 0); for (int at = 0; at < 12 << 20; at += 4096) extra[at] = 1; }";

#[test]
fn a_default_that_takes_most_memory_is_replaced_and_a_lean_one_is_kept() {
    let fixture = Fixture::new();
    let program = holder(&fixture, 20_000);
    let large = fixture.manager("large.so", LARGE);
    let json = fixture.path("choice.json");
    let json = json.to_str().expect("a name of text");
    let choose = |baseline: &str, options: &[&str]| {
        let mut words =
            vec!["choose", "--prefer", "memory", "-n", "6", "--baseline", baseline, "--json", json];
        words.extend(options);
        words.extend(["--", &program]);
        let output = fixture.heaptoll(&words);
        assert_eq!(output.code, Some(0), "{words:?}: {}\n{}", output.out, output.err);
        (output.out, read_json(json))
    };
    let all = ["-m", "glibc", "-m", "glibc,top_pad=64K", "-m", "knuth", "-m", &large];
    let (text, figures) = choose(&large, &all);
    let choice = figures["choice"].as_str().expect("a name").to_owned();
    assert!(choice != large && text.contains(&format!("{choice}: ")), "{text}");
    assert!(text.contains(" less memory ("), "{text}");
    assert_eq!(figures["finalists"].as_array().map(Vec::len), Some(3), "two and the baseline");
    assert_eq!(figures["candidates"].as_array().map(Vec::len), Some(3));
    assert_eq!(
        figures["search_runs"], 8,
        "three candidates and the baseline, twice: a tenth of 24 would be fewer"
    );
    assert_eq!(figures["full_search_runs"], 24);
    let (text, figures) = choose("glibc", &["-m", &large, "-m", "glibc"]);
    assert_eq!(figures["choice"], "glibc");
    assert!(text.contains("Keep glibc"), "{text}");
    assert_eq!(figures["search_runs"], 0, "one candidate needs no search");
    // What takes more than the limit is out, the baseline too.
    let (_, figures) =
        choose(&large, &["-m", "glibc", "-m", "knuth", "-m", "glibc,top_pad=64K", "--memory-limit", "10M"]);
    assert_ne!(figures["choice"].as_str(), Some(large.as_str()));
}

/// A manager that is slow in its first run at once with others, which is on one processor and no proof run: so is one
/// that waits for huge pages.
const SLOW_ONCE: &str = r#"#include <sched.h>
static int known;
static void begin(void) {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    if (!getenv("HEAPTOLL_PADDING") || CPU_COUNT(&set) != 1) return;
    if (open(MARK, O_CREAT | O_EXCL | O_WRONLY, 0600) < 0) return;
    struct timespec now;
    do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); while (now.tv_sec == 0 && now.tv_nsec < 300000000);
}
#define BEFORE(bytes) if (!known && (bytes) == 100) { known = 1; begin(); }"#;

/// Before, the search let it go for good.
#[test]
fn a_candidate_that_is_slow_in_its_first_run_alone_is_not_let_go_by_it() {
    let fixture = Fixture::new();
    let program = holder(&fixture, 80_000);
    let mark = format!("#define MARK \"{}\"\n", fixture.at("mark"));
    let slow = fixture.manager("slow.so", &(mark + SLOW_ONCE));
    let json = fixture.at("choice.json");
    let words = ["choose", "--prefer", "time", "-n", "2", "-m", &slow, "-m", "knuth", "-m", "lea", "--json"];
    fixture.heaptoll(&[&words[..], &[&json, "--", &program]].concat()).exits(0);
    assert!(fixture.path("mark").exists(), "it was slow once");
    let figures = read_json(&json);
    let rows = figures["candidates"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["stack"] == slow.as_str()).expect("its row");
    assert!(row["cpu_ratio"].as_f64().is_some_and(|ratio| ratio < 4.0), "{row}");
}

/// A server: its load writes `b` into a FIFO, and it takes 8 MiB in blocks; `f`, and it frees them.
const SERVER: &str = r#"#include <sys/stat.h>
static volatile sig_atomic_t over;
static void end(int s) { over = 1; }
static void *held[1024];
int main(int c, char **v) {
    struct sigaction a = {.sa_handler = end};
    sigaction(SIGTERM, &a, 0);
    free(malloc(9));
    mkfifo(v[1], 0600);
    int f = open(v[1], O_RDWR | O_NONBLOCK);
    fprintf(stderr, "ready\n");
    while (!over) {
        char byte;
        if (read(f, &byte, 1) <= 0) { struct timespec t = {0, 2000000}; nanosleep(&t, 0); continue; }
        for (int at = 0; at < 1024; at++) {
            free(held[at]);
            held[at] = byte == 'b' ? memset(malloc(8192), 1, 8192) : 0;
        }
    }
    return 0;
}
"#;

/// A manager that ends the process once there were 500 calls: not in the proof run, in which the server has no load.
const DYING: &str = "static int calls;\n#define BEFORE(bytes) if (++calls > 500) abort();";

/// Waits for a time so that the server has read what was written; what it reports is made up.
const LOAD: &str = "sh -c 'printf b > {tmp}/fifo; sleep 0.1; echo p99: 3.5 ms'";

fn serving(fixture: &Fixture) -> String {
    format!("{} {{tmp}}/fifo", fixture.program("server", SERVER))
}

#[test]
fn a_server_that_dies_under_one_candidate_is_a_row_and_the_others_have_their_idle_memory() {
    let fixture = Fixture::new();
    let (server, dying) = (serving(&fixture), fixture.manager("dying.so", DYING));
    let json = fixture.at("choice.json");
    let server =
        ["--serve", &server, "--load", LOAD, "--ready", "ready", "--figures", r"p99: (?P<p99_ms>[\d.]+) ms"];
    let phases = ["--burst", "sh -c 'printf f > {tmp}/fifo; sleep 0.1'", "--idle", "0.1s,50ms"];
    let managers = ["-m", &dying, "-m", "knuth", "-m", "glibc,top_pad=64K", "-m", "glibc,arenas=1"];
    let words = |phases: &[&str]| {
        let all: [&[&str]; 4] = [&["choose", "-n", "2", "--json", &json], &managers, &server, phases];
        fixture.heaptoll(&all.concat())
    };
    assert!(words(&phases).exits(2).err.contains("50ms"), "no time of this form");
    let phases =
        [&phases[..3], &["0.1s,0.05s", "--prefer", "idle", "--p99", "5ms", "--soak", "0.5s"]].concat();
    let output = words(&phases).exits(0);
    let output = output.shows(&["after 0.1 s", "died: was killed by signal 6 while it was loaded"]);
    let figures = read_json(&json);
    let rows = figures["candidates"].as_array().expect("rows");
    let dead = rows.iter().find(|row| row["stack"] == dying.as_str()).expect("its row");
    assert!(dead["why_out"].as_str().is_some_and(|why| why.starts_with("died: ")), "{dead}");
    for finalist in figures["finalists"].as_array().expect("finalists") {
        assert_eq!(finalist["served"]["p99_ms"], 3.5);
        let idle = finalist["served"]["idle"].as_array().expect("memory");
        let after: Vec<f64> = idle.iter().filter_map(|memory| memory["after_s"].as_f64()).collect();
        assert_eq!(after, [0.0, 0.05, 0.1], "{finalist}");
        assert!(idle.iter().all(|memory| memory["bytes"].as_f64() > Some(0.0)), "{finalist}");
    }
    let soak = figures["soak"].as_array().expect("a soak");
    assert_eq!(soak.len(), 3, "the finalists and the default");
    assert!(soak.iter().all(|server| server["loads"].as_u64() > Some(0)), "{soak:?}");
    output.shows(&["Soak", "Soak it longer"]);
    let none = words(&["--p99", "1ms"]).exits(2);
    assert!(none.err.contains("knuth: its p99 latency exceeds 1 ms"), "{}", none.err);
}

#[test]
fn what_only_servers_have_is_refused_of_others() {
    let fixture = Fixture::new();
    let refused = |words: &[&str], why: &str| {
        let output = fixture.heaptoll(&[&["choose"], words].concat()).exits(2);
        assert!(output.err.contains(why), "{words:?}: {}", output.err);
    };
    refused(&["--idle", "1s", "--", "/bin/true"], "`left MiB` of `heaptoll run`");
    refused(&["--prefer", "p99", "--", "/bin/true"], "are for servers");
    refused(&["--burst", "true", "--", "/bin/true"], "--idle");
    let server = ["--serve", "sleep 9", "--load", "true", "--ready", "x"];
    refused(&[&["--p99", "5ms"], &server[..]].concat(), "the 99th percentile is unknown");
    refused(&[&["--prefer", "idle"], &server[..]].concat(), "--idle 1s,10s,60s");
    refused(&[&["--p99", "5"], &server[..]].concat(), "5ms");
}

#[test]
fn choices_that_make_no_sense_are_refused() {
    let fixture = Fixture::new();
    let refused = |words: &[&str], why: &str| {
        let output = fixture.heaptoll(words);
        assert_eq!(output.code, Some(2), "{words:?}: {}", output.out);
        assert!(output.err.contains(why), "{words:?}: {}", output.err);
    };
    refused(&["choose"], "nothing to run");
    refused(&["choose", "-m", "glibc", "--", "/bin/true"], "nothing to choose from but glibc");
    refused(&["choose", "-m", "nowhere", "--", "/bin/true"], "nowhere");
    refused(&["choose", "-m", "glibc,arenas=0", "--", "/bin/true"], "arenas");
    refused(&["choose", "--settings", "--", "/bin/true"], "--manager");
}
