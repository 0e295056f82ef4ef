//! One row: one invocation of a program under a stack, with everything that was measured.
//!
//! Every table, plot and verdict is a query over these rows, so the row is wide and keeps raw figures; nothing in
//! it is a ratio or an average.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::disturbance::Disturbance;
use crate::launch::Finished;

/// Why the invocation was made. Only `Timed` rows are compared.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Fills caches; stored, never compared.
    Warmup,
    /// The measurement.
    #[default]
    Timed,
    /// A measurement by itself, on all processors, where `Timed` runs share one: memory and elapsed time are those of
    /// runs alone.
    Alone,
    /// The same program, stopped where `main` would begin: loader, relocations and constructors only.
    Startup,
    /// A run that is watched (resident memory over time) and therefore not timed.
    Profile,
    /// A run under the tracer: exact counts, and times many times those of the program.
    Traced,
    /// A run that decides which runs follow: a step of a search, for instance. Stored, never compared.
    Search,
}

impl Phase {
    /// Whether the program did its work, from its beginning to its end: neither start-up alone, nor in a search, whose
    /// heaps are too small for it.
    pub fn is_whole(self) -> bool {
        !matches!(self, Phase::Startup | Phase::Search)
    }

    /// Whether it did that as users run it: not traced.
    pub fn is_measured(self) -> bool {
        self.is_whole() && self != Phase::Traced
    }

    /// Whether the run is a warm-up, watched or not.
    pub fn is_warm_up(self) -> bool {
        matches!(self, Phase::Profile | Phase::Warmup)
    }

    /// Whether the run is compared where it is made: in lockstep, or alone.
    pub fn is_compared(self) -> bool {
        matches!(self, Phase::Timed | Phase::Alone)
    }

    /// As every format names it: as `serde` does.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// How the invocation ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind", content = "detail")]
pub enum Outcome {
    /// Exit status 0 (or the status the catalog expects).
    #[default]
    Ok,
    /// Another exit status.
    Exit(i32),
    /// Killed by this signal number.
    Signal(i32),
    /// Killed by heaptoll after the time limit, in seconds.
    Timeout(f64),
    /// Killed by heaptoll because the user pressed Ctrl-C.
    Interrupted,
    /// Never ran: the launcher's message.
    NotStarted(String),
    /// Ended well, but its output differs from the first manager's or from the catalog's digest.
    WrongOutput,
    /// A server that did not become ready, did not stop, or whose load failed.
    ServeFailed(String),
}

impl Outcome {
    /// Whether the row may enter averages.
    pub fn is_ok(&self) -> bool {
        matches!(self, Outcome::Ok)
    }

    /// Whether the run failed; of one that the user ended nothing is known.
    pub fn is_failure(&self) -> bool {
        !matches!(self, Outcome::Ok | Outcome::Interrupted)
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Ok => write!(f, "ok"),
            Outcome::Exit(code) => write!(f, "exit status {code}"),
            Outcome::Signal(number) => write!(f, "killed by signal {number}"),
            Outcome::Timeout(limit) => write!(f, "over the time limit of {limit} s"),
            Outcome::Interrupted => write!(f, "interrupted"),
            Outcome::NotStarted(why) => write!(f, "not started: {why}"),
            Outcome::WrongOutput => write!(f, "wrong output"),
            Outcome::ServeFailed(why) => write!(f, "server: {why}"),
        }
    }
}

/// Hardware events of the program and its descendants, user and kernel mode, where the kernel counts them.
/// Each is `None` where this machine has no such counter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counters {
    /// Instructions retired.
    pub instructions: Option<u64>,
    /// Core cycles.
    pub cycles: Option<u64>,
    /// Misses of the last-level cache.
    pub llc_misses: Option<u64>,
    /// Load misses of the data TLB.
    pub dtlb_misses: Option<u64>,
}

impl Counters {
    /// Whether the machine counted anything at all.
    pub fn is_empty(&self) -> bool {
        *self == Counters::default()
    }
}

