//! A made-up experiment of realistic shape, for tests and for looking at the outputs.
//!
//! Every figure here is invented by a seeded generator. Nothing outside tests may use it: it is part of `cfg(test)` and the
//! feature `testing`.

mod book;

use std::collections::BTreeMap;

use heaptoll_experiment::comparison::{
    CollectionFigures, CompanyEffect, Comparison, Figure, Metric, OverallRow, ProgramTable, Row,
};
use heaptoll_experiment::disturbance::{Disturbance, Disturbed};
use heaptoll_experiment::experiment::{
    Experiment, Machine, Pairing, ProgramInfo, ServeInfo, Settings, StackInfo, Turns,
};
use heaptoll_experiment::observation::{
    ByOwner, Collections, Counters, ExactFigures, GeometryMisses, LocalityFigures, MemoryTrack, Observation,
    Outcome, Phase, ServeFigures,
};
use heaptoll_experiment::side::Startup;
use heaptoll_experiment::words::RawWord;
use heaptoll_statistics::Interval;

pub use book::book;

/// Which experiment to make up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One program, five stacks, nothing wrong.
    Single,
    /// Twelve programs, seven stacks, hardware counters.
    Suite,
    /// A server with load figures.
    Server,
    /// Interrupted, with crashes, wrong outputs, refusals, warnings, a stack without a good row and hostile names.
    Troubled,
}

impl Shape {
    /// Every shape.
    pub const ALL: [Shape; 4] = [Shape::Single, Shape::Suite, Shape::Server, Shape::Troubled];
}

/// A program name that a page or a terminal must not take at its word.
pub const HOSTILE: &str = "<script>document.title='owned'</script>\u{1b}[31m\u{202e}\u{fffd}\"'&`${1}";

/// Name, CPU seconds and peak MiB under glibc.
const PROGRAMS: [(&str, &str, f64, f64); 12] = [
    ("cfrac", "factors an integer by continued fractions over reference-counted numbers", 3.70, 2.9),
    ("espresso", "minimises a two-level logic function", 4.07, 2.3),
    ("gawk", "counts words and joins fields of a generated log", 1.54, 13.7),
    ("perl", "builds and sorts hashes of arrays", 1.62, 136.8),
    ("make", "reads 4000 generated rules and prints what it would do", 1.80, 203.0),
    ("python3", "parses JSON and builds dictionaries with PYTHONMALLOC=malloc", 1.31, 66.0),
    ("lua", "grows tables of closures and strings", 1.73, 55.0),
    ("sqlite3", "inserts, indexes and joins in memory", 2.53, 44.0),
    ("ghostscript", "renders a generated document of 40 pages", 0.89, 31.0),
    ("xalan", "transforms generated XML in four threads", 2.11, 88.0),
    ("reverse", "Boehm's list reversal, 1000 elements of 40 bytes", 1.02, 2.1),
    ("redis", "a server under redis-benchmark", 1.40, 9.8),
];

/// Name, factor of CPU, factor of memory, MiB on top.
const STACKS: [(&str, f64, f64, f64); 7] = [
    ("glibc", 1.0, 1.0, 0.0),
    ("mimalloc3", 0.90, 1.02, 3.1),
    ("jemalloc", 0.935, 0.96, 1.6),
    ("snmalloc", 0.92, 1.0, 0.6),
    ("tcmalloc", 0.921, 1.01, 4.6),
    ("rpmalloc", 0.965, 1.22, 1.1),
    ("./libmine.so", 1.24, 1.4, 0.2),
];

/// Small, seeded, good enough for noise.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// About normal, mean 0, deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }
}

fn by_owner(noise: &mut Noise) -> ByOwner {
    let mut count = |most: f64| (noise.next() * most) as u64;
    ByOwner { program: count(1e10), allocator: count(1e9), collector: count(1e8) }
}

fn exact(noise: &mut Noise) -> ExactFigures {
    ExactFigures {
        instructions: by_owner(noise),
        loads: by_owner(noise),
        stores: by_owner(noise),
        allocations: (noise.next() * 1e7) as u64,
        frees: (noise.next() * 1e7) as u64,
        heap_high_water_bytes: Some((noise.next() * 1e8) as u64),
        images: 1,
        whole: true,
        startup: Some(by_owner(noise)),
    }
}

