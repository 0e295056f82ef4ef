//! Stacks of layers and managers: what runs is what was written, each link of it is proved, and what means nothing is
//! refused with the reason.

use std::process::Command;

use crate::fixture::{CommandOutput, Fixture, outcomes, read_json, rows_of};

const WORDS: &str = r#"
int main(void) {
    for (int i = 0; i < 20000; i++) { char *p = malloc(i % 200 + 1); p[0] = (char)i; free(p); }
    puts("done");
    return 0;
}
"#;

fn run(fixture: &Fixture, managers: &[&str], program: &str) -> CommandOutput {
    let json = fixture.at("o.json");
    let mut words = vec!["run", "-n", "1", "--warmup", "0", "--json", &json];
    words.extend(managers.iter().flat_map(|manager| ["-m", manager]));
    words.extend(["--", program]);
    fixture.heaptoll(&words)
}

fn proof(fixture: &Fixture, stack: &str) -> String {
    let read = read_json(&fixture.at("o.json"));
    let stacks = read["experiment"]["stacks"].as_array().expect("stacks");
    stacks.iter().find(|one| one["name"] == stack).map(|one| one["proof"].to_string()).expect(stack)
}

#[test]
fn every_link_of_a_stack_is_proved() {
    let fixture = Fixture::new();
    let program = fixture.program("words", WORDS);
    let stacks = ["forward/mimalloc3", "record/forward/glibc", "count/glibc", "record/tithe"];
    run(&fixture, &stacks, &program).exits(0);
    let read = read_json(&fixture.at("o.json"));
    for stack in stacks {
        assert_eq!(outcomes(&read, stack), ["ok"], "{stack}");
    }
    let output = proof(&fixture, "forward/mimalloc3");
    assert!(
        output.contains("libheaptoll_forward.so, which forwards to ") && output.contains("/mimalloc3.so"),
        "{output}"
    );
    let output = proof(&fixture, "record/forward/glibc");
    assert!(
        output.contains("_record.so, which forwards to ")
            && output.contains("_forward.so, which forwards to"),
        "{output}"
    );
    assert!(output.contains("libc.so.6"), "{output}");
    // The counting layer is the preflight's own: there is one of it.
    assert!(!proof(&fixture, "count/glibc").contains("_count.so"));
}

#[test]
fn layers_report_what_they_did_and_rows_keep_it() {
    let fixture = Fixture::new();
    let program = fixture.program("words", WORDS);
    run(&fixture, &["quarantine=64K/glibc", "sweep,every=256K/glibc"], &program).exits(0);
    let read = read_json(&fixture.at("o.json"));
    let row = |stack: &str| rows_of(&read, stack, "timed")[0].clone();
    let held = row("quarantine=64K/glibc")["held_high_bytes"].as_u64().expect("held");
    assert!((65_536..65_536 + 4096).contains(&held), "{held}");
    assert_eq!(row("quarantine=64K/glibc")["written_after_free"], 0);
    assert!(row("quarantine=64K/glibc")["collections"].is_null());
    let swept = row("sweep,every=256K/glibc");
    assert!(swept["collections"]["count"].as_u64().is_some_and(|count| count >= 4), "{swept}");
    assert!(swept["used_high_bytes"].as_u64().is_some_and(|bytes| bytes >= 4096), "{swept}");
    assert!(swept["collector_cpu_ns"].is_u64() && swept["refused_calls"] == 0, "{swept}");
    assert!(swept["held_high_bytes"].is_null(), "{swept}");
    assert!(row("glibc")["used_high_bytes"].is_null());
}

/// They were reported at collections only: a program that ends without one had used nothing, and one that grew since,
/// less.
#[test]
fn used_pages_are_reported_at_the_end_too() {
    let fixture = Fixture::new();
    let program = fixture.program("words", WORDS);
    run(&fixture, &["sweep,every=1G/glibc"], &program).exits(0);
    let read = read_json(&fixture.at("o.json"));
    let row = rows_of(&read, "sweep,every=1G/glibc", "timed")[0].clone();
    assert_eq!(row["collections"]["count"], 0, "{row}");
    assert!(row["used_high_bytes"].as_u64().is_some_and(|bytes| bytes >= 65_536), "{row}");
}

