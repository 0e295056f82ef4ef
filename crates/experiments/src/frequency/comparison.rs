//! The mutator's time over the period of collections and of reclamation (Sareen and Blackburn 2022, §5).
//!
//! A collection stops the program, and what it costs by that is its pause. What it costs besides, through caches that
//! it fills with other things and through blocks that come back late or in another order, is in the time between
//! pauses: the mutator's. A collection that only identifies what is dead (`reclaim=16`: the sixteenth reclaims)
//! separates the two.

use std::collections::BTreeMap;

use heaptoll_experiment::comparison::Metric;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::observation::Observation;
use heaptoll_experiment::side::{Side, Sides};
use heaptoll_statistics::{ALPHA, Interval, median, over_programs};

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

fn log_ratios(side: &Side, over: &Side, measure: Measure, repetitions: u32) -> Vec<Option<f64>> {
    (0..repetitions).map(|r| Some((value(side, measure, r)? / value(over, measure, r)?).ln())).collect()
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

/// One comparison on one program, by measure.
struct Compared {
    collector: String,
    key: (Question, Period, Period),
    series: [Vec<Option<f64>>; 4],
}

/// Computes the study from an experiment's rows. Call [`heaptoll_experiment::compare::judge_outputs`] first.
pub fn study(experiment: &Experiment) -> Frequency {
    let mut collectors: Vec<String> = Vec::new();
    for (collector, _) in experiment.stacks.iter().filter_map(|stack| part(&stack.name)) {
        if !collectors.contains(&collector) {
            collectors.push(collector);
        }
    }
    let repetitions = experiment.repetitions();
    let mut programs = Vec::new();
    let mut counted: Vec<Compared> = Vec::new();
    for program in &experiment.programs {
        let sides = Sides::of(experiment, &program.name);
        let mut by_collector: BTreeMap<&str, Vec<(Period, &Side)>> = BTreeMap::new();
        let parts: Vec<Option<(String, Period)>> = sides.all.iter().map(|side| part(side.stack)).collect();
        for (side, (collector, period)) in
            sides.all.iter().zip(&parts).filter_map(|(side, part)| Some((side, part.as_ref()?)))
        {
            by_collector.entry(collector).or_default().push((*period, side));
        }
        let mut compared = Vec::new();
        for (collector, of) in &mut by_collector {
            of.sort_by_key(|(period, _)| *period);
            compared.extend(compare(collector, of, repetitions));
        }
        let ratios = intervals(&compared, experiment.settings.seed);
        for collector in collectors.iter().filter(|name| by_collector.contains_key(name.as_str())) {
            let of = &by_collector[collector.as_str()];
            let settings: Vec<Setting> = of
                .iter()
                .map(|(period, side)| Setting {
                    period: *period,
                    good: side.timed.len() as u32,
                    medians: medians(side),
                })
                .collect();
            let shortest = settings.first().and_then(|setting| setting.medians);
            let own = compared.iter().zip(&ratios).filter(|(one, _)| one.collector == *collector);
            programs.push(Study {
                program: program.name.clone(),
                collector: collector.clone(),
                often_enough: shortest.is_some_and(|medians| medians.collections >= FEWEST_COLLECTIONS),
                settings,
                ratios: own.map(|(_, ratio)| *ratio).collect(),
            });
        }
        let enough = |one: &Compared| {
            programs
                .iter()
                .any(|of| of.program == program.name && of.collector == one.collector && of.often_enough)
        };
        counted.extend(compared.into_iter().filter(enough));
    }
    let mut means = means(&counted, &collectors, repetitions, experiment.settings.seed);
    for mean in &mut means {
        mean.between_programs = between(&programs, mean);
    }
    Frequency { collectors, programs, means }
}

fn compare(collector: &str, of: &[(Period, &Side)], repetitions: u32) -> Vec<Compared> {
    let periods: Vec<Period> = of.iter().map(|(period, _)| *period).collect();
    let side = |period: Period| of.iter().find(|(other, _)| *other == period).map(|(_, side)| *side);
    comparisons(&periods)
        .into_iter()
        .filter_map(|key| {
            let (side, over) = (side(key.1)?, side(key.2)?);
            let series = MEASURES.map(|measure| log_ratios(side, over, measure, repetitions));
            Some(Compared { collector: collector.into(), key, series })
        })
        .collect()
}

fn intervals(compared: &[Compared], seed: u64) -> Vec<Ratio> {
    let series: Vec<Vec<Option<f64>>> = compared.iter().flat_map(|one| one.series.clone()).collect();
    let found = heaptoll_statistics::paired(&series, ALPHA, seed);
    let each = compared.iter().zip(found.chunks(MEASURES.len()));
    each.map(|(Compared { key: (question, period, over), .. }, of)| Ratio {
        question: *question,
        period: *period,
        over: *over,
        mutator_wall: of[0],
        mutator_cpu: of[1],
        wall: of[2],
        peak_rss: of[3],
    })
    .collect()
}

fn means(counted: &[Compared], collectors: &[String], repetitions: u32, seed: u64) -> Vec<Mean> {
    let mut all: Vec<(Compared, u32)> = Vec::new();
    for one in collectors.iter().flat_map(|name| counted.iter().filter(move |one| one.collector == *name)) {
        let same = |other: &Compared| other.collector == one.collector && other.key == one.key;
        if all.iter().any(|(other, _)| same(other)) {
            continue;
        }
        let programs: Vec<&Compared> = counted.iter().filter(|other| same(other)).collect();
        let mut count = u32::MAX;
        let series = [0, 1, 2, 3].map(|measure| {
            let of: Vec<Vec<Option<f64>>> = programs.iter().map(|one| one.series[measure].clone()).collect();
            let (programs, mean) = over_programs(&of, repetitions);
            // A collector that reports no CPU time has no mean of it, and that is no fault of the programs.
            if programs > 0 {
                count = count.min(programs);
            }
            mean
        });
        if programs.len() > 1 && count != u32::MAX {
            all.push((Compared { collector: one.collector.clone(), key: one.key, series }, count));
        }
    }
    let (compared, counts): (Vec<Compared>, Vec<u32>) = all.into_iter().unzip();
    let ratios = intervals(&compared, seed);
    let each = compared.into_iter().zip(counts).zip(ratios);
    each.map(|((one, programs), ratio)| Mean {
        collector: one.collector,
        programs,
        ratio,
        between_programs: None,
    })
    .collect()
}

/// The mean's ratio of the mutator's time, with programs as the sample.
fn between(programs: &[Study], mean: &Mean) -> Option<Interval> {
    let same = |ratio: &&Ratio| {
        (ratio.question, ratio.period, ratio.over)
            == (mean.ratio.question, mean.ratio.period, mean.ratio.over)
    };
    let counted = programs.iter().filter(|one| one.collector == mean.collector && one.often_enough);
    between_programs(counted.map(|one| one.ratios.iter().find(same)?.of_mutator()))
}

#[cfg(test)]
mod tests;
