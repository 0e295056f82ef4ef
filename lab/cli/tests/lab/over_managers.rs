//! Every command that preloads something runs over every manager, however the program comes by it; and it sees what a
//! program allocates before the C library is initialised.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::fixture::{Fixture, read_json};

/// Ends with a message after calls that each manager serves.
const PROGRAM: &str = "int main(void) { for (int i = 0; i < 5000; i++) { char *volatile p = malloc(i % 90 + 1); \
    p[0] = 1; if (i % 7) p = realloc(p, i % 900 + 1); free(p); } puts(\"came to its end\"); return 0; }";

/// A command that preloads, up to where a manager's name follows in it, if it takes one.
struct Preloads {
    words: &'static [&'static str],
    /// What is in front of the manager's name.
    named: Option<&'static [&'static str]>,
    layer: &'static str,
    /// Of one that compares managers, the program's own is none.
    of_program: bool,
}

const fn of_program(words: &'static [&'static str], named: Option<&'static [&'static str]>) -> Preloads {
    Preloads { words, named, layer: "", of_program: true }
}

const fn comparison(layer: &'static str) -> Preloads {
    let words = &["run", "-n", "1", "--db", "DB", "-m", "glibc"];
    Preloads { words, named: Some(&["-m"]), layer, of_program: false }
}

const COMMANDS: [Preloads; 10] = [
    of_program(&["record", "-o", "T"], Some(&["-m"])),
    of_program(&["record", "--sites", "--ledger", "-o", "T"], Some(&["-m"])),
    of_program(&["record", "--sample", "1K", "-o", "T"], Some(&["-m"])),
    of_program(&["ledger"], Some(&["-m"])),
    of_program(&["leaks"], Some(&["-m"])),
    of_program(&["lab", "oracle", "-o", "T.oracle"], None),
    of_program(&["exact", "instructions"], Some(&["-m"])),
    comparison(""),
    comparison("quarantine=64K/"),
    comparison("sweep/"),
];

/// Debian's, whose objects programs are linked with.
const LIBRARIES: [(&str, &str); 4] = [
    ("debian-gperftools", "libtcmalloc_minimal.so.4"),
    ("debian-jemalloc", "libjemalloc.so.2"),
    ("debian-mimalloc2", "libmimalloc.so.2.0"),
    ("debian-tbb", "libtbbmalloc_proxy.so.2"),
];

