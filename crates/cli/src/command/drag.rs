//! `heaptoll exact drag`: how long objects are held before their first use and after their last.

use clap::{Args, ValueEnum};
use heaptoll_command::failure::Failure;
use heaptoll_drag::Clock;
use heaptoll_experiments::drag::{self, Request, SCHEMA};

use crate::documents::DocumentOutputs;
use crate::frames::FramesArguments;
use crate::session::Session;
use crate::traced_arguments::{TracedArguments, exit_code};

/// The clock of space-time, which is bytes times a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ClockArg {
    /// Instructions that the program itself executes
    Instructions,
    /// Bytes allocated: exact, and the same on every machine
    Bytes,
}

/// How long objects are held before their first use and after their last.
///
/// Every data reference of the program is traced, so of each object it is known when it was allocated, touched first,
/// touched last, and freed. What it takes, bytes times the clock, is lag before the first touch, use between first and
/// last, drag after the last, and void when it is never touched (Röjemo & Runciman 1996). Drag is what a collector or
/// an earlier free could save at most. Under a collector it is also measured how long freed blocks wait to be
/// reclaimed.
///
/// Only references of the program count: what malloc, free and collections do in blocks is no use of them.
/// docs/questions/drag.md defines each figure.
///
/// Exit status: 0 all well; 1 a run failed or is not whole, or an output file could not be written; 2 the request
/// cannot be carried out; 130 interrupted (what was traced is shown).
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  heaptoll exact drag --sites --html drag.html -- gawk -f words.awk words\n  \
    heaptoll exact drag -m tithe-collect -m bdw-nofree -p perl       (how long do dead objects stay?)\n  \
    heaptoll exact drag --clock bytes --pointers --json - -- ./prog | jq .programs[0].managers[0].figures.all"
)]
pub struct Arguments {
    #[command(flatten)]
    traced: TracedArguments,
    /// Show call sites: which code makes objects that drag, or are never touched
    #[arg(long)]
    sites: bool,
    /// The clock of tables and charts; JSON has both
    #[arg(long, value_enum, value_name = "CLOCK", default_value_t = ClockArg::Instructions)]
    clock: ClockArg,
    /// Count stores of heap pointers too: what a generational collector's write barrier would see
    #[arg(long)]
    pointers: bool,
    #[command(flatten)]
    frames: FramesArguments,
    #[command(flatten)]
    outputs: DocumentOutputs,
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    arguments.outputs.check()?;
    let session = Session::begin()?;
    let request = Request {
        traced: arguments.traced.request(),
        clock: match arguments.clock {
            ClockArg::Instructions => Clock::Instructions,
            ClockArg::Bytes => Clock::Bytes,
        },
        sites: arguments.sites,
        pointers: arguments.pointers,
        frames: arguments.frames.shown(),
    };
    let found = drag::run(&request, &session.context())?;
    let code = arguments.outputs.deliver(&found.document(), SCHEMA, &found.figures)?;
    Ok(exit_code(found.ending, code))
}
