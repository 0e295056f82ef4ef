//! Programs with an allocator of their own: followed by symbol, compared with callgrind, refused where only half is seen.

use std::path::{Path, PathBuf};
use std::process::Command;

use heaptoll_callgrind::outermost::outermost;
use heaptoll_callgrind::profile;
use serde_json::Value;

use crate::fixture::{CommandOutput, Fixture, read_json};

/// An allocator of bumps with mimalloc's names, and a free list by size so that frees cost something.
const MI: &str = r#"
#define OWN __attribute__((noipa))
static char arena[32 << 20] __attribute__((aligned(4096)));
static size_t used;
static void *lists[64];
OWN static void *_mi_malloc_generic(size_t n) { char *p = arena + used + 16; *(size_t *)(p - 8) = n; used += (n + 31) & ~(size_t)15; return p; }
OWN static void *mi_malloc(size_t n) {
    n = (n + 15) & ~(size_t)15;
    void **list = n < 1024 ? &lists[n / 16] : NULL;
    if (list && *list) { void *p = *list; *list = *(void **)p; return p; }
    return _mi_malloc_generic(n);
}
OWN static void mi_free(void *p) { if (!p) return; size_t n = *(size_t *)((char *)p - 8); if (n >= 16 && n < 1024) { *(void **)p = lists[n / 16]; lists[n / 16] = p; } }
OWN static void *mi_realloc(void *p, size_t n) { void *q = mi_malloc(n); if (p) { memcpy(q, p, 16); mi_free(p); } return q; }
static void *blocks[512];
static void work(void) {
    unsigned dice = 1;
    for (int at = 0; at < 20000; at++) {
        dice = dice * 1664525 + 1013904223;
        void **block = &blocks[dice >> 23];
        if (dice % 5 == 0) *block = mi_realloc(*block, 16 + (dice >> 8) % 900);
        else { mi_free(*block); *block = mi_malloc(16 + (dice >> 8) % 900); }
    }
}
"#;

fn counted(fixture: &Fixture, options: &[&str], command: &[&str], status: i32) -> (Value, CommandOutput) {
    let file = fixture.at("counted.json");
    let arguments = [&["exact", "instructions", "--json", &file], options, &["--"], command].concat();
    let output = fixture.heaptoll(&arguments).exits(status);
    (if status == 2 { Value::Null } else { read_json(&file) }, output)
}

/// Calls and instructions of a routine of the first row.
fn routine(json: &Value, name: &str) -> (u64, u64) {
    let routines = json["programs"][0]["managers"][0]["figures"]["routines"].as_array().expect("routines");
    let Some(one) = routines.iter().find(|one| one["routine"] == name) else { return (0, 0) };
    let cost = one["cost"]["instructions"].as_u64().unwrap_or(0);
    (one["calls"].as_u64().unwrap_or(0), cost)
}

