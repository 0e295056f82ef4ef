//! Made-up experiments for the tests of this crate.

use crate::experiment::{Experiment, Machine, ProgramInfo, Settings, StackInfo};
use crate::observation::{Counters, Observation};

/// An experiment of one program, `prog`, under the named stacks; the first is the baseline. No rows.
pub fn experiment(stacks: &[&str]) -> Experiment {
    Experiment {
        heaptoll_version: "0".into(),
        created_unix_s: 1.0,
        settings: Settings { repetitions: 8, seed: 1, timeout_s: 60.0, ..Settings::default() },
        machine: Machine::default(),
        baseline: stacks[0].into(),
        programs: vec![ProgramInfo {
            name: "prog".into(),
            command: vec!["prog".into()],
            ..ProgramInfo::default()
        }],
        stacks: stacks.iter().map(|name| stack("prog", name)).collect(),
        refused: vec![],
        observations: vec![],
        tracks: vec![],
        exact_notes: vec![],
        own_cost: None,
        complete: false,
    }
}

/// A stack that passed its preflight.
pub fn stack(program: &str, name: &str) -> StackInfo {
    StackInfo {
        program: program.into(),
        name: name.into(),
        preload: vec![],
        environment: vec![],
        version: String::new(),
        origin: String::new(),
        proof: String::new(),
        warnings: vec![],
        reports_statistics: false,
        apart: None,
        makes_files: false,
        never_frees: false,
        dropped_after: None,
        block: 0,
        heap: None,
        own_command: None,
    }
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
