//! Made-up experiments for the tests of this crate. Rows are written as JSON, so that fields which no test is about
//! take their defaults.

use heaptoll_experiment::experiment::{Experiment, Machine, ProgramInfo, Protocol, StackInfo};
use heaptoll_experiment::observation::{Collections, Observation};
use serde_json::json;

/// An experiment of these programs under these stacks, without rows.
pub fn experiment(programs: &[&str], stacks: &[String], repetitions: u32) -> Experiment {
    let program = |name: &&str| ProgramInfo {
        name: name.to_string(),
        command: vec![name.to_string()],
        ..ProgramInfo::default()
    };
    let stack = |program: &str, name: &String| StackInfo {
        program: program.into(),
        name: name.clone(),
        reports_statistics: true,
        ..StackInfo::default()
    };
    let of = |name: &&str| stacks.iter().map(|own| stack(name, own)).collect::<Vec<_>>();
    let settings = Protocol { repetitions, seed: 1, timeout_s: 60.0, ..Protocol::default() };
    let baseline = stacks.first().cloned().unwrap_or_default();
    Experiment {
        heaptoll_version: "0".into(),
        created_unix_s: 1.0,
        machine: Machine::default(),
        stacks: programs.iter().flat_map(of).collect(),
        complete: true,
        ..Experiment::begun(settings, baseline, programs.iter().map(program).collect())
    }
}

/// A good timed row.
pub fn row(program: &str, stack: &str, repetition: u32, cpu_s: f64, peak_rss_kib: u64) -> Observation {
    serde_json::from_value(json!({
        "order": 0, "repetition": repetition, "phase": "timed", "program": program, "stack": stack,
        "outcome": { "kind": "ok" }, "user_s": cpu_s, "system_s": 0.0, "wall_s": cpu_s,
        "peak_rss_kib": peak_rss_kib, "minor_faults": 0, "major_faults": 0, "voluntary_switches": 0,
        "involuntary_switches": 0, "output_bytes": 0, "output_digest": "", "heap_high_water_bytes": null,
        "counters": { "instructions": null, "cycles": null, "llc_misses": null, "dtlb_misses": null },
        "started_unix_s": 0.0, "load_average": 0.0, "env_padding": 0, "stderr_tail": "", "left_behind": 0,
        "serve": null,
    }))
    .expect("a row")
}

/// Collections as a manager reports them.
pub fn collections(count: u64, pause_total_ns: u64) -> Option<Collections> {
    Some(Collections { count, pause_total_ns, pause_max_ns: pause_total_ns, ..Collections::default() })
}
