//! Made-up experiments for the tests of this crate and of those above it.

pub mod programs;

use crate::experiment::{Experiment, Machine, ProgramInfo, Protocol, StackInfo};
use crate::observation::{Counters, Observation};

/// An experiment of one program, `prog`, under the named stacks; the first is the baseline. No rows.
pub fn experiment(stacks: &[&str]) -> Experiment {
    let settings = Protocol { repetitions: 8, seed: 1, timeout_s: 60.0, ..Protocol::default() };
    let (name, command) = ("prog".to_owned(), vec!["prog".to_owned()]);
    let program = ProgramInfo { name, command, ..ProgramInfo::default() };
    Experiment {
        heaptoll_version: "0".into(),
        created_unix_s: 1.0,
        machine: Machine::default(),
        stacks: stacks.iter().map(|name| stack("prog", name)).collect(),
        ..Experiment::begun(settings, stacks[0].into(), vec![program])
    }
}

/// A stack that passed its preflight.
pub fn stack(program: &str, name: &str) -> StackInfo {
    StackInfo { program: program.into(), name: name.into(), ..StackInfo::default() }
}

/// A good timed row.
pub fn row(stack: &str, repetition: u32, cpu_s: f64, peak_rss_kib: u64) -> Observation {
    Observation {
        repetition,
        program: "prog".into(),
        stack: stack.into(),
        user_s: cpu_s * 0.75,
        system_s: cpu_s * 0.25,
        wall_s: cpu_s * 1.1,
        peak_rss_kib,
        minor_faults: 100,
        voluntary_switches: 1,
        involuntary_switches: 2,
        output_bytes: 3,
        output_digest: "d".into(),
        heap_high_water_bytes: Some(4096),
        counters: Counters { instructions: Some(5), ..Counters::default() },
        started_unix_s: 2.0,
        load_average: 0.5,
        env_padding: 7,
        ..Observation::default()
    }
}
