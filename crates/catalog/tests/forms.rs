//! The bundled programs that come in several forms (Zorn 1992, section 5.2): all forms print the same, and what the
//! router and the translator make is right.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use heaptoll_catalog::{Catalog, Places, Program, Size};

use crate::programs::places;

fn share() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs")
}

fn run(program: &Path, arguments: &[&str]) -> Output {
    Command::new("timeout").arg("120").arg(program).args(arguments).output().unwrap()
}

/// What a program of the catalog prints at its smallest size.
fn printed(program: &Program, places: &Places) -> Vec<u8> {
    let prepared = program.prepare(Size::Tiny, places).unwrap();
    let words: Vec<&str> = prepared.command.iter().map(String::as_str).collect();
    let output = run(Path::new(words[0]), &words[1..]);
    assert!(output.status.success(), "{}: {output:?}", program.name());
    output.stdout
}

#[test]
fn all_forms_of_a_program_print_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    let catalog = Catalog::load(&share()).unwrap();
    for name in ["cfrac", "kv", "route", "translate"] {
        let plain = printed(catalog.find(name).unwrap(), &places);
        assert!(!plain.is_empty());
        for form in ["optimized", "unoptimized", "gc"] {
            let variant = catalog.find(&format!("{name}:{form}")).unwrap();
            assert!(printed(variant, &places) == plain, "{name}:{form} prints something else");
        }
    }
    let threaded = catalog.find("cfrac:threaded").unwrap();
    assert!(printed(threaded, &places) == printed(catalog.find("cfrac").unwrap(), &places));
}

/// With it the C library no longer takes the program for single-threaded, and nothing else changes: signals are the
/// program's own.
#[test]
fn the_sleeping_thread_is_there_and_does_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("program.c");
    let text = "#include <signal.h>\n#include <stdio.h>\n#include <sys/single_threaded.h>\n\
        #include <sys/syscall.h>\n#include <unistd.h>\nstatic volatile pid_t by;\n\
        static void caught(int n) { by = syscall(SYS_gettid); }\n\
        int main(void) { signal(SIGUSR1, caught); kill(getpid(), SIGUSR1);\n\
          printf(\"%d %d\", __libc_single_threaded, by == getpid()); return 0; }\n";
    fs::write(&source, text).unwrap();
    let printed_with = |more: &[PathBuf]| {
        let program = folder.path().join("program");
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-w", "-o"]).arg(&program).arg(&source).args(more).arg("-pthread");
        assert!(compiler.status().unwrap().success());
        String::from_utf8(run(&program, &[]).stdout).unwrap()
    };
    assert_eq!(printed_with(&[]), "1 1");
    assert_eq!(printed_with(&[share().join("sleeper/sleeper.c")]), "0 1");
}

/// Free Pascal 3.2.2 prints this for the same program (`fpc -Mobjfpc`).
const PRINTED_BY_FREE_PASCAL: &str = "module 0:   7417   5 items, TRUE\nmodule 1:  -4277   8 items, FALSE\n";

#[test]
fn the_translation_of_a_program_is_c_that_prints_what_the_program_would() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    let catalog = Catalog::load(&share()).unwrap();
    let (source, program) = (folder.path().join("source.c"), folder.path().join("program"));
    fs::write(&source, printed(catalog.find("translate").unwrap(), &places)).unwrap();
    let built = Command::new("cc").args(["-w", "-o"]).args([&program, &source]).status().unwrap();
    assert!(built.success());
    let output = run(&program, &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with(PRINTED_BY_FREE_PASCAL), "{text}");
}

#[test]
fn the_translator_reports_where_a_program_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let translate = heaptoll_testing::staged::file("programs/translate");
    let source = folder.path().join("wrong.pas");
    for (text, problem) in [
        ("program p; begin x := 1 end.", ":1: x is not declared"),
        ("program p; var x: integer;\nbegin x := 'ab' end.", ":2: what is assigned has a wrong type"),
        ("program p; var x, x: char; begin end.", "x is declared twice"),
        ("program p; type a = array [1..3] of b; begin end.", "b is not declared"),
        ("program p; type a = ^a; var x: a; begin end.", "its own type"),
        ("program p; begin if 1 then end.", "a condition is expected"),
        ("program p; begin", "end is expected here, not end of file"),
        ("program p; begin write('a) end.", "does not end"),
        ("program p; { begin end.", "does not end"),
        ("program p; var x: integer; begin x := 99999999999 end.", "too large"),
        (
            "program p; procedure q(var a: integer); begin end; begin q(1) end.",
            "q cannot take this argument as a",
        ),
        (
            "program p; procedure q; procedure r; begin end; begin end; begin end.",
            "a routine inside a routine",
        ),
        ("program p; begin end. x", "has ended before this"),
        ("program p; \u{1} begin end.", "is not Pascal's"),
    ] {
        fs::write(&source, text).unwrap();
        let output = run(&translate, &[source.to_str().unwrap()]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}: {message}");
        assert!(message.contains(problem) && message.contains("wrong.pas:"), "{text}: {message}");
    }
}

#[test]
fn the_router_breaks_a_cycle_by_a_dogleg_in_a_column_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let route = heaptoll_testing::staged::file("programs/route");
    let channel = folder.path().join("channel");
    // Net 1 has to be above net 2 on the left, and below it on the right.
    fs::write(&channel, "channel 2\ntop 1 2\nbottom 2 1\n").unwrap();
    let output = run(&route, &["1", channel.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("channel 1: 2 nets, density 2, 3 tracks, 1 columns added\n"), "{text}");
    for wrong in ["", "channel 0", "channel 3\ntop 1 2", "channel 1\ntop -1\nbottom 0", "canal 1"] {
        fs::write(&channel, wrong).unwrap();
        let output = run(&route, &["1", channel.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(!output.stderr.is_empty());
    }
}
