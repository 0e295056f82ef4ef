//! A plausible comparison of a made-up experiment; the real one is computed by `heaptoll_experiment::compare`.

use std::collections::BTreeMap;

use heaptoll_experiment::comparison::{
    CollectionFigures, CompanyEffect, Comparison, Figure, HeapCurves, Metric, NodeRatio, OverallRow,
    ProgramTable, Row,
};
use heaptoll_experiment::disturbance::{Disturbance, Disturbed};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::observation::{Observation, Phase};
use heaptoll_experiment::side::Startup;
use heaptoll_statistics::{Interval, median, verdict as verdict_of};

/// Mean logarithms of ratios, one a program, of each stack and metric.
type Means = BTreeMap<(String, Metric), Vec<f64>>;

pub fn compare(experiment: &Experiment) -> Comparison {
    let mut means = Means::new();
    let programs = experiment.programs.iter();
    let tables: Vec<ProgramTable> =
        programs.map(|program| table(experiment, &program.name, &mut means)).collect();
    let overall = if tables.len() > 1 { overall(experiment, tables.len(), &means) } else { Vec::new() };
    // Only the first repetition has start-up runs here: with them there would be one pair.
    let mut measured = experiment.clone();
    measured.observations.retain(|row| row.phase != Phase::Startup);
    let lower_bounds =
        heaptoll_experiment::lower_bound::lower_bounds(&measured, experiment.settings.repetitions);
    let mut comparison = Comparison {
        baseline: experiment.baseline.clone(),
        alpha: 0.05,
        tables,
        overall,
        lower_bounds,
        heaps: HeapCurves::default(),
        varied: vec![],
    };
    comparison.heaps = heaptoll_experiment::heap_curves::heap_curves(experiment, &comparison);
    comparison
}

fn table(experiment: &Experiment, program: &str, means: &mut Means) -> ProgramTable {
    let stacks = experiment.stacks.iter().filter(|stack| stack.program == program);
    let mut rows: Vec<Row> = stacks.map(|stack| row(experiment, program, &stack.name, means)).collect();
    mark_frontier(&mut rows);
    rows.sort_by(|a, b| {
        let key = |row: &Row| median_of(row, Metric::Cpu).unwrap_or(f64::INFINITY);
        key(a).total_cmp(&key(b))
    });
    let mut notes = Vec::new();
    if !experiment.complete {
        notes.push("5 pairs at most: differences under 8 % cannot be seen".to_owned());
    }
    let timed = experiment.observations.iter().filter(|o| o.phase == Phase::Timed && o.program == program);
    let spans: Vec<Disturbance> = timed.filter_map(|o| o.disturbance).collect();
    let exact = heaptoll_experiment::exact::table(experiment, program, Startup::Apart, &rows);
    ProgramTable {
        nodes: experiment.settings.shards.iter().map(|shard| node_ratio(&shard.node)).collect(),
        program: program.to_owned(),
        rows,
        notes,
        asides: 0,
        includes_startup: false,
        detectable_cpu_ratio: Some(1.021),
        company: Some(CompanyEffect {
            stack: "mimalloc3".into(),
            ratio: Interval { ratio: 0.97, low: 0.95, high: 0.99, differs: true, pairs: 10 },
            within: 0.05,
        }),
        disturbance: Disturbed::of(&spans),
        exact,
    }
}

/// A node that agrees with the others.
fn node_ratio(node: &str) -> NodeRatio {
    let interval = Interval { ratio: 0.97, low: 0.93, high: 1.01, differs: false, pairs: 5 };
    NodeRatio {
        node: node.to_owned(),
        stack: "mimalloc3".into(),
        metric: Metric::Cpu,
        ratio: Some(interval),
        over_others: Some(interval),
    }
}

fn timed<'a>(
    experiment: &'a Experiment,
    program: &'a str,
    stack: &'a str,
) -> impl Iterator<Item = &'a Observation> {
    let mine = move |o: &&Observation| o.phase == Phase::Timed && o.program == program && o.stack == stack;
    experiment.observations.iter().filter(mine)
}

