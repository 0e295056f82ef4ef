//! `heaptoll managers`: the managers that can be compared on this machine, and the layers for them.

use clap::Args;
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::places::Places;
use heaptoll_experiments::context::Context;
use heaptoll_experiments::failure::Failure;
use heaptoll_experiments::managers;
use heaptoll_report::terminal::{layers_table, managers_table, options_table};

use crate::documents::ListOutput;
use crate::messages::TerminalMessages;
use crate::{exit, terminal};

/// List managers: group, version, origin, what each is, and whether the preflight passes on a small program. Then the
/// layers that can be put in front of them, and the options of both.
///
/// A stack is written LAYER/MANAGER, with options after either: quarantine=2M/mimalloc, sweep,every=64K/jemalloc,
/// tithe-collect,heap=32M. docs/guide/stacks.md explains more.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Also try this shared object, or this stack
    #[arg(short = 'm', long = "manager", value_name = "PATH")]
    extra: Vec<String>,
    #[command(flatten)]
    output: ListOutput,
}

/// Runs the command. Exit status 1 when a manager named with `-m` does not pass.
///
/// # Errors
/// heaptoll's own files or the named objects are missing.
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    arguments.output.check()?;
    let (places, interrupt, messages) = (Places::find()?, Interrupt::default(), TerminalMessages::default());
    let context = Context { places: &places, interrupt: &interrupt, messages: &messages };
    let found = managers::find(&arguments.extra, &context)?;
    let style = terminal::style();
    let mut text = managers_table(&found.managers, &style);
    if !found.options.is_empty() {
        text.push('\n');
        text.push_str(&options_table(&found.options, &style));
    }
    text.push('\n');
    text.push_str(&layers_table(&found.layers, &style));
    text.push_str(&left_out(&places));
    let written = arguments.output.deliver(&text, managers::SCHEMA, &found)?;
    Ok(if found.named_pass && written { 0 } else { exit::TROUBLE })
}

/// What a release states about managers that it does not have, after an empty line.
fn left_out(places: &Places) -> String {
    let text = std::fs::read_to_string(places.managers().join("left-out.txt")).unwrap_or_default();
    if text.is_empty() { text } else { format!("\n{text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_names_the_managers_that_it_does_not_have() {
        let root = tempfile::tempdir().expect("a folder");
        let places = Places::at(root.path());
        assert_eq!(left_out(&places), "");
        std::fs::create_dir_all(places.managers()).expect("makes");
        std::fs::write(places.managers().join("left-out.txt"), "bdw: why\n").expect("writes");
        assert_eq!(left_out(&places), "\nbdw: why\n");
    }
}
