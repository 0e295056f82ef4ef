//! `heaptoll lab conservatism`: what conservative finding of roots and pointers costs.

use std::path::PathBuf;

use clap::Args;
use heaptoll::documents::DocumentOutputs;
use heaptoll::entry::{Command, writes};
use heaptoll::exit;
use heaptoll::memory::MemoryArguments;
use heaptoll_command::failure::Failure;
use heaptoll_laboratory::conservatism;

/// How much of a program's heap conservative roots and pointers keep.
///
/// A collector for C treats every word whose value lies in an object as a pointer. This command reads a trace with
/// pointers. It shows which reachable objects are never touched again, and what leads to them: registers, stacks,
/// static data, mappings or live objects. It bounds the part that conservatism causes, and the part that interior
/// pointers keep. It also shows how often objects become unreachable before the program frees them, and how long
/// before.
///
/// Exit status: 0 all well; 1 the trace is damaged (the figures cover its whole part), or an output file could not be
/// written; 2 not a trace with pointers, or unreadable.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll record --graph -o gawk.graph -- gawk -f words.awk words\n  \
    heaptoll lab conservatism gawk.graph\n  \
    heaptoll lab conservatism gawk.graph --html gawk.html --json - | jq .at_most.of_live")]
pub struct Arguments {
    /// A trace made by `heaptoll record --graph`; a file, because it is read twice
    trace: PathBuf,
    #[command(flatten)]
    memory: MemoryArguments,
    #[command(flatten)]
    outputs: DocumentOutputs,
}

impl Command for Arguments {
    const NAME: &'static str = "lab conservatism";
    writes!(of: conservatism::Figures);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        let figures = conservatism::measure(&arguments.trace, arguments.memory.limit_bytes())?;
        let document = conservatism::document(&figures, &arguments.trace);
        let code = arguments.outputs.deliver(&document, &figures)?;
        Ok(exit::of_trace(code, !figures.is_damaged))
    }
}
