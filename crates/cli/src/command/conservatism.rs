//! `heaptoll lab conservatism`: what conservative finding of roots and pointers costs.

use std::path::PathBuf;

use clap::Args;
use heaptoll_command::failure::Failure;
use heaptoll_trace_reports::conservatism;

use crate::documents::DocumentOutputs;
use crate::exit;
use crate::memory::MemoryArguments;

/// What conservative finding of roots and pointers keeps of a program's heap.
///
/// A collector for C takes every word for a pointer whose value lies in an object. From a trace with pointers: what is
/// reachable so and never touched again, by what leads to it (registers, stacks, static data, mappings, objects that are
/// used later), and between which bounds conservatism is the cause; what interior pointers keep; how often objects become
/// unreachable before the program's own free, and by how much.
///
/// Exit status: 0 all well; 1 the trace is damaged (what comes before it has figures), or an output file could not be
/// written; 2 it is no trace with pointers, or cannot be read.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll record --graph -o gawk.graph -- gawk -f words.awk words\n  \
    heaptoll lab conservatism gawk.graph\n  \
    heaptoll lab conservatism gawk.graph --html gawk.html --json - | jq .at_most.of_live")]
pub struct Arguments {
    /// The trace that `heaptoll record --graph` made, a file: it is read twice
    trace: PathBuf,
    #[command(flatten)]
    memory: MemoryArguments,
    #[command(flatten)]
    outputs: DocumentOutputs,
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    arguments.outputs.check()?;
    let figures = conservatism::measure(&arguments.trace, arguments.memory.limit_bytes())?;
    let document = conservatism::document(&figures, &arguments.trace);
    let code = arguments.outputs.deliver(&document, conservatism::SCHEMA, &figures)?;
    Ok(exit::of_trace(code, !figures.is_damaged))
}
