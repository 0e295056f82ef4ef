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
mod help;
mod hints;
mod interrupt;
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
mod replays;
mod run_settings;
mod same_file;
mod session;
mod standard_output;
mod study_arguments;
mod surface;
mod terminal;
mod traced_arguments;
mod version;
mod workload_args;

use std::sync::Arc;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use heaptoll_command::failure::Failure;

#[global_allocator]
static ALLOCATOR: own_limits::Allocator = own_limits::Allocator;

/// What does memory management cost this program, and what would another manager cost?
#[derive(Debug, Parser)]
#[command(name = "heaptoll", version = version::version(), propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

// Each variant is documented at its arguments; a comment here would replace that text in the help.
#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<command::run::Arguments>),
    Gate(Box<command::gate::Arguments>),
    Choose(Box<command::choose::Arguments>),
    Report(command::report::Arguments),
    Diff(command::diff::Arguments),
    Record(Box<command::record::Arguments>),
    Leaks(Box<command::leaks::Arguments>),
    Ledger(command::ledger::Arguments),
    /// What a trace holds: stat, lifetimes, bound, replay, export, import
    #[command(subcommand)]
    Trace(Trace),
    /// Figures that repeat on a noisy machine: instructions, locality, drag
    #[command(subcommand)]
    Exact(Exact),
    Managers(command::managers::Arguments),
    Programs(command::programs::Arguments),
    /// Papers repeated, collectors and experiments: `heaptoll lab help` lists them
    #[command(subcommand)]
    Lab(Lab),
    #[cfg(feature = "full")]
    #[command(hide = true)]
    ShellFiles(command::shell_files::Arguments),
    #[command(name = heaptoll_preflight::smoke::WORD, hide = true)]
    Smoke(command::smoke::Arguments),
}

#[derive(Debug, Subcommand)]
enum Trace {
    Stat(command::stat::Arguments),
    Lifetimes(command::lifetimes::Arguments),
    Bound(command::bound::Arguments),
    Replay(command::replay::Arguments),
    Export(command::export::Arguments),
    Import(command::import::Arguments),
}

#[derive(Debug, Subcommand)]
enum Exact {
    Instructions(command::instructions::Arguments),
    Locality(command::locality::Arguments),
    Drag(command::drag::Arguments),
}

#[derive(Debug, Subcommand)]
enum Lab {
    Study(Box<command::study::Arguments>),
    Delay(command::delay::Arguments),
    Frequency(command::frequency::Arguments),
    Proximity(Box<command::proximity::Arguments>),
    Reclamation(Box<command::reclamation::Arguments>),
    Oracle(Box<command::oracle::Arguments>),
    Minheap(command::minheap::Arguments),
    Conservatism(command::conservatism::Arguments),
    ReplayGraph(command::replay_graph::Arguments),
    Tailor(command::tailor::Arguments),
    Artifact(command::artifact::Arguments),
    /// Cut an experiment into shards for many machines, measure them, and merge them
    #[command(subcommand)]
    Shards(Shards),
}

#[derive(Debug, Subcommand)]
enum Shards {
    Plan(Box<command::plan::Arguments>),
    Work(command::work::Arguments),
    Merge(command::merge::Arguments),
}

/// The definitions that parse the command line, with the help of the whole.
fn cli() -> clap::Command {
    let command = help::arranged(Cli::command());
    let help = surface::help(&command);
    command.override_help(help)
}

fn main() -> std::process::ExitCode {
    own_limits::with_enough_stack(whole)
}

fn whole() -> std::process::ExitCode {
    let (words, old) = surface::present(std::env::args_os().collect());
    if let Some(text) = old.and_then(surface::renamed) {
        terminal::note(&text);
    }
    if let Some(answer) = hints::no_attaching(&words) {
        terminal::error(&answer);
        std::process::exit(exit::REFUSED.into());
    }
    let command = cli();
    let read = command.clone().try_get_matches_from(&words).and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut cli()))?;
        Ok((cli, matches))
    });
    let (cli, matches) = read.unwrap_or_else(|error| {
        let hint = hints::left_out_dashes(&error, &command, &words);
        let _ = error.print();
        if let Some(hint) = hint {
            terminal::note(&hint);
        }
        std::process::exit(command::gate::status_of_usage(&words, error.exit_code()))
    });
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
    // A probe ends by the signal itself: how it ends is what it is started for.
    if !matches!(command, Command::Smoke(_)) {
        own_limits::name_the_limit_of_memory();
    }
    match command {
        Command::Run(arguments) => command::run::run(*arguments),
        Command::Gate(arguments) => command::gate::run(&arguments),
        Command::Choose(arguments) => command::choose::run(&arguments),
        Command::Report(arguments) => command::report::run(&arguments),
        Command::Diff(arguments) => command::diff::run(&arguments),
        Command::Record(arguments) => command::record::run(&arguments),
        Command::Leaks(arguments) => command::leaks::run(&arguments),
        Command::Ledger(arguments) => command::ledger::run(&arguments),
        Command::Trace(command) => trace(command),
        Command::Exact(Exact::Instructions(arguments)) => command::instructions::run(&arguments),
        Command::Exact(Exact::Locality(arguments)) => command::locality::run(&arguments),
        Command::Exact(Exact::Drag(arguments)) => command::drag::run(&arguments),
        Command::Managers(arguments) => command::managers::run(&arguments),
        Command::Programs(arguments) => command::programs::run(&arguments),
        Command::Lab(command) => lab(command),
        #[cfg(feature = "full")]
        Command::ShellFiles(arguments) => command::shell_files::run(&arguments),
        Command::Smoke(arguments) => command::smoke::run(&arguments),
    }
}

fn trace(command: Trace) -> Result<u8, Failure> {
    match command {
        Trace::Stat(arguments) => command::stat::run(&arguments),
        Trace::Lifetimes(arguments) => command::lifetimes::run(&arguments),
        Trace::Bound(arguments) => command::bound::run(&arguments),
        Trace::Replay(arguments) => command::replay::run(&arguments),
        Trace::Export(arguments) => command::export::run(&arguments),
        Trace::Import(arguments) => command::import::run(&arguments),
    }
}

fn lab(command: Lab) -> Result<u8, Failure> {
    match command {
        Lab::Study(arguments) => command::study::run(&arguments),
        Lab::Delay(arguments) => command::delay::run(&arguments),
        Lab::Frequency(arguments) => command::frequency::run(&arguments),
        Lab::Proximity(arguments) => command::proximity::run(&arguments),
        Lab::Reclamation(arguments) => command::reclamation::run(&arguments),
        Lab::Oracle(arguments) => command::oracle::run(&arguments),
        Lab::Minheap(arguments) => command::minheap::run(&arguments),
        Lab::Conservatism(arguments) => command::conservatism::run(&arguments),
        Lab::ReplayGraph(arguments) => command::replay_graph::run(&arguments),
        Lab::Tailor(arguments) => command::tailor::run(&arguments),
        Lab::Artifact(arguments) => command::artifact::run(&arguments),
        Lab::Shards(Shards::Plan(arguments)) => command::plan::run(&arguments),
        Lab::Shards(Shards::Work(arguments)) => command::work::run(arguments),
        Lab::Shards(Shards::Merge(arguments)) => command::merge::run(&arguments),
    }
}
