//! `heaptoll managers`: the managers that can be compared on this machine, the layers for them, and managers of others to
//! be added.

use clap::{Args, Subcommand};
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_command::own_input::OwnInput;
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::places::Places;
use heaptoll_experiments::{added_managers, managers};
use heaptoll_report::terminal::{layers_table, managers_table, options_table};

use crate::documents::ListOutput;
use crate::messages::TerminalMessages;
use crate::{exit, terminal};

/// List the memory managers, or add one.
///
/// The list has group, version, origin, what each is, and whether the preflight passes on a small program. Then come the
/// layers that can be put in front of them, and the options of both.
///
/// A stack is written LAYER/MANAGER, with options after either: quarantine=2M/mimalloc, sweep,every=64K/jemalloc,
/// tithe-collect,heap=32M. docs/questions/stacks.md explains more.
///
/// `heaptoll managers add hoard` builds an allocator of others that heaptoll does not bring.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// Also try this shared object, or this stack
    #[arg(short = 'm', long = "manager", value_name = "PATH")]
    extra: Vec<String>,
    #[command(flatten)]
    output: ListOutput,
    #[command(subcommand)]
    action: Option<Action>,
}

/// What else is done.
#[derive(Debug, Subcommand)]
enum Action {
    Add(AddArguments),
}

/// Fetch, check, build and prove allocators of others, for you alone.
///
/// `hoard` is Berger's Hoard, `hardened_malloc` is GrapheneOS's in its default and its light configuration, `mallocng`
/// is that of musl, `mesh` is that of Powers, Tench, Berger and McGregor. Every file is compared with a digest; the
/// licence is printed. What is built must pass the preflight and a run that allocates in every way, in threads, by
/// every form of C++'s operators, and in a forked child. It takes git, a C and a C++ compiler (CC and CXX, else cc and
/// c++) and some seconds, and writes to $XDG_DATA_HOME/heaptoll/managers only: NAME.so, NAME.toml, NAME.LICENSE. Remove
/// these three to remove a manager.
///
/// An added manager is listed by `heaptoll managers` and named as any other, `-m hoard`. It is in the group `added` and in no
/// other, so that what `-m modern`, `-m all` and commands without `-m` measure stays as it is.
///
/// Exit status: 0 all well; 1 a manager of the recipe could not be added, others were; 2 nothing could be.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll managers add hoard\n  \
    heaptoll managers add hoard --from ~/trees          (a folder with Hoard and Heap-Layers, without network)\n  \
    heaptoll managers add hardened_malloc --from ~/hardened_malloc.git\n  \
    heaptoll managers add ./mine --from ~/mine          (a recipe of your own)\n  \
    heaptoll run -m glibc -m added -- ./program         (and compare all that were added)")]
struct AddArguments {
    /// `hoard`, `hardened_malloc`, `mallocng`, `mesh`, or the path of a folder with a recipe of your own
    #[arg(value_name = "NAME")]
    recipe: String,
    /// A folder that has a folder, clone or bare repository for each repository, of its name; where there is only one
    /// repository, also a git URL, or the clone, bare repository or folder itself [default: the projects' repositories]
    #[arg(long, value_name = "WHERE")]
    from: Option<String>,
}

/// Runs the command. Exit status 1 when a manager named with `-m` does not pass.
///
/// # Errors
/// heaptoll's own files or the named objects are missing.
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    if let Some(Action::Add(arguments)) = &arguments.action {
        return add(arguments, &Places::find()?);
    }
    arguments.output.check()?;
    let (places, interrupt, messages) = (Places::find()?, Interrupt::default(), TerminalMessages::default());
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
    let written = arguments.output.deliver(&text, managers::SCHEMA, &found)?;
    Ok(if found.named_pass && written { 0 } else { exit::TROUBLE })
}

fn add(arguments: &AddArguments, places: &Places) -> Result<u8, Failure> {
    let request = added_managers::Request { recipe: arguments.recipe.clone(), from: arguments.from.clone() };
    let report = added_managers::fetch_and_build(&request, places, &TerminalMessages::default())?;
    let names: Vec<&str> = report.names().collect();
    if names.is_empty() {
        return Ok(exit::REFUSED);
    }
    terminal::print(&format!("added to {}: {}\n", report.folder.display(), names.join(", ")))?;
    Ok(if report.is_whole() { 0 } else { exit::TROUBLE })
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
