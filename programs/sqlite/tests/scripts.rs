//! What the program prints for scripts, with the lookaside and without it.

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn run(arguments: &[&str], script: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_heaptoll-sqlite"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses its arguments reads nothing.
    let _ = child.stdin.take().unwrap().write_all(script);
    child.wait_with_output().unwrap()
}

#[test]
fn rows_are_printed_as_sqlite3_prints_them() {
    let script = b"create table t(a, b);\n-- a comment\ninsert into t values (1, 'one'), (2, null);\n\
                   select a, b from t order by a; select count(*) from t;\n";
    for arguments in [&[][..], &["--no-lookaside"]] {
        let output = run(arguments, script);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(output.stdout, b"1|one\n2|\n2\n");
    }
}

#[test]
fn this_sqlite_has_a_lookaside_to_switch_off() {
    let output = run(&[], b"pragma compile_options;");
    let options = String::from_utf8(output.stdout).unwrap();
    assert!(options.contains("SYSTEM_MALLOC") && !options.contains("OMIT_LOOKASIDE"), "{options}");
}

#[test]
fn bad_sql_bytes_and_arguments_are_refused() {
    for (arguments, script, status) in [
        (&[][..], &b"select * from nothing;"[..], 1),
        (&[], b"select 1;\xff", 1),
        (&["--lookaside"], b"", 2),
        (&["--no-lookaside", "x"], b"", 2),
    ] {
        let output = run(arguments, script);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}");
        assert!(!output.stderr.is_empty());
    }
}
