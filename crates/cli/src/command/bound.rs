//! `heaptoll trace bound`: the smallest heap that a trace could have been served from.

use std::path::PathBuf;

use clap::Args;
use heaptoll_command::failure::Failure;
use heaptoll_trace_reports::bound::{self, BoundRequest};

use crate::documents::DocumentOutputs;
use crate::entry::{Command, writes};
use crate::exit;
use crate::memory::MemoryArguments;
use crate::trace_hints;

/// Find the smallest heap that could have served a trace.
///
/// Lower bound: the live bytes at their maximum, each block rounded up. Upper bound: a packing of all blocks that
/// knows when each will be freed. The best heap lies between the two. The recorded manager is compared with both
/// (docs/questions/bound.md).
///
/// Exit status: 0 all well; 1 the trace is damaged (the bounds cover its whole part), or an output or temporary file
/// could not be written; 2 not a trace, or unreadable.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll trace bound gawk.heaptoll\n  \
    heaptoll trace bound gawk.heaptoll --small-8\n  \
    heaptoll trace bound gawk.heaptoll --html gawk.html --json -")]
pub struct Arguments {
    /// A trace made by `heaptoll record`; a file, because it is read more than once
    trace: PathBuf,
    /// Let blocks of at most 8 bytes take 8, as some managers do, instead of 16
    #[arg(long)]
    small_8: bool,
    #[command(flatten)]
    memory: MemoryArguments,
    #[command(flatten)]
    outputs: DocumentOutputs,
}

impl Command for Arguments {
    const NAME: &'static str = "trace bound";
    const FORMER: Option<&'static str> = Some("bound");
    writes!(of: bound::Figures);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        let request = BoundRequest {
            small_blocks_of_8: arguments.small_8,
            memory_limit_bytes: arguments.memory.limit_bytes(),
        };
        trace_hints::longest_trace(Self::NAME, &arguments.trace);
        let figures = bound::measure(&arguments.trace, request)?;
        let document = bound::document(&figures, &arguments.trace);
        let code = arguments.outputs.deliver(&document, &figures)?;
        Ok(exit::of_trace(code, figures.subject.is_whole()))
    }
}
