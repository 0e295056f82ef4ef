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
use heaptoll_experiment::sweep::{self, Axis, Point, Swept, sweep};
use heaptoll_statistics::{Interval, median};

use super::figures::{Frequency, Mean, Medians, Ratio, Setting, Study};
use super::period::{Period, Question, comparisons, part};
use heaptoll_runs::studied::between_programs;

/// With fewer collections than this at the shortest period, a program shows little of their frequency.
pub const FEWEST_COLLECTIONS: f64 = 10.0;

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    MutatorWall,
    MutatorCpu,
    Wall,
    PeakRss,
}

const MEASURES: [Measure; 4] = [Measure::MutatorWall, Measure::MutatorCpu, Measure::Wall, Measure::PeakRss];

/// A measure of one run; `None` where it was not reported, and for servers, whose pauses outside of the load are not
/// known separately.
fn value(side: &Side, measure: Measure, repetition: u32) -> Option<f64> {
    let row: &Observation = side.timed.get(&repetition)?;
    let recorded = || row.collections.filter(|_| row.serve.is_none());
    // Elapsed times are those of runs alone, and so are the pauses that are taken off.
    let alone = || side.by_itself().get(&repetition)?.collections.filter(|_| row.serve.is_none());
    let left = match measure {
        Measure::MutatorWall => side.value(Metric::Wall, repetition)? - alone()?.pause_total_ns as f64 / 1e9,
        Measure::MutatorCpu => {
            recorded()?;
            side.value(Metric::Cpu, repetition)? - row.collector_cpu_ns? as f64 / 1e9
        }
        Measure::Wall => side.value(Metric::Wall, repetition)?,
        Measure::PeakRss => side.value(Metric::PeakRss, repetition)?,
    };
    (left > 0.0).then_some(left)
}

fn medians(side: &Side) -> Option<Medians> {
    let recorded: Vec<_> = side.by_itself().values().filter_map(|row| row.collections).collect();
    let of = |measure: Measure| -> Option<f64> {
        let values: Vec<f64> = side.timed.keys().filter_map(|r| value(side, measure, *r)).collect();
        (!values.is_empty()).then(|| median(&values))
    };
    (!recorded.is_empty()).then(|| Medians {
        collections: median(&recorded.iter().map(|one| one.count as f64).collect::<Vec<_>>()),
        wall_s: of(Measure::Wall).unwrap_or(0.0),
        pauses_s: median(&recorded.iter().map(|one| one.pause_total_ns as f64 / 1e9).collect::<Vec<_>>()),
        mutator_wall_s: of(Measure::MutatorWall),
        mutator_cpu_s: of(Measure::MutatorCpu),
        peak_rss_kib: of(Measure::PeakRss).unwrap_or(0.0),
    })
}

/// The axis; a comparison is a question, its period, and the one it is over.
struct Periods;

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
        MEASURES.map(|measure| (0..repetitions).map(|r| ratio(measure, r)).collect()).into()
    }

    fn medians(&self, side: &Side) -> Option<Medians> {
        medians(side)
    }

    fn counts(&self, points: &[Point<Periods>]) -> bool {
        let shortest = points.first().and_then(|point| point.medians);
        shortest.is_some_and(|medians| medians.collections >= FEWEST_COLLECTIONS)
    }
}

/// Computes the study from an experiment's rows. Call [`heaptoll_experiment::compare::judge_outputs`] first.
pub fn study(experiment: &Experiment) -> Frequency {
    let found = sweep(&Periods, experiment);
    let programs: Vec<Study> = found.programs.into_iter().map(of_program).collect();
    let mean = |mean: sweep::Mean<Periods>| {
        let ratio = ratio(&mean.ratios);
        let between_programs = between(&programs, &mean.subject, &ratio);
        Mean { collector: mean.subject, programs: mean.programs, ratio, between_programs }
    };
    let means = found.means.into_iter().map(mean).collect();
    Frequency { collectors: found.subjects, programs, means }
}

fn of_program(swept: Swept<Periods>) -> Study {
    let setting =
        |point: Point<Periods>| Setting { period: point.place, good: point.good, medians: point.medians };
    Study {
        program: swept.program,
        collector: swept.subject,
        settings: swept.points.into_iter().map(setting).collect(),
        ratios: swept.ratios.iter().map(ratio).collect(),
        often_enough: swept.counts,
    }
}

fn ratio(((question, period, over), of): &sweep::Intervals<Periods>) -> Ratio {
    let measure = |at: usize| of.get(at).copied().flatten();
    Ratio {
        question: *question,
        period: *period,
        over: *over,
        mutator_wall: measure(0),
        mutator_cpu: measure(1),
        wall: measure(2),
        peak_rss: measure(3),
    }
}

/// A mean's ratio of the mutator's time, with programs as the sample.
fn between(programs: &[Study], collector: &str, mean: &Ratio) -> Option<Interval> {
    let same = |ratio: &&Ratio| {
        (ratio.question, ratio.period, ratio.over) == (mean.question, mean.period, mean.over)
    };
    let counted = programs.iter().filter(|one| one.collector == collector && one.often_enough);
    between_programs(counted.map(|one| one.ratios.iter().find(same)?.of_mutator()))
}

#[cfg(test)]
mod tests;
