//! What commands do with heaptoll's own standard input: each run of the program reads the same, from its beginning.

use std::fs::File;
use std::io::{Read, Seek, Write, pipe};
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::Stdio;

use crate::fixture::{CommandOutput, Fixture};

/// Reads all of its standard input, and appends its length and first byte to the file that it is given.
const READER: &str = r#"
    int main(int count, char **words) {
        long bytes = 0;
        int first = '-', found;
        while ((found = getchar()) != EOF) {
            if (!bytes++) first = found;
            if (bytes % 64 == 0) free(malloc(bytes % 500 + 1));
        }
        FILE *log = fopen(words[1], "a");
        fprintf(log, "%ld%c\n", bytes, first);
        fclose(log);
        return 0;
    }
"#;

/// More than a pipe takes at once.
const BYTES: usize = 100_000;

/// Every command that starts a program, without the words that follow `--`.
const COMMANDS: [&str; 17] = [
    "run -n 1 --warmup 0 -m glibc",
    "gate --new-manager mimalloc3 --limit cpu=none --limit instructions=none --budget 1s",
    "leaks",
    "record -o read.heaptoll",
    "ledger",
    "record --graph -o read.graph",
    "record --sample 1 -o read.pb.gz",
    "instructions",
    "locality",
    "drag",
    "oracle -o read.oracle",
    "choose -n 1 -m glibc -m mimalloc3",
    "minheap --baseline mimalloc3 -m tithe-collect --every 16M -n 1 --tolerance 20",
    "proximity -n 1 --collections 2 -m tithe-collect",
    "delay -m glibc --sizes 64K -n 1",
    "frequency -n 1 -m tithe-collect",
    "reclamation -n 1 -m glibc",
];

/// What standard input is connected to.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Pipe,
    File,
    /// From its second byte on.
    Offset,
}

impl Kind {
    fn open(self, fixture: &Fixture) -> Stdio {
        if let Kind::Pipe = self {
            return piped(vec![b'a'; BYTES]);
        }
        let path = fixture.path("in put");
        std::fs::write(&path, [b"b".to_vec(), b"a".repeat(BYTES - 1)].concat()).expect("written");
        let mut file = File::open(path).expect("it is there");
        if let Kind::Offset = self {
            file.seek(std::io::SeekFrom::Start(1)).expect("a file");
        }
        file.into()
    }

    /// What each run writes.
    fn line(self) -> String {
        match self {
            Kind::Pipe => format!("{BYTES}a"),
            Kind::File => format!("{BYTES}b"),
            Kind::Offset => format!("{}a", BYTES - 1),
        }
    }
}

/// A pipe through which these bytes come.
fn piped(bytes: Vec<u8>) -> Stdio {
    let (reader, mut writer) = pipe().expect("a pipe");
    // What is not read is of no use to the writer.
    std::thread::spawn(move || drop(writer.write_all(&bytes)));
    reader.into()
}

/// Runs a command on the reader. Gives what it printed, and the line of each run.
fn runs(fixture: &Fixture, command: &str, stdin: Stdio) -> (CommandOutput, Vec<String>) {
    let reader = fixture.path("reader");
    let reader = match reader.is_file() {
        true => reader.display().to_string(),
        false => fixture.program("reader", READER),
    };
    let log = fixture.at("log");
    let _ = std::fs::remove_file(&log);
    let words: Vec<&str> = command.split(' ').chain(["--", &reader, &log]).collect();
    let mut command = fixture.command(&words);
    command.current_dir(fixture.path("")).stdin(stdin);
    let output = CommandOutput::from(command.output().expect("heaptoll starts"));
    let lines = std::fs::read_to_string(&log).unwrap_or_default().lines().map(str::to_owned).collect();
    (output, lines)
}

fn each_run_reads_all(command: &str, kind: Kind) {
    let fixture = Fixture::new();
    let (output, lines) = runs(&fixture, command, kind.open(&fixture));
    let is_all = !lines.is_empty() && lines.iter().all(|line| *line == kind.line());
    assert!(is_all && output.code == Some(0), "{command}, {kind:?}: {lines:?}\n{output:?}");
}

/// `cat big.json | heaptoll run -- jq ...` measured jq on an empty input, without a word.
#[test]
fn each_run_of_a_program_reads_all_that_is_piped_to_heaptoll_or_in_the_file_on_its_standard_input() {
    let kinds = [Kind::Pipe, Kind::File, Kind::Offset, Kind::Pipe, Kind::Offset];
    COMMANDS.iter().zip(kinds).for_each(|(command, kind)| each_run_reads_all(command, kind));
}

#[test]
#[ignore = "slow: every command that starts a program, over every kind of standard input"]
fn every_command_gives_standard_input_to_each_run() {
    for command in COMMANDS {
        for kind in [Kind::Pipe, Kind::File, Kind::Offset] {
            each_run_reads_all(command, kind);
        }
    }
}

