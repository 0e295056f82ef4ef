//! `heaptoll lab frequency`: what collections cost the program besides their pauses.

use clap::Args;
use heaptoll::entry::{Command, writes};
use heaptoll::session::Session;
use heaptoll_command::failure::Failure;
use heaptoll_laboratory::frequency;
use heaptoll_units::size;

use crate::study_arguments::{StudyArguments, deliver};

/// What collections cost the program beyond their pauses: mutator time over the frequency of collections.
///
/// The program runs over a collector that collects after each N bytes, for several N, in interleaved random order.
/// The mutator's time is compared: elapsed time without pauses, and CPU without the collector's. Two more series
/// separate the disturbance of a collection from the delay of reuse (Sareen and Blackburn 2022, section 5). One only
/// finds dead objects, the other reclaims only sometimes. One thread marks, and a collection ends with its pause.
///
/// Exit status: 0 all well; 1 a stack failed, gave wrong output or was refused, or an output file could not be
/// written; 2 bad request; 130 interrupted (finished runs are shown and kept).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll lab frequency -- gawk -f report.awk data.txt\n  \
    heaptoll lab frequency -m tithe-collect -p gawk -p lua --size demo\n  \
    heaptoll lab frequency -m sweep/tcmalloc --every 64K,1M,8M --reclaim 1 -p cfrac    (small heaps: short periods)\n  \
    heaptoll lab frequency -p gawk --html frequency.html --json frequency.json")]
pub struct Arguments {
    /// A collector that takes `every=` (`heaptoll managers`), or a sweep layer over a manager; may be given several
    /// times [default: sweep/mimalloc3]
    #[arg(short, long, value_name = "COLLECTOR", conflicts_with = "resume")]
    manager: Vec<String>,
    /// Bytes allocated between collections; ratios are to the shortest
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = period,
        default_value = "8M,16M,32M", conflicts_with = "resume")]
    every: Vec<u64>,
    /// Reclaim at one collection in K only; the largest K runs with every period, all others with the shortest
    #[arg(long, value_name = "K,...", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=1 << 32),
        default_value = "1,4,16", conflicts_with = "resume")]
    reclaim: Vec<u64>,
    #[command(flatten)]
    study: StudyArguments,
}

fn period(text: &str) -> Result<u64, String> {
    size(text).filter(|bytes| *bytes > 0).ok_or_else(|| "give sizes above 0, such as 64K or 8M".into())
}

impl Command for Arguments {
    const NAME: &'static str = "lab frequency";
    const FIRST: &'static [&'static str] = &["every"];
    writes!(of: frequency::FrequencyFigures);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        let session = Session::begin()?;
        let request = frequency::FrequencyRequest {
            manager: arguments.manager.clone(),
            every_bytes: arguments.every.clone(),
            reclaim: arguments.reclaim.clone(),
            study: arguments.study.request(),
        };
        let result = frequency::run(&request, &session.context())?;
        deliver(&result, &arguments.study.outputs, Self::NAME)
    }
}
