//! `heaptoll leaks`: whose memory a block is, and whose a stack. Mappings that touch stacks, and the C library's own blocks.

use serde_json::Value;

use crate::fixture::{Fixture, read_json};
use crate::leaks::{of_heaptoll, of_memcheck};

/// Each case leaves its only pointer in a place that the tracer once took for a dead stack or for the part below a stack
/// pointer: next to a stack in one mapping, in a stack that shares its mapping with others, in the descriptor of a thread
/// that no other has joined.
const NEXT_TO_STACKS: &str = r#"
    #define _GNU_SOURCE
    #include <pthread.h>
    #include <semaphore.h>
    #include <sys/mman.h>
    #include <ucontext.h>
    #include <unistd.h>
    #define CASE __attribute__((noinline)) static void
    static sem_t ready, never;
    static void *volatile *mapping;
    static ucontext_t here, in_data, in_frame, ends_in;
    static char stack[65536];
    static volatile int done;

    CASE clear(void) { volatile char over[16384]; for (int at = 0; at < 16384; at++) over[at] = 0; }
    CASE case_mapping(void) { for (int at = 0; at < 32; at++) mapping[5 * at] = malloc(1000); }
    CASE case_lost(void) { malloc(1001); }
    CASE case_on_stack(void) { void *volatile p = malloc(301); sem_post(&ready); sem_wait(&never); (void)p; }
    CASE case_in_data(void) { void *volatile p = malloc(302); swapcontext(&in_data, &here); (void)p; }
    CASE case_in_frame(void) { void *volatile p = malloc(303); swapcontext(&in_frame, &here); (void)p; }
    CASE case_last(void) { void *volatile p = malloc(305); _exit(p == 0); }
    static void *case_result(void *unused) { done = 1; return malloc(304); }
    static void *ends(void *unused) { return 0; }
    static void *stays(void *unused) { case_on_stack(); return 0; }

    CASE start(pthread_attr_t *attributes, int stays_alive) {
        pthread_t thread;
        pthread_create(&thread, attributes, stays_alive ? stays : ends, 0);
        if (stays_alive) sem_wait(&ready); else pthread_join(thread, 0);
    }
    CASE slab(void) {
        char *all = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        for (int at = 0; at < 4; at++) {
            pthread_attr_t own;
            pthread_attr_init(&own);
            pthread_attr_setstack(&own, all + (at << 18), 1 << 18);
            start(&own, at != 2);
        }
    }
    CASE without_guard(void) {
        pthread_attr_t own;
        pthread_attr_init(&own);
        pthread_attr_setguardsize(&own, 0);
        for (int at = 0; at < 4; at++) start(&own, at != 2);
    }
    CASE coroutine(ucontext_t *one, char *own, void (*code)(void)) {
        getcontext(one);
        one->uc_stack.ss_sp = own;
        one->uc_stack.ss_size = sizeof stack;
        makecontext(one, code, 0);
        swapcontext(&here, one);
    }
    int main(void) {
        char own[sizeof stack];
        pthread_t unjoined;
        mapping = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        start(0, 0);
        case_mapping(); clear();
        case_lost(); clear();
        slab(); clear();
        without_guard(); clear();
        coroutine(&in_data, stack, case_in_data); clear();
        coroutine(&in_frame, own, case_in_frame); clear();
        pthread_create(&unjoined, 0, case_result, 0);
        while (!done) usleep(1000);
        usleep(50000);
        coroutine(&ends_in, mapping + 65536, case_last);
    }
"#;

