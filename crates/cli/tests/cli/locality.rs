//! `heaptoll exact locality` on programs whose references are known, under managers whose placement is known.

use serde_json::Value;

use crate::fixture::{Fixture, read_json, rows};

/// The figures of a program under some managers; no native run, no sampling.
fn simulated(fixture: &Fixture, options: &[&str], command: &[&str]) -> Value {
    let file = fixture.at("l.json");
    let db = fixture.at("l.db");
    let fixed =
        ["exact", "locality", "--sample", "exact", "--cache", "32K/8,1M/16", "--json", &file, "--db", &db];
    fixture.heaptoll(&[&fixed, options, &["--"], command].concat()).exits(0);
    read_json(&file)["programs"][0].clone()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// The program's misses at the largest point of a curve that has no more entries.
fn at(curve: &Value, entries: u64) -> f64 {
    let points = curve.as_array().expect("a curve");
    let fits = |point: &&Value| point["entries"].as_u64() <= Some(entries);
    number(&points.iter().rev().find(fits).expect("a point")["by"]["program"])
}

/// The program's misses of a cache with sets.
fn sets(row: &Value, bytes: u64, ways: u64) -> f64 {
    let all = row["associative"].as_array().expect("caches");
    let one = all.iter().find(|one| one["bytes"] == bytes && one["ways"] == ways);
    number(&one.expect("simulated")["misses"]["program"])
}

#[track_caller]
fn about(found: f64, expected: f64, slack: f64) {
    assert!((found - expected).abs() <= slack, "{found} is not {expected} ± {slack}");
}

/// Misses allowed for the loader and the C library, in any cache.
const REST: f64 = 9000.0;

/// Goes round over 64 KiB, one load a line: all of its 1024 lines again, or none.
const SWEEP: &str = "int main(int count, char **words) {
    volatile long *all = malloc(65536);
    for (int round = atoi(words[1]); round; round--)
        for (int at = 0; at < 8192; at += 8) all[at];
    return 0; }";

#[test]
fn a_sweep_misses_all_lines_of_each_round_or_none() {
    let fixture = Fixture::new();
    let program = fixture.program("sweep", SWEEP);
    let few = simulated(&fixture, &[], &[&program, "20"])["rows"][0].clone();
    fixture.heaptoll(&["report", &fixture.at("l.db")]).exits(0);
    std::fs::remove_file(fixture.path("l.db")).expect("it was kept");
    let row = &simulated(&fixture, &[], &[&program, "60"])["rows"][0];
    // What the loader does is the same in both: 40 rounds are left.
    let more = |of: &dyn Fn(&Value) -> f64| of(row) - of(&few);
    let lines = |entries: u64| more(&|row| at(&row["fully_associative"], entries));
    about(lines(512), 40.0 * 1024.0, 100.0);
    about(lines(1448), 0.0, 100.0);
    about(more(&|row| sets(row, 32 << 10, 8)), 40.0 * 1024.0, 100.0);
    about(more(&|row| sets(row, 256 << 10, 8)), 0.0, 100.0);
    let level = |row: &Value, level: usize| number(&row["machine"][level]["by"]["program"]["loads"]);
    about(more(&|row| level(row, 0)), 40.0 * 1024.0, 100.0);
    about(more(&|row| level(row, 1)), 0.0, 100.0);
    // 17 pages go round, for the block does not begin with a page; that of the stack stays.
    about(more(&|row| at(&row["memories"], 8)), 40.0 * 17.0, 20.0);
    about(more(&|row| at(&row["memories"], 32)), 0.0, 20.0);
    assert_eq!(row["placement"], Value::Null, "one manager has nothing to be compared with");

    let stored = fixture.json(&fixture.at("l.db"));
    let kept = &rows(&stored)[0]["locality"];
    assert_eq!((&kept["line_bytes"], &kept["sampled_one_in"]), (&Value::from(64), &Value::from(1)));
    assert_eq!(kept["caches"][0]["cache"], "32K/8");
    let of = |accessor: &str| {
        number(&row["machine"][0]["by"][accessor]["loads"])
            + number(&row["machine"][0]["by"][accessor]["stores"])
    };
    about(number(&kept["caches"][0]["misses"]["program"]), of("program") + of("system"), 0.0);
}

