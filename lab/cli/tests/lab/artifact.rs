//! Artifacts for papers: made, verified, measured again; and every way in which one can be damaged or lack something.

use std::path::Path;
use std::process::Command;

use crate::fixture::{CommandOutput, Fixture, read_json, text};
use crate::schemas::validate;

/// A program with some work for malloc.
const WORK: &str = "int main(void) { long sum = 0; for (int i = 0; i < 20000; i++) { char *p = malloc(16 + i % 99); \
                    p[0] = i; sum += p[0]; free(p); } printf(\"%ld\\n\", sum); return 0; }";
const COMMON: [&str; 8] = ["-m", "glibc", "-m", "glibc", "--seed", "7", "-n", "6"];

/// heaptoll where the C library is of the package `known` in version 1.0-1, and the mirror has `mirror`.
fn with_packages(fixture: &Fixture, mirror: &str, words: &[&str]) -> CommandOutput {
    fixture.script(
        "dpkg-query",
        "#!/bin/sh\nif [ \"$1\" = -S ]; then shift; for path; do case $path in\n\
         */libc.so.6) echo \"known:amd64: $path\" ;; esac; done\n\
         else printf 'known\\tamd64\\t1.0-1\\tinstalled\\n'; fi\n",
    );
    let line = format!("#!/bin/sh\necho ' known | {mirror} | http://mirror bookworm/main amd64 Packages'\n");
    fixture.script("apt-cache", &line);
    let folder = Path::new(&fixture.at("x")).parent().expect("a folder").display().to_string();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    fixture.command(words).env("PATH", path).output().expect("heaptoll runs").into()
}

/// The artifact `made` of a small experiment.
fn artifact(fixture: &Fixture) -> String {
    let program = fixture.program("prog", WORK);
    let (db, folder) = (fixture.at("exp.db"), fixture.at("made"));
    fixture.heaptoll(&[&["run", "--db", &db], &COMMON[..], &["--", &program]].concat()).exits(0);
    with_packages(fixture, "1.0-1", &["lab", "artifact", &db, "-o", &folder])
        .exits(0)
        .complains(&["1 Debian package", "heaptoll lab artifact --check"]);
    folder
}

#[test]
fn an_artifact_is_verified_and_its_script_measures_it_again() {
    let fixture = Fixture::new();
    let folder = artifact(&fixture);
    let described = read_json(&fixture.at("made/artifact.json"));
    validate("artifact.json", &described.to_string());
    let roles = ["program", "library", "launcher", "object"];
    let files = described["files"].as_array().expect("files");
    for role in roles {
        assert!(files.iter().any(|file| text(&file["role"]) == role), "{role}: {files:?}");
    }
    assert_eq!(text(&described["packages"][0]["version"]), "1.0-1");
    assert_eq!(
        text(&described["machines"][0]["kernel"]),
        text(&described["experiment"]["machine"]["kernel"])
    );
    with_packages(&fixture, "1.0-1", &["lab", "artifact", "--check", &folder]).exits(0).shows(&[
        "whole: 3 files",
        "with the same SHA-256",
        "has it",
    ]);
    with_packages(&fixture, "1.0-2", &["lab", "artifact", "--check", &folder])
        .exits(1)
        .shows(&["no longer has it, but 1.0-2"]);

    let mut replay = Command::new(fixture.path("made/replay"));
    replay.arg(fixture.at("again.db")).env("HEAPTOLL", crate::HEAPTOLL);
    fixture.prepare(&mut replay);
    let output: CommandOutput = replay.output().expect("the script runs").into();
    output.exits(0).shows(&["2 verdicts: ", "glibc#2"]);
    // It is never written over.
    let again: CommandOutput = replay.output().expect("the script runs").into();
    again.exits(2).complains(&["again.db"]);
    let other = fixture.at("other.db");
    let program = fixture.program("other", WORK);
    fixture.heaptoll(&[&["run", "--db", &other], &COMMON[..], &["--", &program, "x"]].concat()).exits(0);
    let compared = fixture.heaptoll(&["lab", "artifact", "--verdicts", &folder, &other]);
    compared.exits(2).complains(&["no program and manager of the artifact"]);
}

/// On another machine no input is where it was; that is no loss where heaptoll generates it.
#[test]
fn a_missing_input_that_heaptoll_generates_is_called_so() {
    let fixture = Fixture::new();
    let (db, folder) = (fixture.at("exp.db"), fixture.at("made"));
    let of_catalog = ["-p", "perl", "--size", "quick", "-n", "1", "--warmup", "0", "-m", "glibc"];
    fixture.heaptoll(&[&["run", "--db", &db], &of_catalog[..]].concat()).exits(0);
    let artifact = |words: &[&str]| with_packages(&fixture, "1.0-1", &[&["lab", "artifact"], words].concat());
    artifact(&[&db, "-o", &folder]).exits(0);
    let check = || artifact(&["--check", &folder]);
    assert!(!check().out.contains("generates"), "it is here");
    std::fs::remove_dir_all(fixture.path("cache")).expect("removes");
    check().exits(1).shows(&["missing", "`replay` generates 1 input."]);
}

