//! Every command that the README, the documents and the helps show is one that heaptoll takes, and names what there is.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Command;
use clap::error::ErrorKind;
use heaptoll::definitions;
use heaptoll::surface::present;
use heaptoll_catalog::Catalog;
use heaptoll_experiment::manager;
use heaptoll_experiment::places::Places;
use heaptoll_laboratory::replay_graph;

use crate::REGISTRY;
use commands::{Shown, of_help, of_markdown};

#[path = "../tests/documented/commands.rs"]
mod commands;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// All pages below a folder.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let inner = std::fs::read_dir(folder).expect("docs").flatten().map(|entry| entry.path());
    let (folders, files): (Vec<_>, Vec<_>) = inner.partition(|path| path.is_dir());
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    files.into_iter().filter(is_page).chain(folders.iter().flat_map(|inner| pages(inner))).collect()
}

fn shown() -> Vec<Shown> {
    let root = Path::new(ROOT);
    let texts = pages(&root.join("docs")).into_iter().chain([root.join("README.md")]);
    let mut all: Vec<Shown> = texts
        .flat_map(|path| {
            let text = std::fs::read_to_string(&path).expect("a document");
            of_markdown(&path.strip_prefix(ROOT).unwrap_or(&path).to_string_lossy(), &text)
        })
        .collect();
    of_helps(&definitions(&REGISTRY), &mut all);
    all
}

fn of_helps(command: &Command, all: &mut Vec<Shown>) {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    all.extend(of_help(&format!("help of {}", command.get_name()), &help));
    command.get_subcommands().for_each(|inner| of_helps(inner, all));
}

/// Text that has the form of a command and is none.
const NO_COMMANDS: [(&str, &str); 1] = [("sites", "the name of a mapping in /proc/PID/maps")];

/// Whether a word is a placeholder for a name that the reader chooses.
fn is_placeholder(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c == '/') || word.contains("./")
}

/// The values of an option, before `--`.
fn values<'a>(words: &'a [String], names: &'a [&str]) -> impl Iterator<Item = &'a String> {
    let options = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let pairs = words[..options].windows(2).filter(move |pair| names.contains(&pair[0].as_str()));
    pairs.map(|pair| &pair[1]).filter(|value| !is_placeholder(value))
}

#[test]
fn every_command_that_is_shown_is_one_that_heaptoll_takes() {
    let all = shown();
    assert!(all.len() > 100, "only {} commands were found", all.len());
    let mut refused = Vec::new();
    let (whole, product) = (definitions(&REGISTRY), definitions(&heaptoll::REGISTRY));
    for Shown { place, words } in all {
        if NO_COMMANDS.iter().any(|(name, _)| words == [*name]) {
            continue;
        }
        let line: Vec<OsString> =
            std::iter::once("heaptoll").chain(words.iter().map(String::as_str)).map(OsString::from).collect();
        let taken = |command: &Command| command.clone().try_get_matches_from(&line).map(drop);
        let (presented, _) = present(&heaptoll::REGISTRY, line.clone());
        if presented.get(1).is_none_or(|word| word != "lab") {
            let kinds = [&whole, &product].map(|command| taken(command).map_err(|error| error.kind()));
            assert_eq!(kinds[0], kinds[1], "{line:?}: the product hands over what it does not take");
        }
        // A command that is only named lacks what it needs, and that is no mistake.
        let Err(error) = taken(&whole) else { continue };
        let is_named = error.kind() == ErrorKind::MissingRequiredArgument;
        // A placeholder in the position of a value.
        let is_value =
            error.kind() == ErrorKind::ValueValidation && words.iter().any(|word| is_placeholder(word));
        if !is_named && !is_value {
            refused.push(format!("{place}: heaptoll {}: {error}", words.join(" ")));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn every_manager_and_program_that_a_shown_command_names_is_there() {
    let places = Places::find().expect("a stage: run `make tool`");
    let known = manager::known_with_java(&places).expect("managers");
    let catalog = Catalog::load(format!("{ROOT}/programs").as_ref()).expect("the catalog");
    let mut seen = 0;
    for Shown { place, words } in shown() {
        let line = words.join(" ");
        for name in values(&words, &["-m", "--manager", "-b", "--baseline"]) {
            let found = manager::choose(&known, [name.as_str()]);
            // Debian's package may be missing here; the name is one that has a stand-in.
            let debian = ["jemalloc", "tcmalloc", "bdw"].iter().any(|known| name.contains(known));
            let plan = replay_graph::is_known(name);
            // Those are here only where a user has added them.
            let added = name == "added" || Path::new(ROOT).join("managers").join(name).is_dir();
            let is_there = found.is_ok() || debian || plan || added;
            assert!(is_there, "{place}: heaptoll {line}: {}", found.expect_err("an error"));
            seen += 1;
        }
        // A user's own catalog has programs that are unknown here.
        let own = words.iter().any(|word| word == "--catalog");
        for name in values(&words, &["-p", "--program"]).filter(|_| !own) {
            assert!(catalog.find(name).is_ok(), "{place}: heaptoll {line}: no program {name}");
            seen += 1;
        }
    }
    assert!(seen > 40, "only {seen} names were found");
}