fn locality(noise: &mut Noise) -> LocalityFigures {
    LocalityFigures {
        references: by_owner(noise),
        line_bytes: 64,
        page_bytes: 4096,
        caches: vec![GeometryMisses {
            cache: "32K/8".into(),
            misses: by_owner(noise),
            wait_cycles: Some(14),
        }],
        pages_touched: (noise.next() * 1e5) as u64,
        sampled_one_in: 1,
    }
}

/// An experiment and a plausible comparison of it.
pub fn experiment(shape: Shape) -> (Experiment, Comparison) {
    let (programs, stacks, repetitions): (Vec<usize>, usize, u32) = match shape {
        Shape::Single => (vec![0], 5, 15),
        Shape::Suite => ((0..12).collect(), 7, 15),
        Shape::Server => (vec![11], 4, 8),
        Shape::Troubled => (vec![2, 4], 6, 5),
    };
    let mut noise = Noise(42 + shape as u64);
    let name_of = |p: usize| match (shape, p) {
        (Shape::Troubled, 4) => HOSTILE,
        _ => PROGRAMS[p].0,
    };
    let mut observations = Vec::new();
    let mut tracks = Vec::new();
    for repetition in 0..=repetitions {
        let phase = if repetition == 0 { Phase::Warmup } else { Phase::Timed };
        let drift = 1.0 + 0.02 * f64::from(repetition) / f64::from(repetitions);
        let mut cells: Vec<(usize, usize)> =
            programs.iter().flat_map(|p| (0..stacks).map(move |s| (*p, s))).collect();
        for i in (1..cells.len()).rev() {
            cells.swap(i, (noise.next() * (i + 1) as f64) as usize);
        }
        for (p, s) in cells {
            let repetition = repetition.saturating_sub(1);
            let row =
                row(&mut noise, shape, name_of(p), p, s, phase, repetition, drift, observations.len() as u32);
            observations.push(row);
        }
    }
    for (p, s) in programs.iter().flat_map(|p| (0..stacks).map(move |s| (*p, s))) {
        let mut add = |phase, scale: f64, noise: &mut Noise| {
            let mut row = row(noise, shape, name_of(p), p, s, phase, 0, 1.0, observations.len() as u32);
            (row.user_s, row.system_s, row.wall_s) =
                (row.user_s * scale, row.system_s * scale, row.wall_s * scale);
            row.outcome = Outcome::Ok;
            row.stderr_tail.clear();
            observations.push(row.clone());
            row
        };
        add(Phase::Startup, 0.0006, &mut noise);
        let watched = add(Phase::Profile, 1.0, &mut noise);
        tracks.push(track(&mut noise, &watched));
        if shape == Shape::Suite {
            add(Phase::Traced, 30.0, &mut noise);
        }
    }
    for row in observations.iter_mut().filter(|row| row.phase == Phase::Traced) {
        (row.exact, row.locality) = (Some(exact(&mut noise)), Some(locality(&mut noise)));
    }
    let mut experiment = Experiment {
        heaptoll_version: "0.1.0".into(),
        created_unix_s: 1_795_251_983.0,
        settings: Settings {
            repetitions,
            warmup: 1,
            expect_status: 0,
            directory: "/home/user".into(),
            pairing: Pairing::default(),
            slice_s: None,
            working_copy: false,
            precision: Some(0.01),
            budget_s: Some(300.0),
            enough: [("cfrac".to_owned(), 8)].into(),
            turns: [("cfrac".to_owned(), Turns { count: 2, at_once: 3, why: "memory".into() })].into(),
            exact: shape == Shape::Suite,
            seed: 7_310_582_937,
            timeout_s: 60.0,
            thp: if shape == Shape::Troubled { "never".into() } else { String::new() },
            repeat_command: command(shape, &programs),
        },
        machine: machine(shape),
        baseline: "glibc".into(),
        programs: programs.iter().map(|p| program(shape, name_of(*p), *p)).collect(),
        stacks: programs
            .iter()
            .flat_map(|p| (0..stacks).map(move |s| stack(shape, name_of(*p), s)))
            .collect(),
        refused: Vec::new(),
        exact_notes: Vec::new(),
        observations,
        tracks,
        own_cost: Some((0.00063, 212)),
        complete: shape != Shape::Troubled,
    };
    if shape == Shape::Troubled {
        experiment.refused = vec![
            (
                "gawk".into(),
                "./libnothing.so".into(),
                "exports no malloc: under it the program would run on glibc in silence".into(),
            ),
            (HOSTILE.into(), "hoard".into(), "no such file: ./libhoard.so".into()),
        ];
        experiment.exact_notes =
            vec![(HOSTILE.into(), "glibc".into(), format!("left out: its last words were {HOSTILE}"))];
        experiment.observations.pop();
    }
    let comparison = compare(&experiment);
    (experiment, comparison)
}

