//! The commands of the README and of the page of all commands, run.

use std::process::Command;
use std::time::Instant;

use crate::fixture::{CommandOutput, Fixture};
use commands::{Shown, of_markdown};

#[path = "../documented/commands.rs"]
pub mod commands;

const PAGES: [(&str, &str); 2] = [
    ("README.md", include_str!("../../../../README.md")),
    ("docs/which-command.md", include_str!("../../../../docs/which-command.md")),
];

/// Commands that are not run, and why.
const LEFT_OUT: [(&str, &str); 4] = [
    ("trace import FILE", "it needs a recording of heaptrack; the tests of imports read some"),
    ("lab study all", "half an hour"),
    ("lab study zorn1992", "minutes; `make study` runs it"),
    ("record attach SOCKET", "it needs a program that runs; the tests of sampling wake one"),
];
/// The name of a command in a sentence, which is no command by itself.
const MENTIONED: [&str; 1] = ["exact instructions"];
/// What a command needs that may not be installed.
const NEEDS: [(&str, &str); 1] = [("redis-server", "/usr/bin/redis-server")];

/// By the beginning of a command that would take a quarter of an hour or more as it stands, options by which it does
/// the same in little.
const IN_LITTLE: [(&str, &[&str]); 8] = [
    // The rows before it recorded the same program.
    ("record", &["--force"]),
    ("choose", &["-n", "1", "-m", "glibc", "-m", "mimalloc3"]),
    ("lab proximity", &["-n", "1", "--collections", "10", "-p", "kv"]),
    ("lab minheap", &["--baseline", "mimalloc3", "--every", "16M", "-n", "1", "--tolerance", "20"]),
    ("run --heaps", &["-n", "1", "--warmup", "0"]),
    ("run -m quarantine", &["-n", "1", "--warmup", "0"]),
    ("run --exact", &["-n", "1", "--warmup", "0", "-m", "mimalloc3"]),
    ("run --serve", &["-n", "1", "--warmup", "0", "-m", "mimalloc3"]),
];

/// A word of a page, replaced for this run where it is a placeholder.
fn filled(word: &str, words: &[String]) -> String {
    let command = if words[0] == "lab" { &words[1] } else { &words[0] };
    let command = command.as_str();
    match word {
        // Of a heap that can be fixed.
        "NAME" if command == "minheap" => "sweep/mimalloc3".into(),
        "NAME" => "glibc".into(),
        "TRACE" if matches!(command, "conservatism" | "replay-graph") => "t.graph".into(),
        "TRACE" => "t.heaptoll".into(),
        "DB" | "A.db" => "a.db".into(),
        "B.db" => "b.db".into(),
        "A" | "B" | "before.heaptoll" | "after.heaptoll" if command == "diff" => "t.heaptoll".into(),
        "A.json" | "B.json" => "counts.json".into(),
        // A search makes a hundred runs, in heaps that are collected all the time.
        "COMMAND" if command == "minheap" => "./small-program".into(),
        "COMMAND" | "PROGRAM" => "./your-program".into(),
        // Each run of a choice waits so long after its load.
        "1s,10s,60s" => "1s".into(),
        "5m" => "20s".into(),
        _ if command == "run" && word == "its" => "its".into(),
        _ => word.to_owned(),
    }
}

#[test]
#[ignore = "slow: runs every command of the README, some of them hundreds of times"]
fn every_command_of_the_readme_and_of_the_page_of_commands_runs() {
    let fixture = Fixture::new();
    fixture.program(
        "your-program",
        "int main(void) { for (int i = 0; i < 90000; i++) free(malloc(i)); return 0; }",
    );
    fixture.program(
        "small-program",
        "int main(void) { for (int i = 0; i < 2000; i++) free(malloc(1000)); return 0; }",
    );
    // Two builds that hold the same.
    for name in ["old", "new"] {
        std::fs::copy(fixture.path("your-program"), fixture.path(name)).expect("copies");
    }
    std::fs::rename(fixture.manager("mine", ""), fixture.path("mine.so")).expect("renames");
    let heaptoll = |words: &[&str]| -> CommandOutput {
        let mut command: Command = fixture.command(words);
        command.current_dir(fixture.path(".")).output().expect("heaptoll starts").into()
    };
    heaptoll(&["record", "--sites", "-o", "t.heaptoll", "--", "./your-program"]).exits(0);
    heaptoll(&["record", "--graph", "-o", "t.graph", "--", "./your-program"]).exits(0);
    heaptoll(&["exact", "instructions", "--json", "counts.json", "--", "./small-program"]).exits(0);
    for db in ["a.db", "b.db"] {
        heaptoll(&["run", "--db", db, "-m", "glibc", "-m", "mimalloc3", "-n", "2", "--", "./your-program"])
            .exits(0);
    }
    let mut ran = 0;
    let mut failed = Vec::new();
    for Shown { place, words } in PAGES.iter().flat_map(|(name, text)| of_markdown(name, text)) {
        let line = words.join(" ");
        let needs =
            NEEDS.iter().any(|(word, path)| line.contains(word) && !std::path::Path::new(path).exists());
        if needs
            || MENTIONED.contains(&line.as_str())
            || LEFT_OUT.iter().any(|(known, _)| line.starts_with(known))
        {
            continue;
        }
        let mut words: Vec<String> = words.iter().map(|word| filled(word, &words)).collect();
        // Each output is a file of its own.
        for (index, word) in words.iter_mut().enumerate().filter(|(_, word)| *word == "F") {
            *word = format!("out.{index}");
        }
        // A command shown by its options alone gets a program.
        let takes_program = ["run", "record"].contains(&words[0].as_str());
        if takes_program && !words.iter().any(|word| word == "--" || word == "--serve") {
            words.extend(["--", "./your-program"].map(String::from));
        }
        let little = IN_LITTLE.iter().filter(|(known, _)| line.starts_with(known));
        let little = little.flat_map(|(_, options)| *options).map(|option| (*option).to_owned());
        let at = if words[0] == "lab" { 2 } else { 1 };
        words.splice(at..at, little);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let begun = Instant::now();
        let output = heaptoll(&words);
        eprintln!("{:6.1} s  exit {:?}  heaptoll {line}", begun.elapsed().as_secs_f64(), output.code);
        // A study of collections has nothing to study in a program without any.
        let nothing = line.starts_with("lab frequency") && output.err.contains("has no collection");
        if output.code != Some(0) && !nothing {
            failed.push(format!("{place}: heaptoll {line}\n{}\n{}", output.out, output.err));
        }
        ran += 1;
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    assert!(ran > 15, "only {ran} commands were run");
}