/// What the collectors of a run's processes did, as they reported it; zeroes from a manager that reports and never
/// collected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Collections {
    /// Finished, of all processes of the run.
    pub count: u64,
    /// Time that a process was stopped for them, sum over all processes.
    pub pause_total_ns: u64,
    /// Longest such pause of any process.
    pub pause_max_ns: u64,
    /// Bytes in blocks that they reclaimed.
    pub reclaimed_bytes: u64,
    /// Processes that collected; 0 in files from before it was reported.
    #[serde(default)]
    pub processes: u32,
    /// Places in use by a process that collections cannot read, where it may keep its only pointer to a block:
    /// the sum of 1 (requests of io_uring), 2 (of io_submit), 4 (values of signals) and 8 (epoll and timers, where
    /// `/proc` is closed to the user).
    #[serde(default)]
    pub unread_places: u64,
    /// Why collections were abandoned: the sum of 1 (a thread did not stop), 2 (no memory), 4 (a process that vfork,
    /// clone or _Fork made), 8 (no list of threads), 16 (of mappings), 32 (no descriptor), 64 (no signal), 128 (a full
    /// queue of signals) and 256 (a thread did not leave the manager).
    #[serde(default)]
    pub abandon_causes: u64,
}

/// One figure of a traced run, by its cause; all process images and threads together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ByOwner {
    /// The program's.
    pub program: u64,
    /// Those of routines of the malloc family, from entry to return, but for collections.
    pub allocator: u64,
    /// Those of collections that the manager announced, and of threads that it started.
    pub collector: u64,
}

/// What a program executed, exactly, as the tracer counted it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExactFigures {
    /// Instructions.
    pub instructions: ByOwner,
    /// Loads.
    pub loads: ByOwner,
    /// Stores.
    pub stores: ByOwner,
    /// Calls from outside of the malloc family to its routines that give a block, `realloc` among them.
    pub allocations: u64,
    /// Calls to those that only give back.
    pub frees: u64,
    /// Most memory the heap had mapped, by `brk` and `mmap` as seen from outside, in the process image that
    /// executed most; null where it was not requested.
    pub heap_high_water_bytes: Option<u64>,
    /// Process images (`exec` and `fork`) of the run.
    pub images: u32,
    /// Whether all were traced to their end; if not, the figures are those until then.
    pub whole: bool,
    /// Instructions before `main` of the first process image, the loader's and constructors' among the program's;
    /// null if its `main` is unknown, and in older files.
    #[serde(default)]
    pub startup: Option<ByOwner>,
}

impl ByOwner {
    /// Of all of them.
    pub fn total(&self) -> u64 {
        self.program.saturating_add(self.allocator).saturating_add(self.collector)
    }
}

/// Misses of one cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GeometryMisses {
    /// The cache, its bytes and ways, as in `32K/8`.
    pub cache: String,
    /// Its misses.
    pub misses: ByOwner,
    /// Cycles that a reference which it does not have is assumed to wait; null in older files.
    #[serde(default)]
    pub wait_cycles: Option<u64>,
}

/// What a program's references would do to caches and memories, of the process image that executed most.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LocalityFigures {
    /// References, with the kernel's in system calls.
    pub references: ByOwner,
    /// Line of the caches.
    pub line_bytes: u64,
    /// Page of the memories.
    pub page_bytes: u64,
    /// Caches that were named.
    pub caches: Vec<GeometryMisses>,
    /// Different pages referred to.
    pub pages_touched: u64,
    /// One reference in as many was simulated; 1: all.
    pub sampled_one_in: u32,
}

/// What a server's invocation adds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServeFigures {
    /// CPU seconds of the server from ready to the end of its last load.
    pub loaded_cpu_s: f64,
    /// From start until ready.
    pub ready_s: f64,
    /// Seconds that the load took, with the burst.
    pub load_s: f64,
    /// Figures found in the load's report.
    pub load_figures: BTreeMap<String, f64>,
    /// First 16 KiB of the load's report, then of the burst's.
    pub load_report: String,
    /// Resident KiB of the server's processes by seconds since its last load had ended, `0` among them; empty where
    /// it was stopped immediately.
    #[serde(default)]
    pub idle_rss_kib: BTreeMap<String, f64>,
}

