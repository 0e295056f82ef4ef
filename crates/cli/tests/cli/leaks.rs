//! `heaptoll leaks`: kinds against memcheck's, planted leaks, gates, and traces that do not show leaks.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::fixture::{Fixture, read_json};

/// Each case is a function whose stack is cleared when it has returned.
const CASES: &str = r#"
    #define _GNU_SOURCE
    #include <malloc.h>
    #include <pthread.h>
    #include <semaphore.h>
    #include <sys/mman.h>
    #include <unistd.h>
    typedef struct node { struct node *volatile next; struct node *volatile other; } node;
    #define CASE __attribute__((noinline)) static void
    static void *volatile kept, *volatile start, *volatile inside, *volatile end, *volatile aligned, *volatile resized;
    static struct { char c; void *volatile p; } __attribute__((packed)) odd;
    static __thread void *volatile of_thread;
    static sem_t ready, never;

    CASE clear(void) { volatile char over[16384]; for (int at = 0; at < 16384; at++) over[at] = 0; }
    CASE case_lost(void) { malloc(1001); }
    CASE case_lost_often(void) { for (int i = 0; i < 7; i++) malloc(24); }
    CASE case_nothing(void) { malloc(0); }
    CASE case_zeroed(void) { calloc(3, 11); }
    CASE case_kept(void) { kept = malloc(53); }
    CASE case_chain(void) { node *a = malloc(40), *b = malloc(56), *c = malloc(72); a->next = b; b->next = c; }
    CASE case_chain_backwards(void) { node *c = malloc(41), *b = malloc(57), *a = malloc(73); a->next = b; b->next = c; }
    CASE case_chain_inside(void) { node *a = malloc(40), *b = malloc(90); a->next = (node *)((char *)b + 16); }
    CASE case_tree(void) { node *a = malloc(32), *b = malloc(33), *c = malloc(34), *d = malloc(35);
        a->next = b; a->other = c; b->next = d; c->next = d; }
    CASE case_ring(void) { node *a = malloc(48), *b = malloc(64), *c = malloc(80); a->next = b; b->next = c; c->next = a; }
    CASE case_ring_led_to(void) { node *a = malloc(48), *b = malloc(64), *c = malloc(80);
        a->next = b; b->next = a; c->next = a; }
    CASE case_itself(void) { node *a = malloc(96); a->next = a; }
    CASE case_start(void) { node *a = malloc(40), *b = malloc(104); a->next = b; start = a; }
    CASE case_start_inside(void) { node *a = malloc(40), *b = malloc(105), *c = malloc(64);
        a->next = (node *)((char *)b + 8); b->next = c; a->other = start; start = a; }
    CASE case_inside(void) { node *a = malloc(200), *b = malloc(120); a->next = b; inside = (char *)a + 16; }
    CASE case_end(void) { end = (char *)malloc(136) + 136; }
    CASE case_odd(void) { odd.p = malloc(152); }
    CASE case_freed(void) { node *a = malloc(500); a[20].next = malloc(168); free(a); }
    CASE case_mapped(void) { void **p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        p[7] = malloc(184); }
    CASE case_unmapped(void) { void **p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        p[7] = malloc(185); munmap(p, 4096); }
    CASE case_own(void) { of_thread = malloc(216); }
    CASE case_aligned(void) { void *p; posix_memalign(&p, 256, 1000); aligned = aligned_alloc(64, 640); }
    CASE case_resized(void) { void *p = realloc(malloc(10), 5000); kept = (void *)1; (void)p; }
    CASE case_resized_kept(void) { resized = realloc(malloc(11), 6000); }
    CASE case_large(void) { malloc(160 << 10); }
    CASE case_of_thread(void) { of_thread = malloc(217); }
    CASE case_on_stack(void) { void *volatile p = malloc(232); sem_post(&ready); sem_wait(&never); (void)p; }
    static void *ends(void *unused) { case_of_thread(); return 0; }
    static void *stays(void *unused) { case_on_stack(); return 0; }
    CASE exits(void) { pthread_t thread; pthread_create(&thread, 0, ends, 0); pthread_join(thread, 0); }
    CASE waits(void) { pthread_t thread; pthread_create(&thread, 0, stays, 0); sem_wait(&ready); }
    __attribute__((noinline)) static void *case_in_register(void) { return malloc(248); }

    int main(void) {
        void (*cases[])(void) = {
            case_lost, case_lost_often, case_nothing, case_zeroed, case_kept, case_chain, case_chain_backwards,
            case_chain_inside, case_tree, case_ring, case_ring_led_to, case_itself, case_start, case_start_inside,
            case_inside, case_end, case_odd, case_freed, case_mapped, case_unmapped, case_own, case_aligned,
            case_resized, case_resized_kept, case_large, exits, waits };
        for (unsigned at = 0; at < sizeof cases / sizeof *cases; at++) { cases[at](); clear(); }
        void *only = case_in_register();
        __asm__ volatile("mov %0, %%r12\n xor %%eax, %%eax\n call *%1\n xor %%edi, %%edi\n mov $231, %%eax\n syscall"
            : : "r"(only), "r"(clear) : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "memory");
        return 0;
    }
