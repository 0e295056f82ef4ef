//! Time and memory over the size of a quarantine (Sareen and Blackburn 2022, §7).
//!
//! A quarantine holds what the program frees until it is full, a number of bytes, and then frees it all. At one byte it
//! delays nothing and costs what it costs at any size, so ratios to it are those of the delay alone; what the layer
//! itself costs is the quarantine of one byte over the same manager without any.

use std::collections::BTreeSet;

use heaptoll_experiment::comparison::Metric;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::side::{Side, Sides};
use heaptoll_statistics::{ALPHA, Interval, median, over_programs};

use super::figures::{Curve, Delay, Mean, Medians, Point, Ratios};
use super::part::part;
use heaptoll_runs::studied::between_programs;

/// The quarantine that delays nothing.
pub const NO_DELAY: u64 = 1;

/// What is compared.
pub const METRICS: [Metric; 3] = [Metric::Cpu, Metric::Wall, Metric::PeakRss];

/// Computes the study from an experiment's rows. Call [`heaptoll_experiment::compare::judge_outputs`] first.
pub fn study(experiment: &Experiment) -> Delay {
    let mut managers: Vec<String> = Vec::new();
    let mut sizes = BTreeSet::new();
    for (manager, size) in experiment.stacks.iter().filter_map(|stack| part(&stack.name)) {
        if let Some(size) = size {
            sizes.insert(size);
            if !managers.contains(&manager) {
                managers.push(manager);
            }
        }
    }
    let repetitions = experiment.repetitions();
    let mut curves = Vec::new();
    let mut all: Vec<Vec<Comparison>> = Vec::new();
    for program in &experiment.programs {
        let sides = Sides::of(experiment, &program.name);
        let compared: Vec<Comparison> =
            managers.iter().flat_map(|manager| comparisons(&sides, manager, repetitions)).collect();
        let series: Vec<Vec<Option<f64>>> = compared.iter().map(|one| one.series.clone()).collect();
        let intervals = heaptoll_statistics::paired(&series, ALPHA, experiment.settings.seed);
        let ratios = |manager: &str, size: Option<u64>| ratios(&compared, &intervals, manager, size);
        for manager in &managers {
            if let Some(curve) = curve(&sides, &program.name, manager, &ratios) {
                curves.push(curve);
            }
        }
        all.push(compared);
    }
    let mut means =
        if all.len() < 2 { vec![] } else { means(&all, &managers, &sizes, repetitions, experiment) };
    for mean in &mut means {
        mean.between_programs = between(&curves, mean);
    }
    Delay { sizes_bytes: sizes.into_iter().collect(), managers, curves, means }
}

/// One series of log ratios: a manager at a size over no delay, or (`None`) its layer over no layer.
struct Comparison {
    manager: String,
    size: Option<u64>,
    metric: Metric,
    series: Vec<Option<f64>>,
}

fn find<'s, 'e>(sides: &'s Sides<'e>, manager: &str, size: Option<u64>) -> Option<&'s Side<'e>> {
    sides.all.iter().find(|side| part(side.stack).is_some_and(|part| part.0 == manager && part.1 == size))
}

fn sizes_of(sides: &Sides, manager: &str) -> BTreeSet<u64> {
    let parts = sides.all.iter().filter_map(|side| part(side.stack));
    parts.filter(|(name, _)| name == manager).filter_map(|(_, size)| size).collect()
}

fn comparisons(sides: &Sides, manager: &str, repetitions: u32) -> Vec<Comparison> {
    let Some(base) = find(sides, manager, Some(NO_DELAY)) else { return vec![] };
    let mut all = Vec::new();
    let mut add = |size: Option<u64>, of: &Side, over: &Side| {
        for metric in METRICS {
            let series = of.log_ratios(over, metric, repetitions);
            all.push(Comparison { manager: manager.into(), size, metric, series });
        }
    };
    // A subject with further settings is still the same manager without the layer.
    let plain_stack = manager.split(", ").next().unwrap_or(manager);
    if let Some(plain) = find(sides, plain_stack, None) {
        add(None, base, plain);
    }
    for size in sizes_of(sides, manager).into_iter().filter(|size| *size != NO_DELAY) {
        if let Some(side) = find(sides, manager, Some(size)) {
            add(Some(size), side, base);
        }
    }
    all
}

