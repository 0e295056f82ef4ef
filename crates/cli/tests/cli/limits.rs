//! Limits of the shell (`ulimit`) that heaptoll and the program meet: a message names the one that is too low.

use std::process::Command;

use crate::fixture::{CommandOutput, Fixture};

/// heaptoll under a limit. Sizes are KiB as bash takes them; other shells take file sizes in blocks.
fn limited(fixture: &Fixture, limit: &str, arguments: &[&str]) -> CommandOutput {
    let script = format!("ulimit {limit}; exec \"$0\" \"$@\"");
    let mut command = Command::new("bash");
    fixture.prepare(&mut command);
    command.args(["-c", &script, env!("CARGO_BIN_EXE_heaptoll")]).args(arguments);
    command.output().expect("bash runs").into()
}

/// A limit, a command, and the limit in its words.
const LOW: [(&str, &[&str], &str); 15] = [
    ("-n 10", &["ledger"], "only 10 files may be open: raise the limit (`ulimit -n`)"),
    ("-n 6", &["ledger"], "only 6 files may be open: raise the limit (`ulimit -n`)"),
    ("-n 6", &["record", "-f", "-o", "t"], "only 6 files may be open: raise the limit (`ulimit -n`)"),
    ("-n 6", &["run", "-n", "1", "-m", "glibc"], "only 6 files may be open: raise the limit (`ulimit -n`)"),
    (
        "-f 100",
        &["record", "--sample", "64K", "-o", "t"],
        "not sampled: files may not exceed 100 KiB: raise the",
    ),
    ("-f 100", &["record", "-f", "-o", "t"], "files may not exceed 100 KiB: raise the limit (`ulimit -f`)"),
    (
        "-d 40000",
        &["record", "--sites", "-f", "-o", "t"],
        "private memory is limited to 40\u{202f}000 KiB: raise the limit (`ulimit -d`)",
    ),
    ("-d 20000", &["leaks"], "private memory is limited to 20\u{202f}000 KiB: raise the limit (`ulimit -d`)"),
    ("-d 4000", &["record", "-f", "-o", "t"], "private memory is limited to 4000 KiB: raise the"),
    ("-d 8000", &["record", "-f", "-o", "t"], "private memory is limited to 8000 KiB: raise the"),
    ("-d 4000", &["ledger"], "private memory is limited to 4000 KiB: raise the limit (`ulimit -d`)"),
    ("-d 4000", &["run", "-n", "1", "-m", "glibc"], "private memory is limited to 4000 KiB: raise the"),
    // Before, the panic of a thread without memory waited for itself, for ever, where RUST_BACKTRACE was set.
    ("-d 16000", &["gate"], "private memory is limited to 16\u{202f}000 KiB: raise the limit (`ulimit -d`)"),
    ("-s 128", &["ledger"], "under glibc"),
    ("-d 40000", &["leaks"], "private memory is limited to 40\u{202f}000 KiB: raise the limit (`ulimit -d`)"),
];

#[test]
fn a_limit_that_is_too_low_is_named_with_its_value_and_the_command_that_raises_it() {
    let fixture = Fixture::new();
    let program =
        fixture.program("program", "int main(void) { for (int i = 0; i < 99; i++) malloc(999); return 0; }");
    let at = |word: &&str| if *word == "t" { fixture.at("t") } else { (*word).to_owned() };
    for (limit, command, words) in LOW {
        let command: Vec<String> = command.iter().map(at).chain(["--".into(), program.clone()]).collect();
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let output = limited(&fixture, limit, &command);
        let (all, ended) = (format!("{}{}", output.out, output.err), output.code);
        assert!(all.contains(words) && ended.is_some(), "ulimit {limit}, {command:?}, {ended:?}:\n{all}");
        for guess in ["make build", "MiB free", "aspacem"] {
            assert!(!output.err.contains(guess), "ulimit {limit}, {command:?}:\n{}", output.err);
        }
    }
}

/// Before, SIGXFSZ killed such a program under the tracer, whose ring is a larger file.
#[test]
fn a_program_with_a_limit_on_file_sizes_lives_on_under_the_tracer() {
    let fixture = Fixture::new();
    let program = fixture.program("program", "int main(void) { malloc(999); return 0; }");
    let shell = ["-c", "ulimit -f 100; exec \"$0\"", program.as_str()];
    let output = fixture.heaptoll(&[&["leaks", "--", "bash"], &shell[..]].concat());
    assert!(
        !output.err.contains("signal 25") && !output.out.contains("signal 25"),
        "{}{}",
        output.out,
        output.err
    );
}
