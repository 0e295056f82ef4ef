//! What cannot be recorded is said before it runs, or after.

use super::{Trace, record};
use crate::bench::{Bench, is_root};

#[test]
fn programs_that_the_layer_cannot_reach_are_refused_before_they_run() {
    let bench = Bench::new();
    let ran = bench.at("ran");
    let source = "int main(int c, char **v) { free(malloc(3)); close(open(v[1], O_CREAT | O_WRONLY, 0644)); return 0; }";
    let fixed = bench.static_program("fixed", source);
    record(&bench, &[], &[&fixed, &ran]).exits(2).complains(&["fixed", "statically linked"]);
    let own = bench.program(
        "own",
        &format!(
            "static char pool[1 << 20]; static size_t used; void *malloc(size_t n) {{ void *p = pool + used; \
             used += n + 15 & ~15ul; return p; }} void free(void *p) {{}} {source}"
        ),
    );
    // Exported, or it would be the program's alone.
    let exported = std::process::Command::new("cc")
        .args(["-O1", "-fno-builtin", "-w", "-rdynamic", "-o", &own, &format!("{own}.c")])
        .status();
    assert!(exported.is_ok_and(|status| status.success()));
    record(&bench, &[], &[&own, &ran]).exits(2).complains(&["own", "brings its own malloc"]);
    record(&bench, &[], &["/no/such/program"]).exits(2).complains(&["/no/such/program", "not found"]);
    record(&bench, &[], &["no-such-program"]).exits(2).complains(&["no-such-program", "PATH"]);
    bench.heaptoll(&["record"]).exits(2).complains(&["nothing to record", "--program"]);
    if is_root() {
        let privileged = bench.program("privileged", source);
        let copied = std::process::Command::new("sh")
            .args(["-c", "chown nobody \"$0\" && chmod u+s \"$0\"", &privileged])
            .status();
        assert!(copied.is_ok_and(|status| status.success()));
        record(&bench, &[], &[&privileged, &ran]).exits(2).complains(&["privileged", "set-user-ID"]);
    }
    assert!(!bench.path("ran").exists() && !bench.path("t").exists());
}

#[test]
fn one_manager_is_named_or_none() {
    let bench = Bench::new();
    record(&bench, &["-m", "historic"], &["ls"]).exits(2).complains(&["historic", "several managers"]);
    record(&bench, &["-m", "all"], &["ls"]).exits(2).complains(&["several managers"]);
    record(&bench, &["-m", "bdw"], &["ls"]).exits(2).complains(&["bdw cannot be recorded over"]);
    record(&bench, &["-m", "ancient"], &["ls"]).exits(2).complains(&["no manager `ancient`"]);
    record(&bench, &["-m", "/no/such.so"], &["ls"]).exits(2).complains(&["/no/such.so"]);
    let empty = bench.object("empty.so", "int nothing;");
    record(&bench, &["-m", &empty], &["ls"]).exits(2).complains(&["exports no malloc"]);
    assert!(!bench.path("t").exists());
}

#[test]
fn a_server_of_the_catalog_is_refused_with_advice() {
    let bench = Bench::new();
    let said = bench.heaptoll(&["record", "--program", "redis", "--size", "quick"]);
    if !said.err.contains("not installed") && !said.err.contains("not found") {
        said.exits(2).complains(&["redis is a server", "record it by its command"]);
    }
}

#[test]
fn a_program_of_which_no_allocation_arrives_is_said_to_be_one() {
    let bench = Bench::new();
    // Its own linker: nothing is allocated before it ends.
    std::fs::write(bench.path("bare.c"), "#include <unistd.h>\nvoid _start(void) { _exit(0); }")
        .expect("writes");
    let linked = std::process::Command::new("cc")
        .args(["-O1", "-nostartfiles", "-o", &bench.at("bare"), &bench.at("bare.c")])
        .status();
    assert!(linked.is_ok_and(|status| status.success()));
    record(&bench, &[], &[&bench.at("bare")]).exits(1).complains(&["no allocation arrived", "bare"]);
    let trace = Trace::read(bench.path("t")).whole();
    assert!(trace.kinds.is_empty() && trace.how() == "exited with status 0");
}

#[test]
fn an_allocator_that_the_program_links_is_named_or_replaced() {
    let jemalloc = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2";
    if !std::path::Path::new(jemalloc).exists() {
        eprintln!("no jemalloc is installed here");
        return;
    }
    let bench = Bench::new();
    std::fs::write(
        bench.path("linked.c"),
        "#include <malloc.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
         int main(void) { void *p = malloc(100000); printf(\"%zu\", malloc_usable_size(p)); free(p); return 0; }",
    )
    .expect("writes");
    let built = std::process::Command::new("cc")
        .args([
            "-fno-builtin",
            "-Wl,--no-as-needed",
            "-o",
            &bench.at("linked"),
            &bench.at("linked.c"),
            jemalloc,
        ])
        .status();
    assert!(built.is_ok_and(|status| status.success()));
    let said = record(&bench, &[], &[&bench.at("linked")]).exits(0).complains(&["links libjemalloc.so.2"]);
    assert!(said.out.parse::<u64>().is_ok_and(|usable| usable > 110_000), "jemalloc's class: {}", said.out);
    assert_eq!(Trace::read(bench.path("t")).whole().header.manager, "libjemalloc.so.2");
    let said = record(&bench, &["-f", "-m", "glibc"], &[&bench.at("linked")]).exits(0);
    assert!(said.out.parse::<u64>().is_ok_and(|usable| usable < 100_100), "glibc's chunk: {}", said.out);
    let trace = Trace::read(bench.path("t")).whole();
    assert_eq!((trace.header.manager.as_str(), trace.requested >= 100_000), ("glibc", true));
}
