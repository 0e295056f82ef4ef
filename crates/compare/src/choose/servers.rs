//! What a server did besides CPU time and peak memory: its requests' 99th percentile, by its load's report, and the
//! memory that it still has after a burst.

use std::collections::BTreeMap;

use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::observation::{Observation, Phase, ServeFigures};
use heaptoll_statistics::{Interval, geometric_mean, median};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A server's figures under a stack, over all runs and servers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Served {
    /// The slowest request of a hundred, ms: of a report with several kinds of requests the largest figure, of runs the
    /// median, of servers the largest.
    pub p99_ms: Option<f64>,
    /// That over the baseline's; of several servers the geometric mean.
    pub p99_ratio: Option<f64>,
    /// Resident memory when the last load had ended, and at times after it.
    pub idle: Vec<IdleMemory>,
    /// That at the last of these times over the baseline's.
    pub idle_ratio: Option<f64>,
}

/// Resident memory of a server that has nothing to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IdleMemory {
    /// Seconds since its last load ended.
    pub after_s: f64,
    /// Bytes: of runs the median, of servers the largest.
    pub bytes: f64,
}

/// Prefixes of a figure's name by its unit, and milliseconds of one of these.
const UNITS: [(&str, f64); 3] = [("p99_us", 1e-3), ("p99_s", 1e3), ("p99", 1.0)];

/// The 99th percentile that a name of a load's figure stands for, in milliseconds of one; `None` of another figure.
/// `p99_ms` and `p99` are in milliseconds.
pub(super) fn p99_unit(name: &str) -> Option<f64> {
    let name = name.rsplit(' ').next().unwrap_or(name);
    UNITS.iter().find(|(unit, _)| name == *unit || *unit == "p99" && name == "p99_ms").map(|(_, ms)| *ms)
}

/// The largest 99th percentile in a run's report, ms.
pub(super) fn p99_ms(row: &Observation) -> Option<f64> {
    p99_of(row.serve.as_ref()?)
}

pub(super) fn p99_of(serve: &ServeFigures) -> Option<f64> {
    let figures = serve.load_figures.iter();
    figures.filter_map(|(name, value)| Some(value * p99_unit(name)?)).reduce(f64::max)
}

/// Resident bytes after the last load, by seconds.
fn idle(row: &Observation) -> Vec<IdleMemory> {
    let Some(serve) = &row.serve else { return Vec::new() };
    let parsed = serve
        .idle_rss_kib
        .iter()
        .filter_map(|(after, kib)| Some(IdleMemory { after_s: after.parse().ok()?, bytes: kib * 1024.0 }));
    let mut all: Vec<IdleMemory> = parsed.collect();
    all.sort_by(|a, b| a.after_s.total_cmp(&b.after_s));
    all
}

pub(super) fn last_idle(row: &Observation) -> Option<f64> {
    idle(row).last().map(|memory| memory.bytes)
}

/// Good timed rows of a stack on a program, by repetition.
fn rows<'a>(experiment: &'a Experiment, program: &str, stack: &str) -> BTreeMap<u32, &'a Observation> {
    let rows = experiment.rows(program, stack);
    let good = rows.filter(|row| row.phase == Phase::Timed && row.outcome.is_ok());
    good.map(|row| (row.repetition, row)).collect()
}

/// A figure of a server's run.
pub(super) type ServerFigure = fn(&Observation) -> Option<f64>;

/// Log ratios of a stack to another by repetition.
pub(super) fn log_ratios(
    experiment: &Experiment,
    program: &str,
    (stack, other): (&str, &str),
    figure: ServerFigure,
) -> Vec<Option<f64>> {
    let (own, base) = (rows(experiment, program, stack), rows(experiment, program, other));
    let ratio = |at: u32| {
        let ratio = figure(own.get(&at)?)? / figure(base.get(&at)?)?;
        (ratio.is_finite() && ratio > 0.0).then(|| ratio.ln())
    };
    (0..experiment.repetitions()).map(ratio).collect()
}

