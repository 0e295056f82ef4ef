//! heaptoll: runs an unmodified program under many memory managers and compares them. A library, so that tests see the
//! schemas that its commands name.

mod command;
#[cfg(test)]
mod documented;
mod documents;
mod duration;
mod entry;
mod exit;
mod extras;
mod factors;
#[cfg(test)]
mod fields_page;
mod frames;
mod full;
mod gate_outputs;
mod gate_programs;
mod help;
mod hints;
mod interrupt;
mod laboratory;
mod lines;
mod memory;
mod messages;
mod one_class;
mod one_of;
#[cfg(test)]
mod options_page;
mod outputs;
mod own_limits;
mod precision;
mod progress_bar;
mod protocol_arguments;
mod recording;
mod registry;
mod replays;
mod run_settings;
#[cfg(test)]
mod schema_files;
mod session;
mod standard_output;
mod study_arguments;
mod surface;
mod terminal;
mod traced_arguments;
mod version;
mod workload_args;
mod written_files;

use std::process::ExitCode;
use std::sync::Arc;

use clap::ArgMatches;
use heaptoll_command::failure::Failure;
use heaptoll_experiment::extension;
use heaptoll_preflight::smoke;

#[global_allocator]
static ALLOCATOR: own_limits::Allocator = own_limits::Allocator;

/// The schemas of everything that heaptoll writes as JSON.
#[cfg(feature = "schemas")]
pub fn schemas() -> Vec<heaptoll_command::schema::CommandSchema> {
    let mut all: Vec<_> = registry::all().flat_map(|entry| entry.schemas).copied().collect();
    all.sort_by_key(|schema| schema.tag);
    all
}

/// The definitions that parse the command line.
#[cfg(any(test, feature = "full"))]
fn definitions() -> clap::Command {
    registry::definitions(|command, _| command)
}

/// The same with their help.
fn cli() -> clap::Command {
    let command = registry::definitions(|command, entry| help::arranged(command, entry.first));
    let help = surface::help(&command);
    command.override_help(help)
}

/// The whole program.
pub fn main() -> ExitCode {
    own_limits::with_enough_stack(whole)
}

fn whole() -> ExitCode {
    extension::hand_in(&laboratory::Laboratory);
    let (words, old) = surface::present(std::env::args_os().collect());
    if let Some(text) = old.and_then(surface::renamed) {
        terminal::note(&text);
    }
    if let Some(answer) = hints::no_attaching(&words) {
        terminal::error(&answer);
        return ExitCode::from(exit::REFUSED);
    }
    let command = cli();
    let matches = command.clone().try_get_matches_from(&words).unwrap_or_else(|error| {
        let hint = surface::left_out_dashes(&error, &command, &words);
        let _ = error.print();
        if let Some(hint) = hint {
            terminal::note(&hint);
        }
        std::process::exit(command::gate::status_of_usage(&words, error.exit_code()))
    });
    if let Err(failure) = written_files::check(&command, &matches) {
        terminal::error(&failure.to_string());
        std::process::exit(command::gate::status_of_usage(&words, exit::code(&failure).into()))
    }
    match run(&matches) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            terminal::error(&failure.to_string());
            ExitCode::from(exit::code(&failure))
        }
    }
}

fn run(matches: &ArgMatches) -> Result<u8, Failure> {
    // With a handler for SIGXFSZ a write beyond the file-size limit fails, as on a full disk, and does not end
    // heaptoll. The signal is not ignored, since programs would inherit that.
    signal_hook::flag::register(libc::SIGXFSZ, Arc::default()).map_err(exit::cannot_watch)?;
    let Some((entry, matches)) = registry::chosen(matches) else { return Ok(exit::REFUSED) };
    // A probe ends by the signal itself: how it ends is what it is started for.
    if entry.name != smoke::WORD {
        own_limits::name_the_limit_of_memory();
    }
    (entry.run)(matches)
}