/// Correct programs; the C library allocates for itself in each.
const CORRECT: [(&str, &str); 20] = [
    (
        "threads",
        "pthread_t t[4]; for (int i = 0; i < 4; i++) pthread_create(t + i, 0, nothing, 0); for (int i = 0; i < 4; i++) pthread_join(t[i], 0);",
    ),
    (
        "detached",
        "pthread_t t; for (int i = 0; i < 4; i++) { pthread_create(&t, 0, nothing, 0); pthread_detach(t); } usleep(50000);",
    ),
    ("still running", "pthread_t t; pthread_create(&t, 0, waits, 0); usleep(50000);"),
    ("canceled", "pthread_t t; pthread_create(&t, 0, waits, 0); pthread_cancel(t); pthread_join(t, 0);"),
    (
        "large stack",
        "pthread_t t; pthread_attr_t a; pthread_attr_init(&a); pthread_attr_setstacksize(&a, 64 << 20); pthread_create(&t, &a, nothing, 0); pthread_join(t, 0);",
    ),
    ("output", "puts(\"ok\"); fprintf(stderr, \"%d %f\\n\", 7, 1.5); wprintf(L\"\");"),
    ("input", "getchar(); char line[100]; if (fgets(line, 100, stdin)) return 0;"),
    (
        "file",
        "FILE *f = fopen(\"/proc/self/maps\", \"r\"); char line[100]; while (fgets(line, 100, f)); fclose(f);",
    ),
    (
        "locale",
        "setlocale(LC_ALL, \"C.UTF-8\"); setlocale(LC_ALL, \"\"); wchar_t w[9]; mbstowcs(w, \"abc\", 9);",
    ),
    ("own locale", "locale_t l = newlocale(LC_ALL_MASK, \"C.UTF-8\", 0); freelocale(l);"),
    ("messages", "bindtextdomain(\"x\", \"/tmp\"); textdomain(\"x\"); puts(gettext(\"a\"));"),
    (
        "environment",
        "for (int i = 0; i < 9; i++) { char n[9]; sprintf(n, \"V%d\", i); setenv(n, \"value\", 1); } putenv(\"A=b\");",
    ),
    (
        "time",
        "setenv(\"TZ\", \"Europe/Berlin\", 1); tzset(); time_t t = 0; printf(\"%d\\n\", localtime(&t)->tm_hour); mktime(localtime(&t));",
    ),
    ("exit handlers", "for (int i = 0; i < 100; i++) atexit(handler);"),
    (
        "thread keys",
        "pthread_key_t k; for (int i = 0; i < 100; i++) { pthread_key_create(&k, 0); pthread_setspecific(k, &k); }",
    ),
    ("errors", "puts(strerror(99999)); puts(strsignal(300)); dlopen(\"/none\", 2); puts(dlerror());"),
    (
        "library",
        "void *l = dlopen(\"libm.so.6\", RTLD_NOW); puts(dlsym(l, \"sin\") ? \"a\" : \"b\"); dlclose(l);",
    ),
    (
        "users",
        "struct passwd *p = getpwuid(0); puts(p ? p->pw_name : \"\"); getgrgid(0); getservbyname(\"http\", \"tcp\");",
    ),
    ("addresses", "struct addrinfo *a = 0; if (!getaddrinfo(\"127.0.0.1\", \"80\", 0, &a)) freeaddrinfo(a);"),
    ("characters", "iconv_t c = iconv_open(\"UTF-16\", \"UTF-8\"); iconv_close(c); fork();"),
];
const PLANTED: [(&str, &str); 8] = [
    ("strdup", "strdup(\"a\");"),
    ("fopen", "fopen(\"/dev/null\", \"r\");"),
    ("getaddrinfo", "struct addrinfo *a = 0; getaddrinfo(\"127.0.0.1\", \"80\", 0, &a);"),
    ("opendir", "opendir(\"/\");"),
    ("asprintf", "char *text; if (asprintf(&text, \"%d\", 7) < 0) abort();"),
    (
        "getline",
        "char *line = 0; size_t length = 0; FILE *f = fopen(\"/proc/self/maps\", \"r\"); if (getline(&line, &length, f) < 0) abort(); fclose(f);",
    ),
    ("newlocale", "newlocale(LC_ALL_MASK, \"C.UTF-8\", 0);"),
    ("open_memstream", "char *text; size_t length; fclose(open_memstream(&text, &length));"),
];

/// A program in which a function does this, and the stack is cleared after it.
fn program_of(body: &str) -> String {
    format!(
        r#"
        #define _GNU_SOURCE
        #include <dirent.h>
        #include <dlfcn.h>
        #include <grp.h>
        #include <iconv.h>
        #include <libintl.h>
        #include <locale.h>
        #include <netdb.h>
        #include <pthread.h>
        #include <pwd.h>
        #include <stdio.h>
        #include <string.h>
        #include <time.h>
        #include <unistd.h>
        #include <wchar.h>
        void *nothing(void *given) {{ return given; }}
        void *waits(void *given) {{ pause(); return given; }}
        void handler(void) {{}}
        __attribute__((noinline)) int body(void) {{ {body} return 0; }}
        __attribute__((noinline)) void clear(void) {{ volatile char all[65536]; for (int i = 0; i < 65536; i++) all[i] = 0; }}
        int main(void) {{ body(); clear(); return 0; }}
        "#
    )
}

