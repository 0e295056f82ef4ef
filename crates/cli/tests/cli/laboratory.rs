//! What the product hands over to the laboratory, and what it tells where there is none or one that cannot be started.

use std::process::Command;

use crate::fixture::{CommandOutput, Fixture, stored};

/// A laboratory that prints what it is stated and given.
const PRINTS: &str = "#!/bin/sh\nprintf '<%s>' \"$HEAPTOLL_PRODUCT\" \"$@\"\nexit 7\n";
/// One that the system cannot start.
const BROKEN: &str = "#!/nowhere/sh\n";

/// A folder with heaptoll, next to a laboratory that is this script.
fn next_to(laboratory: Option<&str>) -> Fixture {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("bin")).expect("makes");
    let copied = Command::new("cp").args([crate::HEAPTOLL, &fixture.at("bin/heaptoll")]).status();
    assert!(copied.expect("cp runs").success());
    if let Some(script) = laboratory {
        fixture.script("bin/heaptoll-lab", script);
    }
    fixture
}

/// Runs the heaptoll in this folder.
fn heaptoll(fixture: &Fixture, words: &[&str]) -> CommandOutput {
    let mut command = Command::new(fixture.path("bin/heaptoll"));
    fixture.prepare(&mut command);
    command.env("HEAPTOLL_HOME", heaptoll_testing::staged::home()).args(words);
    command.output().expect("heaptoll starts").into()
}

/// A small experiment of glibc in a file.
fn experiment(fixture: &Fixture) -> String {
    let db = fixture.at("e.db");
    let words = ["run", "-m", "glibc", "-n", "1", "--warmup", "0", "--db", &db, "--", "ls", "/"];
    heaptoll(fixture, &words).exits(0);
    db
}

/// The same with a stack whose environment names the scratch folder of a run, as Java's collectors have it.
fn experiment_of_java(fixture: &Fixture) -> String {
    let db = experiment(fixture);
    let written = rusqlite::Connection::open(&db).and_then(|file| {
        let (empty, java) = (r#""environment":[]"#, r#""environment":[["JAVA_TOOL_OPTIONS","{tmp}/log"]]"#);
        let replace = "UPDATE description SET value = replace(value, ?1, ?2) WHERE key = 'stacks'";
        file.execute(replace, [empty, java])
    });
    assert_eq!(written.expect("writes"), 1);
    db
}

/// One whose search of smallest heaps was stopped, among them that of a stack that only the laboratory reads.
fn search(fixture: &Fixture) -> String {
    let (db, found) = (experiment(fixture), fixture.at("search.db"));
    std::fs::rename(db, &found).expect("renames");
    let searched = r#"{"factors":[2.0],"managers":["glibc","oracle=last-use/glibc"],"chooses_baseline":false,
        "together":[],"at_once_bytes":null}"#;
    let written = rusqlite::Connection::open(&found).and_then(|file| {
        file.execute("UPDATE description SET value = '[]' WHERE key = 'stacks'", [])?;
        file.execute("INSERT INTO description VALUES ('attached:heaps', ?1)", [searched])
    });
    assert_eq!(written.expect("writes"), 1);
    found
}

/// Two files with what `diff` reads of those that `heaptoll lab delay` writes.
fn of_delay(fixture: &Fixture) -> [String; 2] {
    ["a.json", "b.json"].map(|name| {
        std::fs::write(fixture.path(name), "{\"schema\": \"heaptoll-delay/1\"}").expect("writes");
        fixture.at(name)
    })
}

#[test]
fn what_needs_a_laboratory_that_is_missing_is_refused_with_how_to_get_it() {
    let fixture = next_to(None);
    for (words, what) in [
        (&["lab", "delay", "--help"][..], "`heaptoll lab delay --help`"),
        (&["lab"], "`heaptoll lab`"),
        (&["help", "lab"], "`heaptoll lab help`"),
        (&["study", "all"], "`heaptoll lab study all`"),
        (&["replay", "t", "--graph"], "`heaptoll lab replay-graph t`"),
        (&["run", "-m", "oracle=last-use/glibc", "--", "ls"], "`oracle=last-use/glibc`"),
        (&["exact", "instructions", "-m", "oracle=last-use/glibc", "--", "ls"], "`oracle=last-use/glibc`"),
        (&["run", "-m", "jvm", "--", "ls"], "jvm"),
        (&["programs", "add", "malloc-bench"], "`heaptoll programs add`"),
        (&["managers", "add", "hoard"], "`heaptoll managers add`"),
    ] {
        heaptoll(&fixture, words).exits(2).complains(&[what, "the laboratory", "make lab", "heaptoll-lab"]);
    }
    let [a, b] = of_delay(&fixture);
    let refused = heaptoll(&fixture, &["diff", &a, &b]).exits(2);
    refused.complains(&["a.json, whose schema is heaptoll-delay/1, needs the laboratory", "make lab"]);
}

