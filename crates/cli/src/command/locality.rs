//! `heaptoll exact locality`: what a program's references would do to caches and memories of every size.

use std::path::PathBuf;

use clap::Args;
use heaptoll_command::callgrind_file;
use heaptoll_command::failure::Failure;
use heaptoll_traced::locality::{self, Alone, ExactLocalityRequest};

use self::options::{SamplingArg, Sizes};
use crate::documents::DocumentOutputs;
use crate::entry::{Command, writes};
use crate::exit;
use crate::one_of::{Word, one_of};
use crate::session::Session;
use crate::terminal;
use crate::traced_arguments::TracedArguments;

mod options;

/// Cache sizes with a column in the tables.
const SIZES: &str = "16K,64K,256K,1M,4M,16M";

/// Whether the program's references are also simulated alone.
const PLACEMENTS: [Word<Alone>; 3] = [
    ("auto", Alone::WhenCompared, "If more than one manager is compared"),
    ("yes", Alone::Always, "Always"),
    ("no", Alone::Never, "Never: faster"),
];

/// Simulate caches and memories of every size: where does a manager put objects, and what does that cost?
///
/// The program runs unchanged under each manager and a tracer that reports every data reference; simulators process
/// them in one pass. The tables show misses of caches of every size, page faults for every size of memory, TLB
/// misses, and working sets over the run. A named machine's caches come with an estimate of the wait. Each figure is
/// split by the code that made the reference: program, allocator, collector (Figures 4 to 7 of Zorn 1992). With two
/// managers or more, extra misses are split into placement of the program's objects and the manager's own code.
/// docs/questions/locality.md explains how.
///
/// Exit status: 0 all well; 1 a run failed or is incomplete, or an output file could not be written; 2 bad request;
/// 130 interrupted (finished runs are shown).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll exact locality -- gawk -f words.awk words\n  \
    heaptoll exact locality -m mimalloc3 -m bw16 --html gawk.html -- gawk -f words.awk words\n  \
    heaptoll exact locality --cache 32K/8,1M/16,32M/16 --latency 14,50,200 -p cfrac\n  \
    heaptoll exact locality -m kingsley -m bw16 --line 32 --memory 2M -p espresso    (as Zorn had it)")]
pub struct Arguments {
    #[command(flatten)]
    traced: TracedArguments,
    /// Bytes of a cache line
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = options::line)]
    line: u64,
    /// Bytes of a page
    #[arg(long, value_name = "BYTES", default_value = "4096", value_parser = options::page)]
    page: u64,
    /// A machine's data caches, nearest first, each SIZE/WAYS or SIZE/WAYS/LINE [default: this machine's]
    #[arg(long, value_name = "CACHES")]
    cache: Option<String>,
    /// Cycles that a reference waits for level 2, level 3, ..., and for memory [default: 14, 50, ... and 200 for
    /// memory]
    #[arg(long, value_name = "CYCLES")]
    latency: Option<String>,
    /// Lines followed in fully associative caches of more than 1024 lines: `exact` for all; a rate such as 1/16 saves
    /// memory and gives an interval
    #[arg(long, value_name = "RATE", default_value = "exact")]
    sample: SamplingArg,
    /// Also simulate the program's references alone, to separate placement from pollution [default: if managers are
    /// compared]
    #[arg(long, value_name = "WHEN", default_value = "auto", hide_default_value = true, value_parser = one_of(&PLACEMENTS))]
    placement: Alone,
    /// Working sets over windows of N references of the program [default: as short as the chart allows]
    #[arg(long, value_name = "N", value_parser = options::window)]
    window: Option<u64>,
    /// MiB that the simulators of one process may take; later references are only counted
    #[arg(long, value_name = "MIB", default_value_t = 4096, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    memory_limit: u64,
    /// Cache sizes with a column in the tables
    #[arg(long, value_name = "SIZES", default_value = SIZES)]
    sizes: Sizes,
    /// Memory sizes for the table of page faults, in addition to fractions of the touched memory
    #[arg(long, value_name = "SIZES")]
    memory: Option<Sizes>,
    /// Write callgrind.out.PROGRAM.MANAGER files into a folder, for KCachegrind and callgrind_annotate
    #[arg(long, value_name = "FOLDER")]
    callgrind: Option<PathBuf>,
    #[command(flatten)]
    outputs: DocumentOutputs,
}

impl Command for Arguments {
    const NAME: &'static str = "exact locality";
    const FORMER: Option<&'static str> = Some("locality");
    const FIRST: &'static [&'static str] = &["cache", "sizes"];
    writes!(of: locality::ExactLocalityFigures);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        arguments.callgrind.as_deref().map_or(Ok(()), callgrind_file::check)?;
        let session = Session::begin()?;
        let found = locality::run(&arguments.request(), &session.context())?;
        let code = arguments.outputs.deliver(&found.document, &found.figures)?;
        if let Some(folder) = &arguments.callgrind {
            for file in locality::callgrind::files(&found.figures) {
                terminal::note(&format!("wrote {}", file.write(folder)?.display()));
            }
        }
        Ok(exit::of_runs(found.ending, code))
    }
}

impl Arguments {
    fn request(&self) -> ExactLocalityRequest {
        ExactLocalityRequest {
            traced: self.traced.request(),
            line_bytes: self.line,
            page_bytes: self.page,
            cache: self.cache.clone(),
            latency: self.latency.clone(),
            sampling: self.sample.sampling(),
            alone: self.placement,
            window: self.window,
            memory_limit_bytes: self.memory_limit << 20,
            caches_bytes: self.sizes.0.clone(),
            memories_bytes: self.memory.clone().map_or(vec![], |sizes| sizes.0),
        }
    }
}
