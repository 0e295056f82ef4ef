//! The command line as clap knows it, made of the registry, and what a command line that was read asks for.

use clap::{ArgMatches, Command};

use crate::command::{GROUPS, HIDDEN, LISTED};
use crate::entry::Entry;
use crate::version;

/// Every command, those that the help lists first.
pub fn all() -> impl Iterator<Item = &'static Entry> {
    LISTED.iter().flat_map(|(_, entries)| *entries).chain(HIDDEN)
}

/// The definitions that parse the command line, each command's as `arranged` changes it.
pub fn definitions(arranged: impl Fn(Command, &Entry) -> Command) -> Command {
    let whole = Command::new("heaptoll")
        .about("What does memory management cost this program, and what would another manager cost?")
        .version(version::version())
        .propagate_version(true)
        .subcommand_required(true)
        .arg_required_else_help(true);
    all().fold(whole, |whole, entry| {
        let is_hidden = HIDDEN.iter().any(|hidden| hidden.name == entry.name);
        within(whole, entry.name, &|named| arranged((entry.define)(named), entry).hide(is_hidden))
    })
}

/// Adds a command to the groups that its name begins with.
fn within(around: Command, name: &'static str, define: &dyn Fn(Command) -> Command) -> Command {
    let Some((group, rest)) = name.split_once(' ') else {
        return around.subcommand(define(Command::new(name)));
    };
    let around = match around.find_subcommand(group) {
        Some(_) => around,
        None => {
            let about = GROUPS.iter().find(|(name, _)| *name == group).map(|(_, about)| *about);
            let empty = Command::new(group).about(about);
            around.subcommand(empty.subcommand_required(true).arg_required_else_help(true))
        }
    };
    around.mut_subcommand(group, |group| within(group, rest, define))
}

/// The command that a command line names, and what was matched of its arguments.
pub fn chosen(matches: &ArgMatches) -> Option<(&'static Entry, &ArgMatches)> {
    all().find_map(|entry| {
        let own = entry.name.split(' ').try_fold(matches, |at, word| at.subcommand_matches(word))?;
        Some((entry, own))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_and_every_group_states_what_it_is_for() {
        fn check(command: &Command) {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            command.get_subcommands().for_each(check);
        }
        check(&crate::definitions());
    }
}
