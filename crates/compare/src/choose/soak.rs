//! The soak: the servers of the finalists and of the default for hours, and whether their memory grows.

use std::time::Duration;

use heaptoll_experiment::runner::RunContext;
use heaptoll_experiment::soak::{Soaked, soak};
use heaptoll_report::document::{Axis, Chart, Form, Section, Series, Table};
use heaptoll_report::format::mib_from_bytes;
use heaptoll_statistics::{Trend, median, trend};
use heaptoll_units::{plural, significant, took};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::request::ChooseRequest;
use super::servers::p99_of;
use crate::run::Run;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;

/// Points of a series: hours have too many loads for the slopes of all pairs.
const POINTS: usize = 120;

/// What a server did in the soak.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Soak {
    /// Its stack.
    pub stack: String,
    /// Seconds until its last load had ended.
    pub seconds: f64,
    /// Its loads.
    pub loads: u64,
    /// Seconds and resident bytes after loads: means of neighbours where there were more than 120.
    pub memory: Vec<(f64, f64)>,
    /// Growth of the memory over the second half, bytes an hour; none of fewer than 20 points.
    pub growth: Option<Growth>,
    /// Median of its loads' 99th percentiles, ms, where they report it.
    pub p99_ms: Option<f64>,
    /// Why it has no more loads; empty when nothing went wrong.
    pub trouble: String,
}

/// A slope and the interval that holds it with 95 % confidence, bytes an hour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Growth {
    /// The median of the slopes between all pairs of points.
    pub bytes_an_hour: f64,
    /// The interval's lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Growth {
    /// Whether it grows for certain.
    pub(super) fn is_certain(&self) -> bool {
        self.low > 0.0
    }

    /// `12.3 (8.1 to 15.0)`, MiB an hour.
    fn text(&self) -> String {
        let mib = |bytes: f64| significant(bytes / 1048576.0);
        format!("{} ({} to {})", mib(self.bytes_an_hour), mib(self.low), mib(self.high))
    }
}

/// Soaks the stacks of the fresh runs, where that is wanted.
///
/// # Errors
/// Heaptoll's own machinery failed.
pub(super) fn run(request: &ChooseRequest, fresh: &Run, context: &Context) -> Result<Vec<Soak>, Failure> {
    let Some(seconds) = request.soak_s else { return Ok(Vec::new()) };
    let experiment = &fresh.experiment;
    let Some(program) = experiment.programs.first() else { return Ok(Vec::new()) };
    let Some(info) = &program.serve else { return Ok(Vec::new()) };
    let runs = RunContext {
        launcher: context.places.launcher(),
        start_layer: context.places.start_layer(),
        interrupt: context.interrupt.clone(),
    };
    context.messages.note(&format!("all servers run together for {}", took(seconds)));
    let bar = context.messages.progress(Some(seconds.ceil() as u64));
    let length = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    let each = &mut |at_s: f64| bar.set_steps(at_s as u64, seconds.ceil() as u64);
    let soaked = soak(experiment, program, info, length, &runs, each)?;
    Ok(soaked.iter().map(figures).collect())
}

fn figures(soaked: &Soaked) -> Soak {
    let points: Vec<(f64, f64)> =
        soaked.loads.iter().map(|load| (load.at_s, load.rss_kib as f64 * 1024.0)).collect();
    let p99: Vec<f64> = soaked.loads.iter().filter_map(|load| p99_of(&load.figures)).collect();
    Soak {
        stack: soaked.stack.clone(),
        seconds: points.last().map_or(0.0, |point| point.0),
        loads: points.len() as u64,
        memory: thinned(&points),
        growth: growth(&points),
        p99_ms: (!p99.is_empty()).then(|| median(&p99)),
        trouble: soaked.trouble.clone().unwrap_or_default(),
    }
}

/// Means of neighbours, as many as there are points at most.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let size = points.len().div_ceil(POINTS).max(1);
    let mean = |group: &[(f64, f64)]| {
        let count = group.len() as f64;
        (
            group.iter().map(|one| one.0).sum::<f64>() / count,
            group.iter().map(|one| one.1).sum::<f64>() / count,
        )
    };
    points.chunks(size).map(mean).collect()
}

