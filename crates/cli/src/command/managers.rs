//! `heaptoll managers`: the managers that can be compared on this machine, the layers for them, and managers of others,
//! which the laboratory adds.

use clap::{Args, Subcommand};
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_command::own_input::OwnInput;
use heaptoll_compare::managers;
use heaptoll_experiment::extension::require;
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::laboratory::path;
use heaptoll_experiment::places::Places;
use heaptoll_report::terminal::{layers_table, managers_table, options_table};

use crate::documents::ListOutput;
use crate::entry::{Command, writes};
use crate::messages::TerminalMessages;
use crate::{exit, laboratory, terminal};

/// List the memory managers, or add one.
///
/// The list shows group, version, origin, a description, and whether the manager passes the preflight on a small
/// program. Then it shows the layers that can go in front, and the options of both.
///
/// A stack is written LAYER/MANAGER, with options after either: quarantine=2M/mimalloc, sweep,every=64K/jemalloc,
/// tithe-collect,heap=32M. docs/questions/stacks.md explains more.
///
/// `heaptoll managers add hoard` builds an allocator that heaptoll does not ship. The laboratory does this: `make lab`,
/// or the archive heaptoll-lab of the release.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// Also try this shared object, or this stack
    #[arg(short = 'm', long = "manager", value_name = "PATH")]
    extra: Vec<String>,
    #[command(flatten)]
    output: ListOutput,
    #[command(subcommand)]
    pub action: Option<Action>,
}

/// What the laboratory does.
#[derive(Debug, Subcommand)]
pub enum Action {
    Add(AddArguments),
}

/// Fetch, check, build and prove an allocator of another project, for your own use.
///
/// `hoard` is Berger's Hoard; `hardened_malloc` is GrapheneOS's, default and light; `mallocng` is musl's; `mesh` is
/// by Powers, Tench, Berger and McGregor. Every file is compared with a digest, and the licence is printed. The
/// result must pass the preflight and a run that allocates in every way: in threads, with all C++ operators, in a
/// forked child. It needs git, a C and a C++ compiler (CC and CXX, else cc and c++) and some seconds. It writes
/// NAME.so, NAME.toml and NAME.LICENSE to $XDG_DATA_HOME/heaptoll/managers, nothing else. Remove these three to
/// remove a manager.
///
/// The laboratory does this: `make lab`, or the archive heaptoll-lab of the release.
///
/// `heaptoll managers` lists an added manager, and `-m hoard` names it. It is in the group `added` only, so `-m
/// modern`, `-m all` and commands without `-m` measure the same managers as before.
///
/// Exit status: 0 all well; 1 some managers of the recipe could not be added; 2 none could be.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll managers add hoard\n  \
    heaptoll managers add hoard --from ~/trees          (a folder with Hoard and Heap-Layers, without network)\n  \
    heaptoll managers add hardened_malloc --from ~/hardened_malloc.git\n  \
    heaptoll managers add ./mine --from ~/mine          (a recipe of your own)\n  \
    heaptoll run -m glibc -m added -- ./program         (and compare all that were added)")]
pub struct AddArguments {
    /// `hoard`, `hardened_malloc`, `mallocng`, `mesh`, or a folder with your own recipe
    #[arg(value_name = "NAME")]
    pub recipe: String,
    /// A folder with a folder, clone or bare repository named like each repository. If there is only one, also its
    /// git URL, clone, bare repository or folder [default: the projects' repositories]
    #[arg(long, value_name = "WHERE")]
    pub from: Option<String>,
}

impl Command for Arguments {
    const NAME: &'static str = "managers";
    writes!(of: managers::ManagersFigures);

    /// Exit status 1 when a manager named with `-m` does not pass.
    fn run(arguments: &Self) -> Result<u8, Failure> {
        if arguments.action.is_some() {
            require("`heaptoll managers add`")?;
        }
        let (places, interrupt, messages) =
            (Places::find()?, Interrupt::default(), TerminalMessages::default());
        // The laboratory tries Java's collectors, too. Where it takes over, this does not return.
        if let (Some(_), Err(needed)) = (path(), require("`heaptoll managers`")) {
            let words: Vec<_> = std::env::args_os().collect();
            let why = laboratory::instead(needed.into(), &words);
            terminal::note(&format!("Java's collectors are left out: {why}"));
        }
        let context = Context {
            places: &places,
            interrupt: &interrupt,
            own_input: &OwnInput::default(),
            messages: &messages,
        };
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
        let written = arguments.output.deliver(&text, &found)?;
        Ok(if found.named_pass && written { 0 } else { exit::TROUBLE })
    }
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
