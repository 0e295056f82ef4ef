//! `heaptoll lab tailor`: an allocator made for one program from its trace.

use std::path::PathBuf;

use clap::Args;
use heaptoll::documents::DocumentOutputs;
use heaptoll::entry::{Command, writes};
use heaptoll::memory::MemoryArguments;
use heaptoll_command::failure::Failure;
use heaptoll_laboratory::tailor::{self, TailorRequest};

/// Make an allocator for one program from its trace.
///
/// The most frequent sizes of the trace get their own classes, whose blocks are found by one load; all others share a
/// general heap. The result is a readable C source and a shared object. `heaptoll run -m ./my.so` compares it with
/// other managers, and LD_PRELOAD puts it into any program. It serves every request, also with sizes that the trace
/// lacks, and any number of threads. docs/lab/tailor.md explains what it learns.
///
/// The source is written next to the object: my.c for my.so. The object is compiled by $CC, or by cc, gcc or clang.
///
/// Exit status: 0 all well; 1 the compiler failed, or an output file could not be written; 2 not a trace, incomplete,
/// too few allocations, an output exists, or no C compiler.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll record -- gawk -f report.awk data.txt\n  \
    heaptoll lab tailor gawk.heaptoll -o gawk.so            (writes gawk.c too)\n  \
    heaptoll run -m glibc -m ./gawk.so -- gawk -f report.awk data.txt\n  \
    heaptoll lab tailor gawk.heaptoll --source gawk.c       (without a C compiler)")]
pub struct Arguments {
    /// A trace made by `heaptoll record`; `-` is standard input
    trace: PathBuf,
    /// The shared object to make
    #[arg(short, long, value_name = "FILE", required_unless_present = "source")]
    output: Option<PathBuf>,
    /// The source to write; without -o, only the source is made [default: the object's name with the ending .c]
    #[arg(long, value_name = "FILE")]
    source: Option<PathBuf>,
    /// Overwrite an existing object and source
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    memory: MemoryArguments,
    #[command(flatten)]
    outputs: DocumentOutputs,
}

impl Command for Arguments {
    const NAME: &'static str = "lab tailor";
    writes!(of: tailor::TailorFigures);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        let request = TailorRequest {
            object: arguments.output.clone(),
            source: arguments.source.clone(),
            force: arguments.force,
            memory_limit_bytes: arguments.memory.limit_bytes(),
        };
        let figures = tailor::make(&arguments.trace, &request)?;
        let document = tailor::document(&figures, &arguments.trace);
        arguments.outputs.deliver(&document, &figures)
    }
}