#[test]
fn rows_are_named_by_the_shortest_word_of_their_stack() {
    let fixture = Fixture::new();
    let program = fixture.program("words", WORDS);
    run(&fixture, &["forward/mimalloc", "quarantine=2048K/glibc"], &program).exits(0);
    let read = read_json(&fixture.at("o.json"));
    assert_eq!(outcomes(&read, "forward/mimalloc3"), ["ok"]);
    assert_eq!(outcomes(&read, "quarantine=2M/glibc"), ["ok"]);
}

#[test]
fn a_manager_named_by_its_path_takes_layers() {
    let fixture = Fixture::new();
    let program = fixture.program("words", WORDS);
    let manager = fixture.manager("own.so", "");
    let stack = format!("forward/{manager}");
    run(&fixture, &[&stack], &program).exits(0);
    assert!(proof(&fixture, &stack).contains(&format!("which forwards to {manager}")));
}

#[test]
fn what_means_nothing_is_refused_with_the_reason() {
    let fixture = Fixture::new();
    for (stack, output) in [
        ("quarantine=2M", "names a layer and no manager after it"),
        ("quarantine/glibc", "it needs a size: quarantine=2M"),
        ("quarantine=2X/glibc", "`2X` is not a size"),
        ("sweep,every=0/glibc", "give bytes, 1B or more"),
        ("sweep,period=1M/glibc", "no option `period`; it has every"),
        ("quarantine=1M/quarantine=2M/glibc", "stands there twice"),
        ("quarantine=1M/sweep/glibc", "take one"),
        ("quarantine=1M/tithe", "take an allocator, for instance tithe-explicit"),
        ("sweep/bw26", "is a collector"),
        ("forward/bdw", "bdw crashes with a layer in front"),
        ("glibc,heap=1M", "`glibc` has no option `heap`; it has arenas, hugetlb, mmap, top_pad, trim"),
        ("knuth,heap=1M", "`knuth` has no option `heap`; it has none"),
        (
            "knuth,lea",
            "`knuth` has no option `lea`; it has none; if it is a manager, give it an -m of its own",
        ),
        ("forward/nothing", "there is no manager `nothing`"),
        ("forward/./nothing.so", "manager ./nothing.so"),
    ] {
        run(&fixture, &[stack], "/bin/ls").exits(2).complains(&[output]);
    }
    run(&fixture, &["quarantine=1M/tithe-explicit"], "/bin/ls").exits(0);
    // No manager that collects takes a layer that holds frees back.
    run(&fixture, &["quarantine=1M/collectors"], "/bin/ls").exits(2).complains(&["take an allocator"]);
}

#[test]
fn a_layer_in_front_of_a_static_program_is_refused() {
    let fixture = Fixture::new();
    let program = fixture.static_program("static", WORDS);
    run(&fixture, &["forward/glibc"], &program).exits(2).complains(&["is statically linked"]);
}

