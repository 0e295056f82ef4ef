//! The job of one driver, and the driver's answer. JSON over two descriptors of its own: standard output belongs to
//! whatever the manager may print.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::program::Index;

/// What a driver is started for. Figures that disturb each other are taken in processes of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pass {
    /// Which object serves malloc, and whether it is a collector. Nothing is replayed.
    Probe,
    /// CPU and elapsed time of blocks of calls, and page faults.
    Throughput,
    /// Each call between two readings of the clock.
    Latency,
    /// Live bytes and the process's memory at checkpoints.
    Memory,
    /// Live blocks, by address, at marks: to the tool, which reads the process's pages meanwhile.
    Ledger,
}

/// What is done with blocks in addition to the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Touch {
    /// Nothing.
    None,
    /// Each is written once in full when it is had.
    Write,
    /// And read in full, and compared, before it is given back.
    All,
}

/// What a driver is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Why.
    pub pass: Pass,
    /// What is done with blocks.
    pub touch: Touch,
    /// Times the whole trace is replayed; 0 only puts the tables in place.
    pub repetitions: u32,
    /// Checkpoints wanted of the first and the last repetition.
    pub checkpoints: u32,
    /// Whether the manager is the null manager, which may drop contents.
    pub null: bool,
    /// The descriptor of the socket that live blocks go to, of a ledger.
    #[serde(default)]
    pub ledger: Option<i32>,
    /// The program.
    pub index: Index,
}

/// How a driver ended, when it lived to report it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// As it should.
    Done(Box<Outcome>),
    /// The manager failed, or the machine did.
    Failed(String),
}

/// A driver's measurements. What its pass does not measure stays 0 or empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Path of the object that `malloc` comes from.
    pub served_by: String,
    /// Whether it collects, and how that is known; `None` when it does not.
    pub collector: Option<String>,
    /// Calls made.
    pub calls: u64,
    /// CPU of all threads in blocks of calls, waits for other threads and the clock's own cost left out, ns.
    pub cpu_ns: u64,
    /// CPU of those waits, ns: what was left out.
    pub waited_ns: u64,
    /// How often a thread had to wait.
    pub waits: u64,
    /// Elapsed time in blocks of calls, summed over threads, ns.
    pub wall_ns: u64,
    /// Minor and major page faults while calls were made.
    pub minor_faults: u64,
    /// See `minor_faults`.
    pub major_faults: u64,
    /// Latencies of calls for a new block, resizes and frees.
    pub latency: Option<Latencies>,
    /// The process at checkpoints, in order.
    pub checkpoints: Vec<Checkpoint>,
    /// By repetition.
    pub repetitions: Vec<Repetition>,
    /// Largest sum of requested bytes of live blocks.
    pub max_live_bytes: u64,
    /// Largest resident set less that before the first call, bytes.
    pub peak_rss_bytes: u64,
    /// Largest address space of mappings in which live blocks begin, bytes; 0 when it could not be seen.
    pub peak_heap_bytes: u64,
    /// Anonymous memory of the process before the first call, bytes, the driver's own included.
    pub start_bytes: u64,
}

/// Latencies by kind of call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latencies {
    /// Calls for a new block.
    pub allocate: Percentiles,
    /// Resizes.
    pub resize: Percentiles,
    /// Frees.
    pub free: Percentiles,
    /// The clock's own cost, ns; already taken off each call.
    pub clock_ns: f64,
}

/// The percentiles of one kind of call, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Percentiles {
    /// Calls.
    pub calls: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90 in 100 take no longer.
    pub p90: f64,
    /// 99 in 100.
    pub p99: f64,
    /// 999 in 1000.
    pub p99_9: f64,
    /// 9999 in 10000.
    pub p99_99: f64,
    /// The longest.
    pub max: f64,
}

/// The process at one instant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    /// Repetition, from 0.
    pub repetition: u32,
    /// Requested bytes until then, in this repetition: the byte clock.
    pub clock_bytes: u64,
    /// Requested bytes of live blocks.
    pub live_bytes: u64,
    /// Live blocks.
    pub live_objects: u64,
    /// Resident set less that before the first call, bytes.
    pub rss_bytes: u64,
    /// Address space of mappings in which live blocks begin, bytes; 0 when it could not be seen.
    pub heap_bytes: u64,
}

/// One pass through the trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Repetition {
    /// The kernel's mark of the largest resident set in it less that before the first call, bytes. It may be off by
    /// 256 KiB a CPU.
    pub high_water_bytes: u64,
    /// Resident set at its last call, less that before the first.
    pub end_rss_bytes: u64,
    /// After what the trace leaves was freed.
    pub freed_rss_bytes: u64,
}

impl Pass {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Pass::Probe => "probe",
            Pass::Throughput => "throughput",
            Pass::Latency => "latency",
            Pass::Memory => "memory",
            Pass::Ledger => "ledger",
        }
    }
}
