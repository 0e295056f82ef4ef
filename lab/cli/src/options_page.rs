//! The page of all commands and their options, made from the definitions that parse them: `make reference` writes it.

use std::fmt::Write as _;

use clap::{Arg, Command};
use heaptoll::definitions;
use heaptoll_report::markdown::marked_cell;

use crate::REGISTRY;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/options.md");

const HEAD: &str = "# Options

Every command with its arguments, made by `make reference` from the definitions that parse them. `heaptoll COMMAND \
--help` shows the same. [Which command?](../which-command.md) lists them by question.
";

fn name(argument: &Arg) -> String {
    let values: Vec<&str> =
        argument.get_value_names().unwrap_or_default().iter().map(|name| name.as_str()).collect();
    let takes = argument.get_action().takes_values();
    let value = if takes { values.join(" ") } else { String::new() };
    let names = match (argument.get_short(), argument.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long}"),
        (None, Some(long)) => format!("--{long}"),
        (Some(short), None) => format!("-{short}"),
        (None, None) => String::new(),
    };
    let dashes = if argument.is_last_set() { "--" } else { "" };
    let words = [dashes, &names, &value].into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>();
    format!("`{}`", words.join(" "))
}

/// What it means, with its values and its default.
fn meaning(argument: &Arg) -> String {
    let mut text = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let values = argument.get_possible_values();
    let is_flag = !argument.get_action().takes_values();
    if !values.is_empty() && !is_flag {
        let all: Vec<String> = values
            .iter()
            .map(|value| match value.get_help() {
                Some(help) => format!("`{}`: {help}", value.get_name()),
                None => format!("`{}`", value.get_name()),
            })
            .collect();
        write!(text, " ({})", all.join("; ")).expect("writing to a string");
    }
    let defaults: Vec<String> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    if !defaults.is_empty() && !is_flag {
        write!(text, " [default: {}]", defaults.join(", ")).expect("writing to a string");
    }
    marked_cell(&text)
}

fn section((name_of_command, command): &(String, &Command)) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text =
        format!("\n## `heaptoll {}`\n{}.\n", name_of_command, marked_cell(about.trim_end_matches('.')));
    text.push_str("\n| argument | meaning |\n|---|---|\n");
    let shown = |argument: &&Arg| !argument.is_hide_set() && argument.get_id() != "help";
    for argument in command.get_arguments().filter(shown) {
        writeln!(text, "| {} | {} |", name(argument), meaning(argument)).expect("writing to a string");
    }
    text
}

/// The commands that the help lists, by their whole names; of a group what is in it.
fn listed<'a>(command: &'a Command, around: &str) -> Vec<(String, &'a Command)> {
    let shown = command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help");
    let all = shown.flat_map(|inner| {
        let name = format!("{around}{}", inner.get_name());
        let within = listed(inner, &format!("{name} "));
        let is_group = inner.is_subcommand_required_set();
        (!is_group).then_some((name, inner)).into_iter().chain(within)
    });
    all.collect()
}

fn page() -> String {
    let cli = definitions(&REGISTRY);
    let sections: String = listed(&cli, "").iter().map(section).collect();
    format!("{HEAD}{sections}")
}

#[test]
fn the_page_has_the_options_of_every_command_that_is_shown() {
    let page = page();
    if std::env::var_os("WRITE_DOCS").is_some() {
        std::fs::write(PAGE, &page).expect("the page can be written");
    }
    assert_eq!(page.matches("\n## `heaptoll ").count(), listed(&definitions(&REGISTRY), "").len());
    assert!(page.contains("\n## `heaptoll lab shards plan`"), "{page}");
    let run = page.split("\n## `heaptoll ").find(|section| section.starts_with("run`")).expect("run");
    assert!(run.contains("| `-n, --repetitions N` |"), "{run}");
}
