//! The help of a command: the same three headings everywhere, and with `-h` the six options that most people need.

use clap::{Arg, Command};

use crate::written_files::is_text;

/// The headings: what runs, how it is measured, what is shown and written.
const PROGRAM: &str = "Program";
const MEASUREMENT: &str = "Measurement";
const OUTPUT: &str = "Output";
/// In the order of every help.
const HEADINGS: [&str; 3] = [PROGRAM, MEASUREMENT, OUTPUT];

/// The options that say what runs, by their names in the code.
const OF_PROGRAM: &[&str] = &[
    "all",
    "base",
    "base_cmd",
    "base_ref",
    "build",
    "catalog",
    "command",
    "config",
    "expect_status",
    "figures",
    "load",
    "new",
    "new_cmd",
    "new_ref",
    "only",
    "outputs_differ",
    "program",
    "quick",
    "ready",
    "serve",
    "set",
    "size",
    "stdin",
    "stop",
    "working_copy",
    "burst",
];

/// The options that say what is shown and written, besides those of text files.
const OF_OUTPUT: &[&str] = &[
    "at",
    "between",
    "bounds",
    "by_program",
    "callgrind",
    "collections",
    "db",
    "force",
    "frames",
    "output",
    "parquet",
    "parquet_dir",
    "sizes",
    "source",
    "to",
    "value",
];

/// The most options that `-h` shows.
const FEW: usize = 6;

/// What most commands have and most people use.
const COMMON: [&str; 12] = [
    "manager",
    "program",
    "repetitions",
    "output",
    "html",
    "json",
    "markdown",
    "resume",
    "size",
    "stdin",
    "baseline",
    "timeout",
];

/// The options that are named here, by their names in the code.
pub const NAMED: [&[&str]; 3] = [OF_PROGRAM, OF_OUTPUT, &COMMON];

/// A command with its options under the headings, and those of `-h` chosen: `first`, and [`COMMON`] fills up.
pub fn arranged(command: Command, first: &[&str]) -> Command {
    let few = few(&command, first);
    let measures = command.get_arguments().any(|argument| OF_PROGRAM.contains(&id(argument)));
    let arranged_one = |argument: &Arg| {
        let heading = match id(argument) {
            _ if argument.is_positional() => return argument.clone(),
            name if OF_PROGRAM.contains(&name) => Some(PROGRAM),
            name if OF_OUTPUT.contains(&name) || is_text(argument) => Some(OUTPUT),
            _ => measures.then_some(MEASUREMENT),
        };
        let is_left_out = !few.iter().any(|shown| shown == id(argument));
        argument.clone().help_heading(heading).hide_short_help(is_left_out)
    };
    // The help has the headings in the order in which arguments bring them up.
    let mut sorted: Vec<Arg> = command.get_arguments().map(arranged_one).collect();
    sorted.sort_by_key(|argument| {
        HEADINGS.iter().position(|heading| Some(*heading) == argument.get_help_heading())
    });
    let mut sorted = sorted.into_iter();
    command
        .mut_args(|argument| sorted.next().unwrap_or(argument))
        .mut_subcommands(|inner| arranged(inner, first))
}

fn id(argument: &Arg) -> &str {
    argument.get_id().as_str()
}

/// Whether an argument is an option that the help lists.
fn is_listed(argument: &&Arg) -> bool {
    !argument.is_positional() && !argument.is_hide_set()
}

/// The options of `-h`, by their names in the code.
fn few(command: &Command, first: &[&str]) -> Vec<String> {
    let options: Vec<&str> = command.get_arguments().filter(is_listed).map(id).collect();
    if options.len() <= FEW {
        return options.into_iter().map(str::to_owned).collect();
    }
    let rest = COMMON.iter().chain(&options).filter(|name| !first.contains(name));
    let mut few: Vec<String> = Vec::new();
    for name in first.iter().chain(rest).filter(|name| options.contains(name)) {
        if few.len() < FEW && !few.iter().any(|shown| shown == name) {
            few.push((*name).to_owned());
        }
    }
    few
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{REGISTRY, cli};

    /// The commands below this one that the help lists.
    fn below(command: &Command) -> Vec<Command> {
        let listed = command.get_subcommands().filter(|inner| !inner.is_hide_set());
        listed.flat_map(|inner| std::iter::once(inner.clone()).chain(below(inner))).collect()
    }

    #[test]
    fn the_short_help_of_every_command_shows_its_options_or_six_of_them() {
        for command in below(&cli(&REGISTRY)) {
            let options: Vec<&Arg> = command.get_arguments().filter(is_listed).collect();
            let shown = options.iter().filter(|one| !one.is_hide_short_help_set()).count();
            assert_eq!(shown, options.len().min(FEW), "{}", command.get_name());
        }
    }

    /// Before, what is measured stood before what runs.
    #[test]
    fn headings_have_the_same_order_everywhere() {
        for command in below(&cli(&REGISTRY)) {
            let mut headings: Vec<&str> = command.get_arguments().filter_map(Arg::get_help_heading).collect();
            headings.dedup();
            let first = |heading| headings.iter().position(|one| *one == heading);
            let order: Vec<usize> = HEADINGS.into_iter().filter_map(first).collect();
            assert!(order.is_sorted(), "{}: {headings:?}", command.get_name());
        }
    }
}
