//! `heaptoll trace replay`: what other managers do with exactly this sequence of calls.

use std::path::PathBuf;

use clap::Args;
use heaptoll_command::failure::Failure;
use heaptoll_runs::preparation::baseline;
use heaptoll_trace_reports::replay::{self, Order, Touch, TraceReplayRequest};

use crate::entry::{Command, writes};
use crate::one_of::{Word, one_of};
use crate::replays::{ReplayArguments, TOUCHES, again, status};
use crate::session::Session;

/// Order of a trace's threads.
const ORDERS: [Word<Order>; 2] = [
    ("exact", Order::Exact, "As recorded: one call at a time, whichever thread makes it"),
    (
        "per-thread",
        Order::PerThread,
        "Each thread as fast as possible; only the calls for one object keep their order",
    ),
];

/// Replay a trace under other managers: what would each have done with exactly these calls?
///
/// A fresh process with the manager preloaded makes the calls of the trace and nothing else. CPU, latency of single
/// calls, and memory come from separate runs in random order. The cost of the driver is measured with a manager that
/// does nothing, and subtracted. If the recorded manager is replayed too, the two are compared.
///
/// A trace has no pointers, so it cannot show what a collector would mark; collectors get no times. A trace of
/// `heaptoll record --graph` has pointers: `heaptoll lab replay-graph` replays it under collectors of MMTk.
///
/// Exit status: 0 all well; 1 a manager failed, a collection lost an object, or an output file could not be written;
/// 2 not a trace, or not replayable; 130 interrupted (finished runs are shown).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll trace replay gawk.heaptoll\n  \
    heaptoll trace replay gawk.heaptoll -m mimalloc3 -m ./libmine.so -n 10 --html gawk.html\n  \
    heaptoll trace replay server.heaptoll -m jemalloc --loop 100     (does memory drift up?)\n  \
    heaptoll trace replay server.heaptoll --scale 8                  (eight copies, interleaved)\n  \
    heaptoll trace replay threads.heaptoll --order exact --touch all (as recorded, contents checked)")]
pub struct Arguments {
    /// The trace that `heaptoll record` made
    trace: PathBuf,
    /// A manager by name (`heaptoll managers`) or path, or a group of them: modern, historic, collectors, all; with
    /// layers in front (`quarantine=2M/mimalloc`) and options after the name (`tithe,heap=32M`) where wanted; may be
    /// given several times [default: modern]
    #[arg(short, long, value_name = "MANAGER")]
    manager: Vec<String>,
    /// The manager that ratios are taken to; added to the list when it is not in it
    #[arg(long, value_name = "MANAGER", default_value = baseline::DEFAULT)]
    baseline: String,
    /// Order of threads [default: per-thread for times, exact for memory]
    #[arg(long, value_name = "ORDER", value_parser = one_of(&ORDERS))]
    order: Option<Order>,
    /// Accesses to blocks [default: none for times, write for memory]
    #[arg(long, value_name = "HOW", value_parser = one_of(&TOUCHES))]
    touch: Option<Touch>,
    /// Replay the whole trace N times in the same process, for the long run
    #[arg(long = "loop", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repetitions: u32,
    /// Replay N copies of the trace, interleaved
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    scale: u32,
    #[command(flatten)]
    replay: ReplayArguments,
}

impl Command for Arguments {
    const NAME: &'static str = "trace replay";
    const FORMER: Option<&'static str> = Some("replay");
    const FIRST: &'static [&'static str] = &["scale"];
    writes!(of: replay::Figures);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        let session = Session::begin()?;
        let replayed = replay::run(&request(arguments), &session.context())?;
        let document = replayed.document(&again(replayed.figures.seed));
        let code = arguments.replay.outputs.deliver(&document, &replayed.figures)?;
        Ok(status(replayed.figures.complete, replayed.has_trouble(), code))
    }
}

fn request(arguments: &Arguments) -> TraceReplayRequest {
    TraceReplayRequest {
        trace: arguments.trace.clone(),
        manager: arguments.manager.clone(),
        baseline: arguments.baseline.clone(),
        order: arguments.order,
        touch: arguments.touch,
        repetitions: arguments.repetitions,
        copies: arguments.scale,
        runs: arguments.replay.runs,
        seed: arguments.replay.seed,
        timeout: arguments.replay.timeout(),
        memory_limit_bytes: arguments.replay.memory.limit_bytes(),
    }
}
