//! Made-up observations: figures near what a program takes under a stack, with noise.

use std::collections::BTreeMap;

use heaptoll_experiment::disturbance::Disturbance;
use heaptoll_experiment::observation::{
    Collections, Counters, MemoryTrack, Observation, Outcome, Phase, ServeFigures,
};

use super::noise::Noise;
use super::shape::{PROGRAMS, STACKS, Shape, name_of};

/// Which invocation a row is of.
#[derive(Clone, Copy)]
pub struct Invocation {
    pub shape: Shape,
    /// Number of the program.
    pub p: usize,
    /// Number of the stack.
    pub s: usize,
    pub phase: Phase,
    pub repetition: u32,
    /// How much slower the machine has become.
    pub drift: f64,
    pub order: u32,
}

const COLLECTIONS: Collections = Collections {
    count: 17,
    pause_total_ns: 24_200_000,
    pause_max_ns: 3_100_000,
    reclaimed_bytes: 5 << 20,
    processes: 1,
    unread_places: 0,
    abandon_causes: 0,
};

/// About what this program takes under this stack: CPU seconds and peak KiB.
fn expected(p: usize, s: usize) -> (f64, f64) {
    let (_, _, cpu, mib) = PROGRAMS[p];
    let (_, cpu_factor, memory_factor, extra) = STACKS[s];
    // Programs differ in how much of their time is in malloc; two have allocators of their own inside.
    let weight = [1.0, 1.1, 0.5, 0.7, 1.3, 2.2, 2.8, 0.3, 0.05, 1.4, 1.6, 0.6][p];
    (cpu * (1.0 + (cpu_factor - 1.0) * weight), (mib * memory_factor + extra) * 1024.0)
}

pub fn row(noise: &mut Noise, invocation: Invocation) -> Observation {
    let Invocation { shape, p, s, phase, repetition, drift, order } = invocation;
    let name = name_of(shape, p);
    let (cpu, kib) = expected(p, s);
    let cpu = cpu * drift * (1.0 + 0.012 * noise.normal()) * if noise.next() < 0.04 { 1.09 } else { 1.0 };
    let kib = kib * (1.0 + 0.002 * noise.normal());
    let outcome = outcome(shape, s, repetition);
    let stderr_tail = stderr_tail(&outcome, name);
    let serve = (p == 11).then(|| serve(cpu));
    Observation {
        order,
        repetition,
        phase,
        program: name.into(),
        stack: STACKS[s].0.into(),
        outcome,
        user_s: cpu * 0.93,
        system_s: cpu * 0.07,
        wall_s: cpu * 1.01,
        peak_rss_kib: kib as u64,
        minor_faults: (kib / 3.6) as u64,
        voluntary_switches: 3,
        involuntary_switches: (cpu * 40.0) as u64,
        output_bytes: 1724,
        output_digest: "9f86d081884c7d659a2feaa0c55ad015".into(),
        heap_high_water_bytes: (s == 1).then_some((kib * 900.0) as u64),
        collections: (s == 1).then_some(COLLECTIONS),
        collector_cpu_ns: (s == 1).then_some(26_100_000),
        used_high_bytes: (s == 1).then_some((kib * 700.0) as u64),
        refused_calls: (s == 1).then_some(0),
        held_high_bytes: (s == 2).then_some(2 << 20),
        written_after_free: (s == 2).then_some(0),
        figures: if p == 1 { [("pause_ms".to_owned(), cpu * 10.0)].into() } else { BTreeMap::new() },
        counters: if shape == Shape::Suite { counters(cpu) } else { Counters::default() },
        started_unix_s: 1_795_251_983.0 + f64::from(order) * cpu,
        load_average: 0.3 + noise.next() * 0.4,
        env_padding: (noise.next() * 4096.0) as u32,
        stderr_tail,
        serve,
        disturbance: (shape != Shape::Troubled).then(|| disturbance(noise, cpu)),
        disk_read_blocks: (shape != Shape::Troubled).then_some(8),
        ..Observation::default()
    }
}

fn outcome(shape: Shape, s: usize, repetition: u32) -> Outcome {
    match (shape, s, repetition) {
        (Shape::Troubled, 3, 1 | 3) => Outcome::Signal(11),
        (Shape::Troubled, 4, _) => Outcome::WrongOutput,
        (Shape::Troubled, 5, 0) => Outcome::Timeout(60.0),
        (Shape::Troubled, 5, 1) => Outcome::Exit(3),
        (Shape::Troubled, 5, 2) => Outcome::NotStarted("execve: permission denied".into()),
        (Shape::Troubled, 2, 4) => Outcome::Interrupted,
        (Shape::Troubled, 1, 4) => Outcome::ServeFailed("the load ended with status 1".into()),
        _ => Outcome::Ok,
    }
}

fn stderr_tail(outcome: &Outcome, name: &str) -> String {
    match outcome {
        Outcome::Ok => String::new(),
        Outcome::Signal(_) => "free(): invalid pointer\n</pre><script>alert(1)</script>\u{0}\u{7}\n".into(),
        other => format!("line one\nline \"two\", of {name}: {other}\n"),
    }
}

fn serve(cpu: f64) -> ServeFigures {
    ServeFigures {
        loaded_cpu_s: cpu,
        ready_s: 0.021,
        load_s: cpu * 1.4,
        load_figures: BTreeMap::from([
            ("requests_per_s".to_owned(), 190_000.0 / cpu),
            ("p99_ms".to_owned(), 0.3 * cpu),
        ]),
        load_report: format!("{:.2} requests per second\n", 190_000.0 / cpu),
        idle_rss_kib: BTreeMap::from([("0".to_owned(), 40_960.0), ("10".to_owned(), 20_480.0)]),
    }
}

fn counters(cpu: f64) -> Counters {
    let counts = |per_s: f64| Some((cpu * per_s) as u64);
    Counters {
        instructions: counts(5.1e9),
        cycles: counts(2.6e9),
        llc_misses: counts(3.1e6),
        dtlb_misses: counts(9.0e6),
    }
}

fn disturbance(noise: &mut Noise, seconds: f64) -> Disturbance {
    Disturbance {
        seconds,
        steal: 0.005 * noise.next(),
        interrupts: 0.002,
        other_work: 0.15 + 0.1 * noise.next(),
        throttled: Some(0.0),
    }
}

/// What a watched run's memory was over time.
pub fn track(noise: &mut Noise, row: &Observation) -> MemoryTrack {
    let peak = row.peak_rss_kib as f64;
    let steps = 240;
    let samples = (0..=steps)
        .map(|step| {
            let t = f64::from(step) / f64::from(steps);
            let shape = (1.0 - (-6.0 * t).exp()) * (0.93 + 0.05 * (t * 21.0).sin()) + 0.004 * noise.normal();
            (row.wall_s * t, (peak * shape.clamp(0.02, 1.0)) as u64)
        })
        .collect();
    MemoryTrack {
        program: row.program.clone(),
        stack: row.stack.clone(),
        repetition: row.repetition,
        samples,
        vm_hwm_kib: row.peak_rss_kib,
        anonymous_peak_kib: row.peak_rss_kib * 3 / 4,
    }
}
