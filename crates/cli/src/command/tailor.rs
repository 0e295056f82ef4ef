//! `heaptoll lab tailor`: an allocator made for one program from its trace.

use std::path::PathBuf;

use clap::Args;
use heaptoll_command::failure::Failure;
use heaptoll_trace_reports::tailor::{self, Request};

use crate::documents::DocumentOutputs;
use crate::memory::MemoryArguments;

/// Make an allocator for one program from its trace.
///
/// The sizes that make nearly all requests of the trace get classes of their own, whose blocks are found by one load;
/// all others share a general heap. The result is a C source that can be read, and a shared object that
/// `heaptoll run -m ./my.so` compares with other managers and LD_PRELOAD puts into any program: it serves every
/// request, also those that the trace has not, and any number of threads. docs/lab/tailor.md explains what is
/// learned.
///
/// The source is written next to the object: my.c for my.so. The object is compiled by $CC, or by cc, gcc or clang.
///
/// Exit status: 0 all well; 1 the compiler failed, or an output file could not be written; 2 it is no trace, it is not
/// whole or has too few allocations, an output exists, or there is no C compiler.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll record -- gawk -f report.awk data.txt\n  \
    heaptoll lab tailor gawk.heaptoll -o gawk.so            (writes gawk.c too)\n  \
    heaptoll run -m glibc -m ./gawk.so -- gawk -f report.awk data.txt\n  \
    heaptoll lab tailor gawk.heaptoll --source gawk.c       (without a C compiler)")]
pub struct Arguments {
    /// The trace that `heaptoll record` made; `-` is standard input
    trace: PathBuf,
    /// The shared object to make
    #[arg(short, long, value_name = "FILE", required_unless_present = "source")]
    output: Option<PathBuf>,
    /// Where its source is written; without -o the source is all that is made [default: the object's name with the
    /// ending .c]
    #[arg(long, value_name = "FILE")]
    source: Option<PathBuf>,
    /// Overwrite the object and the source when they exist
    #[arg(short, long)]
    force: bool,
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
    let request = Request {
        object: arguments.output.clone(),
        source: arguments.source.clone(),
        force: arguments.force,
        memory_limit_bytes: arguments.memory.limit_bytes(),
    };
    let figures = tailor::make(&arguments.trace, &request)?;
    let document = tailor::document(&figures, &arguments.trace);
    arguments.outputs.deliver(&document, tailor::SCHEMA, &figures)
}
