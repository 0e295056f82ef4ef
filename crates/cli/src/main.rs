//! heaptoll: runs an unmodified program under many memory managers and compares them.

mod command;
mod failure;
mod outputs;
mod preflights;
mod programs_asked;
mod progress;
mod same_work;
mod terminal;

use clap::{Parser, Subcommand};

/// What does memory management cost this program, and what would another manager cost?
///
/// heaptoll runs an unmodified program under many memory managers, in interleaved random order, proves each time
/// which manager serves it, and compares CPU time and memory with intervals that hold for the whole table.
#[derive(Debug, Parser)]
#[command(name = "heaptoll", version, propagate_version = true)]
#[command(after_help = "Start with: heaptoll run -- YOUR-PROGRAM ARGS...")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

// Each is described where its arguments are; a line here would hide that.
#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<command::run::Arguments>),
    Compare(command::compare::Arguments),
    Report(command::report::Arguments),
    Managers(command::managers::Arguments),
    Programs(command::programs::Arguments),
}

fn main() -> std::process::ExitCode {
    // Over a file-size limit a write shall fail with a message, not end us in silence.
    // SAFETY: no handler is installed, the signal is only ignored.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let result = match Cli::parse().command {
        Command::Run(arguments) => command::run::run(*arguments),
        Command::Compare(arguments) => command::compare::run(&arguments),
        Command::Report(arguments) => command::report::run(&arguments),
        Command::Managers(arguments) => command::managers::run(&arguments),
        Command::Programs(arguments) => command::programs::run(&arguments),
    };
    match result {
        Ok(code) => std::process::ExitCode::from(code),
        Err(failure) => {
            terminal::error(&failure.to_string());
            std::process::ExitCode::from(failure.code())
        }
    }
}
