//! The commands of a binary, the product's alone or the laboratory's with them; the command line as clap knows it, made of
//! them; and what a command line that was read asks for.

use clap::{ArgMatches, Command};
#[cfg(feature = "schemas")]
use heaptoll_command::schema::CommandSchema;

use crate::entry::Entry;
use crate::version;

/// Commands under a title of the help.
pub type Section = (&'static str, &'static [Entry]);

/// What the help says of a word that only begins the names of others.
pub type Group = (&'static str, &'static str);

/// The commands of a binary.
pub struct Registry {
    /// The binary's name. What it prints of command lines begins with `heaptoll`, which hands over to it.
    pub binary: &'static str,
    /// Those that the help lists, in its order.
    pub listed: &'static [Section],
    /// Those that it does not list.
    pub hidden: &'static [Entry],
    /// The first words of names.
    pub groups: &'static [Group],
}

impl Registry {
    /// Every command, those that the help lists first.
    pub fn all(&self) -> impl Iterator<Item = &'static Entry> + use<> {
        self.listed.iter().flat_map(|(_, entries)| *entries).chain(self.hidden)
    }

    /// The definitions that parse the command line, each command's as `arranged` changes it.
    pub fn definitions(&self, arranged: impl Fn(Command, &Entry) -> Command) -> Command {
        let whole = Command::new("heaptoll")
            .bin_name("heaptoll")
            .about("What does memory management cost this program, and what would another manager cost?")
            .version(version::version())
            .propagate_version(true)
            .subcommand_required(true)
            .arg_required_else_help(true);
        self.all().fold(whole, |whole, entry| {
            let is_hidden = self.hidden.iter().any(|hidden| hidden.name == entry.name);
            self.within(whole, entry.name, &|named| arranged((entry.define)(named), entry).hide(is_hidden))
        })
    }

    /// Adds a command to the groups that its name begins with.
    fn within(&self, around: Command, name: &'static str, define: &dyn Fn(Command) -> Command) -> Command {
        let Some((group, rest)) = name.split_once(' ') else {
            return around.subcommand(define(Command::new(name)));
        };
        let around = match around.find_subcommand(group) {
            Some(_) => around,
            None => {
                let about = self.groups.iter().find(|(name, _)| *name == group).map(|(_, about)| *about);
                let empty = Command::new(group).about(about);
                around.subcommand(empty.subcommand_required(true).arg_required_else_help(true))
            }
        };
        around.mut_subcommand(group, |group| self.within(group, rest, define))
    }

    /// The command that a command line names, and what was matched of its arguments.
    pub(crate) fn chosen<'a>(&self, matches: &'a ArgMatches) -> Option<(&'static Entry, &'a ArgMatches)> {
        self.all().find_map(|entry| {
            let own = entry.name.split(' ').try_fold(matches, |at, word| at.subcommand_matches(word))?;
            Some((entry, own))
        })
    }

    /// The schemas of everything that the commands write as JSON.
    #[cfg(feature = "schemas")]
    pub fn schemas(&self) -> Vec<CommandSchema> {
        let mut all: Vec<_> = self.all().flat_map(|entry| entry.schemas).copied().collect();
        all.sort_by_key(|schema| schema.tag);
        all
    }
}