fn machine(shape: Shape) -> Machine {
    Machine {
        cpu: "Intel(R) Xeon(R) Processor @ 2.60GHz".into(),
        cores: 2,
        memory_kib: 8_130_424,
        kernel: "6.1.0-40-amd64".into(),
        distribution: "Debian GNU/Linux 12 (bookworm)".into(),
        libc: "2.36".into(),
        thp: "madvise".into(),
        governor: "unknown".into(),
        aslr: "2".into(),
        load: [0.31, 0.42, 0.28],
        no_hardware_counters: (shape != Shape::Suite)
            .then(|| "perf_event_open: the virtual machine offers no counters".into()),
    }
}

fn command(shape: Shape, programs: &[usize]) -> Vec<String> {
    let mut words = vec!["heaptoll".to_owned(), "run".into(), "--seed".into(), "7310582937".into()];
    if shape == Shape::Troubled {
        words.extend(
            ["--thp", "never", "--", "sh", "-c", "gawk '{ n[$1]++ } END { print \"<b>\" }' < in"]
                .map(String::from),
        );
    } else {
        words.extend(programs.iter().flat_map(|p| ["--program".to_owned(), PROGRAMS[*p].0.to_owned()]));
    }
    words
}

fn program(shape: Shape, name: &str, p: usize) -> ProgramInfo {
    let (_, about, ..) = PROGRAMS[p];
    let serve = (p == 11).then(|| ServeInfo {
        load: ["redis-benchmark", "-s", "/tmp/redis.sock", "-n", "200000"].map(String::from).into(),
        ready: "Ready to accept connections".into(),
        figures: Some("(?<requests_per_s>[0-9.]+) requests per second".into()),
        stop: "TERM".into(),
    });
    ProgramInfo {
        name: name.into(),
        about: about.into(),
        command: vec![name.to_owned(), "--input".into(), format!("{p} with spaces & <angle brackets>.txt")],
        environment: vec![("LC_ALL".into(), "C".into())],
        stdin: (p == 2).then(|| "/tmp/in put.txt".into()),
        expected_digest: (shape == Shape::Suite).then(|| "9f86d081884c7d659a2feaa0c55ad015".into()),
        figures: (p == 1).then(|| "pause (?<pause_ms>[0-9.]+) ms".into()),
        serve,
        scratch: shape == Shape::Suite,
        raw_words: (p == 2).then(|| RawWord { at: 1, bytes: vec![0xff] }).into_iter().collect(),
    }
}

fn stack(shape: Shape, program: &str, s: usize) -> StackInfo {
    let (name, ..) = STACKS[s];
    let mut info = StackInfo {
        program: program.into(),
        name: name.into(),
        preload: vec![format!("/opt/heaptoll/lib/managers/{name}.so")],
        environment: Vec::new(),
        version: ["2.36", "3.1.5", "5.3.0", "0.7.4", "2.10", "1.4.5", ""][s].into(),
        origin: [
            "Debian libc6 2.36-9",
            "crate libmimalloc-sys 0.1.44",
            "crate tikv-jemalloc-sys 0.6.1",
            "crate snmalloc-sys 0.7.4",
            "Debian libtcmalloc-minimal4 2.10-1",
            "crate rpmalloc 0.2",
            "./libmine.so",
        ][s]
            .into(),
        proof: format!("malloc bound to {name} in 1 process, 84210 calls seen"),
        warnings: Vec::new(),
        reports_statistics: s == 1,
        apart: None,
        makes_files: false,
        block: 0,
    };
    if s == 0 {
        info.preload.clear();
    }
    if s == 1 {
        info.environment.push(("MIMALLOC_ALLOW_THP".into(), "0".into()));
    }
    if shape == Shape::Troubled && s == 2 {
        info.warnings.push("a child process (`/bin/<mail>`) is static: the manager does not reach it".into());
    }
    info
}

