//! Time and memory by point of reclamation, over the program's own free with the same layer and the same manager.

use std::collections::BTreeSet;
use std::path::Path;

use heaptoll_experiment::comparison::Metric;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::side::{Side, Sides};
use heaptoll_experiment::stack::LayerKind;
use heaptoll_oracle::{FreePoint, file};
use heaptoll_statistics::{ALPHA, Interval, median, over_programs};

use super::figures::{Alive, Curve, Mean, Medians, Ratios, Reclamation, Row};
use super::part::part;

/// What is compared.
const METRICS: [Metric; 3] = [Metric::Cpu, Metric::Wall, Metric::PeakRss];

/// Computes the study from an experiment's rows. Call [`heaptoll_experiment::compare::judge_outputs`] first.
pub fn study(experiment: &Experiment) -> Reclamation {
    let mut managers: Vec<String> = Vec::new();
    let mut points = BTreeSet::new();
    for (manager, point) in experiment.stacks.iter().filter_map(|stack| part(&stack.name)) {
        if let Some(point) = point {
            points.insert(point);
            if !managers.contains(&manager) {
                managers.push(manager);
            }
        }
    }
    let repetitions = experiment.repetitions();
    let (mut curves, mut all) = (Vec::new(), Vec::new());
    for program in &experiment.programs {
        let sides = Sides::of(experiment, &program.name);
        let compared: Vec<Comparison> =
            managers.iter().flat_map(|manager| comparisons(&sides, manager, repetitions)).collect();
        let series: Vec<Vec<Option<f64>>> = compared.iter().map(|one| one.series.clone()).collect();
        let intervals = heaptoll_statistics::paired(&series, ALPHA, experiment.settings.seed);
        let ratios = |manager: &str, point| ratios(&compared, &intervals, manager, point);
        let curve = |manager: &String| curve(&sides, &program.name, manager, &points, &ratios);
        curves.extend(managers.iter().filter_map(curve));
        all.push(compared);
    }
    let means = if all.len() < 2 { vec![] } else { means(&all, &managers, &points, repetitions, experiment) };
    let alive = alive(experiment, &points);
    Reclamation { points: points.into_iter().collect(), managers, curves, means, alive }
}

/// One series of log ratios: a point over the program's free, or (`None`) the layer over no layer.
struct Comparison {
    manager: String,
    point: Option<FreePoint>,
    metric: Metric,
    series: Vec<Option<f64>>,
}

fn find<'s, 'e>(sides: &'s Sides<'e>, manager: &str, point: Option<FreePoint>) -> Option<&'s Side<'e>> {
    sides.all.iter().find(|side| part(side.stack).is_some_and(|part| part.0 == manager && part.1 == point))
}

fn comparisons(sides: &Sides, manager: &str, repetitions: u32) -> Vec<Comparison> {
    let Some(base) = find(sides, manager, Some(FreePoint::Free)) else { return vec![] };
    let pairs = sides.all.iter().filter_map(|side| {
        let (of, point) = part(side.stack).filter(|(of, _)| of == manager)?;
        match point {
            // The layer is compared with the manager alone.
            None => Some((of, None, base, side)),
            Some(FreePoint::Free) => None,
            point => Some((of, point, side, base)),
        }
    });
    let each = |(manager, point, side, over): (String, Option<FreePoint>, &Side, &Side)| {
        METRICS.map(|metric| Comparison {
            manager: manager.clone(),
            point,
            metric,
            series: side.log_ratios(over, metric, repetitions),
        })
    };
    pairs.flat_map(each).collect()
}

fn ratios(
    compared: &[Comparison],
    intervals: &[Option<Interval>],
    manager: &str,
    point: Option<FreePoint>,
) -> Ratios {
    let of = |metric: Metric| {
        let same = |one: &Comparison| one.manager == manager && one.point == point && one.metric == metric;
        compared.iter().position(same).and_then(|at| intervals[at])
    };
    Ratios { cpu: of(Metric::Cpu), wall: of(Metric::Wall), peak_rss: of(Metric::PeakRss) }
}

