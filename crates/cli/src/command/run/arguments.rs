//! The arguments of `heaptoll run`.

use std::path::PathBuf;

use clap::Args;

use crate::duration::duration;
use crate::extras::ExtraTables;
use crate::outputs::Outputs;
use crate::precision::precision;
use crate::protocol_arguments::{FIXED, Paired};
use crate::run_settings::RunSettings;
use crate::workload_args::WorkloadArgs;
use heaptoll_compare::run::RunRequest;
use heaptoll_experiment::experiment::Protocol;

/// Run a program under several managers and compare them.
///
/// Every repetition runs the program under every manager: in lockstep on one processor if possible, else in a new
/// random order. Ratios are paired within a repetition. A difference is claimed only if its interval excludes 1,
/// corrected for all comparisons in the table. Each row is stored as soon as it is measured: Ctrl-C loses nothing,
/// and --resume goes on.
///
/// After five repetitions a line says which CPU differences this machine can detect in the remaining time. Notes
/// under each table show the load of the machine during the run.
///
/// Exit status: 0 all well; 1 a manager failed, gave wrong output or was refused, or an output file could not be
/// written; 2 bad request; 130 interrupted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll run -- gawk -f report.awk data.txt\n  \
    heaptoll run -m glibc -m ./libmine.so -n 20 --html out.html -- ./server --selftest\n  \
    heaptoll run --program cfrac --program lua --size demo\n  \
    heaptoll run --exact -m mimalloc3 --program cfrac             (is it instructions, or memory?)\n  \
    heaptoll run -m quarantine=1B/mimalloc -m quarantine=2M/mimalloc -- ./prog     (what do delayed frees cost?)\n  \
    heaptoll run --vary quarantine=64K..2M -m mimalloc3 -- ./prog     (from which delay on do they cost?)\n  \
    heaptoll run --heaps -m tithe-collect -m mimalloc3 -p cfrac:gc    (how much memory does a collector need?)\n  \
    heaptoll run -m glibc -m glibc -- ./prog        (A/A: how large is this machine's noise?)\n  \
    heaptoll run --serve 'redis-server --port 0 --unixsocket {tmp}/s' --ready '(?i)ready to accept connections' \\\n    \
    --load 'redis-benchmark -s {tmp}/s -q -n 200000'")]
pub struct Arguments {
    #[command(flatten)]
    pub settings: RunSettings,
    #[command(flatten)]
    pub paired: Paired,
    /// Repeat each program until its CPU intervals have at most this half-width, such as 1%; at least 8 repetitions,
    /// at most 400 or the time of --budget
    #[arg(long, value_name = "P", conflicts_with_all = ["repetitions", "resume"], value_parser = precision)]
    pub precision: Option<f64>,
    /// Time to measure, such as 5m; programs that reach --precision end earlier
    #[arg(long, value_name = "TIME", conflicts_with_all = ["repetitions", "resume"], value_parser = duration)]
    pub budget: Option<f64>,
    /// Measure one program after another, and print each table without notes when it is complete; a terminal shows
    /// the figures so far
    #[arg(long, conflicts_with_all = ["precision", "budget", "exact", "resume"])]
    pub by_program: bool,
    /// Run these programs in one block in lockstep, so that they can be compared with each other: forms of one program,
    /// as in cfrac:gc,cfrac:optimized. May be given several times
    #[arg(long, value_name = "PROGRAMS", value_parser = names, conflicts_with_all = ["by_program", "resume"])]
    pub together: Vec<Names>,
    /// Afterwards run each program once more under each manager and the tracer, some 60 times slower. It shows exact
    /// ratios beside the measured one: instructions, misses of this machine's data caches, pages
    #[arg(long)]
    pub exact: bool,
    /// File that keeps the runs [default: a new one in $XDG_STATE_HOME/heaptoll]
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pub db: Option<PathBuf>,
    /// Go on with an experiment that was stopped; a larger -n extends it
    // What is fixed when an experiment begins is refused with it, not ignored.
    #[arg(long, value_name = "DB", conflicts_with_all = ["Programs", "ServerArgs", "RunSettings"], conflicts_with_all = FIXED)]
    pub resume: Option<PathBuf>,
    #[command(flatten)]
    pub extras: ExtraTables,
    #[command(flatten)]
    pub outputs: Outputs,
    #[command(flatten)]
    pub workload: WorkloadArgs,
}

/// Programs of one block.
#[derive(Debug, Clone)]
pub struct Names(Vec<String>);

fn names(text: &str) -> Result<Names, String> {
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    match names.len() {
        1 => Err("name two programs or more, as in cfrac:gc,cfrac:optimized".into()),
        _ => Ok(Names(names)),
    }
}

impl Arguments {
    /// What to run, as the library takes it.
    pub fn request(&self) -> RunRequest {
        let request = self.settings.request(&self.workload, &self.paired);
        RunRequest {
            protocol: Protocol { exact: self.exact, ..request.protocol.until(self.precision, self.budget) },
            by_program: self.by_program,
            together: self.together.iter().map(|names| names.0.clone()).collect(),
            db: self.db.clone(),
            ..request
        }
    }
}
