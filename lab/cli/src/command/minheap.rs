//! `heaptoll lab minheap`: the smallest heap in which a program completes, by collector.

use clap::Args;
use heaptoll::documents::DocumentOutputs;
use heaptoll::entry::{Command, writes};
use heaptoll::protocol_arguments::Limits;
use heaptoll::session::Session;
use heaptoll::workload_args::WorkloadArgs;
use heaptoll_command::failure::Failure;
use heaptoll_experiment::experiment::Protocol;
use heaptoll_laboratory::minheap::{self, Periods, tolerance};

use crate::study_arguments::{Kept, deliver_chosen};

/// Runs where no number is given.
const REPETITIONS: u32 = 3;

/// Find the smallest heap that lets a program complete under each collector, and compare it with the program's own
/// footprint.
///
/// The heap size of a collector with the option heap= is bisected. A run completes (right output and status), runs
/// out of memory (a call was refused), or fails otherwise; other failures are shown and never counted as either. Both
/// sides of the edge run -n times, so a program whose need varies is found and reported. The baseline is a footprint
/// in pages with a live block (Sareen and Blackburn 2022, section 4). It is measured for mark-sweep over an
/// allocator, every 32, 64 and 128 KiB, and for the program's own frees. RLIMIT_DATA is never used, because it counts
/// reservations. Each run is kept, and --resume goes on with the search. docs/lab/minheap.md explains how.
///
/// Exit status: 0 all well; 1 a search or a baseline failed, or an output file could not be written; 2 bad request;
/// 130 interrupted (finished searches are shown, and all runs are kept).
#[derive(Debug, Args)]
#[command(mut_arg("timeout", |arg| arg.default_value("60")))]
#[command(after_help = "Examples:\n  heaptoll lab minheap -m tithe-collect -- gawk -f words.awk words\n  \
    heaptoll lab minheap -p cfrac -p lua --quick\n  \
    heaptoll lab minheap -m sweep/mimalloc3 -m sweep/jemalloc --every 32K --html heaps.html -p espresso --quick\n  \
    heaptoll lab minheap -m tithe-collect -m bdw-nofree --tolerance 0.5 -n 5 -- ./prog\n  \
    heaptoll lab minheap --resume heaps.db                      (go on with it)")]
pub struct Arguments {
    /// A collector with a fixed heap, as a stack (docs/questions/stacks.md); may be given several times [default:
    /// every such collector that ignores frees, and sweep over each --baseline]
    #[arg(short, long, value_name = "STACK", conflicts_with = "resume")]
    manager: Vec<String>,
    /// The allocator under the baseline's mark-sweep; may be given several times [default: mimalloc3 and tcmalloc]
    #[arg(short, long, value_name = "MANAGER", conflicts_with = "resume")]
    baseline: Vec<String>,
    /// Bytes allocated between the baseline's collections
    #[arg(long, value_name = "SIZES", default_value = "32K,64K,128K", conflicts_with = "resume")]
    every: Periods,
    /// The answer may be too large by this percentage (at least one page)
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = tolerance, conflicts_with = "resume")]
    tolerance: f64,
    /// Runs on each side of the edge, and of each baseline [default: 3]
    #[arg(short = 'n', long, alias = "repeats", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    repetitions: Option<u32>,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    outputs: DocumentOutputs,
    #[command(flatten)]
    workload: WorkloadArgs,
}

impl Command for Arguments {
    const NAME: &'static str = "lab minheap";
    const FIRST: &'static [&'static str] = &["tolerance"];
    writes!(of: minheap::MinheapFigures);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        let session = Session::begin()?;
        let repetitions = arguments.repetitions.unwrap_or(REPETITIONS);
        let protocol = Protocol { repetitions, ..arguments.limits.protocol() };
        let request = minheap::MinheapRequest {
            manager: arguments.manager.clone(),
            baseline: arguments.baseline.clone(),
            every_bytes: arguments.every.0.clone(),
            tolerance: arguments.tolerance,
            study: arguments.kept.request(&arguments.workload, protocol, arguments.repetitions),
        };
        let found = minheap::run(&request, &session.context())?;
        deliver_chosen(&found, &arguments.outputs, Self::NAME)
    }
}