#[test]
fn a_stack_that_was_named_and_does_not_load_fails_the_run() {
    let fixture = Fixture::new();
    let program = fixture.program("words", WORDS);
    // Everything that a manager must have, and no way to query the size of a block.
    let manager = fixture.object(
        "sizeless.so",
        "#include <stddef.h>\n\
         extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);\n\
         extern void __libc_free(void *);\n\
         void *malloc(size_t n) { return __libc_malloc(n); }\nvoid free(void *p) { __libc_free(p); }\n\
         void *calloc(size_t a, size_t b) { return __libc_calloc(a, b); }\n\
         void *realloc(void *p, size_t n) { return __libc_realloc(p, n); }\n\
         extern void *__libc_memalign(size_t, size_t);\n\
         void *memalign(size_t a, size_t n) { return __libc_memalign(a, n); }\n\
         void *aligned_alloc(size_t a, size_t n) { return __libc_memalign(a, n); }\n\
         int posix_memalign(void **p, size_t a, size_t n) { return (*p = __libc_memalign(a, n)) ? 0 : 12; }\n",
    );
    let stack = format!("quarantine=64K/{manager}");
    run(&fixture, &["glibc", "forward/glibc", &stack], &program).exits(1);
    let read = read_json(&fixture.at("o.json"));
    assert_eq!(outcomes(&read, "forward/glibc"), ["ok"], "the others are measured");
    let refused = read["experiment"]["refused"].to_string();
    assert!(refused.contains(&stack) && refused.contains("malloc_usable_size"), "{refused}");
    assert!(refused.contains("in front of"), "{refused}");
}

#[test]
fn a_layer_covers_the_operator_new_that_a_manager_brings() {
    let fixture = Fixture::new();
    let source = fixture.path("operator_new.cc");
    std::fs::write(
        &source,
        "#include <cstdio>\n#include <new>\nstruct alignas(64) Wide { char bytes[64]; };\n\
         int main() {\n for (int i = 0; i < 1000; i++) { delete new int(i); delete[] new char[i + 1]; delete new Wide; \
         delete new (std::nothrow) long(i); }\n std::puts(\"done\"); }\n",
    )
    .expect("writes");
    let program = fixture.at("operator_new");
    let built = Command::new("c++").args(["-std=c++17", "-O0", "-o", &program]).arg(&source).status();
    assert!(built.is_ok_and(|status| status.success()), "c++ builds it");
    let own = "void *_Znwm(size_t n) { abort(); } void *_Znam(size_t n) { abort(); } void _ZdlPv(void *p) { abort(); }\n\
               void _ZdlPvm(void *p, size_t n) { abort(); } void _ZdaPv(void *p) { abort(); }\n\
               void *_ZnwmSt11align_val_t(size_t n, size_t a) { abort(); }\n\
               void *_ZnwmRKSt9nothrow_t(size_t n, void *t) { abort(); }\n\
               void _ZdlPvmSt11align_val_t(void *p, size_t n, size_t a) { abort(); }\n";
    let manager = fixture.manager("operator_new.so", own);
    let stacks = [format!("forward/{manager}"), format!("record/forward/{manager}")];
    run(&fixture, &[&stacks[0], &stacks[1]], &program).exits(0);
    let read = read_json(&fixture.at("o.json"));
    for stack in &stacks {
        assert_eq!(outcomes(&read, stack), ["ok"]);
    }
}

#[test]
fn a_recording_goes_over_a_stack_and_a_replay_too() {
    let fixture = Fixture::new();
    let program = fixture.program("words", WORDS);
    let trace = fixture.at("t.heaptoll");
    fixture
        .heaptoll(&["record", "-o", &trace, "-m", "record/glibc", "--", &program])
        .exits(2)
        .complains(&["leave it out"]);
    fixture
        .heaptoll(&["record", "-o", &trace, "-m", "forward/modern", "--", &program])
        .exits(2)
        .complains(&["several"]);
    fixture.heaptoll(&["record", "-o", &trace, "-m", "quarantine=4K/glibc", "--", &program]).exits(0);
    fixture
        .heaptoll(&[
            "trace",
            "replay",
            &trace,
            "-n",
            "2",
            "-m",
            "quarantine=1024B/mimalloc",
            "-m",
            "forward/tithe",
        ])
        .exits(0)
        .shows(&["quarantine=1K/mimalloc3", "forward/tithe"]);
}

#[test]
fn the_help_of_run_has_a_stack() {
    let fixture = Fixture::new();
    fixture.heaptoll(&["run", "--help"]).exits(0).shows(&["quarantine=2M/mimalloc"]);
}
