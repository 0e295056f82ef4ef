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
use heaptoll_experiment::stack::{LayerKind, layers};
use heaptoll_statistics::{ALPHA, Interval, median};
use heaptoll_units::size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::means::over_programs;

/// With fewer collections than this at the shortest period, a program shows little of their frequency.
pub const FEWEST_COLLECTIONS: f64 = 10.0;

/// One thread marks and a collection is over with its pause, so that the mutator's time is what is left.
pub const FIXED: [(&str, &str); 2] = [("markers", "1"), ("sweep", "eager")];

/// How often is collected, and how often what is found dead is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Period {
    /// Bytes allocated between collections.
    pub every_bytes: u64,
    /// One collection in as many reclaims.
    pub reclaim: u64,
}

/// The three experiments of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// How often is collected; each collection reclaims.
    Collections,
    /// The same, while only some reclaim.
    Identifications,
    /// How often is reclaimed, at the shortest period.
    Reclamations,
}

/// The figures of one stack on one program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// Its period.
    pub period: Period,
    /// Good runs.
    pub good: u32,
    /// Medians; `None` without a good run whose collections were reported.
    pub medians: Option<Medians>,
}

/// Medians of one stack.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Medians {
    /// Collections of a run.
    pub collections: f64,
    /// Elapsed, s, less start-up.
    pub wall_s: f64,
    /// Pauses, s.
    pub pauses_s: f64,
    /// Elapsed less pauses, s.
    pub mutator_wall_s: Option<f64>,
    /// CPU less the collector's, s, where it reports that.
    pub mutator_cpu_s: Option<f64>,
    /// Peak resident memory, KiB.
    pub peak_rss_kib: f64,
}

/// A ratio of the mutator's time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// Which of the experiments.
    pub question: Question,
    /// The period.
    pub period: Period,
    /// The period it is compared with.
    pub over: Period,
    /// Elapsed time less pauses.
    pub mutator_wall: Option<Interval>,
    /// CPU less the collector's.
    pub mutator_cpu: Option<Interval>,
    /// Elapsed time with pauses.
    pub wall: Option<Interval>,
    /// Peak resident memory.
    pub peak_rss: Option<Interval>,
}

impl Ratio {
    /// The ratio by which a result is claimed: of CPU where the collector reports its own, else of elapsed time.
    pub fn of_mutator(&self) -> Option<Interval> {
        self.mutator_cpu.or(self.mutator_wall)
    }
}

/// One program under one collector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Study {
    /// Program.
    pub program: String,
    /// The collector: a stack less what is varied.
    pub collector: String,
    /// By period.
    pub settings: Vec<Setting>,
    /// By question, then period. All of one program hold together.
    pub ratios: Vec<Ratio>,
    /// Whether it collects often enough for a result; only then is it in the means.
    pub often_enough: bool,
}

impl Study {
    /// Whether it collects often enough, but not in enough pairs of runs to claim anything.
    pub fn has_too_few_runs(&self) -> bool {
        let few = |ratio: &Ratio| {
            ratio
                .mutator_wall
                .is_none_or(|interval| (interval.pairs as usize) < heaptoll_statistics::FEWEST_PAIRS)
        };
        self.often_enough && self.ratios.iter().any(few)
    }
}

/// Geometric means over programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mean {
    /// The collector.
    pub collector: String,
    /// Programs in it.
    pub programs: u32,
    /// The ratio.
    #[serde(flatten)]
    pub ratio: Ratio,
}

/// The whole study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Frequency {
    /// In the order requested.
    pub collectors: Vec<String>,
    /// By program, then collector.
    pub programs: Vec<Study>,
    /// Where at least two programs collect often enough. All hold together.
    pub means: Vec<Mean>,
}

/// A stack's part in this study: its collector and period. `None` for one whose settings do not fix how often it
/// collects.
///
/// `sweep,every=8M,reclaim=4,free=honour/mimalloc3` is `sweep,free=honour/mimalloc3` every 8 MiB; each fourth reclaims.
pub fn part(stack: &str) -> Option<(String, Period)> {
    let (in_front, manager) = layers(stack).ok()?;
    let words: Vec<&str> = match in_front.as_slice() {
        [] => manager.split(',').collect(),
        [only] if only.kind == LayerKind::Sweep => only.word.split(',').collect(),
        _ => return None,
    };
    let setting = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let every_bytes = size(setting("every")?)?;
    let reclaim = setting("reclaim").map_or(Some(1), |text| text.parse().ok())?;
    // What is varied, and what the study always sets.
    let varied = |word: &str| word.starts_with("every=") || word.starts_with("reclaim=");
    let set = |word: &str| FIXED.iter().any(|(name, value)| word.split_once('=') == Some((name, value)));
    let kept: Vec<&str> = words.iter().filter(|word| !varied(word) && !set(word)).copied().collect();
    let collector = match in_front.is_empty() {
        true => kept.join(","),
        false => format!("{}/{manager}", kept.join(",")),
    };
    Some((collector, Period { every_bytes, reclaim }))
}

/// The comparisons that these periods allow: which question, which period, over which.
pub fn comparisons(periods: &[Period]) -> Vec<(Question, Period, Period)> {
    let mut periods = periods.to_vec();
    periods.sort_unstable();
    periods.dedup();
    let Some(&Period { every_bytes: shortest, .. }) = periods.first() else { return vec![] };
    let most = periods.iter().map(|period| period.reclaim).max().unwrap_or(1);
    let rows = |reclaim: u64, question: Question| {
        let over = Period { every_bytes: shortest, reclaim };
        let longer = periods.iter().filter(move |period| period.reclaim == reclaim && **period != over);
        let there = periods.contains(&over);
        longer.filter(move |_| there).map(move |period| (question, *period, over))
    };
    let mut all: Vec<_> = rows(1, Question::Collections).collect();
    if most > 1 {
        all.extend(rows(most, Question::Identifications));
    }
    let over = Period { every_bytes: shortest, reclaim: 1 };
    if periods.contains(&over) {
        let rarer = periods.iter().filter(|period| period.every_bytes == shortest && **period != over);
        all.extend(rarer.map(|period| (Question::Reclamations, *period, over)));
    }
    all
}

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
    let means = means(&counted, &collectors, repetitions, experiment.settings.seed);
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
    each.map(|((one, programs), ratio)| Mean { collector: one.collector, programs, ratio }).collect()
}

#[cfg(test)]
#[path = "frequency_tests.rs"]
mod tests;