/// The trend of the second half: caches and tables fill in the first.
fn growth(points: &[(f64, f64)]) -> Option<Growth> {
    let Trend { slope, low, high } = trend(&thinned(&points[points.len() / 2..]))?;
    Some(Growth { bytes_an_hour: 3600.0 * slope, low: 3600.0 * low, high: 3600.0 * high })
}

/// The section; without a title where there was no soak.
pub(super) fn section(soaks: &[Soak]) -> Section {
    if soaks.is_empty() {
        return Section::default();
    }
    let text = soaks.iter().map(sentence).collect();
    Section { text, ..Section::new("Soak") }.with(table(soaks)).with(chart(soaks))
}

fn sentence(soak: &Soak) -> String {
    let name = &soak.stack;
    if !soak.trouble.is_empty() {
        return format!("{name} came to {}: {}.", took(soak.seconds), soak.trouble);
    }
    match &soak.growth {
        None => {
            let loads = plural(soak.loads as usize, "load");
            format!("Cannot tell whether {name} grows after {loads}. Soak it longer.")
        }
        Some(growth) if growth.is_certain() => {
            format!("{name} grows by {} MiB an hour in the second half of the soak.", growth.text())
        }
        Some(growth) => format!(
            "{name}: no growth detected in the second half of the soak (at most {} MiB an hour).",
            significant(growth.high.max(0.0) / 1048576.0)
        ),
    }
}

fn table(soaks: &[Soak]) -> Table {
    Table::of(soaks)
        .text("Stack", |soak| soak.stack.clone())
        .figure("loads", |soak| soak.loads.to_string())
        .figure("MiB at the end", |soak| soak.memory.last().map(|point| mib_from_bytes(point.1)))
        .figure("growth, MiB an hour", |soak| soak.growth.as_ref().map(Growth::text))
        .figure("p99 ms", |soak| soak.p99_ms.map(significant))
        .text("", |soak| soak.trouble.clone())
        .note(
            "All servers ran together, loaded in turns. Growth is the median slope between all pairs of \
             points of the second half, with its 95 % interval.",
        )
        .table()
}

fn chart(soaks: &[Soak]) -> Chart {
    let line = |soak: &Soak| Series {
        name: soak.stack.clone(),
        points: soak.memory.iter().map(|(at_s, bytes)| (at_s / 60.0, bytes / 1048576.0)).collect(),
        ..Series::default()
    };
    let series: Vec<Series> = soaks.iter().map(line).collect();
    let last = series.iter().filter_map(|series| Some(series.points.last()?.1));
    Chart {
        title: "Resident memory in the soak".into(),
        caption: "After each load.".into(),
        form: Form::Lines,
        x: Axis::even("minutes"),
        y: Axis::spread("resident, MiB", last),
        series,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptoll_experiment::soak::SoakLoad;

    fn soaked(rss_kib: impl Fn(u64) -> u64) -> Soaked {
        let load = |at: u64| SoakLoad { at_s: at as f64 * 10.0, rss_kib: rss_kib(at), ..SoakLoad::default() };
        Soaked { stack: "glibc".into(), loads: (0..400).map(load).collect(), trouble: None }
    }

    #[test]
    fn a_server_that_grows_is_seen_and_one_that_fills_its_tables_first_is_not() {
        // 1 MiB a load, one load in ten seconds: 360 MiB an hour.
        let grows = figures(&soaked(|at| 1000 + 1024 * at));
        let growth = grows.growth.expect("a slope");
        assert!(growth.is_certain() && (growth.bytes_an_hour / 1048576.0 - 360.0).abs() < 1e-6, "{growth:?}");
        assert!(sentence(&grows).contains("grows by 360"), "{}", sentence(&grows));
        assert!(grows.memory.len() <= POINTS && grows.loads == 400);
        let fills = figures(&soaked(|at| 1000 + 1024 * at.min(150)));
        assert!(!fills.growth.expect("a slope").is_certain());
        assert!(sentence(&fills).contains("no growth detected"));
    }

    #[test]
    fn few_loads_and_a_dead_server_have_no_growth() {
        let few = Soaked { loads: soaked(|at| at).loads[..30].to_vec(), ..soaked(|at| at) };
        assert!(figures(&few).growth.is_none() && sentence(&figures(&few)).contains("Cannot tell"));
        let dead = Soaked { trouble: Some("died under load".into()), ..few };
        assert!(sentence(&figures(&dead)).contains("died under load"));
    }
}