const ALL: [&str; 4] = ["leaks", "--fail-on", "definite,possible", "--"];

fn fails_no_gate(fixture: &Fixture, name: &str, body: &str) {
    let program = fixture.program(&name.replace(' ', "-"), &program_of(body));
    fixture.heaptoll(&[&ALL[..], &[&program]].concat()).exits(0).shows(&["What leaks in"]);
}

fn is_the_programs(fixture: &Fixture, name: &str, body: &str) {
    let program = fixture.program(&format!("leaks-{name}"), &program_of(body));
    // The list of open streams leads to one that `fopen` returned.
    fixture
        .heaptoll(&["leaks", "--fail-on", "never-freed", "--", &program])
        .exits(1)
        .shows(&["What leaks in"]);
}

/// Before, what lies next to the stack of a thread that has ended was called definitely lost, and what lies below the
/// pointer of one that lives.
#[test]
fn what_lies_next_to_a_stack_in_one_mapping_is_reachable() {
    let fixture = Fixture::new();
    let (program, json) = (fixture.program("stacks", NEXT_TO_STACKS), fixture.at("a.json"));
    fixture.heaptoll(&["leaks", "--json", &json, "--frames", "1", "--", &program]).exits(0);
    let ours = of_heaptoll(&read_json(&json));
    assert_eq!(ours.get(&("case_mapping".into(), "reachable")), Some(&(32, 32000)), "{ours:?}");
    assert_eq!(ours.get(&("case_lost".into(), "definite")), Some(&(1, 1001)), "{ours:?}");
    assert_eq!(ours, of_memcheck(&program).0);
}

/// Each thread has ended when its result is looked for; `case_open` is the one that can still be joined.
const RESULTS: &str = r#"
    #define _GNU_SOURCE
    #include <pthread.h>
    #include <unistd.h>
    static volatile int tids[5];
    #define RESULT(name, at) static void *case_##name(void *unused) { tids[at] = gettid(); return malloc(1401 + at); }
    RESULT(joined, 0) RESULT(detached, 1) RESULT(detached_later, 2) RESULT(made_detached, 3) RESULT(open, 4)
    static void ended(int at) {
        char path[64];
        while (!tids[at]) usleep(1000);
        sprintf(path, "/proc/self/task/%d", tids[at]);
        while (access(path, F_OK) == 0) usleep(1000);
    }
    int main(void) {
        pthread_t threads[5];
        pthread_attr_t detached;
        pthread_attr_init(&detached);
        pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
        void *(*all[5])(void *) = { case_joined, case_detached, case_detached_later, case_made_detached, case_open };
        for (int at = 0; at < 5; at++) pthread_create(&threads[at], at == 3 ? &detached : 0, all[at], 0);
        pthread_detach(threads[1]);
        for (int at = 1; at < 5; at++) ended(at);
        pthread_detach(threads[2]);
        pthread_join(threads[0], 0);
        return 0;
    }
"#;

/// Before, the result of a thread that was detached, or joined and dropped, was called reachable: always, and then where
/// roots were recorded after the thread's end and before the kernel's end of it. Each result is large enough for that.
#[test]
fn the_result_of_a_thread_is_lost_when_no_thread_can_take_it() {
    let fixture = Fixture::new();
    let (program, json) = (fixture.program("results", RESULTS), fixture.at("a.json"));
    fixture.heaptoll(&["leaks", "--json", &json, "--frames", "1", "--", &program]).exits(0);
    let ours = of_heaptoll(&read_json(&json));
    let kinds: Vec<(&str, &str)> = ours.keys().map(|(case, kind)| (case.as_str(), *kind)).collect();
    let lost = ["case_detached", "case_detached_later", "case_joined", "case_made_detached"];
    let expected = lost.map(|case| (case, "definite")).into_iter().chain([("case_open", "reachable")]);
    assert_eq!(kinds, expected.collect::<Vec<_>>());
}