#[test]
fn a_chase_of_pointers_misses_as_a_sweep_does_whatever_its_order() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "chase",
        "struct node { struct node *next; long rest[7]; };
         int main(int count, char **words) {
            struct node *all = aligned_alloc(64, 1024 * sizeof *all);
            // 389 and 1024 have no common factor: the walk comes to every node.
            for (int at = 0; at < 1024; at++) all[at].next = &all[(at + 389) % 1024];
            struct node *volatile here = all;
            for (int step = 0; step < 40 * 1024; step++) here = here->next;
            return 0; }",
    );
    let study = simulated(&fixture, &[], &[&program]);
    let curve = &study["rows"][0]["fully_associative"];
    about(at(curve, 512), 41.0 * 1024.0, REST);
    about(at(curve, 1448), 1024.0, 4000.0);
    // Each step is to another page: 16 of them, and that of `here`.
    about(at(&study["rows"][0]["memories"], 8), 40.0 * 1024.0, 2500.0);
    about(at(&study["rows"][0]["memories"], 64), 200.0, 400.0);
}

#[test]
fn a_stride_collides_in_few_sets() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "stride",
        "int main(int count, char **words) {
            volatile char *all = aligned_alloc(4096, 64 * 4096);
            for (int round = 0; round < 400; round++)
                for (int page = 0; page < 64; page++) all[page * 4096];
            return 0; }",
    );
    let study = simulated(&fixture, &[], &[&program]);
    let row = &study["rows"][0];
    // 64 lines: any order of 128 lines holds them,
    assert!(at(&row["fully_associative"], 256) < REST);
    // but of the 1024 sets of 64 KiB they share 16, and of the 128 sets of 8 ways two.
    about(sets(row, 64 << 10, 1), 400.0 * 64.0, REST);
    about(sets(row, 64 << 10, 8), 400.0 * 64.0, REST);
    assert!(sets(row, 1 << 20, 1) < REST, "64 of 16384 sets");
}

/// Blocks stand a fixed distance apart in static memory, so the allocator makes a handful of references.
fn arena(apart: u32) -> String {
    format!(
        "#include <stddef.h>\n#include <string.h>\n
        static char arena[64 << 20] __attribute__((aligned(4096)));
        static size_t next;
        void *malloc(size_t n) {{
            size_t at = next;
            next += n <= 16 ? {apart} : (n + 4095) & -4096ul;
            return arena + at;
        }}
        void free(void *p) {{}}
        void *calloc(size_t n, size_t m) {{ return malloc(n * m); }}
        void *realloc(void *p, size_t n) {{ void *q = malloc(n); return p ? memcpy(q, p, n) : q; }}
        void *memalign(size_t a, size_t n) {{ return (void *)(((size_t)malloc(n + a) + a - 1) & -a); }}
        void *aligned_alloc(size_t a, size_t n) {{ return memalign(a, n); }}
        int posix_memalign(void **p, size_t a, size_t n) {{ *p = memalign(a, n); return 0; }}"
    )
}

#[test]
fn placement_is_separated_from_the_managers_own_work_and_the_sum_closes() {
    let fixture = Fixture::new();
    let near = fixture.object("near.so", &arena(16));
    let far = fixture.object("far.so", &arena(128));
    // 1024 objects of 16 bytes: 256 lines side by side, 1024 lines apart.
    let program = fixture.program(
        "objects",
        "static volatile long *all[1024];
         int main(int count, char **words) {
            for (int at = 0; at < 1024; at++) all[at] = malloc(16);
            for (int round = 0; round < 100; round++)
                for (int at = 0; at < 1024; at++) *all[at];
            return 0; }",
    );
    let study = simulated(&fixture, &["--baseline", &near, "-m", &far], &[&program]);
    let [near, far] = &study["rows"].as_array().expect("rows")[..] else { panic!("two rows: {study}") };
    about(number(&near["references"]["program"]), number(&far["references"]["program"]), 300.0);
    assert_eq!(far["other_work"], Value::Null);
    // 32K of 8 ways: every second set is used when objects are 128 bytes apart. With the pointers, 8 KiB, all fit in
    // the first case and none in the second.
    let more = &far["placement"]["machine"][0]["more"];
    about(number(&more["placement"]), 100.0 * 1024.0, 15_000.0);
    assert!(number(&more["pollution"]).abs() < 2000.0 && number(&more["allocator"]).abs() < 2500.0, "{more}");
    let causes = |row: &Value| -> Vec<Value> {
        let placement = &row["placement"];
        let lists = ["machine", "caches", "memories"];
        let listed = lists.iter().flat_map(|list| placement[list].as_array().expect("a list").clone());
        listed.chain([placement["stall_cycles"].clone()]).collect()
    };
    let sum = |parts: &Value| -> i64 {
        ["placement", "pollution", "allocator", "collector"]
            .iter()
            .map(|part| parts[part].as_i64().expect("a count"))
            .sum()
    };
    for (near, far) in causes(near).iter().zip(&causes(far)) {
        let misses = |cause: &Value| cause["misses"].as_i64().expect("a count");
        assert_eq!(sum(&far["parts"]), misses(far), "{}", far["cache"]);
        assert_eq!(sum(&far["more"]), misses(far) - misses(near), "{}", far["cache"]);
        assert_eq!(near["more"], Value::Null);
    }
}

