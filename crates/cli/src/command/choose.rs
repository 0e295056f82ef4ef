//! `heaptoll choose`: which manager, with which settings, fits a program best.

use clap::Args;
use heaptoll_command::failure::Failure;
use heaptoll_compare::choose::{self, ChooseRequest, Preference};
use heaptoll_compare::run;
use heaptoll_experiment::experiment::{Pairing, Protocol};
use heaptoll_report::format::shell_path;
use heaptoll_runs::preparation::baseline;
use heaptoll_runs::workload::{AfterLoad, Workload};

use crate::bytes::bytes;
use crate::documents::DocumentOutputs;
use crate::duration::{duration, latency_ms};
use crate::entry::{Command, writes};
use crate::one_of::{Word, one_of};
use crate::precision::precision;
use crate::protocol_arguments::Seeded;
use crate::session::Session;
use crate::workload_args::WorkloadArgs;
use crate::{exit, terminal};

/// The goal.
const PREFERENCES: [Word<Preference>; 5] = [
    ("time", Preference::Time, "Little CPU time"),
    ("memory", Preference::Memory, "Little memory"),
    ("balance", Preference::Balance, "Both alike"),
    ("p99", Preference::P99, "For a server: few slow requests"),
    ("idle", Preference::Idle, "For a server: little memory when it is idle after its load"),
];

/// Choose a memory manager and its settings for a program.
///
/// The candidates are the modern managers and Tithe, each alone and with settings: arenas, decay, thresholds, huge
/// pages, headroom. They run the program in lockstep, and the better third goes on until two are left. Fresh runs
/// then compare these two with the default. The answer uses the fresh runs alone: what it saves and costs, with
/// intervals, how to set it, and what was not decided. If no finalist is certainly better, or none by --floor, the
/// default stays.
/// docs/questions/choose.md
///
/// Exit status: 0 all well; 1 an output file could not be written; 2 bad request, or no candidate works; 130
/// interrupted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll choose -- gawk -f report.awk data.txt\n  \
    heaptoll choose --prefer memory --memory-limit 512M -- ./prog\n  \
    heaptoll choose -m glibc -m jemalloc --settings -p cfrac --size demo\n  \
    heaptoll choose --serve 'redis-server --port 0 --unixsocket {tmp}/s' --ready '(?i)ready to accept connections' \\\n    \
    --load 'redis-benchmark -s {tmp}/s -q -n 200000'\n  \
    heaptoll choose -p redis --size quick --idle 1s,10s --prefer idle --p99 5ms")]
pub struct Arguments {
    /// A manager or group to choose from; may be given several times [default: modern, with settings]
    #[arg(short, long, value_name = "MANAGER")]
    manager: Vec<String>,
    /// Also try settings of the managers that -m names
    #[arg(long, requires = "manager")]
    settings: bool,
    /// The goal. A finalist that is certainly better in this figure comes first. Without one, a finalist needs a
    /// certainly better score, and a figure that is not worse by --floor
    #[arg(long, value_name = "WHAT", default_value = "balance", value_parser = one_of(&PREFERENCES))]
    prefer: Preference,
    /// Reject candidates whose peak resident memory exceeds this
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    memory_limit: Option<u64>,
    /// Keep the default unless a finalist is certainly better, and by this much in a figure [default: 2%]
    #[arg(long, value_name = "PERCENT", value_parser = precision)]
    floor: Option<f64>,
    /// For servers: reject candidates whose 99th percentile of request time exceeds this
    #[arg(long, value_name = "TIME", value_parser = latency_ms)]
    p99: Option<f64>,
    /// A second load for the server, after the first; --idle shows the memory that it leaves behind
    #[arg(long, value_name = "COMMAND", requires = "idle")]
    burst: Option<String>,
    /// Read an idle server's memory at these times after its last load; for a catalog server, after its burst
    #[arg(long, value_name = "TIMES", value_delimiter = ',', value_parser = duration)]
    idle: Vec<f64>,
    /// After the fresh runs, keep the servers of finalists and default running this long, loaded in turns, and test
    /// whether their memory grows
    #[arg(long, value_name = "TIME", value_parser = duration)]
    soak: Option<f64>,
    /// The manager that stays if nothing is better; all are compared with it
    #[arg(long, value_name = "MANAGER", default_value = baseline::DEFAULT)]
    baseline: String,
    /// Repetitions of the fresh runs; below 6 no difference can be claimed
    #[arg(short = 'n', long, value_name = "N", default_value_t = choose::REPETITIONS,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repetitions: u32,
    #[command(flatten)]
    seeded: Seeded,
    #[command(flatten)]
    outputs: DocumentOutputs,
    #[command(flatten)]
    workload: WorkloadArgs,
}

impl Arguments {
    fn request(&self) -> ChooseRequest {
        let managers: Vec<&str> = self.manager.iter().map(String::as_str).collect();
        let mut idle_s = self.idle.clone();
        idle_s.sort_by(f64::total_cmp);
        idle_s.dedup();
        let after_load = (!idle_s.is_empty()).then(|| AfterLoad { burst: self.burst.clone(), idle_s });
        let workload = Workload { after_load, ..self.workload.workload() };
        ChooseRequest {
            run: run::RunRequest {
                baseline: Some(self.baseline.clone()),
                protocol: Protocol {
                    warmup: 1,
                    pairing: Pairing::Lockstep,
                    ..self.seeded.protocol(self.repetitions)
                },
                ..run::RunRequest::of(workload, &managers)
            },
            manager: self.manager.clone(),
            settings: self.settings,
            preference: self.prefer,
            memory_limit_bytes: self.memory_limit,
            p99_limit_ms: self.p99,
            floor: self.floor.unwrap_or(choose::FLOOR),
            soak_s: self.soak,
        }
    }
}

impl Command for Arguments {
    const NAME: &'static str = "choose";
    const FIRST: &'static [&'static str] = &["prefer", "memory_limit", "serve"];
    writes!(of: choose::ChooseFigures);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        let session = Session::begin()?;
        let context = session.context();
        let found = choose::run(&arguments.request(), &context)?;
        let document = found.document(&context);
        let code = arguments.outputs.deliver(&document, &found.figures)?;
        terminal::note(&format!(
            "the fresh runs in other forms: heaptoll report {}",
            shell_path(found.run.store.path())
        ));
        Ok(if found.complete { code } else { exit::INTERRUPTED })
    }
}
