//! The charts of an experiment, from ready figures.

use heaptoll_experiment::comparison::{Comparison, Figure, Metric, ProgramTable};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::observation::{MemoryTrack, Observation, Phase};
use heaptoll_statistics::Interval;
use heaptoll_units::each_once;

use super::invocations::{Shown, cpu_s};
use crate::document::{Axis, Chart, Form, Role, Series};
use crate::format;

const METRICS: [(Metric, &str, &str); 2] = [
    (
        Metric::Cpu,
        "CPU",
        "Left of the line is cheaper. Pale: no difference detected, or too few repetitions.",
    ),
    (
        Metric::PeakRss,
        "Peak memory",
        "Left of the line is smaller. Pale: no difference detected, or too few repetitions.",
    ),
];

/// Ratios of every stack on every program, the geometric means on top.
pub(super) fn overall(comparison: &Comparison, palette: &[String]) -> Vec<Chart> {
    let others: Vec<&String> = palette.iter().filter(|name| **name != comparison.baseline).collect();
    let means = |metric, stack: &str| {
        let row = comparison.overall.iter().find(|row| row.stack == stack)?;
        if metric == Metric::Cpu { row.cpu } else { row.peak_rss }
    };
    let chart = |(metric, title, caption): (Metric, &str, &str)| {
        let series = others.iter().map(|stack| {
            let tables = comparison.tables.iter().map(|table| ratio(table, metric, stack));
            let ratios = std::iter::once(means(metric, stack)).chain(tables).enumerate();
            let found = ratios.filter_map(|(place, ratio)| Some((place, ratio?)));
            let name = |place: usize| match place {
                0 => "geometric mean",
                place => comparison.tables[place - 1].program.as_str(),
            };
            ratio_series(stack, found, name)
        });
        let series = series.collect();
        let programs = comparison.tables.iter().map(|table| table.program.clone());
        let names = std::iter::once("geometric mean".to_owned()).chain(programs).collect();
        ratios(title, caption, metric, &comparison.baseline, names, series)
    };
    METRICS.map(chart).into()
}

/// All charts of a program.
pub(super) fn of_program(
    experiment: &Experiment,
    comparison: &Comparison,
    table: &ProgramTable,
    shown: &Shown,
) -> Vec<Chart> {
    let mut charts: Vec<Chart> = METRICS
        .map(|(metric, title, caption)| of_metric(table, metric, title, caption, &comparison.baseline))
        .into();
    charts.push(time_against_memory(table));
    charts.push(memory_over_time(experiment, &table.program));
    charts.push(invocations(shown));
    charts.retain(|chart| chart.series.iter().any(|series| !series.points.is_empty()));
    charts
}

/// Ratios of one program's stacks, cheapest on top.
fn of_metric(table: &ProgramTable, metric: Metric, title: &str, caption: &str, baseline: &str) -> Chart {
    let found = table.rows.iter().filter_map(|row| Some((&row.stack, ratio(table, metric, &row.stack)?)));
    let found: Vec<(&String, Interval)> = found.collect();
    let series = found
        .iter()
        .enumerate()
        .map(|(place, (stack, interval))| ratio_series(stack, std::iter::once((place, *interval)), |_| ""));
    let series = series.collect();
    let names = found.iter().map(|(stack, _)| (*stack).clone()).collect();
    ratios(title, caption, metric, baseline, names, series)
}

fn ratio(table: &ProgramTable, metric: Metric, stack: &str) -> Option<Interval> {
    table.rows.iter().find(|row| row.stack == stack)?.figures.get(&metric)?.ratio
}

/// Ratios of a stack, each at its place from the top.
pub(super) fn ratio_series<'a>(
    stack: &str,
    found: impl Iterator<Item = (usize, Interval)>,
    name: impl Fn(usize) -> &'a str,
) -> Series {
    let mut series = Series { name: stack.into(), ..Series::default() };
    for (place, interval) in found {
        series.points.push((interval.ratio, place as f64));
        series.band.push((interval.low, interval.high));
        let place = name(place);
        let place = if place.is_empty() { String::new() } else { format!("{place}\n") };
        let seen = match (interval.differs, interval.has_enough_pairs()) {
            (true, _) => String::new(),
            (false, true) => format!("\n{}", format::NO_DIFFERENCE),
            (false, false) => format!("\n{}", format::TOO_FEW),
        };
        series.claimed.push(interval.differs);
        let text = format::interval(&interval);
        series.labels.push(format!("{place}{text}, {} pairs{seen}", interval.pairs));
    }
    series
}

/// A chart of ratios to a baseline, a place a name.
pub(super) fn ratios(
    title: &str,
    caption: &str,
    metric: Metric,
    baseline: &str,
    names: Vec<String>,
    series: Vec<Series>,
) -> Chart {
    let what = if metric == Metric::PeakRss { "peak memory" } else { metric.label() };
    Chart {
        title: title.into(),
        caption: caption.into(),
        form: Form::Ratios,
        x: Axis::even(&format!("{what}, ratio to {baseline}")),
        y: Axis { names, ..Axis::default() },
        series,
    }
}

