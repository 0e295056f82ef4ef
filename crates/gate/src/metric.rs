//! What a gate measures, each by its name in limits and files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A metric, in the order of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Instructions in user mode, of all processes.
    Instructions,
    /// The part of them in the malloc family.
    MallocInstructions,
    /// Calls that make a block, or resize one.
    Allocations,
    /// Calls that free a block.
    Frees,
    /// Bytes requested by all calls.
    Bytes,
    /// Most live bytes, exact.
    Live,
    /// Bytes live at exit.
    Exit,
    /// User and system time less start-up.
    Cpu,
    /// Elapsed time less start-up.
    Wall,
    /// Peak resident memory.
    Resident,
    /// Page faults without input or output.
    Faults,
    /// CPU time of the start: loader, relocations, constructors.
    Startup,
}

/// The unit of a metric's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A number of things.
    Count,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
}

impl Metric {
    /// Every metric, in the order of the tables.
    pub const ALL: [Metric; 12] = [
        Metric::Instructions,
        Metric::MallocInstructions,
        Metric::Allocations,
        Metric::Frees,
        Metric::Bytes,
        Metric::Live,
        Metric::Exit,
        Metric::Cpu,
        Metric::Wall,
        Metric::Resident,
        Metric::Faults,
        Metric::Startup,
    ];

    /// Its name in limits and files.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Instructions => "instructions",
            Metric::MallocInstructions => "malloc_instructions",
            Metric::Allocations => "allocations",
            Metric::Frees => "frees",
            Metric::Bytes => "bytes",
            Metric::Live => "live",
            Metric::Exit => "exit",
            Metric::Cpu => "cpu",
            Metric::Wall => "wall",
            Metric::Resident => "resident",
            Metric::Faults => "faults",
            Metric::Startup => "startup",
        }
    }

    /// What it is, in a table's row.
    pub fn label(self) -> &'static str {
        match self {
            Metric::Instructions => "instructions",
            Metric::MallocInstructions => "instructions in malloc and free",
            Metric::Allocations => "allocation calls",
            Metric::Frees => "frees",
            Metric::Bytes => "bytes requested",
            Metric::Live => "most live bytes",
            Metric::Exit => "bytes live at exit",
            Metric::Cpu => "CPU time",
            Metric::Wall => "elapsed time",
            Metric::Resident => "peak resident memory",
            Metric::Faults => "page faults",
            Metric::Startup => "start-up, CPU time",
        }
    }

    /// The unit of its figures.
    pub fn unit(self) -> Unit {
        match self {
            Metric::Bytes | Metric::Live | Metric::Exit | Metric::Resident => Unit::Bytes,
            Metric::Cpu | Metric::Wall | Metric::Startup => Unit::Seconds,
            _ => Unit::Count,
        }
    }

    /// Whether it is counted under the tracer; the others are measured in paired runs.
    pub fn is_counted(self) -> bool {
        self <= Metric::Exit
    }

    /// The share that it may grow by where the user gives no limit; `None` where it is then shown and not gated.
    pub fn usual_limit(self) -> Option<f64> {
        match self {
            Metric::Instructions => Some(0.005),
            Metric::Allocations | Metric::Bytes | Metric::Live | Metric::Exit => Some(0.01),
            Metric::Cpu => Some(0.03),
            _ => None,
        }
    }

    /// A growth that never breaks a limit, in the metric's unit. Two builds of one source in two folders differ in their
    /// paths, which the loader reads and programs keep.
    pub fn floor(self) -> f64 {
        match self {
            Metric::Instructions => 20_000.0,
            Metric::MallocInstructions => 5_000.0,
            Metric::Allocations | Metric::Frees => 8.0,
            Metric::Bytes | Metric::Live | Metric::Exit => 512.0,
            _ => 0.0,
        }
    }

    /// Why it has no usual limit.
    pub fn why_not_gated(self) -> &'static str {
        match self {
            Metric::MallocInstructions => "a part of instructions",
            Metric::Frees => "they follow allocation calls",
            Metric::Wall => "it moves with everything that the machine does",
            Metric::Resident => "it moves with huge pages and arenas",
            Metric::Faults => "they move with huge pages and arenas",
            Metric::Startup => "too short to measure well",
            _ => "no limit",
        }
    }

    /// The metric of this name.
    pub fn of_name(name: &str) -> Option<Metric> {
        Metric::ALL.into_iter().find(|metric| metric.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_json() {
        for metric in Metric::ALL {
            assert_eq!(serde_json::to_value(metric).expect("a name"), metric.name());
            assert_eq!(Metric::of_name(metric.name()), Some(metric));
        }
        assert_eq!(Metric::of_name("speed"), None);
    }
}