fn row(experiment: &Experiment, program: &str, stack: &str, means: &mut Means) -> Row {
    let good: Vec<_> = timed(experiment, program, stack).filter(|o| o.outcome.is_ok()).collect();
    let mut figures = BTreeMap::new();
    for metric in [Metric::Cpu, Metric::Wall, Metric::PeakRss, Metric::Instructions] {
        if let Some(figure) = figure(experiment, program, stack, metric, &good, means) {
            figures.insert(metric, figure);
        }
    }
    let mut bad: BTreeMap<String, u32> = BTreeMap::new();
    for row in timed(experiment, program, stack).filter(|o| !o.outcome.is_ok()) {
        *bad.entry(row.outcome.to_string()).or_default() += 1;
    }
    let first = good.first();
    Row {
        stack: stack.to_owned(),
        good: good.len() as u32,
        marks: bad.iter().map(|(what, n)| format!("{n}x {what}")).collect(),
        startup_cpu_s: figures.get(&Metric::Cpu).map(|f| f.median * 0.0006),
        minor_faults: median(&good.iter().map(|o| o.minor_faults as f64).collect::<Vec<f64>>()),
        involuntary_switches_per_cpu_s: (!good.is_empty()).then_some(40.0),
        heap_high_water_bytes: first.and_then(|o| o.heap_high_water_bytes).map(|b| b as f64),
        collections: first.and_then(|o| o.collections).map(|c| CollectionFigures {
            count: c.count as f64,
            pause_total_s: c.pause_total_ns as f64 / 1e9,
            pause_max_s: c.pause_max_ns as f64 / 1e9,
            reclaimed_bytes: c.reclaimed_bytes as f64,
        }),
        load_figures: first
            .and_then(|o| o.serve.as_ref())
            .map(|s| s.load_figures.clone())
            .unwrap_or_default(),
        load_ratios: BTreeMap::new(),
        verdict: verdict(&figures, good.is_empty(), stack == experiment.baseline),
        on_frontier: false,
        figures,
    }
}

/// A stack's figure, whose mean is added to `means` where it has a ratio.
fn figure(
    experiment: &Experiment,
    program: &str,
    stack: &str,
    metric: Metric,
    good: &[&Observation],
    means: &mut Means,
) -> Option<Figure> {
    let values: Vec<f64> = good.iter().filter_map(|o| value(o, metric)).collect();
    if values.is_empty() {
        return None;
    }
    let log = |o: &&Observation| {
        let base = timed(experiment, program, &experiment.baseline).find(|b| b.repetition == o.repetition)?;
        Some((value(o, metric)? / value(base, metric)?).ln())
    };
    let logs: Vec<f64> = good.iter().filter_map(log).collect();
    let ratio = if stack == experiment.baseline { None } else { interval(&logs) };
    if ratio.is_some() {
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        means.entry((stack.to_owned(), metric)).or_default().push(mean);
    }
    let (min, max) = values.iter().fold((f64::MAX, 0.0f64), |(a, b), v| (a.min(*v), b.max(*v)));
    Some(Figure { median: median(&values), min, max, ratio })
}

fn verdict(figures: &BTreeMap<Metric, Figure>, no_good_row: bool, is_baseline: bool) -> String {
    let ratio = |metric: Metric| figures.get(&metric).and_then(|figure| figure.ratio);
    match (no_good_row, is_baseline) {
        (true, _) => "no good row".to_owned(),
        (_, true) => "baseline".to_owned(),
        _ => verdict_of(&[(ratio(Metric::Cpu), "CPU"), (ratio(Metric::PeakRss), "memory")]),
    }
}

fn median_of(row: &Row, metric: Metric) -> Option<f64> {
    row.figures.get(&metric).map(|figure| figure.median)
}

fn mark_frontier(rows: &mut [Row]) {
    let medians = |row: &Row| Some((median_of(row, Metric::Cpu)?, median_of(row, Metric::PeakRss)?));
    let all: Vec<Option<(f64, f64)>> = rows.iter().map(medians).collect();
    for (row, own) in rows.iter_mut().zip(&all) {
        let Some((cpu, rss)) = own else { continue };
        row.on_frontier = !all.iter().flatten().any(|(c, r)| c < cpu && r < rss);
    }
}

fn overall(experiment: &Experiment, programs: usize, means: &Means) -> Vec<OverallRow> {
    let mut overall = Vec::new();
    for stack in experiment.stacks.iter().filter(|s| s.program == experiment.programs[0].name) {
        let of = |metric| {
            means.get(&(stack.name.clone(), metric)).and_then(|logs| {
                let mean = logs.iter().sum::<f64>() / logs.len() as f64;
                interval(&[mean - 0.006, mean, mean + 0.006, mean + 0.001, mean - 0.001])
            })
        };
        overall.push(OverallRow {
            stack: stack.name.clone(),
            programs: programs as u32,
            cpu: of(Metric::Cpu),
            peak_rss: of(Metric::PeakRss),
        });
    }
    overall.sort_by(|a, b| {
        let key = |row: &OverallRow| row.cpu.map_or(1.0, |interval| interval.ratio);
        key(a).total_cmp(&key(b))
    });
    overall
}

fn value(row: &Observation, metric: Metric) -> Option<f64> {
    match metric {
        Metric::Cpu => Some(row.serve.as_ref().map_or(row.cpu_s(), |serve| serve.loaded_cpu_s)),
        Metric::Wall => Some(row.wall_s),
        Metric::PeakRss => Some(row.peak_rss_kib as f64),
        Metric::Instructions => row.counters.instructions.map(|count| count as f64),
    }
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
