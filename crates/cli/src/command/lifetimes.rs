//! `heaptoll trace lifetimes`: how long the objects of a trace live.

use std::path::PathBuf;

use clap::Args;
use heaptoll_command::failure::Failure;
use heaptoll_trace_reports::lifetimes::{self, By, LifetimesRequest};

use crate::documents::DocumentOutputs;
use crate::entry::{Command, writes};
use crate::exit;
use crate::frames::FramesArguments;
use crate::memory::MemoryArguments;
use crate::one_of::{Word, one_of};
use crate::trace_hints;

/// The groups of objects.
const GROUPS: [Word<By>; 3] = [
    ("size", By::Size, "The power of two above the object's last size"),
    ("site", By::Site, "The call stack that made it (record with --sites)"),
    ("thread", By::Thread, "The thread that made it"),
];

/// How long the objects of a trace live, and whether generations would pay.
///
/// Survival curves as in Figure 8 of Zorn (1992), in bytes allocated and in time: of all objects, and by size, call
/// site or thread. Also: which objects are never freed and who made them, and how much would survive nurseries of 1,
/// 4 and 16 MiB. An age runs from the allocation to the free. A realloc keeps the object, with its last size. Objects
/// never freed survive every age.
///
/// Exit status: 0 all well; 1 the trace is damaged (its whole part is read), or an output file could not be written;
/// 2 not a trace, unreadable, or without what was asked for.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll trace lifetimes gawk.heaptoll\n  \
    heaptoll trace lifetimes gawk.heaptoll --by site --html gawk.html\n  \
    heaptoll trace lifetimes gawk.heaptoll --json - | jq '.survival[0].younger'")]
pub struct Arguments {
    /// A trace made by `heaptoll record`; `-` is standard input
    trace: PathBuf,
    /// How the second table groups objects
    #[arg(long, value_name = "WHAT", default_value = "size", value_parser = one_of(&GROUPS))]
    by: By,
    #[command(flatten)]
    frames: FramesArguments,
    #[command(flatten)]
    memory: MemoryArguments,
    #[command(flatten)]
    outputs: DocumentOutputs,
}

impl Command for Arguments {
    const NAME: &'static str = "trace lifetimes";
    const FORMER: Option<&'static str> = Some("lifetimes");
    writes!(of: lifetimes::Figures);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        let request = LifetimesRequest {
            by: arguments.by,
            frames: arguments.frames.shown(),
            memory_limit_bytes: arguments.memory.limit_bytes(),
            stacks: arguments.outputs.pages.html.is_some(),
        };
        trace_hints::longest_trace(Self::NAME, &arguments.trace);
        let (figures, profile) = lifetimes::measure(&arguments.trace, request)?;
        let document = lifetimes::document(&figures, profile, &arguments.trace);
        let code = arguments.outputs.deliver(&document, &figures)?;
        Ok(exit::of_trace(code, figures.subject.is_whole()))
    }
}
