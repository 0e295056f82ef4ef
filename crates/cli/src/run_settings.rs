//! How a program is run under managers: what `heaptoll run` and `heaptoll lab shards plan` have in common.

use clap::Args;

use crate::bytes::bytes;
use crate::duration::slice;
use crate::factors::{self, Factors};
use crate::one_of::{Word, one_of};
use crate::protocol_arguments::Paired;
use crate::workload_args::WorkloadArgs;
use heaptoll_compare::run::{RunRequest, Vary};
use heaptoll_experiment::experiment::Protocol;

/// Transparent huge pages of the measured processes.
const THP: [Word<&str>; 3] = [
    ("always", "always", "Everywhere (only if the system's setting is `always`)"),
    (
        "madvise",
        "madvise",
        "If the program or the manager asks for them (not if the system's setting is `never`)",
    ),
    ("never", "never", "Nowhere"),
];

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
    /// Also measure each named manager with a setting at several values: a range, which doubles from its first to its
    /// last, or a list. As in quarantine=1B..64M, sweep,every=64K,1M or, for an option of the manager,
    /// purge_delay=-1,0,1000. Ratios are also shown to the same manager without the setting. Runs are interleaved
    /// unless --pairing says otherwise, because lockstep makes a setting that takes memory look dearer
    #[arg(long, value_name = "SETTING=FROM..TO", conflicts_with = "heaps")]
    pub vary: Option<Vary>,
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
    #[arg(long, value_name = "WHEN", value_parser = one_of(&THP))]
    pub thp: Option<&'static str>,
}

impl RunSettings {
    /// What to run, as the library takes it: the repetitions of these programs.
    pub fn request(&self, workload: &WorkloadArgs, paired: &Paired) -> RunRequest {
        RunRequest {
            manager: self.manager.clone(),
            baseline: self.baseline.clone(),
            heaps: self.heaps.as_ref().map(|factors| factors.0.clone()),
            vary: self.vary.clone(),
            protocol: Protocol {
                slice_s: self.slice,
                at_once_bytes: self.memory_at_once,
                working_copy: self.working_copy,
                thp: self.thp.unwrap_or_default().to_owned(),
                ..paired.protocol()
            },
            ..RunRequest::of(workload.workload(), &[])
        }
    }
}