fn ratios(
    compared: &[Comparison],
    intervals: &[Option<Interval>],
    manager: &str,
    size: Option<u64>,
) -> Ratios {
    let of = |metric: Metric| {
        let same = |one: &Comparison| one.manager == manager && one.size == size && one.metric == metric;
        compared.iter().position(same).and_then(|at| intervals[at])
    };
    Ratios { cpu: of(Metric::Cpu), wall: of(Metric::Wall), peak_rss: of(Metric::PeakRss) }
}

fn medians(side: &Side) -> Option<Medians> {
    let held: Vec<f64> =
        side.timed.values().filter_map(|row| row.held_high_bytes).map(|bytes| bytes as f64).collect();
    (!side.timed.is_empty()).then(|| Medians {
        cpu_s: median(&side.values(Metric::Cpu)),
        wall_s: median(&side.values(Metric::Wall)),
        peak_rss_kib: median(&side.values(Metric::PeakRss)),
        held_high_bytes: (!held.is_empty()).then(|| median(&held)),
    })
}

fn curve(
    sides: &Sides,
    program: &str,
    manager: &str,
    ratios: &dyn Fn(&str, Option<u64>) -> Ratios,
) -> Option<Curve> {
    let plain_stack = manager.split(", ").next().unwrap_or(manager);
    let points: Vec<Point> = sizes_of(sides, manager)
        .into_iter()
        .filter_map(|size| {
            let side = find(sides, manager, Some(size))?;
            Some(Point {
                size_bytes: size,
                good: side.timed.len() as u32,
                medians: medians(side),
                over_no_delay: if size == NO_DELAY { Ratios::default() } else { ratios(manager, Some(size)) },
            })
        })
        .collect();
    (!points.is_empty()).then(|| Curve {
        program: program.into(),
        manager: manager.into(),
        plain: find(sides, plain_stack, None).and_then(medians),
        layer: ratios(manager, None),
        points,
    })
}

fn means(
    all: &[Vec<Comparison>],
    managers: &[String],
    sizes: &BTreeSet<u64>,
    repetitions: u32,
    experiment: &Experiment,
) -> Vec<Mean> {
    let places =
        std::iter::once(None).chain(sizes.iter().copied().filter(|size| *size != NO_DELAY).map(Some));
    let subjects: Vec<(&String, Option<u64>)> =
        managers.iter().flat_map(|manager| places.clone().map(move |size| (manager, size))).collect();
    let mut series = Vec::new();
    let mut counts = Vec::new();
    for (manager, size) in &subjects {
        for metric in METRICS {
            let same =
                |one: &&Comparison| one.manager == **manager && one.size == *size && one.metric == metric;
            let programs: Vec<Vec<Option<f64>>> =
                all.iter().filter_map(|of| of.iter().find(same)).map(|one| one.series.clone()).collect();
            let (count, mean) = over_programs(&programs, repetitions);
            counts.push(count);
            series.push(mean);
        }
    }
    let intervals = heaptoll_statistics::paired(&series, ALPHA, experiment.settings.seed);
    let each = subjects.iter().zip(intervals.chunks(METRICS.len()).zip(counts.chunks(METRICS.len())));
    each.map(|((manager, size), (ratios, counts))| Mean {
        manager: manager.to_string(),
        size_bytes: *size,
        programs: counts.iter().copied().min().unwrap_or(0),
        ratios: Ratios { cpu: ratios[0], wall: ratios[1], peak_rss: ratios[2] },
        between_programs: Ratios::default(),
    })
    .collect()
}

/// The mean's ratios with programs as the sample.
fn between(curves: &[Curve], mean: &Mean) -> Ratios {
    let of_program = |curve: &Curve| match mean.size_bytes {
        None => Some(curve.layer),
        Some(size) => {
            curve.points.iter().find(|point| point.size_bytes == size).map(|point| point.over_no_delay)
        }
    };
    let all: Vec<Ratios> =
        curves.iter().filter(|curve| curve.manager == mean.manager).filter_map(of_program).collect();
    let of = |metric: fn(&Ratios) -> Option<Interval>| between_programs(all.iter().map(metric));
    Ratios { cpu: of(|it| it.cpu), wall: of(|it| it.wall), peak_rss: of(|it| it.peak_rss) }
}

#[cfg(test)]
mod tests;