/// About what this program takes under this stack: CPU seconds and peak KiB.
fn expected(p: usize, s: usize) -> (f64, f64) {
    let (_, _, cpu, mib) = PROGRAMS[p];
    let (_, cpu_factor, memory_factor, extra) = STACKS[s];
    // Programs differ in how much of their time is in malloc; two have allocators of their own inside.
    let weight = [1.0, 1.1, 0.5, 0.7, 1.3, 2.2, 2.8, 0.3, 0.05, 1.4, 1.6, 0.6][p];
    (cpu * (1.0 + (cpu_factor - 1.0) * weight), (mib * memory_factor + extra) * 1024.0)
}

#[allow(clippy::too_many_arguments)]
fn row(
    noise: &mut Noise,
    shape: Shape,
    name: &str,
    p: usize,
    s: usize,
    phase: Phase,
    repetition: u32,
    drift: f64,
    order: u32,
) -> Observation {
    let (cpu, kib) = expected(p, s);
    let cpu = cpu * drift * (1.0 + 0.012 * noise.normal()) * if noise.next() < 0.04 { 1.09 } else { 1.0 };
    let kib = kib * (1.0 + 0.002 * noise.normal());
    let outcome = match (shape, s, repetition) {
        (Shape::Troubled, 3, 1 | 3) => Outcome::Signal(11),
        (Shape::Troubled, 4, _) => Outcome::WrongOutput,
        (Shape::Troubled, 5, 0) => Outcome::Timeout(60.0),
        (Shape::Troubled, 5, 1) => Outcome::Exit(3),
        (Shape::Troubled, 5, 2) => Outcome::NotStarted("execve: permission denied".into()),
        (Shape::Troubled, 2, 4) => Outcome::Interrupted,
        (Shape::Troubled, 1, 4) => Outcome::ServeFailed("the load ended with status 1".into()),
        _ => Outcome::Ok,
    };
    let stderr_tail = match &outcome {
        Outcome::Ok => String::new(),
        Outcome::Signal(_) => "free(): invalid pointer\n</pre><script>alert(1)</script>\u{0}\u{7}\n".into(),
        other => format!("line one\nline \"two\", of {name}: {other}\n"),
    };
    let serve = (p == 11).then(|| ServeFigures {
        loaded_cpu_s: cpu,
        ready_s: 0.021,
        load_s: cpu * 1.4,
        load_figures: BTreeMap::from([
            ("requests_per_s".to_owned(), 190_000.0 / cpu),
            ("p99_ms".to_owned(), 0.3 * cpu),
        ]),
        load_report: format!("{:.2} requests per second\n", 190_000.0 / cpu),
    });
    let counts = |per_s: f64| (shape == Shape::Suite).then_some((cpu * per_s) as u64);
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
        major_faults: 0,
        voluntary_switches: 3,
        involuntary_switches: (cpu * 40.0) as u64,
        output_bytes: 1724,
        output_digest: "9f86d081884c7d659a2feaa0c55ad015".into(),
        heap_high_water_bytes: (s == 1).then_some((kib * 900.0) as u64),
        collections: (s == 1).then_some(Collections {
            count: 17,
            pause_total_ns: 24_200_000,
            pause_max_ns: 3_100_000,
            reclaimed_bytes: 5 << 20,
            processes: 1,
        }),
        collector_cpu_ns: (s == 1).then_some(26_100_000),
        used_high_bytes: (s == 1).then_some((kib * 700.0) as u64),
        refused_calls: (s == 1).then_some(0),
        held_high_bytes: (s == 2).then_some(2 << 20),
        written_after_free: (s == 2).then_some(0),
        figures: if p == 1 { [("pause_ms".to_owned(), cpu * 10.0)].into() } else { BTreeMap::new() },
        counters: Counters {
            instructions: counts(5.1e9),
            cycles: counts(2.6e9),
            llc_misses: counts(3.1e6),
            dtlb_misses: counts(9.0e6),
        },
        started_unix_s: 1_795_251_983.0 + f64::from(order) * cpu,
        load_average: 0.3 + noise.next() * 0.4,
        env_padding: (noise.next() * 4096.0) as u32,
        stderr_tail,
        killed_orphans: 0,
        serve,
        exact: None,
        locality: None,
        disturbance: (shape != Shape::Troubled).then(|| disturbance(noise, cpu)),
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

fn track(noise: &mut Noise, row: &Observation) -> MemoryTrack {
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

fn value(row: &Observation, metric: Metric) -> Option<f64> {
    match metric {
        Metric::Cpu => Some(row.serve.as_ref().map_or(row.cpu_s(), |serve| serve.loaded_cpu_s)),
        Metric::Wall => Some(row.wall_s),
        Metric::PeakRss => Some(row.peak_rss_kib as f64),
        Metric::Instructions => row.counters.instructions.map(|count| count as f64),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// A plain interval, plausibly wide; the laboratory's own is the real one.
fn interval(logs: &[f64]) -> Option<Interval> {
    let n = logs.len() as f64;
    if n < 2.0 {
        return None;
    }
    let mean = logs.iter().sum::<f64>() / n;
    let deviation = (logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let half = 3.4 * deviation / n.sqrt();
    let (low, high) = ((mean - half).exp(), (mean + half).exp());
    Some(Interval {
        ratio: mean.exp(),
        low,
        high,
        differs: low > 1.0 || high < 1.0,
        pairs: logs.len() as u32,
    })
}

fn compare(experiment: &Experiment) -> Comparison {
    let mut logs_of: BTreeMap<(String, Metric), Vec<f64>> = BTreeMap::new();
    let mut tables = Vec::new();
    for program in &experiment.programs {
        let timed = |stack: &str| {
            let stack = stack.to_owned();
            experiment
                .observations
                .iter()
                .filter(move |o| o.phase == Phase::Timed && o.program == program.name && o.stack == stack)
        };
        let mut rows: Vec<Row> = Vec::new();
        for stack in experiment.stacks.iter().filter(|s| s.program == program.name) {
            let good: Vec<_> = timed(&stack.name).filter(|o| o.outcome.is_ok()).collect();
            let mut figures = BTreeMap::new();
            for metric in [Metric::Cpu, Metric::Wall, Metric::PeakRss, Metric::Instructions] {
                let values: Vec<f64> = good.iter().filter_map(|o| value(o, metric)).collect();
                if values.is_empty() {
                    continue;
                }
                let logs: Vec<f64> = good
                    .iter()
                    .filter_map(|o| {
                        let base = timed(&experiment.baseline).find(|b| b.repetition == o.repetition)?;
                        Some((value(o, metric)? / value(base, metric)?).ln())
                    })
                    .collect();
                let ratio = if stack.name == experiment.baseline { None } else { interval(&logs) };
                if ratio.is_some() {
                    logs_of
                        .entry((stack.name.clone(), metric))
                        .or_default()
                        .push(logs.iter().sum::<f64>() / logs.len() as f64);
                }
                let (min, max) = values.iter().fold((f64::MAX, 0.0f64), |(a, b), v| (a.min(*v), b.max(*v)));
                figures.insert(metric, Figure { median: median(values), min, max, ratio });
            }
            let mut bad: BTreeMap<String, u32> = BTreeMap::new();
            for row in timed(&stack.name).filter(|o| !o.outcome.is_ok()) {
                *bad.entry(row.outcome.to_string()).or_default() += 1;
            }
            let claims: Vec<String> = [(Metric::Cpu, "CPU"), (Metric::PeakRss, "memory")]
                .iter()
                .filter_map(|(metric, noun)| crate::format::claim(figures.get(metric)?.ratio.as_ref()?, noun))
                .collect();
            let verdict = match (&claims[..], good.is_empty(), stack.name == experiment.baseline) {
                (_, true, _) => "no good row".to_owned(),
                (_, _, true) => "baseline".to_owned(),
                ([], ..) => "no difference seen".to_owned(),
                _ => claims.join(", "),
            };
            rows.push(Row {
                stack: stack.name.clone(),
                good: good.len() as u32,
                marks: bad.iter().map(|(what, n)| format!("{n}x {what}")).collect(),
                startup_cpu_s: figures.get(&Metric::Cpu).map(|f| f.median * 0.0006),
                minor_faults: median(good.iter().map(|o| o.minor_faults as f64).collect()),
                involuntary_switches_per_cpu_s: (!good.is_empty()).then_some(40.0),
                heap_high_water_bytes: good.first().and_then(|o| o.heap_high_water_bytes).map(|b| b as f64),
                collections: good.first().and_then(|o| o.collections).map(|c| CollectionFigures {
                    count: c.count as f64,
                    pause_total_s: c.pause_total_ns as f64 / 1e9,
                    pause_max_s: c.pause_max_ns as f64 / 1e9,
                    reclaimed_bytes: c.reclaimed_bytes as f64,
                }),
                load_figures: good
                    .first()
                    .and_then(|o| o.serve.as_ref())
                    .map(|s| s.load_figures.clone())
                    .unwrap_or_default(),
                verdict,
                on_frontier: false,
                figures,
            });
        }
        let at = |row: &Row, metric| row.figures.get(&metric).map(|f: &Figure| f.median);
        for i in 0..rows.len() {
            let (Some(cpu), Some(rss)) = (at(&rows[i], Metric::Cpu), at(&rows[i], Metric::PeakRss)) else {
                continue;
            };
            rows[i].on_frontier = !rows.iter().any(|other| {
                at(other, Metric::Cpu).is_some_and(|c| c < cpu)
                    && at(other, Metric::PeakRss).is_some_and(|r| r < rss)
            });
        }
        rows.sort_by(|a, b| {
            let key = |row: &Row| at(row, Metric::Cpu).unwrap_or(f64::INFINITY);
            key(a).total_cmp(&key(b))
        });
        let mut notes = Vec::new();
        if !experiment.complete {
            notes.push("5 pairs at most: differences under 8 % cannot be seen".to_owned());
        }
        let rows_of =
            experiment.observations.iter().filter(|o| o.phase == Phase::Timed && o.program == program.name);
        let spans: Vec<Disturbance> = rows_of.filter_map(|o| o.disturbance).collect();
        let exact = heaptoll_experiment::exact::table(experiment, &program.name, Startup::Apart, &rows);
        tables.push(ProgramTable {
            program: program.name.clone(),
            rows,
            notes,
            detectable_cpu_ratio: Some(1.021),
            company: Some(CompanyEffect {
                stack: "mimalloc3".into(),
                ratio: Interval { ratio: 0.97, low: 0.95, high: 0.99, differs: true, pairs: 10 },
                within: 0.05,
            }),
            disturbance: Disturbed::of(&spans),
            exact,
        });
    }
    let mut overall = Vec::new();
    if tables.len() > 1 {
        for stack in experiment.stacks.iter().filter(|s| s.program == experiment.programs[0].name) {
            let of = |metric| {
                logs_of.get(&(stack.name.clone(), metric)).and_then(|logs| {
                    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
                    interval(&[mean - 0.006, mean, mean + 0.006, mean + 0.001, mean - 0.001])
                })
            };
            overall.push(OverallRow {
                stack: stack.name.clone(),
                programs: tables.len() as u32,
                cpu: of(Metric::Cpu),
                peak_rss: of(Metric::PeakRss),
            });
        }
        overall.sort_by(|a, b| {
            let key = |row: &OverallRow| row.cpu.map_or(1.0, |interval| interval.ratio);
            key(a).total_cmp(&key(b))
        });
    }
    // Only the first repetition has start-up runs here: with them there would be one pair.
    let mut measured = experiment.clone();
    measured.observations.retain(|row| row.phase != Phase::Startup);
    let lower_bounds =
        heaptoll_experiment::lower_bound::lower_bounds(&measured, experiment.settings.repetitions);
    Comparison { baseline: experiment.baseline.clone(), alpha: 0.05, tables, overall, lower_bounds }
}