/// Before, they were refused with how to get a laboratory that was there.
#[test]
fn where_a_laboratory_is_javas_collectors_are_refused_without_how_to_get_it() {
    let refused = heaptoll(&next_to(Some(PRINTS)), &["record", "-m", "jvm-g1", "--", "ls"]).exits(2);
    let refused = refused.complains(&["no manager `jvm-g1`", "a whole program: run, minheap, proximity"]);
    assert!(!refused.err.contains("make lab"), "{}", refused.err);
}

#[test]
fn a_word_that_is_no_command_is_no_matter_of_the_laboratory() {
    for laboratory in [None, Some(PRINTS), Some(BROKEN)] {
        let typed = heaptoll(&next_to(laboratory), &["studdy"]).exits(2);
        typed.complains(&["unrecognized subcommand", "there is `heaptoll lab study`"]);
    }
}

/// Before, it went on, and counted no collections.
#[test]
fn an_experiment_with_javas_collectors_does_not_go_on_without_the_laboratory() {
    let fixture = next_to(None);
    let db = experiment_of_java(&fixture);
    let (rows, words) = (stored(&db), ["run", "--resume", &db, "-n", "3"]);
    let what = format!("{db}, which has collectors of Java, needs the laboratory");
    heaptoll(&fixture, &words).exits(2).complains(&[&what, "make lab"]);
    assert_eq!(stored(&db), rows);
}

#[test]
fn what_needs_the_laboratory_is_handed_over_with_the_products_version() {
    let fixture = next_to(Some(PRINTS));
    let version = heaptoll(&fixture, &["--version"]).exits(0).out.replace("heaptoll ", "");
    let stated = format!("<{}>", version.trim());
    let search = search(&fixture);
    let db = experiment_of_java(&fixture);
    let [a, b] = of_delay(&fixture);
    let stack = "oracle=last-use/glibc";
    for (words, given) in [
        (&["lab", "delay", "--", "a b"][..], "<lab><delay><--><a b>".to_owned()),
        (&["study", "--list"], "<lab><study><--list>".to_owned()),
        (&["replay", "t", "--graph"], "<lab><replay-graph><t>".to_owned()),
        (&["help", "lab"], "<lab><help>".to_owned()),
        (&["managers"], "<managers>".to_owned()),
        (&["programs", "add", "h2", "--from", "a b"], "<programs><add><h2><--from><a b>".to_owned()),
        (&["managers", "add", "hoard"], "<managers><add><hoard>".to_owned()),
        (&["run", "--resume", &db], format!("<run><--resume><{db}>")),
        (&["run", "-m", stack, "--", "ls"], format!("<run><-m><{stack}><--><ls>")),
        (&["diff", &a, &b], format!("<diff><{a}><{b}>")),
        (&["choose", "-m", stack, "--", "ls"], format!("<choose><-m><{stack}><--><ls>")),
        (&["record", "-m", stack, "--", "ls"], format!("<record><-m><{stack}><--><ls>")),
        (&["replay", &db, "-m", stack], format!("<trace><replay><{db}><-m><{stack}>")),
        (&["run", "--resume", &search], format!("<run><--resume><{search}>")),
    ] {
        assert_eq!(heaptoll(&fixture, words).exits(7).out, format!("{stated}{given}"));
    }
    heaptoll(&fixture, &["programs", "--help"]).exits(0).shows(&["heaptoll programs"]);
}

/// Before, each `--resume` and each mistyped word failed.
#[test]
fn a_laboratory_that_cannot_be_started_breaks_only_what_needs_it() {
    let fixture = next_to(Some(BROKEN));
    heaptoll(&fixture, &["lab", "study"])
        .exits(2)
        .complains(&["cannot start the laboratory", "install it again"]);
    let db = experiment(&fixture);
    heaptoll(&fixture, &["run", "--resume", &db, "-n", "2"]).exits(0);
    let listed = heaptoll(&fixture, &["managers"]).exits(0);
    listed.complains(&["Java's collectors are left out", "cannot start the laboratory"]).shows(&["glibc"]);
}
