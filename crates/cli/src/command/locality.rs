//! `heaptoll exact locality`: what a program's references would do to caches and memories of every size.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use heaptoll_command::callgrind_file;
use heaptoll_command::failure::Failure;
use heaptoll_experiments::locality::{self, Alone, Request, SCHEMA};

use self::options::{SamplingArg, Sizes};
use crate::documents::DocumentOutputs;
use crate::exit;
use crate::session::Session;
use crate::terminal;
use crate::traced_arguments::{TracedArguments, exit_code};

mod options;

/// Sizes of caches that tables have columns for.
const SIZES: &str = "16K,64K,256K,1M,4M,16M";

/// Whether the program's references are also simulated alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PlacementArg {
    /// When there is more than one manager to compare
    Auto,
    /// Always
    Yes,
    /// Never: faster
    No,
}

/// Simulate caches and memories of every size: where does a manager put objects, and what does that cost?
///
/// The program runs unchanged under each manager and under a tracer that reports every data reference; simulators
/// process them in one pass. Shown are the misses of caches of every size, fully associative and with sets, page faults
/// of every size of memory, TLBs, the caches of a named machine with an estimate of the waiting, and working sets over
/// the run, each by the code that made the reference: program, allocator, collector (Figures 4 to 7 of Zorn 1992). With
/// two managers or more the extra misses are split: those caused by the placement of the program's objects, and those
/// of the manager's own code. docs/questions/locality.md explains how.
///
/// Exit status: 0 all well; 1 a run failed or is not whole, or an output file could not be written; 2 the request
/// cannot be carried out; 130 interrupted (what was traced until then is shown).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll exact locality -- gawk -f words.awk words\n  \
    heaptoll exact locality -m mimalloc3 -m bw16 --html gawk.html -- gawk -f words.awk words\n  \
    heaptoll exact locality --cache 32K/8,1M/16,32M/16 --latency 14,50,200 -p cfrac\n  \
    heaptoll exact locality -m kingsley -m bw16 --line 32 --memory 2M -p espresso    (as Zorn had it)")]
pub struct Arguments {
    #[command(flatten)]
    traced: TracedArguments,
    /// Bytes of a cache line
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = options::line, help_heading = "Simulation")]
    line: u64,
    /// Bytes of a page
    #[arg(long, value_name = "BYTES", default_value = "4096", value_parser = options::page, help_heading = "Simulation")]
    page: u64,
    /// A machine's data caches, nearest first, each SIZE/WAYS or SIZE/WAYS/LINE [default: those of this machine]
    #[arg(long, value_name = "CACHES", help_heading = "Simulation")]
    cache: Option<String>,
    /// Cycles that a reference waits for level 2, level 3, ..., and for memory [default: 14, 50, ... and 200 for
    /// memory]
    #[arg(long, value_name = "CYCLES", help_heading = "Simulation")]
    latency: Option<String>,
    /// Lines followed in fully associative caches of more than 1024 lines: `exact` for all, or a rate such as 1/16,
    /// which takes less memory (not less time) and gives an interval
    #[arg(long, value_name = "RATE", default_value = "exact", help_heading = "Simulation")]
    sample: SamplingArg,
    /// Simulate the program's references alone as well, which separates placement from pollution [default: when
    /// managers are compared]
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = PlacementArg::Auto, hide_default_value = true, help_heading = "Simulation")]
    placement: PlacementArg,
    /// Working sets over windows of so many references of the program [default: as short as can be drawn]
    #[arg(long, value_name = "N", value_parser = options::window, help_heading = "Simulation")]
    window: Option<u64>,
    /// MiB that the simulators of one process may take; what comes after is only counted
    #[arg(long, value_name = "MIB", default_value_t = 4096, value_parser = clap::value_parser!(u64).range(1..=1 << 20), help_heading = "Simulation")]
    memory_limit: u64,
    /// Sizes of caches that tables have columns for
    #[arg(long, value_name = "SIZES", default_value = SIZES, help_heading = "Output")]
    sizes: Sizes,
    /// Sizes of memory for the table of page faults, in addition to fractions of what the program touches
    #[arg(long, value_name = "SIZES", help_heading = "Output")]
    memory: Option<Sizes>,
    /// Write callgrind.out.PROGRAM.MANAGER files into a folder, for KCachegrind and callgrind_annotate
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    callgrind: Option<PathBuf>,
    #[command(flatten)]
    outputs: DocumentOutputs,
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    arguments.outputs.check()?;
    arguments.callgrind.as_deref().map_or(Ok(()), callgrind_file::check)?;
    let session = Session::begin()?;
    let found = locality::run(&arguments.request(), &session.context())?;
    let code = arguments.outputs.deliver(&found.document(), SCHEMA, &found.figures)?;
    if let Some(folder) = &arguments.callgrind {
        for path in found.write_callgrind(folder)? {
            terminal::note(&format!("wrote {}", path.display()));
        }
    }
    Ok(exit_code(found.ending, if found.is_cut_short() { exit::TROUBLE } else { code }))
}

impl Arguments {
    fn request(&self) -> Request {
        Request {
            traced: self.traced.request(),
            line_bytes: self.line,
            page_bytes: self.page,
            cache: self.cache.clone(),
            latency: self.latency.clone(),
            sampling: self.sample.sampling(),
            alone: match self.placement {
                PlacementArg::Auto => Alone::WhenCompared,
                PlacementArg::Yes => Alone::Always,
                PlacementArg::No => Alone::Never,
            },
            window: self.window,
            memory_limit_bytes: self.memory_limit << 20,
            caches_bytes: self.sizes.0.clone(),
            memories_bytes: self.memory.clone().map_or(vec![], |sizes| sizes.0),
        }
    }
}