/// A stack's figures.
pub(super) fn served(stack: &str, experiment: &Experiment) -> Served {
    let mut found = Served::default();
    let (mut p99_ratios, mut idle_ratios) = (Vec::new(), Vec::new());
    for program in experiment.programs.iter().filter(|program| program.serve.is_some()) {
        let rows = rows(experiment, &program.name, stack);
        let p99: Vec<f64> = rows.values().filter_map(|row| p99_ms(row)).collect();
        if !p99.is_empty() {
            found.p99_ms = Some(found.p99_ms.unwrap_or(0.0).max(median(&p99)));
        }
        let idle: Vec<Vec<IdleMemory>> = rows.values().map(|row| idle(row)).collect();
        for at in 0..idle.iter().map(Vec::len).max().unwrap_or(0) {
            let values: Vec<IdleMemory> = idle.iter().filter_map(|run| run.get(at).copied()).collect();
            let bytes = median(&values.iter().map(|memory| memory.bytes).collect::<Vec<_>>());
            match found.idle.get_mut(at) {
                Some(memory) => memory.bytes = memory.bytes.max(bytes),
                None => found.idle.extend(values.first().map(|first| IdleMemory { bytes, ..*first })),
            }
        }
        let ratio = |figure: ServerFigure| {
            let logs: Vec<f64> = log_ratios(experiment, &program.name, (stack, &experiment.baseline), figure)
                .into_iter()
                .flatten()
                .collect();
            (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
        };
        p99_ratios.extend(ratio(p99_ms));
        idle_ratios.extend(ratio(last_idle));
    }
    (found.p99_ratio, found.idle_ratio) = (geometric_mean(p99_ratios), geometric_mean(idle_ratios));
    found
}

/// Intervals of a stack's figures over the baseline's.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Intervals {
    /// Of the 99th percentile.
    pub p99: Option<Interval>,
    /// Of the memory at the last time.
    pub idle: Option<Interval>,
}

/// The intervals of all these stacks, which hold together; of one server, since ratios of several are not of one kind.
pub(super) fn intervals(stacks: &[String], experiment: &Experiment) -> Vec<Intervals> {
    let [program] = &experiment.programs[..] else { return vec![Intervals::default(); stacks.len()] };
    let figures: [ServerFigure; 2] = [p99_ms, last_idle];
    let base = experiment.baseline.as_str();
    let series: Vec<Vec<Option<f64>>> = stacks
        .iter()
        .flat_map(|stack| figures.map(|figure| log_ratios(experiment, &program.name, (stack, base), figure)))
        .collect();
    let found = experiment.paired(&series);
    found.chunks(2).map(|both| Intervals { p99: both[0], idle: both[1] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptoll_experiment::experiment::ServeInfo;
    use heaptoll_experiment::testing::programs::{experiment, row};

    /// Two stacks, the second with slower requests and half the memory when it is idle.
    fn served_by_two() -> Experiment {
        let mut made = experiment(&["server"], &["glibc".into(), "lean".into()], 8);
        made.programs[0].serve = Some(ServeInfo::default());
        for repetition in 0..8 {
            for (stack, p99, idle) in [("glibc", 1.0, 1000.0), ("lean", 3.0, 500.0)] {
                let noise = 1.0 + 0.01 * f64::from(repetition % 3);
                let load_figures = [("GET p99_ms".to_owned(), 0.5), ("SET p99_ms".to_owned(), p99 * noise)];
                let idle_rss_kib = [("0", 2000.0), ("10", idle), ("1", 1500.0)];
                let serve = ServeFigures {
                    load_figures: load_figures.into(),
                    idle_rss_kib: idle_rss_kib.map(|(after, kib)| (after.to_owned(), kib)).into(),
                    ..ServeFigures::default()
                };
                made.observations
                    .push(Observation { serve: Some(serve), ..row("server", stack, repetition, 1.0, 2000) });
            }
        }
        made
    }

    #[test]
    fn the_slowest_kind_of_request_and_the_memory_in_the_order_of_time_count() {
        let made = served_by_two();
        let lean = served("lean", &made);
        assert!(lean.p99_ms.is_some_and(|p99| (2.9..3.1).contains(&p99)), "{lean:?}");
        assert!(lean.p99_ratio.is_some_and(|ratio| (ratio - 3.0).abs() < 1e-9));
        assert_eq!(lean.idle_ratio, Some(0.5));
        let after: Vec<f64> = lean.idle.iter().map(|memory| memory.after_s).collect();
        assert_eq!((after, lean.idle[2].bytes), (vec![0.0, 1.0, 10.0], 500.0 * 1024.0));
        let found = intervals(&["lean".into()], &made)[0];
        assert!(found.p99.is_some_and(|interval| interval.differs && interval.low > 1.0));
        assert!(found.idle.is_some_and(|interval| interval.differs && interval.high < 1.0));
    }

    #[test]
    fn names_of_figures_give_the_percentile_and_its_unit() {
        assert_eq!(p99_unit("SET p99_ms"), Some(1.0));
        assert_eq!(p99_unit("p99"), Some(1.0));
        assert_eq!(p99_unit("p99_us"), Some(1e-3));
        assert_eq!(p99_unit("GET p99_s"), Some(1e3));
        assert!(["p999_ms", "p50_ms", "requests_per_s"].iter().all(|name| p99_unit(name).is_none()));
    }
}
