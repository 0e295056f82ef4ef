//! `heaptoll trace stat`: counts, sizes and rates of a trace.

use std::path::PathBuf;

use clap::Args;
use heaptoll_command::failure::Failure;
use heaptoll_trace_reports::stat::{self, OfEitherKind, StatRequest};

use crate::documents::DocumentOutputs;
use crate::entry::{Command, writes};
use crate::exit;
use crate::frames::FramesArguments;
use crate::memory::MemoryArguments;
use crate::trace_hints;

/// Sum up a trace: counts, sizes, rates, realloc, threads, sites.
///
/// Table II of Detlefs, Dosser & Zorn (1994), and more: objects, bytes, sizes, the most that were live, rates,
/// reallocs, and which thread frees them. HTML adds live bytes over the run and, with call stacks (`heaptoll record
/// --sites`), a flame graph.
///
/// For a trace with pointers (`heaptoll record --graph`): edges, roots, reachable objects, hidden pointers, bounds of
/// objects' deaths, and recorded call sites.
///
/// Exit status: 0 all well; 1 the trace is damaged (its whole part is summed up), or an output file could not be
/// written; 2 not a trace, or unreadable.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll trace stat gawk.heaptoll\n  \
    heaptoll trace stat gawk.heaptoll --html gawk.html --json gawk.json\n  \
    heaptoll trace stat prog.heaptoll --frames 8                     (more of each call stack)\n  \
    zstdcat old.heaptoll.zst | heaptoll trace stat - --json -")]
pub struct Arguments {
    /// A trace made by `heaptoll record`; `-` is standard input
    trace: PathBuf,
    #[command(flatten)]
    frames: FramesArguments,
    #[command(flatten)]
    memory: MemoryArguments,
    #[command(flatten)]
    outputs: DocumentOutputs,
}

impl Command for Arguments {
    const NAME: &'static str = "trace stat";
    const FORMER: Option<&'static str> = Some("stat");
    writes!(of: stat::Figures, stat::graph::Figures);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        let request = StatRequest {
            frames: arguments.frames.shown(),
            memory_limit_bytes: arguments.memory.limit_bytes(),
            stacks: arguments.outputs.pages.html.is_some(),
        };
        trace_hints::longest_trace(Self::NAME, &arguments.trace);
        match stat::of_either_kind(&arguments.trace, request)? {
            OfEitherKind::Graph(figures) => {
                let document = stat::graph::document(&figures, &arguments.trace);
                let code = arguments.outputs.deliver(&document, &*figures)?;
                Ok(exit::of_trace(code, !figures.is_damaged))
            }
            OfEitherKind::Plain(figures, profile) => {
                let document = stat::document(&figures, profile.map(|profile| *profile), &arguments.trace);
                let code = arguments.outputs.deliver(&document, &*figures)?;
                Ok(exit::of_trace(code, figures.subject.is_whole()))
            }
        }
    }
}
