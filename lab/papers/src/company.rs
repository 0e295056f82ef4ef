//! Comparisons of CPU seconds of runs at once with others, and what company does to them.
//!
//! Runs in lockstep are compared far more precisely than runs alone, but a manager may cost more in company than alone
//! (colder caches, more page faults), and no repetition takes that away. Runs alone were made with them, in the same
//! repetitions, and show it as far as they can:
//!
//! - Where the ratio at once and the ratio alone differ for certain, company is seen to move the comparison, and its
//!   interval reaches over both. What both agree on is decided; no error is added, for an interval only grows.
//! - Else its interval is that of the runs at once, wider by [`UNSEEN`] either way: nothing is decided by less than what
//!   company could do and runs alone would not show.
//!
//! A stack that company contradicts has its runs alone in both already (`heaptoll_experiment::seconds`).

use heaptoll_statistics::Interval;
use heaptoll_statistics::{ALPHA, FEWEST_PAIRS, over_programs, paired};

use super::pairs::CellRef;
use heaptoll_facts::{Basis, Known, Value};

/// By how much company is assumed to move any ratio, as a share, even where it is not seen to.
const UNSEEN: f64 = 0.01;
/// Intervals come from random flips beyond 13 repetitions; the same figures shall give the same verdict.
const SEED: u64 = 1;
/// Log ratios that differ by less are of the same runs.
const SAME: f64 = 1e-12;

type Logs = Vec<Option<f64>>;

/// Log ratios of one comparison by repetition.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    /// As precise as they were measured.
    logs: Logs,
    /// Of runs alone; none where no run at once is in it.
    alone: Option<Logs>,
}

/// Log ratios; where a run failed or took less than its start-up, none.
fn logs(of: &Value, over: &Value) -> Option<Logs> {
    let (Value::Samples(of), Value::Samples(over)) = (of, over) else { return None };
    let log = |value: &Option<f64>| value.filter(|value| value.is_finite() && *value > 0.0).map(f64::ln);
    Some(of.iter().zip(over).map(|(of, over)| Some(log(of)? - log(over)?)).collect())
}

impl Series {
    /// One cell over another; none where they are no samples.
    pub fn of(of: &CellRef<'_>, over: &CellRef<'_>) -> Option<Series> {
        let series = logs(of.value, over.value)?;
        let alone = match (of.alone, over.alone) {
            (None, None) => None,
            _ => logs(of.alone.unwrap_or(of.value), over.alone.unwrap_or(over.value)),
        };
        let differ = |alone: &Logs| {
            let both = series.iter().zip(alone).filter_map(|(one, alone)| Some((*one)? - (*alone)?));
            both.into_iter().any(|difference| difference.abs() > SAME)
        };
        Some(Series { alone: alone.filter(differ), logs: series })
    }

    /// The mean of one or several programs by repetition; none where one has too few.
    pub fn mean(programs: &[&Series]) -> Option<Series> {
        let of = |logs: &dyn Fn(&Series) -> Logs| {
            let all: Vec<Logs> = programs.iter().map(|one| logs(one)).collect();
            let repetitions = all.iter().map(Vec::len).max()?;
            let (counted, mean) = over_programs(&all, repetitions as u32);
            (counted as usize == programs.len()).then_some(mean)
        };
        let logs = of(&|one| one.logs.clone())?;
        let at_once = programs.iter().any(|one| one.is_at_once());
        let alone =
            if at_once { of(&|one| one.alone.clone().unwrap_or_else(|| one.logs.clone())) } else { None };
        Some(Series { logs, alone })
    }

    /// Whether a run at once with others is in it.
    pub fn is_at_once(&self) -> bool {
        self.alone.is_some()
    }

    /// The log ratio of the first repetition that has one.
    pub fn first(&self) -> Option<f64> {
        self.logs.iter().flatten().next().copied()
    }

    /// By how much company moves it in each repetition.
    fn moved(&self) -> Option<Logs> {
        let alone = self.alone.as_ref()?;
        Some(self.logs.iter().zip(alone).map(|(log, alone)| Some((*log)? - (*alone)?)).collect())
    }
}

/// The interval of a series: a ratio with its ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SeriesInterval {
    pub ratio: f64,
    low: f64,
    high: f64,
    pub pairs: u32,
    /// Company is seen to move it, and the interval reaches over the ratio alone as well.
    pub moved: bool,
}

impl SeriesInterval {
    pub fn known(&self) -> Known {
        Known { value: self.ratio, low: self.low, high: self.high, basis: Basis::Pairs(self.pairs) }
    }
}

/// The interval with what company may do unseen on either side.
pub(super) fn allowed_for(known: Known) -> Known {
    Known { low: known.low / (1.0 + UNSEEN), high: known.high * (1.0 + UNSEEN), ..known }
}

/// The intervals of several comparisons, which hold together.
pub(super) fn intervals(family: &[&Series]) -> Vec<Option<SeriesInterval>> {
    let of = |logs: Vec<Logs>| paired(&logs, ALPHA, SEED);
    let series = of(family.iter().map(|one| one.logs.clone()).collect());
    let at_once: Vec<&&Series> = family.iter().filter(|one| one.is_at_once()).collect();
    let mut alone = of(at_once.iter().filter_map(|one| one.alone.clone()).collect()).into_iter();
    let mut moved = of(at_once.iter().filter_map(|one| one.moved()).collect()).into_iter();
    family
        .iter()
        .zip(series)
        .map(|(one, interval)| {
            let both_ways = one.is_at_once().then(|| (alone.next().flatten(), moved.next().flatten()));
            let found = interval?;
            let Interval { ratio, low, high, pairs, .. } = found;
            let plain = SeriesInterval { ratio, low, high, pairs, moved: false };
            let enough = |interval: &Interval| interval.pairs as usize >= FEWEST_PAIRS;
            let Some((alone, moved)) = both_ways.filter(|_| enough(&found)) else { return Some(plain) };
            // Without runs alone nothing shows what company does.
            let (Some(alone), Some(moved)) = (alone.filter(enough), moved.filter(enough)) else {
                return Some(SeriesInterval { pairs: pairs.min(FEWEST_PAIRS as u32 - 1), ..plain });
            };
            let Known { low, high, .. } = allowed_for(plain.known());
            Some(match moved.differs {
                true => SeriesInterval {
                    low: low.min(alone.low),
                    high: high.max(alone.high),
                    moved: true,
                    ..plain
                },
                false => SeriesInterval { low, high, ..plain },
            })
        })
        .collect()
}

#[cfg(test)]
#[path = "company_tests.rs"]
mod tests;