/// Calls and instructions of the outermost calls of each group of functions, by callgrind. A function is named by what
/// its symbol begins with, before a `'` of callgrind's.
fn callgrind(fixture: &Fixture, command: &[&str], groups: &[&[&str]]) -> Vec<(u64, u64)> {
    let out = fixture.path("callgrind.out");
    let words = profile::valgrind(&out);
    let mut run = Command::new(&words[0]);
    run.args(&words[1..]).args(command);
    let output = run.output().expect("valgrind runs: scripts/setup installs it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&out).expect("a profile");
    let member = |_: &str, function: &str| groups.iter().position(|names| names.contains(&function));
    outermost(&text, groups.len(), member)
        .iter()
        .map(|one| (one.entered.calls, one.entered.instructions))
        .collect()
}

/// Calls are the same; instructions within a hundredth, since how the C library copies depends on addresses, which are
/// others under callgrind.
fn close((calls, cost): (u64, u64), (their_calls, their_cost): (u64, u64), what: &str) {
    assert_eq!(calls, their_calls, "calls of {what}");
    assert!(
        cost > 0 && cost.abs_diff(their_cost) <= their_cost / 100,
        "{what}: {cost}, by callgrind {their_cost}"
    );
}

#[test]
fn a_program_with_mimalloc_is_counted_as_callgrind_counts_it_and_managers_are_refused_on_it() {
    let fixture = Fixture::new();
    let program =
        fixture.program("own", &format!("{MI} int main(void) {{ free(malloc(9)); work(); return 0; }}"));
    let (json, output) = counted(&fixture, &["-m", "kingsley"], &[&program], 1);
    output.complains(&["no manager can be preloaded", "mimalloc"]).shows(&["own (mimalloc)", "kingsley"]);
    assert_eq!(json["programs"][0]["managers"][0]["manager"], "own (mimalloc)");
    let refused = &json["programs"][0]["managers"][1];
    assert_eq!(refused["manager"], "kingsley");
    assert!(refused["problem"].to_string().contains("which replaces malloc"), "{refused:#}");
    let theirs = callgrind(
        &fixture,
        &[&program],
        &[&["mi_malloc"], &["mi_free"], &["mi_realloc"], &["malloc"], &["free"]],
    );
    let (malloc, free) = (routine(&json, "malloc"), routine(&json, "free"));
    // The C library's own call is of malloc, too, and in the same row.
    close((malloc.0, malloc.1), (theirs[0].0 + theirs[3].0, theirs[0].1 + theirs[3].1), "malloc");
    close((free.0, free.1), (theirs[1].0 + theirs[4].0, theirs[1].1 + theirs[4].1), "free");
    close(routine(&json, "realloc"), theirs[2], "realloc");
    assert!(malloc.0 > 10_000, "{malloc:?}");
}

#[test]
fn drag_and_locality_follow_it_too() {
    let fixture = Fixture::new();
    let program = fixture.program("own", &format!("{MI} int main(void) {{ work(); return 0; }}"));
    fixture.heaptoll(&["exact", "drag", "--", &program]).exits(0).shows(&["own (mimalloc)"]);
    let file = fixture.at("locality.json");
    fixture
        .heaptoll(&["exact", "locality", "--json", &file, "--", &program])
        .exits(0)
        .shows(&["own (mimalloc)"]);
}

#[test]
fn what_cannot_be_replaced_is_refused_by_run_and_record_with_what_can_be_had() {
    let fixture = Fixture::new();
    let fixed = fixture.static_program("fixed", "int main(void) { free(malloc(9)); return 0; }");
    let own = fixture.program("own", &format!("{MI} int main(void) {{ work(); return 0; }}"));
    for program in [&fixed, &own] {
        fixture
            .heaptoll(&["run", "-n", "1", "--", program])
            .exits(2)
            .complains(&["heaptoll exact instructions"]);
    }
    fixture
        .heaptoll(&["record", "-o", &fixture.at("t"), "--", &fixed])
        .exits(2)
        .complains(&["heaptoll exact instructions"]);
}

#[test]
fn half_of_the_calls_is_refused() {
    let fixture = Fixture::new();
    let body = |main: &str| format!("{MI} int main(void) {{ {main} return 0; }}");
    let inlined =
        fixture.program("inlined", &body("work(); for (int i = 0; i < 9; i++) _mi_malloc_generic(16);"));
    counted(&fixture, &[], &[&inlined], 2).1.complains(&["only routines of mimalloc call", "inlined"]);
    let unseen = "work(); for (int i = 0; i < 999; i++) { *(size_t *)(arena + (31 << 20) - 8) = 0; mi_free(arena + (31 << 20)); }";
    let unseen = fixture.program("unseen", &body(unseen));
    counted(&fixture, &[], &[&unseen], 2)
        .1
        .complains(&["999 calls of mimalloc", "a block of unknown origin"]);
    let never = fixture.program(
        "never",
        "__attribute__((noipa)) void *mi_malloc(size_t n) { static char a[1 << 20]; static size_t u; return a + (u += n); }
         int main(void) { for (int i = 0; i < 9000; i++) mi_malloc(16); return 0; }",
    );
    counted(&fixture, &[], &[&never], 2).1.complains(&["mi_malloc but no routine that frees blocks"]);
    let stripped = fixture.static_program("stripped", "int main(void) { free(malloc(9)); return 0; }");
    assert!(Command::new("strip").arg(&stripped).status().expect("there is strip").success());
    counted(&fixture, &[], &[&stripped], 2).1.complains(&["statically linked", "Was it stripped?"]);
}

/// A malloc of the program's own whose code is also inlined into main, as link-time optimisation does.
const HALF_INLINED: &str = r#"
#include <sys/mman.h>
#define OWN __attribute__((noipa))
#define INLINED static inline __attribute__((always_inline))
static char *at, *end;
static void *list, *empty;
INLINED void *take(size_t n) {
    if (!n) return &empty;
    if (list && n <= 40) { void *p = list; list = *(void **)p; return p; }
    if (at == end) end = (at = mmap(0, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) + (64 << 20);
    void *p = at;
    at += (n + 63) & ~(size_t)63;
    return p;
}
INLINED void give(void *p) { if (p && p != &empty) { *(void **)p = list; list = p; } }
OWN void *malloc(size_t n) { return take(n); }
OWN void free(void *p) { give(p); }
OWN void *calloc(size_t a, size_t b) { return memset(take(a * b), 0, a * b); }
OWN void *realloc(void *p, size_t n) { void *q = take(n); if (p) memcpy(q, p, n); return q; }
OWN char *own_strdup(const char *text) { return memcpy(take(strlen(text) + 1), text, strlen(text) + 1); }
char *strdup(const char *) __attribute__((alias("own_strdup")));
int main(int argc, char **argv) {
    for (int at = 0; at < 500; at++)
        switch (*argv[1]) {
        case 'f': give(malloc(40)); break;
        case 'm': free(take(40)); break;
        case 'b': give(take(40)); break;
        case 'c': free(strdup("text")); break;
        case 'e': malloc(0); break;
        case 'w': if (at < 20) free(malloc(40)); break;
        default: free(malloc(40));
        }
    if (*argv[1] == 'e') for (int at = 0; at < 500; at++) free(&empty);
    return 0;
}
"#;

/// Before, `free` had no cost, or all objects but one were missing, without a warning.
#[test]
fn half_of_the_calls_of_a_malloc_of_its_own_is_refused() {
    let fixture = Fixture::new();
    let program = fixture.program("half", HALF_INLINED);
    for (inlined, seen) in [
        ("free", "499 of 500 blocks that malloc gave in half were in use by its calls"),
        ("malloc", "500 calls of malloc in half use a block of unknown origin"),
        ("both", "all calls of malloc in half (0) request 0 B, and it took 64."),
    ] {
        counted(&fixture, &[], &[&program, inlined], 2).1.complains(&[seen, "Inlined or stripped"]);
    }
    let fixed = fixture.static_program("fixed", HALF_INLINED);
    // Before, all but the first were refused, too.
    for (program, whole, calls) in [
        (&program, "none", 500),
        (&program, "empty", 500),
        (&program, "within a reserved heap", 20),
        (&fixed, "copies", 500),
    ] {
        let (json, _) = counted(&fixture, &[], &[program, whole], 0);
        let found = routine(&json, "malloc").0;
        // A static program's C library allocates, too.
        assert!((calls..calls + 50).contains(&found), "{whole}: {found}");
    }
}

#[test]
fn an_allocator_that_a_program_contains_and_hardly_uses_leaves_managers_to_be_compared() {
    let fixture = Fixture::new();
    let main = "for (int i = 0; i < 500; i++) free(malloc(40)); mi_free(mi_malloc(16));";
    let program = fixture.program("both", &format!("{MI} int main(void) {{ {main} return 0; }}"));
    let (json, output) = counted(&fixture, &["-m", "kingsley"], &[&program], 0);
    output.shows(&["glibc", "kingsley"]);
    let managers = &json["programs"][0]["managers"];
    assert!(managers[0]["warnings"].to_string().contains("allocating calls go to mimalloc"), "{managers:#}");
    assert!(routine(&json, "malloc").0 >= 501);
}

#[test]
fn a_table_of_the_users_adds_an_allocator() {
    let fixture = Fixture::new();
    let source = MI.replace("mi_malloc(", "pool_take(").replace("mi_free(", "pool_give(");
    let source = source.replace("mi_realloc(", "pool_change(");
    let program = fixture.program("pool", &format!("{source} int main(void) {{ work(); return 0; }}"));
    let table = fixture.at("table.toml");
    let text = "[[family]]\nname = \"pool\"\nprefixes = [\"pool_\"]\nroutines = [\n{ symbol = \"take\", is = \"malloc\", \
        size = 0 },\n{ symbol = \"give\", is = \"free\", block = 0 },\n{ symbol = \"change\", is = \"realloc\", block = 0, \
        size = 1 }]\n";
    std::fs::write(&table, text).expect("writes");
    let (json, output) = counted(&fixture, &["--allocator-symbols", &table], &[&program], 0);
    output.shows(&["own (pool)"]);
    assert!(routine(&json, "malloc").0 > 10_000);
    std::fs::write(&table, text.replace("is = \"free\"", "is = \"gone\"")).expect("writes");
    counted(&fixture, &["--allocator-symbols", &table], &[&program], 2)
        .1
        .complains(&["gone", "not a routine of C"]);
}

/// Rust programs that are compiled once, in a folder of the build.
fn rust_program(name: &str, dependency: &str, allocator: &str, flags: &str, target: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("own").join(name);
    std::fs::create_dir_all(folder.join("src")).expect("a folder");
    let manifest = format!(
        "[package]\nname = \"own\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\n{dependency}\n[workspace]\n"
    );
    let source = format!(
        "{allocator}\nuse std::collections::BTreeMap;\nfn main() {{\n let mut words: BTreeMap<String, Vec<u64>> = \
         BTreeMap::new();\n let mut dice = 1u32;\n for at in 0..20000u64 {{\n dice = \
         dice.wrapping_mul(1664525).wrapping_add(1013904223);\n words.entry(format!(\"word{{}}\", dice % \
         997)).or_default().push(at);\n if dice % 7 == 0 {{ words.remove(&format!(\"word{{}}\", dice % 991)); }}\n }}\n let \
         zero = vec![0u8; 100_000];\n println!(\"{{}} {{}}\", words.len(), zero.len());\n}}\n"
    );
    std::fs::write(folder.join("Cargo.toml"), manifest).expect("writes");
    std::fs::write(folder.join("src/main.rs"), source).expect("writes");
    let mut cargo = Command::new(env!("CARGO"));
    // The tests may be built through clippy, whose lints are not for this program.
    cargo.env_remove("RUSTC_WORKSPACE_WRAPPER").env_remove("CLIPPY_ARGS");
    cargo.args(["build", "--release", "--manifest-path"]).arg(folder.join("Cargo.toml")).args(target);
    let made = cargo.env("CARGO_TARGET_DIR", folder.join("target")).env("RUSTFLAGS", flags).status();
    assert!(made.expect("cargo runs").success());
    let below = if target.is_empty() { "release".to_owned() } else { format!("{}/release", target[1]) };
    folder.join("target").join(below).join("own")
}

/// Compares sums of calls and instructions with callgrind's for these functions. They may differ by `off` ten thousandths.
fn agrees(fixture: &Fixture, binary: &Path, row: &str, theirs: &[&str], off: u64) {
    let program = binary.to_string_lossy().into_owned();
    let (json, _) = counted(fixture, &[], &[&program], 0);
    assert_eq!(json["programs"][0]["managers"][0]["manager"], row, "{json:#}");
    let sum = |all: &[(u64, u64)]| all.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let ours: Vec<_> = ALL.iter().map(|name| routine(&json, name)).collect();
    let theirs = callgrind(fixture, &[&program], &[theirs]);
    eprintln!("{row}: {ours:?}, by callgrind {theirs:?}");
    assert!(sum(&ours).0 > 20_000, "{ours:?}");
    // Allocators hash addresses and read clocks, which callgrind does not pin.
    let ((calls, cost), (their_calls, their_cost)) = (sum(&ours), sum(&theirs));
    assert!(calls.abs_diff(their_calls) <= 10, "{row}: {calls} calls, by callgrind {their_calls}");
    assert!(
        cost.abs_diff(their_cost) <= their_cost * off / 10_000,
        "{row}: {cost}, by callgrind {their_cost}"
    );
}

const ALL: [&str; 8] =
    ["malloc", "calloc", "realloc", "free", "memalign", "posix_memalign", "aligned_alloc", "reallocarray"];
const OF_C: [&str; 12] = [
    "malloc",
    "calloc",
    "realloc",
    "free",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    "reallocarray",
    "__libc_malloc",
    "__libc_free",
    "__libc_calloc",
    "__libc_realloc",
];

#[test]
#[ignore = "slow: compiles mimalloc and jemalloc"]
fn rust_programs_with_mimalloc_and_jemalloc_are_counted_as_callgrind_counts_them() {
    let fixture = Fixture::new();
    let mimalloc = rust_program(
        "mimalloc",
        "mimalloc = \"0.1\"",
        "#[global_allocator] static A: mimalloc::MiMalloc = mimalloc::MiMalloc;",
        "",
        &[],
    );
    let names = [
        "mi_malloc",
        "mi_malloc_aligned",
        "mi_zalloc_aligned",
        "mi_realloc_aligned",
        "mi_free",
        "mi_zalloc",
        "mi_realloc",
    ];
    agrees(&fixture, &mimalloc, "own (mimalloc)", &[&names[..], &OF_C].concat(), 10);
    let jemalloc = rust_program(
        "jemalloc",
        "tikv-jemallocator = \"0.6\"",
        "#[global_allocator] static A: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;",
        "",
        &[],
    );
    let names =
        ["_rjem_malloc", "_rjem_mallocx", "_rjem_calloc", "_rjem_realloc", "_rjem_rallocx", "_rjem_sdallocx"];
    agrees(&fixture, &jemalloc, "own (jemalloc)", &[&names[..], &OF_C].concat(), 10);
}

/// The heap is not the same under callgrind: Rust's start reads `/proc/self/maps`, which has other lines there, into a block
/// that grows.
#[test]
#[ignore = "slow: compiles three programs of Rust's"]
fn rust_programs_with_the_systems_allocator_are_mallocs() {
    let fixture = Fixture::new();
    for (name, flags) in [("legacy", ""), ("v0", "-C symbol-mangling-version=v0")] {
        let binary = rust_program(name, "", "", flags, &[]);
        agrees(&fixture, &binary, "glibc", &OF_C, 250);
    }
    let target = ["--target", "x86_64-unknown-linux-gnu"];
    let binary = rust_program("static", "", "", "-C target-feature=+crt-static", &target);
    agrees(&fixture, &binary, "own (malloc)", &OF_C, 250);
}

/// Nothing but Rust's own functions is there to be followed.
const BUMP: &str = "use std::alloc::{GlobalAlloc, Layout};
    use std::sync::atomic::{AtomicUsize, Ordering};
    struct Bump;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    static mut ARENA: [u8; 256 << 20] = [0; 256 << 20];
    // SAFETY: each block is a part of the arena that no other has.
    unsafe impl GlobalAlloc for Bump {
        #[inline(never)]
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            let size = layout.size() + layout.align();
            let at = NEXT.fetch_add(size, Ordering::Relaxed);
            if at + size > 256 << 20 { return std::ptr::null_mut(); }
            let start = (&raw mut ARENA as *mut u8).add(at);
            start.add(start.align_offset(layout.align()))
        }
        #[inline(never)]
        unsafe fn dealloc(&self, block: *mut u8, _: Layout) { std::hint::black_box(block); }
    }
    #[global_allocator] static A: Bump = Bump;";

/// In a crate of its own; in the program's, Rust inlines some of the functions.
#[test]
#[ignore = "slow: compiles programs of Rust's"]
fn a_rust_program_with_any_other_global_allocator_is_followed_by_rusts_own_functions() {
    let fixture = Fixture::new();
    let inlined = rust_program("inlined", "", BUMP, "", &[]);
    let (_, output) = counted(&fixture, &[], &[&inlined.to_string_lossy()], 2);
    output.complains(&["only routines of Rust's global allocator call"]);
    let folder = fixture.path("bump");
    std::fs::create_dir_all(folder.join("src")).expect("a folder");
    let manifest = "[package]\nname = \"bump\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    std::fs::write(folder.join("Cargo.toml"), manifest).expect("writes");
    std::fs::write(folder.join("src/lib.rs"), BUMP).expect("writes");
    let dependency = format!("bump = {{ path = {folder:?} }}");
    let binary = rust_program("bump", &dependency, "extern crate bump;", "", &[]);
    let names = Command::new("nm").arg(&binary).output().expect("there is nm").stdout;
    let names = String::from_utf8_lossy(&names).into_owned();
    let ends = ["alloc", "dealloc", "realloc", "alloc_zeroed"].map(|end| format!("__rust_{end}"));
    let symbols = names.lines().filter_map(|line| line.split_whitespace().last());
    let shims: Vec<&str> = symbols.filter(|name| ends.iter().any(|end| name.ends_with(end))).collect();
    agrees(&fixture, &binary, "own (Rust's global allocator)", &[&shims[..], &OF_C].concat(), 10);
}

/// `duckdb` of the environment's PATH, or of `HEAPTOLL_DUCKDB`: PyPI has it as duckdb-cli.
#[test]
#[ignore = "slow: needs DuckDB's command line, and traces it for a minute"]
fn duckdb_is_counted_as_callgrind_counts_it() {
    let Some(duckdb) = std::env::var_os("HEAPTOLL_DUCKDB") else {
        eprintln!("left out: set HEAPTOLL_DUCKDB to its path (pip download duckdb-cli)");
        return;
    };
    let fixture = Fixture::new();
    let query = "set threads = 1; select count(*), sum(length(s)) from (select i % 100 as g, string_agg(i::varchar, '') as s \
        from range(20000) t(i) group by g);";
    let command = [&*duckdb.to_string_lossy(), "-c", query];
    let (json, output) = counted(&fixture, &[], &command, 0);
    // It has jemalloc inside, for the buffers of queries; most calls are malloc's, so managers can be compared.
    output.shows(&["glibc"]);
    let warnings = json["programs"][0]["managers"][0]["warnings"].to_string();
    assert!(warnings.contains("allocating calls go to jemalloc"), "{warnings}");
    let names = ["malloc", "free", "realloc", "mallocx", "rallocx", "dallocx", "sdallocx", "calloc"];
    let names: Vec<String> = names.iter().map(|name| format!("duckdb_je_{name}")).collect();
    let names: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .chain(OF_C)
        .chain(["_Znwm", "_Znam", "_ZdlPv", "_ZdlPvm", "_ZdaPv"])
        .collect();
    let theirs = callgrind(&fixture, &command, &[&names]);
    let operators = ["operator new", "operator delete"];
    let sum = ALL
        .iter()
        .chain(&operators)
        .map(|name| routine(&json, name))
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    eprintln!("{sum:?}, by callgrind {theirs:?}");
    // It works with a clock, and so does not repeat to the call.
    assert!(
        sum.0.abs_diff(theirs[0].0) <= theirs[0].0 / 1000 && sum.1.abs_diff(theirs[0].1) <= theirs[0].1 / 200
    );
}
