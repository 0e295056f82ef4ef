//! heaptoll: runs an unmodified program under many memory managers and compares them. A library, so that the laboratory has
//! the product's commands beside its own.

pub mod bytes;
pub mod command;
pub mod documents;
pub mod duration;
pub mod entry;
pub mod exit;
mod extras;
mod factors;
#[cfg(feature = "full")]
mod frames;
#[cfg(feature = "full")]
mod gate_outputs;
#[cfg(feature = "full")]
pub mod gate_programs;
pub mod help;
mod hints;
mod interrupt;
pub mod laboratory;
mod lines;
#[cfg(feature = "full")]
pub mod memory;
pub mod messages;
mod one_class;
pub mod one_of;
pub mod outputs;
mod own_limits;
mod precision;
mod progress_bar;
pub mod protocol_arguments;
#[cfg(feature = "full")]
mod recording;
pub mod registry;
#[cfg(feature = "full")]
pub mod replays;
#[cfg(feature = "full")]
mod results;
pub mod run_settings;
pub mod session;
mod standard_output;
pub mod surface;
pub mod terminal;
#[cfg(feature = "full")]
mod trace_hints;
#[cfg(feature = "full")]
pub mod traced_arguments;
pub mod version;
pub mod workload_args;
pub mod written_files;

use std::process::ExitCode;
use std::sync::Arc;

use clap::ArgMatches;
use heaptoll_command::failure::Failure;
use heaptoll_preflight::smoke;

pub use command::REGISTRY;
use registry::Registry;

#[global_allocator]
static ALLOCATOR: own_limits::Allocator = own_limits::Allocator;

/// The definitions that parse the command line.
pub fn definitions(registry: &Registry) -> clap::Command {
    registry.definitions(|command, _| command)
}

/// The same with their help.
pub fn cli(registry: &Registry) -> clap::Command {
    let command = registry.definitions(|command, entry| help::arranged(command, entry.first));
    let help = surface::help(registry, &command);
    command.override_help(help)
}

/// The whole program with these commands.
pub fn main_of(registry: &'static Registry) -> ExitCode {
    own_limits::with_enough_stack(move || whole(registry))
}

fn whole(registry: &Registry) -> ExitCode {
    let (words, old) = surface::present(registry, std::env::args_os().collect());
    if let Some(text) = old.and_then(|old| surface::renamed(registry, old)) {
        terminal::note(&text);
    }
    if let Some(answer) = hints::no_attaching(&words) {
        terminal::error(&answer);
        return ExitCode::from(exit::REFUSED);
    }
    // What hands over to the laboratory names it.
    let named = |lab: clap::Command| lab.display_name(heaptoll_experiment::laboratory::BINARY);
    let command = cli(registry).display_name(registry.binary).mut_subcommand("lab", named);
    let matches = command.clone().try_get_matches_from(&words).unwrap_or_else(|error| {
        let hint = surface::left_out_dashes(registry, &error, &command, &words);
        let _ = error.print();
        if let Some(hint) = hint {
            terminal::note(&hint);
        }
        std::process::exit(exit::of_usage(&words, error.exit_code()))
    });
    if let Err(failure) = written_files::check(&command, &matches) {
        terminal::error(&failure.to_string());
        std::process::exit(exit::of_usage(&words, exit::code(&failure).into()))
    }
    match run(registry, &matches) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => refused(&laboratory::instead(failure, &words)),
    }
}

/// Tells why a command failed.
pub fn refused(failure: &Failure) -> ExitCode {
    terminal::error(&failure.to_string());
    ExitCode::from(exit::code(failure))
}

fn run(registry: &Registry, matches: &ArgMatches) -> Result<u8, Failure> {
    // With a handler for SIGXFSZ a write beyond the file-size limit fails, as on a full disk, and does not end
    // heaptoll. The signal is not ignored, since programs would inherit that.
    signal_hook::flag::register(libc::SIGXFSZ, Arc::default()).map_err(exit::cannot_watch)?;
    let Some((entry, matches)) = registry.chosen(matches) else { return Ok(exit::REFUSED) };
    // A probe ends by the signal itself: how it ends is what it is started for.
    if entry.name != smoke::WORD {
        own_limits::name_the_limit_of_memory();
    }
    (entry.run)(matches, &|| definitions(registry))
}
