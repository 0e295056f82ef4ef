//! The mutator's time over the period of collections and of reclamation (Sareen and Blackburn 2022, §5).
//!
//! A collection stops the program, and what it costs by that is its pause. What it costs besides, through caches that
//! it fills with other things and through blocks that come back late or in another order, is in the time between
//! pauses: the mutator's. A collection that only identifies what is dead (`reclaim=16`: the sixteenth reclaims)
//! separates the two.

use heaptoll_experiment::comparison::Metric;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::observation::Observation;
use heaptoll_experiment::side::Side;
use heaptoll_experiment::sweep::{self, Axis, Point, Sweep, Swept, sweep};
use heaptoll_statistics::median;

use super::figures::{Frequency, Mean, Medians, Ratio, Setting, Study};
use super::period::{Period, Question, comparisons, part};
use crate::axis::{Figure, between, metric};

/// With fewer collections than this at the shortest period, a program shows little of their frequency.
pub const FEWEST_COLLECTIONS: f64 = 10.0;

/// A metric of one run, whose timed row is given; `None` where it was not reported.
type Measure = fn(&Side, &Observation, u32) -> Option<f64>;

/// What is compared.
const METRICS: [Measure; 4] = [mutator_wall, mutator_cpu, wall, peak_rss];

/// The same as a document names it.
pub const FIGURES: [Figure; 4] = [
    ("mutator CPU", metric::<1>),
    ("mutator time", metric::<0>),
    ("time with pauses", metric::<2>),
    ("peak memory", metric::<3>),
];

/// The figure that decides whether a result is claimed, as [`Ratio::of_mutator`] is.
pub const MUTATOR: Figure = ("Mutator", |of| metric::<1>(of).or(metric::<0>(of)));

/// Elapsed times are those of runs alone, and so are the pauses that are taken off. A server's pauses outside of the load
/// are not known separately.
fn mutator_wall(side: &Side, row: &Observation, repetition: u32) -> Option<f64> {
    let alone = side.by_itself().get(&repetition)?.collections.filter(|_| row.serve.is_none())?;
    Some(side.value(Metric::Wall, repetition)? - alone.pause_total_ns as f64 / 1e9)
}

fn mutator_cpu(side: &Side, row: &Observation, repetition: u32) -> Option<f64> {
    row.collections.filter(|_| row.serve.is_none())?;
    Some(side.value(Metric::Cpu, repetition)? - row.collector_cpu_ns? as f64 / 1e9)
}

fn wall(side: &Side, _: &Observation, repetition: u32) -> Option<f64> {
    side.value(Metric::Wall, repetition)
}

fn peak_rss(side: &Side, _: &Observation, repetition: u32) -> Option<f64> {
    side.value(Metric::PeakRss, repetition)
}

fn value(side: &Side, measure: Measure, repetition: u32) -> Option<f64> {
    measure(side, side.timed.get(&repetition)?, repetition).filter(|left| *left > 0.0)
}

fn medians(side: &Side) -> Option<Medians> {
    let recorded: Vec<_> = side.by_itself().values().filter_map(|row| row.collections).collect();
    let of = |measure: Measure| -> Option<f64> {
        let values: Vec<f64> = side.timed.keys().filter_map(|r| value(side, measure, *r)).collect();
        (!values.is_empty()).then(|| median(&values))
    };
    (!recorded.is_empty()).then(|| Medians {
        collections: median(&recorded.iter().map(|one| one.count as f64).collect::<Vec<_>>()),
        wall_s: of(wall).unwrap_or(0.0),
        pauses_s: median(&recorded.iter().map(|one| one.pause_total_ns as f64 / 1e9).collect::<Vec<_>>()),
        mutator_wall_s: of(mutator_wall),
        mutator_cpu_s: of(mutator_cpu),
        peak_rss_kib: of(peak_rss).unwrap_or(0.0),
    })
}

/// The axis; a comparison is a question, its period, and the one it is over.
pub struct Periods;

impl Axis for Periods {
    type Place = Period;
    type Key = (Question, Period, Period);
    type Medians = Medians;

    fn part(&self, stack: &str) -> Option<(String, Period)> {
        part(stack)
    }

    fn comparisons(&self, periods: &[Period]) -> Vec<(Self::Key, Period, Period)> {
        comparisons(periods).into_iter().map(|key| (key, key.1, key.2)).collect()
    }

    fn series(&self, of: &Side, over: &Side, repetitions: u32) -> Vec<Vec<Option<f64>>> {
        let ratio = |measure, r| Some((value(of, measure, r)? / value(over, measure, r)?).ln());
        METRICS.map(|measure| (0..repetitions).map(|r| ratio(measure, r)).collect()).into()
    }

    fn medians(&self, side: &Side) -> Option<Medians> {
        medians(side)
    }

    fn counts(&self, points: &[Point<Periods>]) -> bool {
        let shortest = points.first().and_then(|point| point.medians);
        shortest.is_some_and(|medians| medians.collections >= FEWEST_COLLECTIONS)
    }
}

/// What was found in an experiment's rows. Call [`heaptoll_experiment::compare::judge_outputs`] first.
pub fn swept(experiment: &Experiment) -> Sweep<Periods> {
    sweep(&Periods, experiment)
}

/// The same as figures.
pub fn figures(found: &Sweep<Periods>) -> Frequency {
    let mean = |mean: &sweep::Mean<Periods>| Mean {
        collector: mean.subject.clone(),
        programs: mean.programs,
        ratio: ratio(&mean.ratios),
        between_programs: between(found, mean, MUTATOR),
    };
    Frequency {
        collectors: found.subjects.clone(),
        programs: found.programs.iter().map(of_program).collect(),
        means: found.means.iter().map(mean).collect(),
    }
}

fn of_program(swept: &Swept<Periods>) -> Study {
    let setting =
        |point: &Point<Periods>| Setting { period: point.place, good: point.good, medians: point.medians };
    Study {
        program: swept.program.clone(),
        collector: swept.subject.clone(),
        settings: swept.points.iter().map(setting).collect(),
        ratios: swept.ratios.iter().map(ratio).collect(),
        often_enough: swept.counts,
    }
}

fn ratio(((question, period, over), of): &sweep::Intervals<Periods>) -> Ratio {
    let [mutator_wall, mutator_cpu, wall, peak_rss] = [0, 1, 2, 3].map(|at: usize| *of.get(at)?);
    Ratio { question: *question, period: *period, over: *over, mutator_wall, mutator_cpu, wall, peak_rss }
}

#[cfg(test)]
mod tests;