/// CPU against memory, a point a stack, whiskers from the smallest to the largest; the frontier joined by steps.
fn time_against_memory(table: &ProgramTable) -> Chart {
    let mut frontier = Series { name: "frontier".into(), role: Role::Frontier, ..Series::default() };
    let mut points = Vec::new();
    for row in &table.rows {
        let (Some(cpu), Some(rss)) = (row.figures.get(&Metric::Cpu), row.figures.get(&Metric::PeakRss))
        else {
            continue;
        };
        let point = (cpu.median, rss.median / 1024.0);
        if row.on_frontier {
            frontier.points.push(point);
        }
        let ends = |figure: &Figure, by: f64| vec![(figure.min / by, figure.max / by)];
        let label = format!(
            "CPU {} s\npeak RSS {} MiB{}",
            format::median(Metric::Cpu, cpu),
            format::median(Metric::PeakRss, rss),
            if row.on_frontier { "\non the frontier" } else { "" }
        );
        points.push(Series {
            name: row.stack.clone(),
            points: vec![point],
            band: ends(rss, 1024.0),
            across: ends(cpu, 1.0),
            labels: vec![label],
            ..Series::default()
        });
    }
    frontier.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let memory: Vec<f64> = points.iter().flat_map(|series| &series.points).map(|point| point.1).collect();
    Chart {
        title: "CPU against memory".into(),
        caption: "Medians; whiskers reach from the smallest to the largest. The line is the Pareto frontier."
            .into(),
        form: Form::Points,
        x: Axis::even("CPU, s"),
        y: Axis::spread("peak RSS, MiB", memory),
        series: std::iter::once(frontier).chain(points).collect(),
    }
}

/// Resident memory over time, a line a stack.
fn memory_over_time(experiment: &Experiment, program: &str) -> Chart {
    let is_server = experiment.programs.iter().any(|one| one.name == program && one.serve.is_some());
    let tracks = experiment.tracks.iter().filter(|one| one.program == program && !one.samples.is_empty());
    let line = |track: &MemoryTrack| Series {
        name: track.stack.clone(),
        points: track.samples.iter().map(|(at, kib)| (*at, *kib as f64 / 1024.0)).collect(),
        ..Series::default()
    };
    let series: Vec<Series> = tracks.map(line).collect();
    let ends = series.iter().filter_map(|series| Some(series.points.last()?.1));
    Chart {
        title: "Resident memory over time".into(),
        caption: match is_server {
            true => "Sampled during the timed runs.",
            false => {
                "One watched run a stack, separate from the timed ones; its pace is not the \
                      measurement."
            }
        }
        .into(),
        form: Form::Lines,
        x: Axis::even("seconds since start"),
        y: Axis::spread("resident, MiB", ends),
        series,
    }
}

/// Timed invocations as marks in the order made, so that drift shows; bad rows as crosses.
fn invocations(Shown { rows, every, .. }: &Shown) -> Chart {
    let stacks = each_once(rows.iter().map(|row| &row.stack));
    // Of a stack that did not run in lockstep with the others there are runs by itself only.
    let timed = rows.iter().filter(|row| row.phase == Phase::Timed);
    let timed = each_once(timed.map(|row| &row.stack));
    let is_drawn = |row: &&&Observation| {
        row.phase == Phase::Timed || row.phase == Phase::Alone && !timed.contains(&&row.stack)
    };
    let mut series = Vec::new();
    for stack in stacks {
        for role in [Role::Figures, Role::Failures] {
            let is_of =
                |row: &&&Observation| row.stack == *stack && row.outcome.is_ok() == (role == Role::Figures);
            let of: Vec<&&Observation> = rows.iter().filter(is_drawn).filter(is_of).collect();
            series.push(Series {
                name: stack.clone(),
                points: of.iter().map(|row| (f64::from(row.order), cpu_s(row))).collect(),
                labels: of.iter().map(|row| label(row)).collect(),
                role,
                ..Series::default()
            });
        }
    }
    series.retain(|series| !series.points.is_empty());
    Chart {
        title: match every {
            1 => "Every timed invocation".to_owned(),
            every => format!("Timed invocations, one repetition in {every}"),
        },
        caption: format!(
            "In the order of execution, so that drift of the machine shows. Crosses failed and are in no \
             average{}.",
            // Otherwise they would seem to be a larger share than they are.
            if *every == 1 { "" } else { "; they are from all repetitions, not only from those shown" }
        ),
        form: Form::Points,
        x: Axis::even("invocation, in the order made"),
        y: Axis::even("CPU, s"),
        series,
    }
}

fn label(row: &Observation) -> String {
    format!(
        "repetition {}\nCPU {} s, wall {} s\npeak RSS {} MiB, load {:.2}\n{}",
        row.repetition + 1,
        format::seconds(cpu_s(row)),
        format::seconds(row.wall_s),
        format::mib_from_kib(row.peak_rss_kib as f64),
        row.load_average,
        row.outcome
    )
}