#[test]
fn a_terminal_and_an_empty_pipe_are_an_empty_input_and_the_terminal_is_reported() {
    let (mut ours, mut theirs) = (0, 0);
    let none = std::ptr::null_mut();
    // SAFETY: the first two point to live integers; the name and the settings may be null (openpty(3)).
    assert_eq!(unsafe { libc::openpty(&mut ours, &mut theirs, none, none.cast(), none.cast()) }, 0);
    // SAFETY: openpty has just opened both, and nothing else owns them.
    let [_ours, theirs] = [ours, theirs].map(|one| unsafe { OwnedFd::from_raw_fd(one) });
    let fixture = Fixture::new();
    let (output, lines) = runs(&fixture, COMMANDS[0], theirs.into());
    output.exits(0).complains(&["standard input is a terminal", "`< FILE`"]);
    assert!(lines.iter().all(|line| line == "0-") && lines.len() > 1, "{lines:?}");
    let (output, lines) = runs(&fixture, COMMANDS[0], piped(vec![]));
    let output = output.exits(0);
    assert!(lines.iter().all(|line| line == "0-"), "{lines:?}");
    assert!(!output.err.contains("standard input"), "{}", output.err);
}

#[test]
fn programs_of_the_catalog_and_a_named_file_leave_standard_input_alone() {
    let fixture = Fixture::new();
    let reader = fixture.program("reader", READER);
    let (file, log, config) = (fixture.at("file"), fixture.at("log"), fixture.path("heaptoll.toml"));
    std::fs::write(&file, "xyz").expect("written");
    std::fs::write(config, format!("[gate.x]\nbase = '{reader} {log}'\nnew = '{reader} {log} new'\n"))
        .expect("written");
    let once = ["run", "-n", "1", "--warmup", "0", "-m", "glibc"];
    let named = [&once[..], &["--stdin", &file, "--", &reader, &log]].concat();
    let catalog = [&once[..], &["-p", "cfrac", "--size", "tiny"]].concat();
    let gate = ["gate", "--limit", "cpu=none", "--limit", "exit=none", "--budget", "1s"];
    for (words, expected) in [(&named[..], Some("3x")), (&catalog[..], None), (&gate[..], Some("0-"))] {
        let _ = std::fs::remove_file(&log);
        let (mut reader, mut writer) = pipe().expect("a pipe");
        writer.write_all(b"left").expect("it fits");
        let mut command = fixture.command(words);
        command.current_dir(fixture.path("")).stdin(reader.try_clone().expect("another"));
        CommandOutput::from(command.output().expect("heaptoll starts")).exits(0);
        let lines = std::fs::read_to_string(&log).ok();
        assert!(lines.as_deref().and_then(|lines| lines.lines().next()) == expected, "{words:?}: {lines:?}");
        drop(writer);
        let mut left = String::new();
        reader.read_to_string(&mut left).expect("reads");
        assert_eq!(left, "left", "{words:?}");
    }
}

#[test]
fn an_experiment_over_a_pipe_is_compared_by_its_digest_and_not_resumed_planned_or_packed() {
    let fixture = Fixture::new();
    let measured = |name: &str, stdin: Stdio| {
        let db = fixture.at(name);
        runs(&fixture, &format!("run -n 1 --warmup 0 -m glibc --db {db}"), stdin).0.exits(0);
        db
    };
    let [one, same] = ["one.db", "same.db"].map(|name| measured(name, piped(b"abc".to_vec())));
    let other = measured("other.db", piped(b"xyz".to_vec()));
    let shown = |a: &str, b: &str| {
        let output = fixture.heaptoll(&["diff", a, b]);
        format!("{}{}", output.out, output.err)
    };
    assert!(!shown(&one, &same).contains("standard input"), "{}", shown(&one, &same));
    let pipe = "standard input is a pipe (SHA-256 ba7816bf";
    assert!(shown(&one, &other).contains(pipe), "{}", shown(&one, &other));
    fixture
        .heaptoll(&["run", "--resume", &one, "-n", "2"])
        .exits(2)
        .complains(&["came from a pipe", "--stdin FILE"]);
    let folder = fixture.at("artifact");
    fixture
        .heaptoll(&["lab", "artifact", &one, "-o", &folder])
        .exits(2)
        .complains(&["was a pipe and is not kept", "--stdin FILE"]);
    let plan = "plan -o x.plan -n 1 -m glibc";
    runs(&fixture, plan, piped(b"abc".to_vec())).0.exits(2).complains(&["was a pipe", "--stdin FILE"]);
    // A file is there for the next command, which names it.
    let named = fixture.json(&measured("file.db", Kind::File.open(&fixture)));
    let words = named["experiment"]["settings"]["repeat_command"].to_string();
    assert!(words.contains(&format!(r#""--stdin","{}","--""#, fixture.at("in put"))), "{words}");
}
