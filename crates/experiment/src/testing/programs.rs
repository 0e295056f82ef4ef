//! Experiments of several programs, whose rows have round figures.

use crate::experiment::{Experiment, ProgramInfo, Protocol, StackInfo};
use crate::observation::{Collections, Counters, Observation};

/// An experiment of these programs under these stacks, without rows.
pub fn experiment(programs: &[&str], stacks: &[String], repetitions: u32) -> Experiment {
    let program = |name: &&str| ProgramInfo {
        name: name.to_string(),
        command: vec![name.to_string()],
        ..ProgramInfo::default()
    };
    let stack =
        |program: &str, name: &String| StackInfo { reports_statistics: true, ..super::stack(program, name) };
    let of = |name: &&str| stacks.iter().map(|own| stack(name, own)).collect::<Vec<_>>();
    let settings = Protocol { repetitions, seed: 1, timeout_s: 60.0, ..Protocol::default() };
    let baseline = stacks.first().cloned().unwrap_or_default();
    Experiment {
        heaptoll_version: "0".into(),
        created_unix_s: 1.0,
        stacks: programs.iter().flat_map(of).collect(),
        complete: true,
        ..Experiment::begun(settings, baseline, programs.iter().map(program).collect())
    }
}

/// A good timed row.
pub fn row(program: &str, stack: &str, repetition: u32, cpu_s: f64, peak_rss_kib: u64) -> Observation {
    Observation {
        program: program.into(),
        user_s: cpu_s,
        system_s: 0.0,
        wall_s: cpu_s,
        heap_high_water_bytes: None,
        counters: Counters::default(),
        ..super::row(stack, repetition, cpu_s, peak_rss_kib)
    }
}

/// Collections as a manager reports them.
pub fn collections(count: u64, pause_total_ns: u64) -> Option<Collections> {
    Some(Collections { count, pause_total_ns, pause_max_ns: pause_total_ns, ..Collections::default() })
}
