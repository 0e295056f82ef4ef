//! The paired runs of both builds that were made, and what they show.

use std::collections::BTreeMap;

use heaptoll_experiment::compare::{compare, judge_outputs};
use heaptoll_experiment::comparison::{Metric as Compared, ProgramTable};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::observation::{Observation, Outcome, Phase};
use heaptoll_statistics::{Interval, median, paired};

use super::figures::Outputs;
use super::metric::Metric;
use super::prepare::{BASE, NEW};

/// The part of an analysis's level that the table of CPU time, elapsed time and memory has.
pub const TABLE: f64 = 0.8;
/// The part that each of the two metrics has that are in no table.
const ALONE: f64 = 0.1;

/// A measured metric of both builds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// Median of the base, in the unit of the metric.
    pub base: f64,
    /// Median of the new build.
    pub new: f64,
    /// New over base.
    pub ratio: Option<Interval>,
}

/// The runs of one program.
pub struct Measured {
    /// Rows and description.
    pub experiment: Experiment,
    /// Seconds that all took together.
    pub spent_s: f64,
}

impl Measured {
    /// Seconds of one repetition, so far.
    pub fn each_s(&self) -> f64 {
        self.spent_s / f64::from(self.experiment.settings.repetitions.max(1))
    }

    /// The table of the rows so far. Where outputs may differ, rows with other output count as good ones.
    pub fn table(&self, outputs_differ: bool) -> Option<ProgramTable> {
        let mut judged = self.experiment.clone();
        if !outputs_differ {
            judge_outputs(&mut judged);
        }
        compare(&judged).tables.into_iter().next()
    }

    /// The measured runs of a build.
    pub fn rows(&self, stack: &'static str) -> impl Iterator<Item = &Observation> {
        let rows = self.experiment.observations.iter();
        rows.filter(move |row| row.stack == stack && row.phase.is_measured())
    }

    /// Whether both builds wrote the same.
    pub fn outputs(&self) -> Outputs {
        let digests = |stack| {
            let good = self.rows(stack).filter(|row| row.outcome == Outcome::Ok);
            let mut found: Vec<&str> = good.map(|row| row.output_digest.as_str()).collect();
            found.sort_unstable();
            found.dedup();
            found
        };
        match (digests(BASE).as_slice(), digests(NEW).as_slice()) {
            ([], _) | (_, []) => Outputs::Unknown,
            ([one], [other]) if one == other => Outputs::Equal,
            ([_], _) => Outputs::Differ,
            _ => Outputs::Vary,
        }
    }

    /// How often, and how, runs of a build failed: failed runs, all runs, the first failure.
    pub fn failures(&self, stack: &'static str) -> Option<(usize, usize, &Outcome)> {
        let bad = || self.rows(stack).filter(|row| row.outcome.is_failure());
        let first = bad().next()?;
        Some((bad().count(), self.rows(stack).count(), &first.outcome))
    }

    /// A measured metric. CPU time, elapsed time and memory are those of `table`; the others have intervals of their own.
    pub fn pair(&self, metric: Metric, table: &ProgramTable) -> Option<Pair> {
        let (measured, unit) = match metric {
            Metric::Cpu => (Compared::Cpu, 1.0),
            Metric::Wall => (Compared::Wall, 1.0),
            Metric::Resident => (Compared::PeakRss, 1024.0),
            Metric::Faults => return self.pair_of_rows(Phase::Alone, |row| row.minor_faults as f64),
            Metric::Startup => return self.pair_of_rows(Phase::Startup, Observation::cpu_s),
            _ => return None,
        };
        let figure = |stack: &str| table.rows.iter().find(|row| row.stack == stack)?.figures.get(&measured);
        let (base, new) = (figure(BASE)?, figure(NEW)?);
        Some(Pair { base: unit * base.median, new: unit * new.median, ratio: new.ratio })
    }

    /// A figure of rows of one phase; of timed ones where none ran alone.
    fn pair_of_rows(&self, phase: Phase, figure: fn(&Observation) -> f64) -> Option<Pair> {
        let has_any = self.experiment.observations.iter().any(|row| row.phase == phase);
        let phase = if has_any || phase == Phase::Startup { phase } else { Phase::Timed };
        let of = |stack: &str| {
            let mut found: BTreeMap<u32, Option<f64>> = BTreeMap::new();
            let rows = self.experiment.observations.iter();
            for row in rows.filter(|row| row.phase == phase && row.stack == stack) {
                found.entry(row.repetition).or_insert_with(|| row.outcome.is_ok().then(|| figure(row)));
            }
            found
        };
        let (base, new) = (of(BASE), of(NEW));
        let all = 0..self.experiment.settings.repetitions;
        let good = |found: &BTreeMap<u32, Option<f64>>, at: u32| found.get(&at).copied().flatten();
        let both: Vec<(f64, f64)> = all.filter_map(|at| Some((good(&base, at)?, good(&new, at)?))).collect();
        if both.is_empty() {
            return None;
        }
        let logs = both.iter().map(|(base, new)| (*base > 0.0 && *new > 0.0).then(|| (new / base).ln()));
        let alpha = ALONE / TABLE * self.experiment.alpha();
        let ratio = paired(&[logs.collect()], alpha, self.experiment.settings.seed)[0];
        let (base, new): (Vec<f64>, Vec<f64>) = both.into_iter().unzip();
        Some(Pair { base: median(&base), new: median(&new), ratio })
    }
}
