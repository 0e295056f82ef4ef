//! How a program is run under managers: what `heaptoll run` and `heaptoll lab shards plan` have in common.

use clap::{Args, ValueEnum};

use crate::duration::{positive_seconds, slice};
use crate::factors::{self, Factors};
use crate::memory::bytes;
use crate::outputs::own_arguments;
use crate::pairing_arg::PairingArg;
use crate::workload_args::WorkloadArgs;
use heaptoll_experiments::run::{Request, Thp};

/// Transparent huge pages of the measured processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ThpArg {
    /// Everywhere (only if the system's setting is `always`)
    Always,
    /// If the program or the manager asks for them (not if the system's setting is `never`)
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

/// How it is run.
#[derive(Debug, Args)]
pub struct RunSettings {
    /// A manager by name (`heaptoll managers`) or path, or a group: modern, historic, collectors, all. Layers go in
    /// front (`quarantine=2M/mimalloc`), options after (`tithe,heap=32M`). May be given several times [default:
    /// modern]
    #[arg(short, long, value_name = "MANAGER")]
    pub manager: Vec<String>,
    /// The manager that ratios refer to; always added to the list [default: the allocator that the program links, if it
    /// is in the list, or glibc]
    #[arg(long, value_name = "MANAGER")]
    pub baseline: Option<String>,
    /// Compare at equal memory: find the smallest heap for each collector, and also run it in heaps of these
    /// multiples, in lockstep with the managers. Give values with `=`, as in --heaps=1.5,3 [default value:
    /// 1.25,1.5,2,3,4]
    #[arg(long, value_name = "FACTORS", num_args = 0..=1, require_equals = true,
        default_missing_value = factors::DEFAULT, conflicts_with_all = ["serve", "working_copy"])]
    pub heaps: Option<Factors>,
    /// Repetitions before the timed ones, not compared; the first gives memory over time. Lockstep adds one of its own
    #[arg(long, value_name = "W", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub warmup: u32,
    /// Seed of all random choices [default: from the clock, printed]
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Seconds after which an invocation is killed and marked
    #[arg(long, value_name = "T", default_value_t = 600.0, allow_negative_numbers = true,
        value_parser = positive_seconds)]
    pub timeout: f64,
    /// Exit status of a good run
    #[arg(long, value_name = "STATUS", default_value_t = 0, value_parser = clap::value_parser!(i32).range(0..=255))]
    pub expect_status: i32,
    /// How runs are paired: `lockstep` runs all managers together on one processor if the program allows it,
    /// `interleaved` one after another
    #[arg(long, value_enum, value_name = "HOW", default_value = "lockstep")]
    pub pairing: PairingArg,
    /// Time slice of managers in lockstep, from .1ms to 100ms, on Linux 6.12 and later [default: the kernel's own]
    #[arg(long, value_name = "TIME", value_parser = slice)]
    pub slice: Option<f64>,
    /// Memory for all managers in lockstep. If they need more, they run in smaller blocks, each with the baseline, or
    /// one after another [default: half of the available memory]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub memory_at_once: Option<u64>,
    /// Run each time in a copy of the current folder (at most 1 GiB), so that runs do not see each other's files
    #[arg(long, conflicts_with = "serve")]
    pub working_copy: bool,
    /// Transparent huge pages of the measured processes [default: as the system has them]
    #[arg(long, value_enum, value_name = "WHEN")]
    pub thp: Option<ThpArg>,
}

impl RunSettings {
    /// What to run, as the library takes it: so many repetitions of these programs.
    pub fn request(&self, workload: &WorkloadArgs, repetitions: Option<u32>) -> Request {
        Request {
            manager: self.manager.clone(),
            baseline: self.baseline.clone(),
            heaps: self.heaps.as_ref().map(|factors| factors.0.clone()),
            repetitions,
            warmup: self.warmup,
            seed: self.seed,
            timeout_s: self.timeout,
            expect_status: self.expect_status,
            pairing: self.pairing.into(),
            slice_s: self.slice,
            at_once_bytes: self.memory_at_once,
            working_copy: self.working_copy,
            thp: self.thp.map(Thp::from),
            command: own_arguments(),
            ..Request::of(workload.workload(), &[])
        }
    }
}