"#;

/// Objects and bytes by case and kind.
pub type Kinds = BTreeMap<(String, &'static str), (u64, u64)>;

const KINDS: [(&str, &str); 4] = [
    ("definite", "definitely lost"),
    ("indirect", "indirectly lost"),
    ("possible", "possibly lost"),
    ("reachable", "still reachable"),
];

/// What memcheck states of a program, by case and in all. Its guesses about pointers into C++ objects need the content of
/// blocks.
pub fn of_memcheck(program: &str) -> (Kinds, BTreeMap<&'static str, (u64, u64)>) {
    let options = [
        "--leak-check=full",
        "--show-leak-kinds=all",
        "--leak-check-heuristics=none",
        "--run-libc-freeres=no",
        "--leak-resolution=high",
    ];
    let output = Command::new("valgrind").args(options).arg(program).output().expect("valgrind runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let number = |text: &str| text.replace(',', "").parse::<u64>().expect("a number");
    let (mut found, mut sums, mut record) = (Kinds::new(), BTreeMap::new(), None);
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if line.contains("in loss record") {
            let kind = KINDS.iter().find(|(_, words)| line.contains(words)).expect("a kind").0;
            let direct = words.iter().position(|word| *word == "direct,");
            let bytes = direct.map_or(words[1], |at| words[at - 1].trim_start_matches('('));
            let blocks = words.iter().position(|word| *word == "blocks").expect("blocks");
            record = Some((kind, number(words[blocks - 1]), number(bytes)));
        } else if let Some(function) = words.iter().find(|word| word.starts_with("case_"))
            && let Some((kind, blocks, bytes)) = record.take()
        {
            let sum = found.entry(((*function).to_owned(), kind)).or_default();
            *sum = (sum.0 + blocks, sum.1 + bytes);
        } else if let Some((kind, words_of)) =
            KINDS.iter().find(|(_, words)| line.contains(&format!("{words}:")))
        {
            let rest = line.split(words_of).nth(1).expect("its sums");
            let numbers: Vec<u64> = rest
                .split_whitespace()
                .filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
                .map(number)
                .collect();
            sums.insert(*kind, (numbers[1], numbers[0]));
        }
    }
    (found, sums)
}

pub fn of_heaptoll(figures: &Value) -> Kinds {
    let mut found = Kinds::new();
    for row in figures["rows"].as_array().expect("rows") {
        let name = row["name"].as_str().expect("a name");
        let function = name.split(' ').next().unwrap_or(name);
        for (kind, _) in KINDS {
            let of = |what: &str| row["kinds"][kind][what].as_u64().expect("a number");
            if function.starts_with("case_") && of("objects") > 0 {
                let sum = found.entry((function.to_owned(), kind)).or_default();
                *sum = (sum.0 + of("objects"), sum.1 + of("bytes"));
            }
        }
    }
    found
}

#[test]
fn kinds_are_those_of_memcheck_to_the_byte() {
    let fixture = Fixture::new();
    let (program, json) = (fixture.program("cases", CASES), fixture.at("a.json"));
    fixture.heaptoll(&["leaks", "--json", &json, "--frames", "1", "--", &program]).exits(0);
    let (memcheck, sums) = of_memcheck(&program);
    let figures = read_json(&json);
    let ours = of_heaptoll(&figures);
    assert!(memcheck.len() > 30, "{memcheck:?}");
    assert_eq!(ours, memcheck);
    // With what the C library allocates for threads.
    for (kind, _) in KINDS {
        let kept = figures["kept"].as_array().expect("kept").iter();
        let of = |what: &str| {
            let all = kept.clone().map(|one| &one["kinds"]).chain([&figures["kinds"]]);
            all.map(|kinds| kinds[kind][what].as_u64().expect("a number")).sum::<u64>()
        };
        assert_eq!(sums.get(kind), Some(&(of("objects"), of("bytes"))), "{kind}");
    }
}

/// Four hundred call sites: one loses a block in each round. Others keep what they have, replace it, or rise at
/// the start only.
fn many_sites(leaking: usize) -> String {
    let mut text = "#include <unistd.h>\nstatic void *volatile all[400];\n".to_owned();
    for site in 0..400 {
        let bytes = 16 + site % 200;
        let body = match site {
            _ if site == leaking => format!("*(char *volatile *)&all[{site}] = malloc(300);"),
            _ if site % 3 == 0 => format!("if (!all[{site}]) all[{site}] = malloc({bytes});"),
            _ if site % 3 == 1 => format!("free(all[{site}]); all[{site}] = malloc({bytes});"),
            _ => format!("free(malloc({bytes}));"),
        };
        text.push_str(&format!("__attribute__((noinline)) static void site_{site}(void) {{ {body} }}\n"));
    }
    text.push_str("int main(void) { for (int round = 0; round < 30; round++) { usleep(40000);\n");
    (0..400).for_each(|site| text.push_str(&format!("site_{site}();\n")));
    text + "} return 0; }"
}

#[test]
fn a_planted_leak_among_four_hundred_sites_is_first_in_the_list() {
    let fixture = Fixture::new();
    let (program, trace) = (fixture.program("many", &many_sites(234)), fixture.at("a.graph"));
    let (json, page) = (fixture.at("a.json"), fixture.at("a.html"));
    let leaks = ["leaks", "-o", &trace, "--json", &json, "--html", &page, "--", &program];
    let shown = fixture.heaptoll(&leaks).exits(0);
    // The last block is reachable.
    shown.shows(&["site_234 lost 8.50 KiB in 29 objects: definitely.", "Growing over the whole run"]);
    let figures = read_json(&json);
    assert_eq!(figures["kinds"]["definite"]["objects"], 29, "{:#}", figures["kinds"]);
    let first = |list: &str| figures[list][0]["name"].as_str().expect("a name").to_owned();
    assert!(first("rows").starts_with("site_234 "), "{}", first("rows"));
    assert!(first("growing").starts_with("site_234 "), "{}", first("growing"));
    assert_eq!(figures["growing"].as_array().map(Vec::len), Some(1));
    assert!(std::fs::read_to_string(&page).expect("a page").contains("site_234"));
    // As a gate, of the trace that was kept.
    fixture
        .heaptoll(&["leaks", &trace, "--fail-on", "definite"])
        .exits(1)
        .shows(&["site_234"])
        .complains(&["status 1 by --fail-on: definite"]);
    fixture.heaptoll(&["leaks", &trace, "--fail-on", "possible"]).exits(0);
    let known = fixture.at("known.txt");
    std::fs::write(&known, "# known\nfunction site_23*\n").expect("writes");
    let gate = ["leaks", &trace, "--fail-on", "definite,growing", "--suppress", &known];
    let suppressed = fixture.heaptoll(&gate).exits(0);
    suppressed.shows(&["Nothing is lost", "suppressed"]);
    std::fs::write(&known, "leak:site_1\n").expect("writes");
    fixture.heaptoll(&gate).exits(2).complains(&["line 1", "leak:site_1", "function PATTERN"]);
}

#[test]
fn a_plain_trace_shows_what_was_never_freed_and_what_grows_and_fails_no_gate_on_kinds() {
    let source = r#"
        #include <unistd.h>
        struct node { struct node *next; char rest[92]; } *volatile list;
        __attribute__((noinline)) static void append(void) {
            struct node *one = malloc(sizeof *one); one->next = list; list = one; }
        __attribute__((noinline)) static void start(void) { for (int i = 0; i < 500; i++) malloc(400); }
        int main(void) {
            start();
            for (int i = 0; i < 5000; i++) { if (i % 100 == 0) usleep(24000); append(); free(malloc(200)); }
            return 0;
        }
    "#;
    let fixture = Fixture::new();
    let (program, plain, bare) =
        (fixture.program("list", source), fixture.at("a.heaptoll"), fixture.at("b.heaptoll"));
    fixture.heaptoll(&["record", "--sites", "-o", &plain, "--", &program]).exits(0);
    let json = fixture.at("a.json");
    let shown = fixture.heaptoll(&["leaks", &plain, "--json", &json]).exits(0);
    shown.shows(&["append grows over the whole run: by ", "no pointers", "Never freed", "start"]);
    let figures = read_json(&json);
    assert_eq!(figures["growing"].as_array().map(Vec::len), Some(1), "{:#}", figures["growing"]);
    assert_eq!(figures["kinds"]["unjudged"]["objects"], 5500);
    fixture.heaptoll(&["leaks", &plain, "--fail-on", "definite"]).exits(2).complains(&["no pointers"]);
    fixture.heaptoll(&["leaks", &plain, "--fail-on", "growing"]).exits(1);
    // Before, a gate over a run that was too short to show growth passed.
    let few = fixture.program("few", "int main(void) { return malloc(100) == malloc(8); }");
    let short = fixture.at("short.heaptoll");
    fixture.heaptoll(&["record", "--sites", "-o", &short, "--", &few]).exits(0);
    fixture
        .heaptoll(&["leaks", &short, "--fail-on", "growing"])
        .exits(3)
        .complains(&["not decided", "too short"]);
    // And so did one over a trace in which nothing was recorded.
    let (nothing, empty) = (fixture.program("nothing", "int main(void) { return 0; }"), fixture.at("empty"));
    fixture.heaptoll(&["record", "-o", &empty, "--", &nothing]).exits(1);
    let judged = fixture.heaptoll(&["leaks", &empty, "--fail-on", "never-freed"]);
    judged.exits(3).complains(&["not decided", "has no objects"]);
    fixture.heaptoll(&["record", "-o", &bare, "--", &program]).exits(0);
    fixture.heaptoll(&["leaks", &bare]).exits(0).shows(&["were never freed", "record with --sites"]);
    fixture.heaptoll(&["leaks", &bare, "--fail-on", "growing"]).exits(2).complains(&["no call stacks"]);
    fixture.heaptoll(&["leaks", &bare, "--fail-on", "never-freed"]).exits(1);
}

/// Before, what destructors free was gone when growth was judged: a clean end hid what `_exit` showed.
#[test]
fn what_destructors_free_grows_and_is_live_when_exit_begins() {
    let fixture = Fixture::new();
    let source = r#"
        #include <unistd.h>
        static struct cell { struct cell *next; char rest[192]; } *all;
        __attribute__((destructor)) static void drop(void) {
            while (all) { void *next = all->next; free(all); all = next; }
        }
        int main(int count, char **ways) {
            for (int i = 0; i < 3000; i++) {
                if (i % 100 == 0) usleep(40000);
                free(malloc(300));
                struct cell *one = malloc(sizeof *one);
                one->next = all;
                all = one;
            }
            if (count > 1) _exit(0);
            return 0;
        }"#;
    let program = fixture.program("cache", source);
    let (trace, json) = (fixture.at("cache.heaptoll"), fixture.at("cache.json"));
    let judge = |leaks: &[&str], freed: u64| {
        let arguments = [&["leaks", "--fail-on", "growing", "--json", &json], leaks].concat();
        fixture.heaptoll(&arguments).exits(1).shows(&["main", "grows over the whole run"]);
        let figures = read_json(&json);
        assert_eq!(figures["growing"][0]["at_end"]["objects"], 3000);
        assert_eq!(figures["kinds"]["freed_after_exit"]["objects"], freed);
        figures
    };
    fixture.heaptoll(&["record", "--sites", "-f", "-o", &trace, "--", &program, "now"]).exits(0);
    judge(&[&trace], 0);
    fixture.heaptoll(&["record", "--sites", "-f", "-o", &trace, "--", &program]).exits(0);
    judge(&[&trace], 3000);
    fixture.heaptoll(&["leaks", "--fail-on", "never-freed", &trace]).exits(0).shows(&["freed after exit"]);
    fixture.heaptoll(&["trace", "stat", &trace]).exits(0).shows(&["when exit begins"]);
    let kinds = &judge(&["--", &program], 3000)["kinds"];
    assert_eq!((&kinds["reachable"]["objects"], &kinds["definite"]["objects"]), (&3000.into(), &0.into()));
    assert!(kinds["idle"]["objects"].as_u64().is_some_and(|idle| idle > 1000), "{kinds:#}");
}

#[test]
fn a_clean_program_that_starts_another_passes_the_gate() {
    let source = "#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
        int main(void) { free(malloc(100)); int child = fork();\
        if (!child) { execl(\"/bin/true\", \"true\", (char *)0); _exit(1); } waitpid(child, 0, 0); return 0; }";
    let fixture = Fixture::new();
    let program = fixture.program("starter", source);
    fixture.heaptoll(&["leaks", "--fail-on", "definite", "--", &program]).exits(0);
}

#[test]
fn a_stripped_program_that_crashes_and_a_damaged_trace_have_what_is_there() {
    let source = "int main(void) { for (int i = 0; i < 40; i++) *(char *volatile *)&(char *){0} = malloc(1000); abort(); }";
    let fixture = Fixture::new();
    let (program, graph) = (fixture.program("stripped", source), fixture.at("a.graph"));
    assert!(Command::new("strip").arg(&program).status().expect("strip runs").success());
    let crashed = fixture.heaptoll(&["leaks", "-o", &graph, "--", &program]).exits(1);
    crashed.shows(&["stripped+0x", "39.1 KiB in 40 objects"]).complains(&["signal 6"]);
    let bytes = std::fs::read(&graph).expect("the trace");
    std::fs::write(fixture.path("cut.graph"), &bytes[..bytes.len() - 40]).expect("writes");
    fixture.heaptoll(&["leaks", &fixture.at("cut.graph")]).exits(1).shows(&["cut off"]);
    std::fs::write(fixture.path("head.graph"), &bytes[..600]).expect("writes");
    let head = fixture.at("head.graph");
    fixture.heaptoll(&["leaks", &head]).exits(1).shows(&["no root point is complete"]);
    fixture
        .heaptoll(&["leaks", &head, "--fail-on", "definite"])
        .exits(3)
        .complains(&["no complete root point"]);
    // Before, a gate over a damaged trace without a leak in what was left passed.
    fixture.heaptoll(&["leaks", &head, "--fail-on", "never-freed"]).exits(3).complains(&["is incomplete"]);
    let growing = fixture.heaptoll(&["leaks", &head, "--fail-on", "growing"]);
    growing.exits(3).complains(&["not decided", "too short ("]);
    fixture.heaptoll(&["leaks", &program]).exits(2).complains(&["heaptoll leaks -- ", "stripped"]);
    fixture.heaptoll(&["leaks"]).exits(2).complains(&["TRACE"]);
}

/// Before, only what was lost decided which process image was shown, and no table had what was reachable.
#[test]
fn of_several_process_images_the_one_that_lost_most_or_that_is_named_is_shown() {
    let fixture = Fixture::new();
    let loses = "int main(void) { for (int i = 0; i < 3; i++) *(char *volatile *)&(char *){0} = malloc(7000); return 0; }";
    let holds = "static char *volatile held; int main(void) { held = malloc(9000); return 0; }";
    let programs = [fixture.program("loses", loses), fixture.program("holds", holds)];
    let script = format!("{}; {}; exit 0", programs[0], programs[1]);
    let trace = fixture.at("t.graph");
    let shown = fixture
        .heaptoll(&["leaks", "--fail-on", "definite", "-o", &trace, "--", "/bin/sh", "-c", &script])
        .exits(1);
    let shown = shown.shows(&["main lost", "lost 20.5 KiB in 3 objects", "Process images", "8.79 KiB"]);
    shown.complains(&["processes, loses (process "]);
    let named =
        |process: &str| fixture.heaptoll(&["leaks", "--fail-on", "definite", "--process", process, &trace]);
    named("holds").exits(0).shows(&["Reachable at the end", "8.79 KiB"]);
    named("loses").exits(1);
    named("other").exits(2).complains(&["no process is called other; there are: ", "holds (process "]);
}
