//! What the product hands over to the laboratory: to one of its version, to another, and to none.

use std::process::Command;

use crate::fixture::{CommandOutput, Fixture};

/// heaptoll in a folder of its own, next to a laboratory that is this script.
fn next_to(laboratory: Option<&str>) -> impl Fn(&[&str]) -> CommandOutput + use<> {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("bin")).expect("makes");
    let copied = Command::new("cp").args([crate::HEAPTOLL, &fixture.at("bin/heaptoll")]).status();
    assert!(copied.expect("cp runs").success());
    if let Some(script) = laboratory {
        fixture.script("bin/heaptoll-lab", &format!("#!/bin/sh\n{script}\n"));
    }
    move |words| {
        let mut command = Command::new(fixture.path("bin/heaptoll"));
        fixture.prepare(&mut command);
        command.args(words).output().expect("heaptoll starts").into()
    }
}

#[test]
fn a_command_of_a_laboratory_that_is_missing_is_refused_with_how_to_get_it() {
    let heaptoll = next_to(None);
    for words in [&["lab", "delay", "--help"][..], &["lab"], &["lab", "study", "all"]] {
        let line = format!("`heaptoll {}`", words.join(" "));
        heaptoll(words).exits(2).complains(&[&line, "make lab", "heaptoll-lab"]);
    }
    heaptoll(&["studdy"]).exits(2).complains(&["unrecognized subcommand"]);
}

#[test]
fn a_laboratory_of_another_version_is_refused_with_both() {
    let own = concat!("heaptoll is ", env!("CARGO_PKG_VERSION"));
    let heaptoll = next_to(Some("echo 'heaptoll 9.9.9 (abc)'"));
    for words in [&["lab", "study", "all"][..], &["study", "all"], &["help", "lab"]] {
        heaptoll(words).exits(2).complains(&[own, "heaptoll-lab, is 9.9.9 (abc)"]);
    }
}

#[test]
fn words_that_the_product_does_not_know_are_handed_over_as_they_are() {
    let version = Fixture::new().heaptoll(&["--version"]).exits(0).out;
    let answer = format!("test \"$*\" = --version && echo '{}' && exit", version.trim());
    let heaptoll = next_to(Some(&format!("{answer}\nprintf '<%s>' \"$@\"; exit 7")));
    for (words, given) in [
        (&["lab", "delay", "--", "a b"][..], "<lab><delay><--><a b>"),
        (&["study", "--list"], "<study><--list>"),
        (&["replay", "t", "--graph"], "<replay><t><--graph>"),
    ] {
        heaptoll(words).exits(7).shows(&[given]);
    }
    heaptoll(&["programs", "--help"]).exits(0).shows(&["heaptoll programs"]);
}
