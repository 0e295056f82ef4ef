//! The arguments of `heaptoll run`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::duration::{duration, positive_seconds, slice};
use crate::extras::ExtraTables;
use crate::factors::{self, Factors};
use crate::memory::bytes;
use crate::outputs::{Outputs, own_arguments};
use crate::pairing_arg::PairingArg;
use crate::precision::precision;
use crate::workload_args::WorkloadArgs;
use heaptoll_experiments::preparation::baseline;
use heaptoll_experiments::run::{Request, Thp};

/// Transparent huge pages of the measured processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ThpArg {
    /// Everywhere (only where the system's own setting is `always`)
    Always,
    /// Where the program or the manager requests them (not where the system's own setting is `never`)
    Madvise,
    /// Nowhere
    Never,
}

impl From<ThpArg> for Thp {
    fn from(requested: ThpArg) -> Thp {
        match requested {
            ThpArg::Always => Thp::Always,
            ThpArg::Madvise => Thp::Madvise,
            ThpArg::Never => Thp::Never,
        }
    }
}

/// Run a program under several managers and compare them.
///
/// Every repetition runs the program under every manager, at once on one processor where that is possible, else in a
/// fresh random order; ratios are paired within a repetition. A difference is claimed only when its interval, corrected
/// for the number of comparisons in the table, excludes 1. Each row is stored as soon as it is measured: Ctrl-C loses
/// nothing, and --resume goes on.
///
/// After the first five repetitions a line states which CPU differences this machine will show in the time that is
/// left. Under each table notes show what else the machine did meanwhile: steal, interrupts, other work.
///
/// Exit status: 0 all well; 1 a manager failed or gave wrong output, what was named was refused, or an output file
/// could not be written; 2 the request cannot be carried out; 130 interrupted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll run -- gawk -f report.awk data.txt\n  \
    heaptoll run -m glibc -m ./libmine.so -n 20 --html out.html -- ./server --selftest\n  \
    heaptoll run --program cfrac --program lua --size demo\n  \
    heaptoll run --exact -m mimalloc3 --program cfrac             (is it instructions, or memory?)\n  \
    heaptoll run -m quarantine=1B/mimalloc -m quarantine=2M/mimalloc -- ./prog     (what do delayed frees cost?)\n  \
    heaptoll run --heaps -m tithe-collect -m mimalloc3 -p cfrac:gc    (how much memory does a collector need?)\n  \
    heaptoll run -m glibc -m glibc -- ./prog        (A/A: how large is this machine's noise?)\n  \
    heaptoll run --serve 'redis-server --port 0 --unixsocket {tmp}/s' --ready '(?i)ready to accept connections' \\\n    \
    --load 'redis-benchmark -s {tmp}/s -q -n 200000'")]
pub struct Arguments {
    /// A manager by name (`heaptoll managers`) or path, or a group of them: modern, historic, collectors,
    /// all; with layers in front (`quarantine=2M/mimalloc`) and options after the name (`tithe,heap=32M`) where wanted;
    /// may be given several times [default: modern]
    #[arg(short, long, value_name = "MANAGER", conflicts_with = "resume")]
    pub manager: Vec<String>,
    /// The manager that ratios are taken to; added to the list when it is not in it
    #[arg(long, value_name = "MANAGER", default_value = baseline::DEFAULT, conflicts_with = "resume")]
    pub baseline: String,
    /// Compare at equal memory: search the smallest heap in which the program completes under each collector, and run the
    /// collector in heaps of so many times that size too, at once with the managers. A value is given with `=`, as in
    /// --heaps=1.5,3 [default value: 1.25,1.5,2,3,4]
    #[arg(long, value_name = "FACTORS", num_args = 0..=1, require_equals = true,
        default_missing_value = factors::DEFAULT, conflicts_with_all = ["serve", "working_copy", "resume"])]
    pub heaps: Option<Factors>,
    /// Timed repetitions; below 6 no difference can be claimed [default: 10]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repetitions: Option<u32>,
    /// Repeat each program until its CPU intervals have at most this half-width, such as 1%; 8 repetitions at
    /// least, and 400 or the time of --budget at most
    #[arg(long, value_name = "P", conflicts_with_all = ["repetitions", "resume"], value_parser = precision)]
    pub precision: Option<f64>,
    /// Measure for so long, such as 5m: programs with narrow enough intervals (--precision) end earlier
    #[arg(long, value_name = "TIME", conflicts_with_all = ["repetitions", "resume"], value_parser = duration)]
    pub budget: Option<f64>,
    /// Repetitions before the timed ones, not compared; the first is watched and gives memory over time
    #[arg(long, value_name = "W", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=1000),
        conflicts_with = "resume")]
    pub warmup: u32,
    /// Seed of the order and of every other random choice [default: from the clock, printed]
    #[arg(long, value_name = "S", conflicts_with = "resume")]
    pub seed: Option<u64>,
    /// Seconds after which an invocation is killed and marked
    #[arg(long, value_name = "T", default_value_t = 600.0, allow_negative_numbers = true,
        value_parser = positive_seconds, conflicts_with = "resume")]
    pub timeout: f64,
    /// Exit status with which the program ends when all is well
    #[arg(long, value_name = "STATUS", default_value_t = 0, value_parser = clap::value_parser!(i32).range(0..=255),
        conflicts_with = "resume")]
    pub expect_status: i32,
    /// How runs are paired: `lockstep` runs all managers at once on one processor, wherever the program allows it and
    /// with the reason in the table where not; `interleaved` one after the other
    #[arg(long, value_enum, value_name = "HOW", default_value = "lockstep", conflicts_with = "resume")]
    pub pairing: PairingArg,
    /// Time slice of managers in lockstep, from .1ms to 100ms, on Linux 6.12 and later [default: the kernel's own]
    #[arg(long, value_name = "TIME", value_parser = slice, conflicts_with = "resume")]
    pub slice: Option<f64>,
    /// Memory that managers in lockstep may take together; where all of them would take more they run in turns, fewer at
    /// once with the baseline in each block, or, where not even two may, one after the other [default: half of what is
    /// available]
    #[arg(long, value_name = "SIZE", value_parser = bytes, conflicts_with = "resume")]
    pub memory_at_once: Option<u64>,
    /// Give each run a copy of the current folder to run in (at most 1 GiB): a program that writes there may run at
    /// once with others, and finds nothing of an earlier run
    #[arg(long, conflicts_with_all = ["serve", "resume"])]
    pub working_copy: bool,
    /// Afterwards run each program once more under each manager and a tracer (some 60 times slower), and show exact
    /// ratios with the measured one: instructions, misses of this machine's data caches, pages. Needs the tracer
    #[arg(long)]
    pub exact: bool,
    /// Transparent huge pages of the measured processes [default: as the system has them]
    #[arg(long, value_enum, value_name = "WHEN", conflicts_with = "resume")]
    pub thp: Option<ThpArg>,
    /// File that keeps the experiment [default: a new one in $XDG_STATE_HOME/heaptoll]
    #[arg(long, value_name = "FILE", help_heading = "Output", conflicts_with = "resume")]
    pub db: Option<PathBuf>,
    /// Go on with an experiment that was stopped; a larger -n extends it
    // What is fixed when an experiment begins is refused with it, not ignored.
    #[arg(long, value_name = "DB", conflicts_with = "WorkloadArgs")]
    pub resume: Option<PathBuf>,
    #[command(flatten)]
    pub extras: ExtraTables,
    #[command(flatten)]
    pub outputs: Outputs,
    #[command(flatten)]
    pub workload: WorkloadArgs,
}

impl Arguments {
    /// What to run, as the library takes it.
    pub fn request(&self) -> Request {
        Request {
            workload: self.workload.workload(),
            manager: self.manager.clone(),
            baseline: self.baseline.clone(),
            heaps: self.heaps.as_ref().map(|factors| factors.0.clone()),
            repetitions: self.repetitions,
            precision: self.precision,
            budget_s: self.budget,
            warmup: self.warmup,
            seed: self.seed,
            timeout_s: self.timeout,
            expect_status: self.expect_status,
            pairing: self.pairing.into(),
            slice_s: self.slice,
            at_once_bytes: self.memory_at_once,
            working_copy: self.working_copy,
            exact: self.exact,
            thp: self.thp.map(Thp::from),
            db: self.db.clone(),
            command: own_arguments(),
        }
    }
}