#[test]
fn what_is_not_here_is_named() {
    let fixture = Fixture::new();
    let folder = artifact(&fixture);
    let program = fixture.program("prog", &WORK.replace("20000", "20001"));
    let check = || with_packages(&fixture, "1.0-1", &["lab", "artifact", "--check", &folder]);
    check().exits(1).shows(&[&program, "differs"]);
    std::fs::remove_file(&program).expect("removes");
    check().exits(1).shows(&[&program, "missing"]);
    let late = fixture.at("late");
    fixture.program("prog", WORK);
    with_packages(&fixture, "1.0-1", &["lab", "artifact", &fixture.at("exp.db"), "-o", &late])
        .exits(0)
        .complains(&["changed after the experiment began"]);
}

#[test]
fn a_damaged_artifact_is_refused() {
    let fixture = Fixture::new();
    let folder = artifact(&fixture);
    let refused = |words: &[&str]| {
        fixture.heaptoll(&["lab", "artifact", "--check", &folder]).exits(2).complains(words);
        fixture
            .heaptoll(&["lab", "artifact", "--verdicts", &folder, &fixture.at("exp.db")])
            .exits(2)
            .complains(words);
    };
    for (name, words) in [
        ("rows.db", ["rows.db", "its SHA-256 is"]),
        ("replay", ["replay", "its SHA-256 is"]),
        ("artifact.json", ["artifact.json", "is damaged or was changed"]),
    ] {
        let path = fixture.path("made").join(name);
        let whole = std::fs::read(&path).expect("reads");
        let mut bytes = whole.clone();
        // A digit within a number or a name, so that what is JSON stays JSON.
        let at = bytes.iter().rposition(u8::is_ascii_digit).expect("a digit");
        bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
        std::fs::write(&path, &bytes).expect("writes");
        refused(&words);
        std::fs::remove_file(&path).expect("removes");
        refused(&[if name == "artifact.json" {
            "is not an artifact"
        } else {
            "is missing from the artifact"
        }]);
        std::fs::write(&path, &whole).expect("writes");
    }
    let path = fixture.path("made/artifact.json");
    let whole = std::fs::read_to_string(&path).expect("reads");
    for (from, to, words) in [
        ("\"version\": 1,", "\"version\": 9,", "is an artifact of version 9"),
        ("heaptoll-artifact", "another", "its format is `another`"),
    ] {
        std::fs::write(&path, whole.replacen(from, to, 1)).expect("writes");
        refused(&[words]);
    }
    std::fs::write(&path, &whole[..whole.len() / 2]).expect("writes");
    refused(&["is not an artifact"]);
    let db = fixture.at("exp.db");
    fixture.heaptoll(&["lab", "artifact", &db, "-o", &folder]).exits(2).complains(&["exists"]);
    fixture.heaptoll(&["lab", "artifact", &db, "-o", "/proc/nowhere"]).exits(2).complains(&["/proc/nowhere"]);
}

#[test]
fn an_artifact_of_shards_has_their_plan() {
    let fixture = Fixture::new();
    let program = fixture.program("prog", WORK);
    let (plan, shards, folder) = (fixture.at("exp.plan"), fixture.at("shards"), fixture.at("made"));
    let planned = |path: &str, seed: &str| {
        let words = [
            "lab",
            "shards",
            "plan",
            "-o",
            path,
            "-m",
            "glibc",
            "-m",
            "glibc",
            "-n",
            "2",
            "--shard-time",
            "0.001s",
        ];
        fixture.heaptoll(&[&words[..], &["--seed", seed, "--", &program]].concat()).exits(0);
    };
    planned(&plan, "7");
    planned(&fixture.at("other.plan"), "8");
    let work = |shard: &str| {
        fixture.heaptoll(&["lab", "shards", "work", &plan, "--shard", shard, "-o", &shards]).exits(0);
    };
    work("0");
    let (half, all) = (fixture.at("half.db"), fixture.at("all.db"));
    fixture.heaptoll(&["lab", "shards", "merge", &half, &shards]).exits(1);
    work("1");
    fixture.heaptoll(&["lab", "shards", "merge", &all, &shards]).exits(0);
    let make = |words: &[&str]| {
        with_packages(&fixture, "1.0-1", &[&["lab", "artifact", "-o", &folder], words].concat())
    };
    make(&[&half, "--plan", &plan]).exits(2).complains(&["is not complete"]);
    make(&[&all]).exits(2).complains(&["--plan"]);
    make(&[&all, "--plan", &fixture.at("other.plan")]).exits(2).complains(&["is not the plan of"]);
    make(&[&all, "--plan", &plan]).exits(0);
    assert_eq!(std::fs::read(fixture.path("made/exp.plan")).ok(), std::fs::read(&plan).ok());
    let script = std::fs::read_to_string(fixture.path("made/replay")).expect("reads");
    assert!(script.contains("for shard in 0 1; do"), "{script}");
}