/// One invocation. Times are seconds, memory is KiB unless the name has `bytes`. The default is of a run that took
/// nothing; `columns.rs` has each field's column in the database, CSV and Parquet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observation {
    /// Position in the experiment, from 0.
    pub order: u32,
    /// Repetition, from 0; ratios are paired within one (with `turns` each stack has one in `count` of them).
    pub repetition: u32,
    /// `timed` (compared), `alone` (the same by itself, in addition to `timed` runs in lockstep: its memory and
    /// elapsed time are compared), `warmup`, `startup` (loader and constructors only), `profile` (memory was
    /// watched), `traced` (counted exactly under the tracer; its times are the tracer's) or `search` (it decided which
    /// runs followed).
    pub phase: Phase,
    /// Program.
    pub program: String,
    /// Stack.
    pub stack: String,
    /// How it ended.
    pub outcome: Outcome,
    /// CPU seconds in user mode, with all descendants.
    pub user_s: f64,
    /// CPU seconds in the kernel, with all descendants.
    pub system_s: f64,
    /// From exec to the end.
    pub wall_s: f64,
    /// Peak resident memory of the largest single process.
    pub peak_rss_kib: u64,
    /// Page faults served without the disk.
    pub minor_faults: u64,
    /// Page faults that read from the disk.
    pub major_faults: u64,
    /// Context switches because the program waited.
    pub voluntary_switches: u64,
    /// Context switches because its time slice ended.
    pub involuntary_switches: u64,
    /// Bytes on standard output.
    pub output_bytes: u64,
    /// SHA-256 of standard output, hexadecimal.
    pub output_digest: String,
    /// Most memory the manager had mapped, where it reports it.
    pub heap_high_water_bytes: Option<u64>,
    /// Garbage collections, where the manager or a layer reports them.
    #[serde(default)]
    pub collections: Option<Collections>,
    /// Processor time of collections on all threads that took part, where the manager or a layer reports it.
    #[serde(default)]
    pub collector_cpu_ns: Option<u64>,
    /// The most bytes of pages (4 KiB) that held a live block at the same time, of any process, where the manager or a
    /// layer reports it.
    #[serde(default)]
    pub used_high_bytes: Option<u64>,
    /// Calls that failed because the heap has a limit, where the manager or a layer reports it.
    #[serde(default)]
    pub refused_calls: Option<u64>,
    /// The most bytes that a quarantine held back at any moment, of any process; behind a quarantine.
    #[serde(default)]
    pub held_high_bytes: Option<u64>,
    /// Blocks found changed when they left a quarantine that checks; behind a quarantine.
    #[serde(default)]
    pub written_after_free: Option<u64>,
    /// Figures that the program reported about itself on standard error; empty where there are none.
    #[serde(default)]
    pub figures: BTreeMap<String, f64>,
    /// Hardware events in user and kernel mode.
    pub counters: Counters,
    /// When it started.
    pub started_unix_s: f64,
    /// Load average over one minute just before.
    pub load_average: f64,
    /// Bytes of random padding put into the environment.
    pub env_padding: u32,
    /// Last 2 KiB of standard error, when the outcome is not `ok`.
    pub stderr_tail: String,
    /// Processes that outlived the program and had to be killed.
    #[serde(rename = "left_behind")]
    pub killed_orphans: u32,
    /// For servers.
    pub serve: Option<ServeFigures>,
    /// What the program executed, exactly, all processes and threads together; for traced runs.
    #[serde(default)]
    pub exact: Option<ExactFigures>,
    /// Results of simulated caches and memories for the references of the process image that executed most; for
    /// traced runs that simulated them.
    #[serde(default)]
    pub locality: Option<LocalityFigures>,
    /// What else the machine did meanwhile; in lockstep the same for all rows of a block; null for start-up and
    /// traced runs and in older files.
    #[serde(default)]
    pub disturbance: Option<Disturbance>,
    /// Blocks of 512 bytes that the program and all descendants read from the disk; null in older files.
    #[serde(default)]
    pub disk_read_blocks: Option<u64>,
}

