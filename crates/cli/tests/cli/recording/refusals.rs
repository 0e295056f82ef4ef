//! What cannot be recorded is reported before the program runs, or after.

use std::process::Command;

use super::{Trace, record};
use crate::fixture::{CommandOutput, Fixture, is_root};

#[test]
fn programs_that_the_layer_cannot_reach_are_refused_before_they_run() {
    let fixture = Fixture::new();
    let ran = fixture.at("ran");
    let source = "int main(int c, char **v) { free(malloc(3)); close(open(v[1], O_CREAT | O_WRONLY, 0644)); return 0; }";
    let fixed = fixture.static_program("fixed", source);
    record(&fixture, &[], &[&fixed, &ran]).exits(2).complains(&["fixed", "statically linked"]);
    let own = fixture.program(
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
    record(&fixture, &[], &[&own, &ran]).exits(2).complains(&["own", "has its own malloc"]);
    record(&fixture, &[], &["/no/such/program"]).exits(2).complains(&["/no/such/program", "not found"]);
    record(&fixture, &[], &["no-such-program"]).exits(2).complains(&["no-such-program", "PATH"]);
    fixture.heaptoll(&["record"]).exits(2).complains(&["nothing to record", "--program"]);
    if is_root() {
        let privileged = fixture.program("privileged", source);
        let copied = std::process::Command::new("sh")
            .args(["-c", "chown 65534 \"$0\" && chmod u+s \"$0\"", &privileged])
            .status();
        assert!(copied.is_ok_and(|status| status.success()));
        record(&fixture, &[], &[&privileged, &ran]).exits(2).complains(&["privileged", "set-user-ID"]);
    }
    assert!(!fixture.path("ran").exists() && !fixture.path("t").exists());
}

#[test]
fn one_manager_is_named_or_none() {
    let fixture = Fixture::new();
    record(&fixture, &["-m", "historic"], &["ls"]).exits(2).complains(&["historic", "several managers"]);
    record(&fixture, &["-m", "all"], &["ls"]).exits(2).complains(&["several managers"]);
    record(&fixture, &["-m", "bdw"], &["ls"]).exits(2).complains(&["bdw cannot be recorded"]);
    record(&fixture, &["-m", "ancient"], &["ls"]).exits(2).complains(&["no manager `ancient`"]);
    record(&fixture, &["-m", "/no/such.so"], &["ls"]).exits(2).complains(&["/no/such.so"]);
    let empty = fixture.object("empty.so", "int nothing;");
    record(&fixture, &["-m", &empty], &["ls"]).exits(2).complains(&["exports no malloc"]);
    assert!(!fixture.path("t").exists());
}

#[test]
fn a_server_of_the_catalog_is_refused_with_advice() {
    let fixture = Fixture::new();
    let output = fixture.heaptoll(&["record", "--program", "redis", "--size", "quick"]);
    if !output.err.contains("not installed") && !output.err.contains("not found") {
        output.exits(2).complains(&["redis is a server", "record its command"]);
    }
}

#[test]
fn a_program_of_which_no_allocation_arrives_is_reported() {
    let fixture = Fixture::new();
    // Its own linker: nothing is allocated before it ends.
    std::fs::write(fixture.path("bare.c"), "#include <unistd.h>\nvoid _start(void) { _exit(0); }")
        .expect("writes");
    let linked = std::process::Command::new("cc")
        .args(["-O1", "-nostartfiles", "-o", &fixture.at("bare"), &fixture.at("bare.c")])
        .status();
    assert!(linked.is_ok_and(|status| status.success()));
    record(&fixture, &[], &[&fixture.at("bare")]).exits(1).complains(&["no allocation arrived", "bare"]);
    let trace = Trace::read(fixture.path("t")).whole();
    assert!(trace.kinds.is_empty() && trace.how() == "exited with status 0");
}

/// A manager that no list knows: `keep` is what makes a program need it.
const MANAGER: &str = "#include <stddef.h>\nvoid *__libc_malloc(size_t); void __libc_free(void *); \
    void *__libc_calloc(size_t, size_t); void *__libc_realloc(void *, size_t); \
    void *malloc(size_t n) { return __libc_malloc(n); } void free(void *p) { __libc_free(p); } \
    void *calloc(size_t n, size_t m) { return __libc_calloc(n, m); } \
    void *realloc(void *p, size_t n) { return __libc_realloc(p, n); } void keep(void) {}";

/// Before, traces, ledgers and samples named glibc, whichever object the program's `malloc` was bound to.
#[test]
fn the_manager_is_the_object_that_malloc_is_bound_to() {
    let fixture = Fixture::new();
    let build = |arguments: &[&str]| {
        let built = Command::new("cc").current_dir(fixture.path(".")).args(arguments).status();
        assert!(built.is_ok_and(|status| status.success()), "{arguments:?}");
    };
    let write = |name: &str, text: &str| std::fs::write(fixture.path(name), text).expect("writes");
    write("other.c", MANAGER);
    write("middle.c", "void keep(void); void middle(void) { keep(); }");
    write(
        "through.c",
        "#include <stdlib.h>\nvoid middle(void); int main(void) { middle(); free(malloc(9000)); }",
    );
    let here = format!("-Wl,-rpath,{}", fixture.at("."));
    build(&["-fPIC", "-fno-builtin", "-shared", "-o", "libother.so", "other.c"]);
    build(&["-fPIC", "-shared", "-o", "libmiddle.so", "middle.c", "-L.", "-lother", &here]);
    build(&[
        "-fno-builtin",
        "-o",
        "through",
        "through.c",
        "-L.",
        "-lmiddle",
        "-lother",
        "-Wl,--as-needed",
        &here,
    ]);
    let plain = fixture.program("plain", "int main(void) { free(malloc(9000)); return 0; }");
    let other = fixture.at("libother.so");
    for (program, preloaded, manager) in [
        (&fixture.at("through"), None, "libother.so"),
        (&plain, Some(&other), "libother.so"),
        (&plain, None, "glibc"),
    ] {
        let run = |arguments: &[&str]| -> CommandOutput {
            let mut command = fixture.command(&[arguments, &["--", program]].concat());
            command.current_dir(fixture.path(".")).envs(preloaded.map(|object| ("LD_PRELOAD", object)));
            command.output().expect("heaptoll starts").into()
        };
        run(&["record", "-f", "--ledger", "-o", "t"]).exits(0);
        let header = Trace::read(fixture.path("t")).whole().header;
        assert_eq!(
            (header.manager.as_str(), header.manager_version == "unknown"),
            (manager, manager != "glibc")
        );
        let ledger = fixture.heaptoll(&["ledger", &fixture.at("t"), "--json", "-"]).exits(0);
        assert!(ledger.out.contains(&format!("\"manager\": \"{manager}\"")), "{}", ledger.out);
        run(&["record", "-f", "--sample", "1", "-o", "p"]).exits(0).complains(&[&format!(" over {manager}")]);
    }
}

#[test]
fn an_allocator_that_the_program_links_is_named_or_replaced() {
    let jemalloc = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2";
    if !std::path::Path::new(jemalloc).exists() {
        eprintln!("no jemalloc is installed here");
        return;
    }
    let fixture = Fixture::new();
    std::fs::write(
        fixture.path("linked.c"),
        "#include <malloc.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
         int main(void) { void *p = malloc(100000); printf(\"%zu\", malloc_usable_size(p)); free(p); return 0; }",
    )
    .expect("writes");
    let built = std::process::Command::new("cc")
        .args([
            "-fno-builtin",
            "-Wl,--no-as-needed",
            "-o",
            &fixture.at("linked"),
            &fixture.at("linked.c"),
            jemalloc,
        ])
        .status();
    assert!(built.is_ok_and(|status| status.success()));
    let output = record(&fixture, &[], &[&fixture.at("linked")])
        .exits(0)
        .complains(&["links or preloads libjemalloc.so.2"]);
    assert!(
        output.out.parse::<u64>().is_ok_and(|usable| usable > 110_000),
        "jemalloc's class: {}",
        output.out
    );
    assert_eq!(Trace::read(fixture.path("t")).whole().header.manager, "libjemalloc.so.2");
    let output = record(&fixture, &["-f", "-m", "glibc"], &[&fixture.at("linked")]).exits(0);
    assert!(output.out.parse::<u64>().is_ok_and(|usable| usable < 100_100), "glibc's chunk: {}", output.out);
    let trace = Trace::read(fixture.path("t")).whole();
    assert_eq!((trace.header.manager.as_str(), trace.requested >= 100_000), ("glibc", true));
}
