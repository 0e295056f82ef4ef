//! `heaptoll record attach`: the heap profile of a program that runs, through the socket of its `heaptoll record --sample`.

use std::path::PathBuf;

use clap::Args;
use heaptoll_command::failure::Failure;
use heaptoll_runs::sampled::{self, Command, exchange};

use crate::one_of::{Word, one_of};
use crate::terminal;

/// The request.
const ACTIONS: [Word<Command>; 4] = [
    ("start", Command::Start, "Sample from now on, in all processes of the program"),
    ("stop", Command::Stop, "Stop sampling; sampled blocks are still followed to their free"),
    ("dump", Command::Dump, "Write the profile so far, and show its call sites"),
    ("status", Command::Status, "Whether it samples, and how many samples there are"),
];

/// Start, fetch or stop the heap profile of a running program.
///
/// `heaptoll record --sample SIZE --socket PATH -- PROGRAM` makes the socket; with --dormant nothing is sampled
/// before `start`. Only the same user and root may connect. The profile shows the process that allocated most; its
/// bytes in use are blocks allocated while sampling was on.
///
/// Exit status: 0 all well; 1 the profile cannot be written; 2 no such program, it refuses, or there is no sample
/// yet.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  heaptoll record --sample 512K --dormant --socket /run/user/1000/server.sample -- ./server\n  \
    heaptoll record attach /run/user/1000/server.sample start\n  \
    heaptoll record attach /run/user/1000/server.sample dump -o before.pb.gz\n  \
    heaptoll record attach /run/user/1000/server.sample stop"
)]
pub struct Arguments {
    /// The socket
    #[arg(value_name = "SOCKET")]
    socket: PathBuf,
    /// What to do
    #[arg(value_name = "ACTION", value_parser = one_of(&ACTIONS))]
    action: Command,
    /// The profile that `dump` writes, in pprof's format
    #[arg(short, long, value_name = "FILE", required_if_eq("action", "dump"))]
    output: Option<PathBuf>,
    /// Overwrite the profile when it exists
    #[arg(short, long, requires = "output")]
    force: bool,
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    match &arguments.output {
        Some(_) if arguments.action != Command::Dump => {
            return Err(Failure::Usage(
                "-o names the profile of `dump`; the other actions write none".into(),
            ));
        }
        Some(output) => sampled::check_output(output, arguments.force)?,
        None => {}
    }
    let answer =
        exchange(&arguments.socket, arguments.action).map_err(|error| Failure::Refused(Box::new(error)))?;
    let text = answer.text.trim_end();
    match &arguments.output {
        Some(output) => {
            terminal::print(&format!("{text}\n"))?;
            sampled::write_profile(output, &answer.profile)?;
            terminal::note(&format!("wrote {}", output.display()));
        }
        None => terminal::note(text),
    }
    Ok(0)
}
