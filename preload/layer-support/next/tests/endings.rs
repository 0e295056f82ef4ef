//! The end is found where it begins, and the program behaves as without the layer.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The lines of the program's end, as the witness writes them.
const END: &str = "end\n";
const IMMEDIATE: &str = "immediate end\n";

fn compile(name: &str, flags: &[&str]) -> PathBuf {
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.{}", std::process::id()));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ends.cc");
    let compiler = Command::new("c++").args(flags).arg("-pthread").arg("-o").args([&made, &source]).status();
    assert!(compiler.unwrap().success());
    made
}

fn witness() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.ancestors().nth(2).unwrap().join("examples/libwitness.so")
}

/// Runs it without the witness and with it, whose lines are all that may differ. Returns what it wrote with it.
fn ends(command: &mut Command) -> String {
    let plain = command.output().unwrap();
    let Output { status, stdout, stderr } = command.env("LD_PRELOAD", witness()).output().unwrap();
    let stdout = String::from_utf8(stdout).unwrap();
    assert_eq!((status, &stderr), (plain.status, &plain.stderr), "{stdout}");
    let other = stdout.replace(IMMEDIATE, "").replace(END, "");
    assert_eq!(other, String::from_utf8(plain.stdout).unwrap());
    stdout
}

/// Ways to end by `exit`: what comes after is known by its lines.
const HANDLERS: &[&str] = &[
    "return",
    "exit",
    "err",
    "quick_exit",
    "bare return",
    "bare err",
    "local exit",
    "local err",
    "local return",
    "exit in handler",
    "many handlers",
    "thread",
    "exit in thread",
    "err in thread",
    "pthread_exit",
    "local pthread_exit",
    "dlclose",
    "vfork and exec",
    "failed exec",
    "handled SIGTERM",
];

#[test]
fn the_end_begins_before_the_first_handler_and_behaviour_is_as_without_the_layer() {
    let (program, plugin) =
        (compile("ends", &["-O1"]), compile("plugin.so", &["-DPLUGIN", "-fPIC", "-shared"]));
    let run = |way: &str| ends(Command::new(&program).arg(way).arg(&plugin));
    for way in HANDLERS {
        let stdout = run(way);
        let (before, after) = stdout.split_once(END).unwrap_or_else(|| panic!("{way}: {stdout}"));
        assert!(!before.contains("after") && !after.contains(END), "{way}: {stdout}");
        assert!(after.split_inclusive('\n').all(|line| line.starts_with("after")), "{way}: {stdout}");
        assert!(after.contains("after") && !after.contains("immediate"), "{way}: {stdout}");
    }
    for way in ["_exit", "_Exit"] {
        assert_eq!(run(way), "begins\nimmediate end\n");
    }
    for way in ["exec", "SIGTERM", "abort", "SIGSEGV"] {
        assert_eq!(run(way), "begins\n", "{way}");
    }
    assert_eq!(run("vfork").matches("end\n").count(), 2, "the child's and the parent's");
    assert!(run("vfork").starts_with("begins\nimmediate end\nchild: 3\nreturns\nend\nafter"));
    assert!(run("fork").starts_with("begins\nforked\nend\nafter"));
    assert_eq!(run("fork").matches(END).count(), 2, "the child's and the parent's");
    for file in [program, plugin] {
        std::fs::remove_file(file).unwrap();
    }
}

#[test]
fn rusts_process_exit_is_found() {
    const AGAIN: &str = "HEAPTOLL_TEST_EXITS";
    if std::env::var_os(AGAIN).is_some() {
        std::process::exit(7);
    }
    let tests = std::env::current_exe().unwrap();
    let mut again = Command::new(tests);
    again.args(["--exact", "rusts_process_exit_is_found", "--nocapture", "--test-threads=1"]);
    let stdout = ends(again.env(AGAIN, "1"));
    assert!(stdout.ends_with(END), "{stdout}");
}