fn medians(side: &Side) -> Option<Medians> {
    let faults: Vec<f64> = side.timed.values().map(|row| row.minor_faults as f64).collect();
    (!side.timed.is_empty()).then(|| Medians {
        cpu_s: median(&side.values(Metric::Cpu)),
        peak_rss_kib: median(&side.values(Metric::PeakRss)),
        minor_faults: median(&faults),
    })
}

fn curve(
    sides: &Sides,
    program: &str,
    manager: &str,
    points: &BTreeSet<FreePoint>,
    ratios: &dyn Fn(&str, Option<FreePoint>) -> Ratios,
) -> Option<Curve> {
    let row = |point: &FreePoint| {
        let side = find(sides, manager, Some(*point))?;
        let over_free =
            if *point == FreePoint::Free { Ratios::default() } else { ratios(manager, Some(*point)) };
        Some(Row { point: *point, good: side.timed.len() as u32, medians: medians(side), over_free })
    };
    let rows: Vec<Row> = points.iter().filter_map(row).collect();
    (!rows.is_empty()).then(|| Curve {
        program: program.into(),
        manager: manager.into(),
        plain: find(sides, manager, None).and_then(medians),
        layer: ratios(manager, None),
        rows,
    })
}

fn means(
    all: &[Vec<Comparison>],
    managers: &[String],
    points: &BTreeSet<FreePoint>,
    repetitions: u32,
    experiment: &Experiment,
) -> Vec<Mean> {
    let compared = points.iter().filter(|point| **point != FreePoint::Free).map(|point| Some(*point));
    let places: Vec<Option<FreePoint>> = std::iter::once(None).chain(compared).collect();
    let subjects: Vec<(&String, Option<FreePoint>)> =
        managers.iter().flat_map(|manager| places.iter().map(move |place| (manager, *place))).collect();
    let (mut series, mut counts) = (Vec::new(), Vec::new());
    for (manager, point) in &subjects {
        for metric in METRICS {
            let same =
                |one: &&Comparison| one.manager == **manager && one.point == *point && one.metric == metric;
            let programs: Vec<Vec<Option<f64>>> =
                all.iter().filter_map(|of| of.iter().find(same)).map(|one| one.series.clone()).collect();
            let (count, mean) = over_programs(&programs, repetitions);
            counts.push(count);
            series.push(mean);
        }
    }
    let intervals = heaptoll_statistics::paired(&series, ALPHA, experiment.settings.seed);
    let each = subjects.iter().zip(intervals.chunks(METRICS.len()).zip(counts.chunks(METRICS.len())));
    each.map(|((manager, point), (ratios, counts))| Mean {
        manager: manager.to_string(),
        point: *point,
        programs: counts.iter().copied().min().unwrap_or(0),
        ratios: Ratios { cpu: ratios[0], wall: ratios[1], peak_rss: ratios[2] },
    })
    .collect()
}

/// Requested bytes alive, from the recordings that the stacks name.
fn alive(experiment: &Experiment, points: &BTreeSet<FreePoint>) -> Vec<Alive> {
    let mut alive = Vec::new();
    for program in &experiment.programs {
        let variable = LayerKind::Oracle.variable();
        let settings =
            experiment.stacks.iter().filter(|stack| stack.program == program.name).find_map(|stack| {
                stack
                    .environment
                    .iter()
                    .find(|(name, _)| Some(name.as_str()) == variable)
                    .map(|(_, value)| value)
            });
        let path = settings.and_then(|value| value.split(',').find_map(|pair| pair.strip_prefix("file=")));
        // A recording that is gone, or another by now, has no figures.
        let Some(recorded) = path.and_then(|path| file::read(Path::new(path)).ok()) else { continue };
        if recorded.about.command == program.command {
            let has = |point: &&FreePoint| {
                **point != FreePoint::Unreachable || recorded.about.unreachable.is_some()
            };
            alive.extend(points.iter().filter(has).map(|point| Alive {
                program: program.name.clone(),
                point: *point,
                live: recorded.live(*point),
            }));
        }
    }
    alive
}