impl Observation {
    /// What the launcher reports of a run of a program under a stack; nothing of its place in the experiment, nor of what
    /// managers, loads and tracers found.
    pub fn of_run(
        phase: Phase,
        (program, stack): (&str, &str),
        run: &Finished,
        outcome: Outcome,
    ) -> Observation {
        let usage = &run.usage;
        Observation {
            phase,
            program: program.into(),
            stack: stack.into(),
            user_s: usage.user_us as f64 / 1e6,
            system_s: usage.system_us as f64 / 1e6,
            wall_s: usage.wall_ns as f64 / 1e9,
            peak_rss_kib: usage.peak_rss_kib,
            minor_faults: usage.minor_faults,
            major_faults: usage.major_faults,
            voluntary_switches: usage.voluntary_switches,
            involuntary_switches: usage.involuntary_switches,
            disk_read_blocks: Some(usage.disk_read_blocks),
            output_bytes: run.output_bytes,
            output_digest: run.digest.clone(),
            stderr_tail: if outcome.is_ok() { String::new() } else { run.error_tail.clone() },
            killed_orphans: usage.killed_orphans,
            outcome,
            ..Observation::default()
        }
    }

    /// User plus system CPU seconds.
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }

    /// Figures that the program itself or its load reported, by name.
    pub fn own_figures(&self) -> impl Iterator<Item = (&str, f64)> {
        let of_load = self.serve.iter().flat_map(|serve| &serve.load_figures);
        self.figures.iter().chain(of_load).map(|(name, value)| (name.as_str(), *value))
    }

    /// One of them.
    pub fn own_figure(&self, name: &str) -> Option<f64> {
        self.own_figures().find(|(own, _)| *own == name).map(|(_, value)| value)
    }
}

/// Resident memory over time, from one `Profile` run (programs) or one timed run (servers).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryTrack {
    /// Program name.
    pub program: String,
    /// Stack name.
    pub stack: String,
    /// Repetition of the row it belongs to.
    pub repetition: u32,
    /// (seconds since start, resident KiB of the whole process tree), by time.
    pub samples: Vec<(f64, u64)>,
    /// The kernel's own high-water mark as last seen in `/proc/PID/status` (`VmHWM`), KiB; cross-checks
    /// `peak_rss_kib`.
    pub vm_hwm_kib: u64,
    /// The most anonymous memory of the whole process tree that was resident at once (`RssAnon`), KiB, as sampled; 0
    /// in files from before it was sampled.
    #[serde(default)]
    pub anonymous_peak_kib: u64,
}

impl MemoryTrack {
    /// Resident KiB as a mean over time, on straight lines between the samples; none of a run too short for two.
    pub fn mean_kib(&self) -> Option<f64> {
        let span = self.samples.last()?.0 - self.samples.first()?.0;
        let area =
            |pair: &[(f64, u64)]| (pair[1].0 - pair[0].0) * (pair[0].1 as f64 + pair[1].1 as f64) / 2.0;
        (span > 0.0).then(|| self.samples.windows(2).map(area).sum::<f64>() / span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_of_memory_counts_how_long_it_was_resident() {
        let track = |samples: &[(f64, u64)]| MemoryTrack {
            program: "p".into(),
            stack: "s".into(),
            repetition: 0,
            samples: samples.into(),
            vm_hwm_kib: 0,
            anonymous_peak_kib: 0,
        };
        // A second at 100 KiB, and three on the way from there to 300.
        assert_eq!(track(&[(1.0, 100), (2.0, 100), (5.0, 300)]).mean_kib(), Some(175.0));
        assert_eq!(track(&[(1.0, 100)]).mean_kib(), None);
        assert_eq!(track(&[]).mean_kib(), None);
    }
}
