//! `heaptoll exact drag`: how long objects are held before their first use and after their last.

use clap::Args;
use heaptoll_command::failure::Failure;
use heaptoll_drag::Clock;
use heaptoll_traced::drag::{self, ExactDragRequest};

use crate::documents::DocumentOutputs;
use crate::entry::{Command, writes};
use crate::exit;
use crate::frames::FramesArguments;
use crate::one_of::{Word, one_of};
use crate::session::Session;
use crate::traced_arguments::TracedArguments;

/// The clock of space-time (bytes times clock).
const CLOCKS: [Word<Clock>; 2] = [
    ("instructions", Clock::Instructions, "Instructions that the program itself executes"),
    ("bytes", Clock::Bytes, "Bytes allocated: exact, and equal on every machine"),
];

/// How long objects live before their first use and after their last.
///
/// Every data reference of the program is traced: it shows when each object was allocated, first touched, last
/// touched and freed. Its space-time (bytes times clock) is lag before the first touch, use until the last, then
/// drag. An object that is never touched is void (Röjemo & Runciman 1996). Drag is the most that a collector or an
/// earlier free could save. Under a collector, the wait of freed blocks until their reclamation is measured too.
///
/// Only the program's references count; those by malloc, free and collections do not. docs/questions/drag.md defines
/// each figure.
///
/// Exit status: 0 all well; 1 a run failed or is incomplete, or an output file could not be written; 2 bad request;
/// 130 interrupted (finished runs are shown).
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  heaptoll exact drag --sites --html drag.html -- gawk -f words.awk words\n  \
    heaptoll exact drag -m tithe-collect -m bdw-nofree -p perl       (how long do dead objects stay?)\n  \
    heaptoll exact drag --clock bytes --pointers --json - -- ./prog | jq .programs[0].managers[0].figures.all"
)]
pub struct Arguments {
    #[command(flatten)]
    traced: TracedArguments,
    /// Show call sites: which code makes objects that drag or are never touched
    #[arg(long)]
    sites: bool,
    /// The clock of tables and charts; JSON has both
    #[arg(long, value_name = "CLOCK", default_value = "instructions", value_parser = one_of(&CLOCKS))]
    clock: Clock,
    /// Count stores of heap pointers too: what a generational collector's write barrier would see
    #[arg(long)]
    pointers: bool,
    #[command(flatten)]
    frames: FramesArguments,
    #[command(flatten)]
    outputs: DocumentOutputs,
}

impl Command for Arguments {
    const NAME: &'static str = "exact drag";
    const FORMER: Option<&'static str> = Some("drag");
    const FIRST: &'static [&'static str] = &["sites", "clock"];
    writes!(of: drag::ExactDragFigures);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        let session = Session::begin()?;
        let request = ExactDragRequest {
            traced: arguments.traced.request(),
            clock: arguments.clock,
            sites: arguments.sites,
            pointers: arguments.pointers,
            frames: arguments.frames.shown(),
        };
        let found = drag::run(&request, &session.context())?;
        let code = arguments.outputs.deliver(&found.document, &found.figures)?;
        Ok(exit::of_runs(found.ending, code))
    }
}
