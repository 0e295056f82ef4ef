//! `heaptoll lab proximity`: how long requests take, by their distance to the last collection.

use clap::Args;
use heaptoll::documents::DocumentOutputs;
use heaptoll::entry::{Command, writes};
use heaptoll::protocol_arguments::Seeded;
use heaptoll::session::Session;
use heaptoll::workload_args::WorkloadArgs;
use heaptoll_command::failure::Failure;
use heaptoll_experiment::experiment::REPETITIONS;
use heaptoll_laboratory::proximity;
use heaptoll_laboratory::proximity::Shape;

use crate::study_arguments::{Kept, deliver_chosen};

/// The after-effects of a collection: how long requests take, by their distance to the last collection.
///
/// A program marks its requests with heaptoll_events.h (docs/questions/events.md); for a server, the client does.
/// Each run collects 10, 100 or 1000 times, with a period that a first run found. Requests that a collection
/// interrupted are left out. The others are sorted by their distance from the last collection and averaged in up to
/// 1000 groups. Each group is compared with the fastest group of all three (Sareen and Blackburn 2022, section 6).
/// Just before the next collection only short requests can finish; that end is marked. Requests take microseconds: on
/// a busy machine, run it under `chrt -f 10`. docs/lab/proximity.md explains how.
///
/// Exit status: 0 all well; 1 a collector failed or was refused, or an output file could not be written; 2 bad
/// request; 130 interrupted (finished runs are shown and kept).
#[derive(Debug, Args)]
#[command(
    mut_arg("resume", |arg| arg.conflicts_with("seed")),
    after_help = "Examples:\n  heaptoll lab proximity --html proximity.html         (the bundled event programs)\n  \
    heaptoll lab proximity -m sweep/mimalloc3 -m tithe-collect -p kv -n 20\n  \
    heaptoll lab proximity -m sweep/jemalloc --collections 10,100 -- ./my-server --selftest\n  \
    heaptoll lab proximity -m sweep/mimalloc3 -p redis-client           (redis, by its client's clock)\n  \
    heaptoll lab proximity --resume kv.db -n 20                         (more runs of each)"
)]
pub struct Arguments {
    /// A collector whose period can be set, as a stack (docs/questions/stacks.md); may be given several times
    /// [default: sweep/mimalloc3, sweep/tcmalloc, tithe-collect, if they are built]
    #[arg(short, long, value_name = "STACK", conflicts_with = "resume")]
    manager: Vec<String>,
    /// Approximate number of collections of a run
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "10,100,1000",
        value_parser = clap::value_parser!(u64).range(1..=1_000_000), conflicts_with = "resume")]
    collections: Vec<u64>,
    /// Runs of each; below 6 no difference can be claimed [default: 10]
    #[arg(short = 'n', long, alias = "runs", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repetitions: Option<u32>,
    /// The most groups by distance
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000),
        conflicts_with = "resume")]
    groups: u32,
    /// The fewest requests in a group
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(2..=1_000_000),
        conflicts_with = "resume")]
    fewest: u32,
    /// In means a request counts for at most this many times the 99th percentile, because the system delayed longer
    /// ones
    #[arg(long, value_name = "TIMES", default_value_t = 10.0, value_parser = times, conflicts_with = "resume")]
    cap: f64,
    /// Also record the processor time of each request, in separate tables; other programs hardly disturb it (two
    /// system calls per request, outside its time)
    #[arg(long, conflicts_with = "resume")]
    cpu: bool,
    #[command(flatten)]
    seeded: Seeded,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    outputs: DocumentOutputs,
    #[command(flatten)]
    workload: WorkloadArgs,
}

/// A multiple of 1 or more; `inf` for no limit.
fn times(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|times| *times >= 1.0).ok_or_else(|| "give a number from 1, or inf".into())
}

impl Command for Arguments {
    const NAME: &'static str = "lab proximity";
    const FIRST: &'static [&'static str] = &["collections"];
    writes!(of: proximity::ProximityFigures);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        let session = Session::begin()?;
        let protocol = arguments.seeded.protocol(arguments.repetitions.unwrap_or(REPETITIONS));
        let request = proximity::ProximityRequest {
            manager: arguments.manager.clone(),
            collections: arguments.collections.clone(),
            shape: Shape {
                groups: arguments.groups as usize,
                fewest: arguments.fewest as usize,
                cap: arguments.cap,
            },
            cpu: arguments.cpu,
            study: arguments.kept.request(&arguments.workload, protocol, arguments.repetitions),
        };
        let found = proximity::run(&request, &session.context())?;
        deliver_chosen(&found, &arguments.outputs, Self::NAME)
    }
}
