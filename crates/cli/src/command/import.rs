//! `heaptoll trace import`: recordings of other tools as traces.

use std::path::PathBuf;

use clap::Args;
use heaptoll_command::failure::Failure;
use heaptoll_command::foreign::{Kind, ProfileKind};
use heaptoll_trace_reports::import::{self, ImportRequest};

use crate::entry::Command;
use crate::exit::TROUBLE;
use crate::memory::MemoryArguments;
use crate::messages::TerminalMessages;
use crate::one_of::{Word, one_of};

/// The kind of a recording.
const KINDS: [Word<Kind>; 4] = [
    ("heaptrack", Kind::Heaptrack, "heaptrack, raw or interpreted, plain or packed by gzip or zstd"),
    (
        "dhat",
        Kind::Profile(ProfileKind::Dhat),
        "A heap profile of Valgrind's DHAT or of the Rust crate: refused, with what reads it",
    ),
    (
        "pprof",
        Kind::Profile(ProfileKind::Pprof),
        "A heap profile of Go and others: refused, with what reads it",
    ),
    (
        "heap-text",
        Kind::Profile(ProfileKind::HeapText),
        "A heap profile as jemalloc or gperftools write it: refused, with what reads it",
    ),
];

/// Make a trace from a recording of heaptrack.
///
/// The trace works with `stat`, `lifetimes`, `leaks`, `diff`, `export`, `replay`, `bound`. These commands also show
/// what the recording lacks. `bytehound export-heaptrack` turns a recording of bytehound into one of heaptrack.
///
/// Heap profiles of pprof, DHAT, jemalloc and gperftools contain sums without events, so they cannot become traces.
/// `heaptoll trace export` and `heaptoll diff` read them as they are. docs/questions/import.md
///
/// Exit status: 0 all well; 1 the recording is cut off (its whole part is imported) or the trace could not be
/// written; 2 not a heaptrack recording, another version, damaged, a profile, or the trace exists.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll trace import heaptrack.gawk.1234.zst\n  \
    heaptoll trace import heaptrack.gawk.1234.raw.zst -o gawk.heaptoll\n  \
    heaptoll trace export heap.pb.gz --to html                       (a profile of pprof: no import is needed)\n  \
    heaptoll diff before.pb.gz after.pb.gz")]
pub struct Arguments {
    /// The recording; `-` is standard input
    file: PathBuf,
    /// The kind of recording [default: found from its contents]
    #[arg(long, value_name = "FORMAT", value_parser = one_of(&KINDS))]
    from: Option<Kind>,
    /// The trace to write [default: NAME.heaptoll in the current folder]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace a file that exists
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    memory: MemoryArguments,
}

impl Command for Arguments {
    const NAME: &'static str = "trace import";
    const FORMER: Option<&'static str> = Some("import");

    fn run(arguments: &Self) -> Result<u8, Failure> {
        let request = ImportRequest {
            file: arguments.file.clone(),
            from: arguments.from,
            output: arguments.output.clone(),
            force: arguments.force,
            memory_limit_bytes: arguments.memory.limit_bytes(),
        };
        let is_whole = import::run(&request, &TerminalMessages::default())?;
        Ok(if is_whole { 0 } else { TROUBLE })
    }
}
