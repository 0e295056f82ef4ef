//! What the product's help, hints and refusals promise of every command, tested with the laboratory's.

use std::ffi::OsString;

use clap::{Arg, Command};
use heaptoll::laboratory::has_written;
use heaptoll::surface::{former, help, nearest, present, renamed};
use heaptoll::traced_arguments::LIMIT;
use heaptoll::written_files::{check, is_written};
use heaptoll::{cli, definitions};
use heaptoll_laboratory::comparative::ALL;

use crate::REGISTRY;

/// A command with all below it that the help lists.
fn all(command: &Command) -> Vec<Command> {
    let listed = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    std::iter::once(command.clone()).chain(listed.flat_map(all)).collect()
}

fn has(command: &Command, name: &str) -> bool {
    command.get_arguments().any(|argument| argument.get_id() == name)
}

#[test]
fn the_product_and_the_laboratory_have_one_help() {
    let help = |registry| help(registry, &definitions(registry));
    assert_eq!(help(&REGISTRY), help(&heaptoll::REGISTRY));
}

#[test]
fn every_command_and_every_group_states_what_it_is_for() {
    for command in all(&definitions(&REGISTRY)) {
        assert!(command.get_about().is_some(), "{}", command.get_name());
    }
}

#[test]
fn every_option_that_the_help_names_is_one_of_a_command() {
    for entry in REGISTRY.all() {
        let own = all(&(entry.define)(Command::new(entry.name)));
        for name in entry.first {
            assert!(own.iter().any(|command| has(command, name)), "{}: {name}", entry.name);
        }
    }
    let commands = all(&cli(&REGISTRY));
    for name in heaptoll::help::NAMED.into_iter().flatten() {
        assert!(commands.iter().any(|command| has(command, name)), "{name}");
    }
}

#[test]
fn commands_have_their_own_defaults() {
    let cli = cli(&REGISTRY);
    for (command, option, value) in [
        ("delay", "timeout", "600"),
        ("delay", "warmup", "0"),
        ("delay", "pairing", "interleaved"),
        ("minheap", "timeout", "60"),
        ("oracle", "timeout", LIMIT),
    ] {
        let lab = cli.find_subcommand("lab").and_then(|lab| lab.find_subcommand(command)).expect(command);
        let argument = lab.get_arguments().find(|one| one.get_id() == option).expect(option);
        assert_eq!(argument.get_default_values()[0], value, "{command} --{option}");
    }
}

fn words(line: &str) -> Vec<OsString> {
    line.split(' ').map(OsString::from).collect()
}

#[test]
fn every_old_name_leads_to_a_command() {
    let definitions = definitions(&REGISTRY);
    for (old, new) in former(&REGISTRY) {
        let (line, found) = present(&REGISTRY, words(&format!("heaptoll {old}")));
        assert_eq!((found, line), (Some(old), words(&format!("heaptoll {new}"))));
        let command =
            new.split(' ').try_fold(&definitions, |command: &Command, word| command.find_subcommand(word));
        assert!(command.is_some(), "{old}");
        assert!(renamed(&REGISTRY, old).is_some_and(|text| text.contains(new)));
    }
    let (line, _) = present(&REGISTRY, words("heaptoll replay t --graph -n 6"));
    assert_eq!(line, words("heaptoll lab replay-graph t -n 6"));
}

/// Before, `diff` of them without the laboratory named the schema of another command.
#[test]
fn results_of_the_laboratory_are_known_by_their_schema() {
    for command in &ALL {
        assert_eq!(has_written(command.schema), command.name.starts_with("lab "), "{}", command.schema);
    }
}

#[test]
fn a_word_that_is_no_command_is_answered_with_the_nearest_one() {
    for (word, whole) in
        [("studdy", "lab study"), ("merge-shards", "lab shards merge"), ("stats", "trace stat")]
    {
        let near = nearest(&REGISTRY, &definitions(&REGISTRY), word);
        assert_eq!(near, Some(format!("there is `heaptoll {whole}`")));
    }
}

/// Options that name a file or a folder which is read.
const INPUTS: [&str; 14] = [
    "allocator_symbols",
    "catalog",
    "check",
    "config",
    "extra",
    "from",
    "instructions",
    "merged",
    "oracles",
    "plan",
    "resume",
    "stdin",
    "suppress",
    "verdicts",
];

#[test]
fn every_option_that_takes_a_file_is_known_as_one_that_is_read_printed_or_refused() {
    let is_unknown = |argument: &&Arg| {
        let names = argument.get_value_names().unwrap_or_default();
        let is_file = names.iter().any(|name| ["FILE", "DIR", "DB", "PATH"].contains(&name.as_str()));
        is_file
            && !argument.is_positional()
            && !is_written(argument)
            && !INPUTS.contains(&argument.get_id().as_str())
    };
    for command in all(&definitions(&REGISTRY)) {
        let unknown = command.get_arguments().find(is_unknown);
        assert!(unknown.is_none(), "{}: {unknown:?}", command.get_name());
    }
}

#[test]
fn an_output_of_the_laboratory_is_no_input_and_no_standard_output() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("a.graph").display().to_string();
    std::fs::write(&trace, "x").expect("writes");
    let shards = ["lab", "shards", "plan", "gate", "-o", "-", "--base", "a", "--new", "b"];
    for (words, why) in
        [(&["lab", "tailor", &trace, "-o", &trace][..], "are the same file"), (&shards, "not text")]
    {
        let command = definitions(&REGISTRY);
        let line = [&["heaptoll"], words].concat();
        let matches = command.clone().try_get_matches_from(line).expect("a command line");
        let refused = check(&command, &matches).expect_err("refused").to_string();
        assert!(refused.contains(why), "{refused}");
    }
}