#[test]
fn what_cannot_be_simulated_is_refused_before_anything_runs() {
    let fixture = Fixture::new();
    let refused = |option: &str, value: &str, why: &str| {
        fixture.heaptoll(&["exact", "locality", option, value, "--", "true"]).exits(2).complains(&[why]);
    };
    refused("--cache", "32K/7", "not a multiple of a set");
    refused("--cache", "1M/16,32K/8", "nearest first");
    refused("--sample", "1/3", "1/16");
    refused("--line", "48", "power of two");
    refused("--sizes", "64K,much", "`much`");
    fixture
        .heaptoll(&["exact", "locality", "--line", "4096", "--page", "1024", "--", "true"])
        .exits(2)
        .complains(&["a page of 1024 bytes"]);
    fixture
        .heaptoll(&["exact", "locality", "--cache", "32K/8", "--latency", "14,200", "--", "true"])
        .exits(2)
        .complains(&["2 latencies for 1 caches"]);
    assert!(!fixture.path("state").exists(), "nothing is stored of what did not run");
}

#[test]
fn simulators_that_run_out_of_memory_keep_what_they_have_and_warn() {
    let fixture = Fixture::new();
    // 32 MiB, a store a page: what the simulators know of pages does not fit into 1 MiB.
    let program = fixture.program(
        "wide",
        "int main(int count, char **words) {
            volatile char *all = malloc(64 << 20);
            for (int page = 0; page < 16384; page++) all[page * 4096] = 1;
            return 0; }",
    );
    let file = fixture.at("l.json");
    let options =
        ["exact", "locality", "--sample", "exact", "--memory-limit", "1", "--json", &file, "--", &program];
    fixture.heaptoll(&options).exits(1).shows(&["--memory-limit"]);
    let row = &read_json(&file)["programs"][0]["rows"][0];
    assert!(row["cut_short"].as_str().is_some_and(|why| why.contains("only counted")), "{row}");
    assert!(number(&row["references"]["program"]) > 16384.0);
}

#[test]
fn callgrinds_file_has_the_misses_of_each_accessor() {
    let fixture = Fixture::new();
    let program = fixture.program("sweep", SWEEP);
    let row = simulated(&fixture, &["--callgrind", &fixture.at(".")], &[&program, "10"])["rows"][0].clone();
    let text = std::fs::read_to_string(fixture.path("callgrind.out.sweep.glibc")).expect("written");
    assert!(text.contains("\nevents: Ir Refs L1m L2m Stall\n"), "{text}");
    let misses = |level: usize| row["machine"][level]["misses"].as_u64().expect("a number");
    let summary = text.lines().find_map(|line| line.strip_prefix("summary: ")).expect("a summary");
    let sums: Vec<u64> = summary.split(' ').filter_map(|sum| sum.parse().ok()).collect();
    assert_eq!(sums[2..4], [misses(0), misses(1)], "{text}");
    let accessors = ["program", "allocator", "collector", "system", "sweeper"];
    let all: u64 = accessors.iter().filter_map(|one| row["references"][one].as_u64()).sum();
    assert_eq!(sums[1], all);
}