/// The frame that started the coroutine lies below the coroutine's stack, and memcheck calls what it holds lost.
#[test]
fn a_frame_below_the_stack_of_a_coroutine_in_an_automatic_array_is_in_use() {
    let source = r#"
        #include <ucontext.h>
        #include <unistd.h>
        static ucontext_t here, waits, ends;
        static void *volatile out;
        __attribute__((noinline)) static void case_waits(void) {
            void *volatile p = malloc(401); swapcontext(&waits, &here); out = p; }
        __attribute__((noinline)) static void case_ends(void) { void *volatile p = malloc(402); _exit(p == 0); }
        static void start(ucontext_t *one, char *own, void (*code)(void)) {
            getcontext(one); one->uc_stack.ss_sp = own; one->uc_stack.ss_size = 65536;
            makecontext(one, code, 0); swapcontext(&here, one); }
        __attribute__((noinline)) static void case_starts(char *own) {
            void *volatile p = malloc(403); start(&waits, own, case_waits); start(&ends, own + 65536, case_ends); out = p; }
        int main(void) { char own[2 * 65536]; case_starts(own); return 0; }
    "#;
    let fixture = Fixture::new();
    let (program, json) = (fixture.program("coroutines", source), fixture.at("a.json"));
    fixture.heaptoll(&["leaks", "--json", &json, "--", &program]).exits(0);
    let kinds = &read_json(&json)["kinds"];
    assert_eq!(kinds["reachable"], serde_json::json!({"objects": 3, "bytes": 401 + 402 + 403}), "{kinds:#}");
}

/// Before, every program that had started a thread failed `--fail-on definite`.
#[test]
fn what_the_c_library_keeps_for_itself_is_named_and_fails_no_gate() {
    let fixture = Fixture::new();
    let several = [0, 2, 8, 11, 14].map(|at| format!("{{ {} }}", CORRECT[at].1)).concat();
    let (program, json) = (fixture.program("several", &program_of(&several)), fixture.at("a.json"));
    let gate = ["leaks", "--json", &json, "--fail-on", "definite,possible", "--", &program];
    fixture.heaptoll(&gate).exits(0).shows(&["Kept by the C library", "_dl_allocate_tls", "not leaks"]);
    let figures = read_json(&json);
    let callers: Vec<&str> =
        figures["kept"].as_array().expect("kept").iter().filter_map(|one| one["caller"].as_str()).collect();
    assert!(callers.contains(&"_dl_allocate_tls"), "{callers:?}");
    assert_eq!(figures["kinds"]["definite"], serde_json::json!({"objects": 0, "bytes": 0}));
    let (recorded, plain) = (fixture.at("a.heaptoll"), fixture.at("b.json"));
    fixture.heaptoll(&["record", "--sites", "-o", &recorded, "--", &program]).exits(0);
    fixture.heaptoll(&["leaks", "--json", &plain, &recorded]).exits(0).shows(&["_dl_allocate_tls"]);
    let unjudged = &read_json(&plain)["kinds"]["unjudged"]["objects"];
    assert_eq!(*unjudged, Value::from(0), "{:#}", read_json(&plain)["rows"]);
}

#[test]
fn what_the_c_library_returns_is_the_programs() {
    let fixture = Fixture::new();
    let several = PLANTED.map(|(_, body)| format!("{{ {body} }}")).concat();
    let (program, json) = (fixture.program("returned", &program_of(&several)), fixture.at("a.json"));
    fixture.heaptoll(&["leaks", "--json", &json, "--", &program]).exits(0);
    let definite = read_json(&json)["kinds"]["definite"]["objects"].as_u64().expect("a number");
    assert!(definite >= PLANTED.len() as u64 - 1, "{definite}");
}

#[test]
#[ignore = "slow: runs 28 programs under the tracer"]
fn each_correct_program_passes_and_each_planted_leak_fails() {
    let fixture = Fixture::new();
    CORRECT.iter().for_each(|(name, body)| fails_no_gate(&fixture, name, body));
    PLANTED.iter().for_each(|(name, body)| is_the_programs(&fixture, name, body));
}
