//! The company effect: ratios of runs at once on one processor against those of runs alone.
//!
//! A program that shares a processor finds its caches colder after each switch, and one that acts by the clock does
//! more between two of its instructions; both cost one manager more than another. Each repetition in lockstep comes
//! with runs alone, and their ratios, which are noisier, show by how much company moves a table, or bound that effect.
//! A stack whose two ratios contradict each other is judged by its runs alone.

use crate::comparison::{CompanyEffect, Metric};
use crate::experiment::Experiment;
use crate::side::{Side, Sides};
use heaptoll_statistics::Interval;
use heaptoll_statistics::{FEWEST_PAIRS, median};

/// A manager with this many times the page faults of its runs alone, and [`FAULTS_MORE`] more, does other work in
/// company.
const FAULTS_TIMES: f64 = 1.25;
const FAULTS_MORE: f64 = 200.0;

/// A bound of the company effect above this share bounds nothing that a reader would care for.
const UNBOUNDED: f64 = 0.1;

/// The company effect on one program's table.
#[derive(Debug, Default)]
pub struct Company {
    /// The stack that it moves most.
    pub effect: Option<CompanyEffect>,
    /// What it changes, in sentences.
    pub doubts: Vec<String>,
    /// That it changes nothing measurable, in a sentence.
    pub aside: Option<String>,
}

/// Compares both ways, and takes stacks that they contradict each other on out of the lockstep of `sides`: their CPU
/// ratios are then those of runs alone.
pub fn settle(experiment: &Experiment, sides: &mut Sides, repetitions: u32) -> Company {
    let Some(base) = sides.find(&experiment.baseline).filter(|base| base.is_together()) else {
        return Company::default();
    };
    let others: Vec<&Side> = sides
        .all
        .iter()
        .filter(|side| side.runs_in_lockstep_with(base) && side.stack != base.stack)
        .collect();
    let both = Both::of(experiment, base, &others, repetitions);
    let effect = effect(&both.moved, &others);
    let mut doubts: Vec<String> = Vec::new();
    let mut contradicted: Vec<String> = Vec::new();
    for (side, (together, alone)) in others.iter().zip(both.together.iter().zip(&both.alone)) {
        let (Some(together), Some(alone)) = (together, alone) else { continue };
        let enough = |interval: &Interval| interval.pairs as usize >= FEWEST_PAIRS;
        if enough(together) && enough(alone) && (together.high < alone.low || alone.high < together.low) {
            doubts.push(contradiction(side.stack, together, alone));
            contradicted.push(side.stack.to_owned());
        }
    }
    // A contradiction has the effect on its stack in it.
    let stated = effect.as_ref().filter(|effect| !contradicted.contains(&effect.stack)).map(sentence);
    let (text, aside) = if effect.as_ref().is_some_and(|effect| effect.ratio.differs) {
        (stated, None)
    } else {
        (None, stated)
    };
    doubts.extend(text);
    doubts.extend(others.iter().filter_map(|side| other_faults(side)));
    sides.leave_lockstep(&contradicted);
    Company { effect, doubts, aside }
}

/// Intervals by stack: of ratios at once, of ratios alone, and of the first over the second.
struct Both {
    together: Vec<Option<Interval>>,
    alone: Vec<Option<Interval>>,
    moved: Vec<Option<Interval>>,
}

impl Both {
    fn of(experiment: &Experiment, base: &Side, others: &[&Side], repetitions: u32) -> Both {
        let together: Vec<Vec<Option<f64>>> =
            others.iter().map(|side| side.log_ratios(base, Metric::Cpu, repetitions)).collect();
        let alone: Vec<Vec<Option<f64>>> =
            others.iter().map(|side| side.log_ratios_by_itself(base, repetitions)).collect();
        let moved: Vec<Vec<Option<f64>>> = together
            .iter()
            .zip(&alone)
            .map(|(together, alone)| together.iter().zip(alone).map(|(t, a)| Some((*t)? - (*a)?)).collect())
            .collect();
        let paired = |series: &[_]| experiment.paired(series);
        Both { together: paired(&together), alone: paired(&alone), moved: paired(&moved) }
    }
}

/// The stack that company moves most, of those that it is seen to move, else of all; `None` with too few pairs.
fn effect(moved: &[Option<Interval>], others: &[&Side]) -> Option<CompanyEffect> {
    let known = || {
        let all = others.iter().zip(moved).filter_map(|(side, moved)| Some((side.stack, (*moved)?)));
        all.filter(|(_, moved)| moved.pairs as usize >= FEWEST_PAIRS)
    };
    let (stack, ratio) = known().max_by(|(_, one), (_, other)| {
        let by = |moved: &Interval| (moved.differs, moved.ratio.ln().abs());
        by(one).partial_cmp(&by(other)).unwrap_or(std::cmp::Ordering::Equal)
    })?;
    let within = known().map(|(_, moved)| (moved.high - 1.0).max(1.0 - moved.low)).fold(0.0, f64::max);
    Some(CompanyEffect { stack: stack.to_owned(), ratio, within })
}

fn sentence(effect: &CompanyEffect) -> String {
    let percent = |ratio: f64| format!("{:+.1} %", 100.0 * (ratio - 1.0));
    let CompanyEffect { stack, ratio, within } = effect;
    if ratio.differs {
        format!(
            "Sharing a core changed the CPU ratios, most of all {stack}'s: {} ({} to {}) compared with \
             separate runs",
            percent(ratio.ratio),
            percent(ratio.low),
            percent(ratio.high)
        )
    } else if *within > UNBOUNDED {
        format!(
            "Cannot tell whether sharing a core changed the CPU ratios: separate runs are too noisy to \
             exclude {:.0} %. Add repetitions (-n)",
            100.0 * within
        )
    } else {
        format!(
            "Sharing a core did not measurably change the CPU ratios (any shift is below {:.1} %)",
            100.0 * within
        )
    }
}

/// That a stack takes more page faults in company than alone, which are nearly free of noise.
fn other_faults(side: &Side) -> Option<String> {
    let (together, alone) = side.faults_both_ways()?;
    let (together, alone) = (median(&together), median(&alone));
    (together > FAULTS_TIMES * alone && together - alone > FAULTS_MORE).then(|| {
        format!(
            "{} takes {together:.0} page faults in lockstep and {alone:.0} in separate runs. It probably \
             acts on a timer, so its CPU ratio includes extra work (check with `--pairing interleaved`)",
            side.stack
        )
    })
}

fn contradiction(stack: &str, together: &Interval, alone: &Interval) -> String {
    format!(
        "{stack}'s CPU ratio is of separate runs ({:.2}): sharing a core would give {:.2}",
        alone.ratio, together.ratio
    )
}
