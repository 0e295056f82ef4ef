//! Time and memory by moment of reclamation, over the program's own free with the same layer and the same manager.

use std::collections::BTreeSet;
use std::path::Path;

use heaptoll_experiment::comparison::Metric;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::side::{Side, Sides};
use heaptoll_experiment::stack::LayerKind;
use heaptoll_oracle::{Moment, file};
use heaptoll_statistics::{ALPHA, Interval, median, over_programs};

use super::figures::{Alive, Curve, Mean, Medians, Point, Ratios, Reclamation};
use super::part::part;

/// What is compared.
const METRICS: [Metric; 3] = [Metric::Cpu, Metric::Wall, Metric::PeakRss];

/// Computes the study from an experiment's rows. Call [`heaptoll_experiment::compare::judge_outputs`] first.
pub fn study(experiment: &Experiment) -> Reclamation {
    let mut managers: Vec<String> = Vec::new();
    let mut moments = BTreeSet::new();
    for (manager, moment) in experiment.stacks.iter().filter_map(|stack| part(&stack.name)) {
        if let Some(moment) = moment {
            moments.insert(moment);
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
        let ratios = |manager: &str, moment| ratios(&compared, &intervals, manager, moment);
        let curve = |manager: &String| curve(&sides, &program.name, manager, &moments, &ratios);
        curves.extend(managers.iter().filter_map(curve));
        all.push(compared);
    }
    let means = if all.len() < 2 { vec![] } else { means(&all, &managers, &moments, repetitions, experiment) };
    let alive = alive(experiment, &moments);
    Reclamation { moments: moments.into_iter().collect(), managers, curves, means, alive }
}

/// One series of log ratios: a moment over the program's free, or (`None`) the layer over no layer.
struct Comparison {
    manager: String,
    moment: Option<Moment>,
    metric: Metric,
    series: Vec<Option<f64>>,
}

fn find<'s, 'e>(sides: &'s Sides<'e>, manager: &str, moment: Option<Moment>) -> Option<&'s Side<'e>> {
    sides.all.iter().find(|side| part(side.stack).is_some_and(|part| part.0 == manager && part.1 == moment))
}

fn comparisons(sides: &Sides, manager: &str, repetitions: u32) -> Vec<Comparison> {
    let Some(base) = find(sides, manager, Some(Moment::Free)) else { return vec![] };
    let pairs = sides.all.iter().filter_map(|side| {
        let (of, moment) = part(side.stack).filter(|(of, _)| of == manager)?;
        match moment {
            // The layer is compared with the manager alone.
            None => Some((of, None, base, side)),
            Some(Moment::Free) => None,
            moment => Some((of, moment, side, base)),
        }
    });
    let each = |(manager, moment, side, over): (String, Option<Moment>, &Side, &Side)| {
        METRICS.map(|metric| Comparison {
            manager: manager.clone(),
            moment,
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
    moment: Option<Moment>,
) -> Ratios {
    let of = |metric: Metric| {
        let same =
            |one: &Comparison| one.manager == manager && one.moment == moment && one.metric == metric;
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
    moments: &BTreeSet<Moment>,
    ratios: &dyn Fn(&str, Option<Moment>) -> Ratios,
) -> Option<Curve> {
    let point = |moment: &Moment| {
        let side = find(sides, manager, Some(*moment))?;
        let over_free =
            if *moment == Moment::Free { Ratios::default() } else { ratios(manager, Some(*moment)) };
        Some(Point { moment: *moment, good: side.timed.len() as u32, medians: medians(side), over_free })
    };
    let points: Vec<Point> = moments.iter().filter_map(point).collect();
    (!points.is_empty()).then(|| Curve {
        program: program.into(),
        manager: manager.into(),
        plain: find(sides, manager, None).and_then(medians),
        layer: ratios(manager, None),
        points,
    })
}

fn means(
    all: &[Vec<Comparison>],
    managers: &[String],
    moments: &BTreeSet<Moment>,
    repetitions: u32,
    experiment: &Experiment,
) -> Vec<Mean> {
    let compared = moments.iter().filter(|moment| **moment != Moment::Free).map(|moment| Some(*moment));
    let places: Vec<Option<Moment>> = std::iter::once(None).chain(compared).collect();
    let subjects: Vec<(&String, Option<Moment>)> =
        managers.iter().flat_map(|manager| places.iter().map(move |place| (manager, *place))).collect();
    let (mut series, mut counts) = (Vec::new(), Vec::new());
    for (manager, moment) in &subjects {
        for metric in METRICS {
            let same = |one: &&Comparison| {
                one.manager == **manager && one.moment == *moment && one.metric == metric
            };
            let programs: Vec<Vec<Option<f64>>> =
                all.iter().filter_map(|of| of.iter().find(same)).map(|one| one.series.clone()).collect();
            let (count, mean) = over_programs(&programs, repetitions);
            counts.push(count);
            series.push(mean);
        }
    }
    let intervals = heaptoll_statistics::paired(&series, ALPHA, experiment.settings.seed);
    let each = subjects.iter().zip(intervals.chunks(METRICS.len()).zip(counts.chunks(METRICS.len())));
    each.map(|((manager, moment), (ratios, counts))| Mean {
        manager: manager.to_string(),
        moment: *moment,
        programs: counts.iter().copied().min().unwrap_or(0),
        ratios: Ratios { cpu: ratios[0], wall: ratios[1], peak_rss: ratios[2] },
    })
    .collect()
}

/// Requested bytes alive, from the recordings that the stacks name.
fn alive(experiment: &Experiment, moments: &BTreeSet<Moment>) -> Vec<Alive> {
    let mut alive = Vec::new();
    for program in &experiment.programs {
        let variable = LayerKind::Oracle.variable();
        let settings = experiment.stacks.iter().filter(|stack| stack.program == program.name).find_map(|stack| {
            stack.environment.iter().find(|(name, _)| Some(name.as_str()) == variable).map(|(_, value)| value)
        });
        let path = settings.and_then(|value| value.split(',').find_map(|pair| pair.strip_prefix("file=")));
        // A recording that is gone, or another by now, has no figures.
        let Some(recorded) = path.and_then(|path| file::read(Path::new(path)).ok()) else { continue };
        if recorded.about.command == program.command {
            alive.extend(moments.iter().map(|moment| Alive {
                program: program.name.clone(),
                moment: *moment,
                live: recorded.live(*moment),
            }));
        }
    }
    alive
}