/// How a program comes by a manager.
#[derive(Debug, Clone)]
enum Way {
    Linked(&'static str),
    Preloaded(&'static str),
    Named(String),
}

/// The path of a library of Debian's, where its package is installed.
fn library(file: &str) -> Option<String> {
    let path = Path::new("/usr/lib/x86_64-linux-gnu").join(file);
    path.exists().then(|| path.display().to_string())
}

/// All ways in which a program here can come by a manager.
fn ways(fixture: &Fixture) -> Vec<Way> {
    let file = fixture.at("managers.json");
    fixture.heaptoll(&["managers", "--json", &file]);
    let listed = read_json(&file);
    let names = listed["managers"].as_array().expect("a list").iter();
    let names = names.filter_map(|manager: &Value| manager["name"].as_str());
    let named = names.filter(|name| *name != "glibc").map(|name| Way::Named(name.to_owned()));
    let libraries = LIBRARIES.iter().filter_map(|(_, file)| library(file).map(|_| *file));
    libraries.flat_map(|file| [Way::Linked(file), Way::Preloaded(file)]).chain(named).collect()
}

/// Runs a command over a manager; what is wrong with its end. `None` where it takes none that way.
fn end_of(fixture: &Fixture, command: &Preloads, way: &Way) -> Option<Result<(), String>> {
    let mut words: Vec<String> = command.words.iter().map(|word| (*word).to_owned()).collect();
    for word in words.iter_mut().filter(|word| ["T", "T.oracle", "DB"].contains(&word.as_str())) {
        *word = fixture.at(&format!("result-{word}"));
        let _ = std::fs::remove_file(&*word);
        let _ = std::fs::remove_dir_all(format!("{word}.children"));
    }
    let mut program = fixture.at("calls");
    let mut preload = None;
    match (way, command.named) {
        (Way::Named(name), Some(before)) => {
            words.extend(before.iter().map(|word| (*word).to_owned()));
            words.push(format!("{}{name}", command.layer));
        }
        (Way::Linked(file), _) if command.of_program => program = fixture.at(file),
        (Way::Preloaded(file), _) if command.of_program => preload = library(file),
        _ => return None,
    }
    words.extend(["--".to_owned(), program]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut started = fixture.command(&words);
    if let Some(preload) = preload {
        started.env("LD_PRELOAD", preload);
    }
    let output = started.output().expect("heaptoll starts");
    let err = String::from_utf8_lossy(&output.stderr);
    let is_right = output.status.code() == Some(0) && !err.contains("signal");
    Some(if is_right { Ok(()) } else { Err(format!("{words:?}, {way:?}: {}, {err}", output.status)) })
}

/// The programs that are linked with managers, and one that is not.
fn compile(fixture: &Fixture) {
    fixture.program("calls", PROGRAM);
    for (_, file) in LIBRARIES {
        let Some(library) = library(file) else { continue };
        let words = ["-O1", "-fno-builtin", "-w", "-o", &fixture.at(file), &fixture.at("calls.c")];
        let linked = Command::new("cc").args(words).args(["-Wl,--no-as-needed", &library]).status();
        assert!(linked.expect("cc runs").success(), "{file}");
    }
}

#[test]
fn each_command_that_preloads_and_each_way_to_a_manager_of_debians_work_once() {
    let fixture = Fixture::new();
    compile(&fixture);
    let libraries = LIBRARIES.iter().filter(|(_, file)| library(file).is_some());
    let ways: Vec<Way> = libraries
        .flat_map(|(name, file)| [Way::Linked(file), Way::Preloaded(file), Way::Named((*name).to_owned())])
        .collect();
    let cheap = &COMMANDS[..4];
    for (number, way) in ways.iter().enumerate() {
        assert_eq!(end_of(&fixture, &cheap[number % cheap.len()], way), Some(Ok(())));
    }
    for (number, command) in COMMANDS[4..].iter().enumerate() {
        let ended =
            ways.iter().cycle().skip(number).take(ways.len()).find_map(|way| end_of(&fixture, command, way));
        assert_eq!(ended, Some(Ok(())), "{:?}", command.words);
    }
}

#[test]
#[ignore = "slow: every command that preloads over every manager"]
fn every_command_that_preloads_works_over_every_manager_by_every_way() {
    let fixture = Fixture::new();
    compile(&fixture);
    let ways = ways(&fixture);
    let cells = ways.iter().flat_map(|way| COMMANDS.iter().map(move |command| (command, way)));
    let wrong: Vec<String> =
        cells.filter_map(|(command, way)| end_of(&fixture, command, way)?.err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_program_that_allocates_only_before_the_c_library_is_initialised_is_compared_and_accounted_for() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "early",
        "static void *early[3]; static void before(void) { for (int i = 0; i < 3; i++) early[i] = malloc(1 << 20); } \
         __attribute__((section(\".preinit_array\"), used)) static void (*const first)(void) = before; \
         int main(void) { memset(early[1], 1, 1 << 20); return 0; }",
    );
    let db = fixture.at("early.db");
    let output =
        fixture.heaptoll(&["run", "-n", "1", "--db", &db, "-m", "glibc", "-m", "mimalloc3", "--", &program]);
    output.exits(0).shows(&["mimalloc3"]);
    fixture.heaptoll(&["ledger", "--", &program]).exits(0).complains(&["live, as requested"]);
}

/// Before the C library is initialised it does not have the environment yet, and drops what is set.
#[test]
fn a_program_that_uses_its_environment_before_the_c_library_has_it_finds_the_same_under_the_recorder() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "environment",
        "static int found; static void look(int bit) { \
             const char *path = getenv(\"PATH\"), *own = getenv(\"OWN\"); \
             found |= (path && *path) << bit | (own && !strcmp(own, \"mine\")) << (bit + 1); } \
         static void before(void) { look(0); found |= !setenv(\"OWN\", \"mine\", 1) << 2; look(3); free(malloc(100)); } \
         __attribute__((section(\".preinit_array\"), used)) static void (*const first)(void) = before; \
         int main(int c, char **v) { look(5); setenv(\"OWN\", \"mine\", 1); look(7); free(malloc(100)); \
             if (c == 1) printf(\"%d\", found); return c > 1 && found != atoi(v[1]); }",
    );
    let natively = Command::new(&program).output().expect("it runs");
    let found = String::from_utf8(natively.stdout).expect("a number");
    assert!(natively.status.success() && !found.is_empty(), "{found}");
    let trace = fixture.at("t");
    for options in [&["--sites"][..], &[]] {
        let record = [&["record", "-f", "-o", &trace], options, &["--", &program, &found]].concat();
        fixture.heaptoll(&record).exits(0);
    }
}

#[test]
fn collections_that_a_process_cannot_have_are_noted_under_the_table() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "raw",
        "#include <sys/syscall.h>\nint main(void) { int status; free(malloc(9)); if (!syscall(SYS_fork)) { \
         for (int i = 0; i < 50000; i++) *(char *volatile)malloc(1000) = 1; _exit(0); } wait(&status); return status; }",
    );
    let db = fixture.at("raw.db");
    let run =
        ["run", "-n", "1", "--db", &db, "-m", "glibc", "-m", "tithe", "-m", "sweep/glibc", "--", &program];
    let note = ["tithe", "sweep/glibc"].map(|stack| {
        format!(
            "Under {stack} the heap grew because collections were abandoned: a process was made by vfork, clone or _Fork"
        )
    });
    fixture.heaptoll(&run).exits(0).shows(&[&note[0], &note[1]]);
}
