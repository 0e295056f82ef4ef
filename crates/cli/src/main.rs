//! heaptoll: runs an unmodified program under many memory managers and compares them.

mod command;
#[cfg(test)]
mod documented;
mod documents;
mod duration;
mod exit;
mod extras;
mod factors;
mod frames;
mod full;
mod gate_outputs;
mod gate_programs;
mod hints;
mod interrupt;
mod lines;
mod memory;
mod messages;
mod one_class;
#[cfg(test)]
mod options_page;
mod outputs;
mod pairing_arg;
mod precision;
mod progress_bar;
mod recording;
mod run_settings;
mod same_file;
mod session;
mod standard_output;
mod study_arguments;
mod terminal;
mod touch_arg;
mod traced_arguments;
mod version;
mod workload_args;

use std::ffi::OsString;
use std::sync::Arc;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use heaptoll_command::failure::Failure;

/// What does memory management cost this program, and what would another manager cost?
///
/// heaptoll runs an unmodified program under many memory managers, at once on one processor or in interleaved random
/// order, proves each time which manager serves it, and compares CPU time and memory with intervals that hold for the
/// whole table.
#[derive(Debug, Parser)]
#[command(name = "heaptoll", version = version::version(), propagate_version = true)]
#[command(after_help = "Start with: heaptoll run -- YOUR-PROGRAM ARGS...")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

// Each variant is documented at its arguments; a comment here would replace that text in the help.
#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<command::run::Arguments>),
    Plan(Box<command::plan::Arguments>),
    Work(command::work::Arguments),
    Submit(command::submit::Arguments),
    Merge(command::merge::Arguments),
    Artifact(command::artifact::Arguments),
    Corpus(command::corpus::Arguments),
    Choose(Box<command::choose::Arguments>),
    Gate(Box<command::gate::Arguments>),
    Compare(command::compare::Arguments),
    Report(command::report::Arguments),
    Record(Box<command::record::Arguments>),
    Sample(command::sample::Arguments),
    Stat(command::stat::Arguments),
    Lifetimes(command::lifetimes::Arguments),
    Diff(command::diff::Arguments),
    Replay(command::replay::Arguments),
    Tailor(command::tailor::Arguments),
    Ledger(command::ledger::Arguments),
    Leaks(Box<command::leaks::Arguments>),
    Bound(command::bound::Arguments),
    Conservatism(command::conservatism::Arguments),
    Instructions(command::instructions::Arguments),
    Locality(command::locality::Arguments),
    Drag(command::drag::Arguments),
    Oracle(Box<command::oracle::Arguments>),
    Delay(command::delay::Arguments),
    Frequency(command::frequency::Arguments),
    Proximity(Box<command::proximity::Arguments>),
    Minheap(command::minheap::Arguments),
    Reclamation(Box<command::reclamation::Arguments>),
    Study(Box<command::study::Arguments>),
    Export(command::export::Arguments),
    Import(command::import::Arguments),
    Managers(command::managers::Arguments),
    Programs(command::programs::Arguments),
    #[cfg(feature = "full")]
    #[command(hide = true)]
    ShellFiles(command::shell_files::Arguments),
    #[command(name = heaptoll_preflight::smoke::WORD, hide = true)]
    Smoke(command::smoke::Arguments),
}

fn main() -> std::process::ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(answer) = hints::no_attaching(&words) {
        terminal::error(&answer);
        std::process::exit(exit::REFUSED.into());
    }
    let read = Cli::command().try_get_matches_from(&words).and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut Cli::command()))?;
        Ok((cli, matches))
    });
    let (cli, matches) = read.unwrap_or_else(|error| {
        let hint = hints::left_out_dashes(&error, &words);
        let _ = error.print();
        if let Some(hint) = hint {
            terminal::note(&hint);
        }
        std::process::exit(command::gate::status_of_usage(&words, error.exit_code()))
    });
    let command = Cli::command();
    let files =
        same_file::refuse(&command, &matches).and_then(|()| standard_output::claim(&command, &matches));
    if let Err(failure) = files {
        terminal::error(&failure.to_string());
        std::process::exit(command::gate::status_of_usage(&words, exit::code(&failure).into()))
    }
    match run(cli.command) {
        Ok(code) => std::process::ExitCode::from(code),
        Err(failure) => {
            terminal::error(&failure.to_string());
            std::process::ExitCode::from(exit::code(&failure))
        }
    }
}

fn run(command: Command) -> Result<u8, Failure> {
    // With a handler for SIGXFSZ a write beyond the file-size limit fails, as on a full disk, and does not end
    // heaptoll. The signal is not ignored, since programs would inherit that.
    signal_hook::flag::register(libc::SIGXFSZ, Arc::default()).map_err(exit::cannot_watch)?;
    match command {
        Command::Run(arguments) => command::run::run(*arguments),
        Command::Plan(arguments) => command::plan::run(&arguments),
        Command::Work(arguments) => command::work::run(arguments),
        Command::Submit(arguments) => command::submit::run(&arguments),
        Command::Merge(arguments) => command::merge::run(&arguments),
        Command::Artifact(arguments) => command::artifact::run(&arguments),
        Command::Corpus(arguments) => command::corpus::run(&arguments),
        Command::Choose(arguments) => command::choose::run(&arguments),
        Command::Gate(arguments) => command::gate::run(&arguments),
        Command::Compare(arguments) => command::compare::run(&arguments),
        Command::Report(arguments) => command::report::run(&arguments),
        Command::Record(arguments) => command::record::run(&arguments),
        Command::Sample(arguments) => command::sample::run(&arguments),
        Command::Stat(arguments) => command::stat::run(&arguments),
        Command::Lifetimes(arguments) => command::lifetimes::run(&arguments),
        Command::Diff(arguments) => command::diff::run(&arguments),
        Command::Replay(arguments) => command::replay::run(&arguments),
        Command::Tailor(arguments) => command::tailor::run(&arguments),
        Command::Ledger(arguments) => command::ledger::run(&arguments),
        Command::Leaks(arguments) => command::leaks::run(&arguments),
        Command::Bound(arguments) => command::bound::run(&arguments),
        Command::Conservatism(arguments) => command::conservatism::run(&arguments),
        Command::Instructions(arguments) => command::instructions::run(&arguments),
        Command::Locality(arguments) => command::locality::run(&arguments),
        Command::Drag(arguments) => command::drag::run(&arguments),
        Command::Oracle(arguments) => command::oracle::run(&arguments),
        Command::Delay(arguments) => command::delay::run(&arguments),
        Command::Frequency(arguments) => command::frequency::run(&arguments),
        Command::Proximity(arguments) => command::proximity::run(&arguments),
        Command::Minheap(arguments) => command::minheap::run(&arguments),
        Command::Reclamation(arguments) => command::reclamation::run(&arguments),
        Command::Study(arguments) => command::study::run(&arguments),
        Command::Export(arguments) => command::export::run(&arguments),
        Command::Import(arguments) => command::import::run(&arguments),
        Command::Managers(arguments) => command::managers::run(&arguments),
        Command::Programs(arguments) => command::programs::run(&arguments),
        #[cfg(feature = "full")]
        Command::ShellFiles(arguments) => command::shell_files::run(&arguments),
        Command::Smoke(arguments) => command::smoke::run(&arguments),
    }
}
