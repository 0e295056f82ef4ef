//! The figures of a choice.

use heaptoll_experiment::comparison::{Comparison, Metric};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_statistics::{Interval, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::score::{Limits, Measured, Preference, measured};
use super::servers::{self, Served};
use super::soak::Soak;

/// What the JSON holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChooseFigures {
    /// The programs.
    pub programs: Vec<String>,
    /// The stack that ratios are to.
    pub baseline: String,
    /// What was wanted.
    pub preference: Preference,
    /// Peak resident memory that a run was to take at most, bytes.
    pub memory_limit_bytes: Option<u64>,
    /// The 99th percentile of requests that a server was to have at most, ms.
    pub p99_limit_ms: Option<f64>,
    /// The least saving, as a share of a figure, that recommends a finalist; it must be certain.
    pub floor: f64,
    /// The stack that is recommended: the baseline where no finalist is better for certain, and by the floor.
    pub choice: String,
    /// Fresh runs of the finalists and of the baseline.
    pub finalists: Vec<Finalist>,
    /// The search, the best first. Its figures are of few runs, and the lucky ones were kept: they are no prices.
    pub candidates: Vec<Candidate>,
    /// The first finalist over the second by what is wanted: above 1 it is worse. None of fewer than two.
    pub between_finalists: Option<Interval>,
    /// Timed runs of the search.
    pub search_runs: u64,
    /// Those that all candidates and the baseline would take in as many repetitions as the fresh runs.
    pub full_search_runs: u64,
    /// The servers of the fresh runs for hours; empty where that was not wanted.
    pub soak: Vec<Soak>,
    /// Repetitions of the fresh runs.
    pub fresh_repetitions: u32,
}

/// A stack in the fresh runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finalist {
    /// Its name.
    pub stack: String,
    /// CPU time over the baseline's: of one program its interval, of several that of their geometric mean; none for the
    /// baseline.
    pub cpu: Option<Interval>,
    /// Peak resident memory over the baseline's.
    pub memory: Option<Interval>,
    /// The largest median of a program's peak resident memory, bytes.
    pub peak_bytes: Option<f64>,
    /// The preference's score by these: below 0 is better than the baseline.
    pub score: Option<f64>,
    /// Of a server, the 99th percentile of its requests over the baseline's.
    pub p99: Option<Interval>,
    /// Of a server, its memory at the last time after its load over the baseline's.
    pub idle: Option<Interval>,
    /// The weighted mean of its ratios by what is wanted: above 1 it is worse than the baseline.
    pub weighted: Option<Interval>,
    /// What a server did.
    pub served: Served,
    /// What went wrong in its runs; empty when nothing did.
    pub trouble: String,
}

/// A stack in the search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// Its name.
    pub stack: String,
    /// The last round that it was in.
    pub round: u32,
    /// Good repetitions until then.
    pub repetitions: u32,
    /// CPU time over the baseline's in these repetitions.
    pub cpu_ratio: Option<f64>,
    /// Peak resident memory over the baseline's in them.
    pub memory_ratio: Option<f64>,
    /// The largest median of a program's peak resident memory, bytes.
    pub peak_bytes: Option<f64>,
    /// What a server did.
    pub served: Served,
    /// The preference's score by these.
    pub score: Option<f64>,
    /// The same by the lower ends of both ratios' intervals; of few repetitions, by the least of each, and of CPU time by
    /// runs alone where these are far less.
    pub best_score: Option<f64>,
    /// Why it is no candidate; none where it is one.
    pub why_out: Option<String>,
}

/// The stacks of the fresh runs.
pub(super) fn finalists(
    experiment: &Experiment,
    comparison: &Comparison,
    preference: Preference,
) -> Vec<Finalist> {
    let names: Vec<String> = experiment.stack_names().into_iter().map(str::to_owned).collect();
    let others: Vec<String> = names.iter().filter(|name| **name != experiment.baseline).cloned().collect();
    let intervals = servers::intervals(&others, experiment);
    let mut all: Vec<Finalist> =
        names.iter().map(|name| finalist(name, experiment, comparison, preference)).collect();
    for (name, intervals) in others.iter().zip(intervals) {
        if let Some(found) = all.iter_mut().find(|finalist| finalist.stack == *name) {
            (found.p99, found.idle) = (intervals.p99, intervals.idle);
        }
    }
    all
}

/// A stack's fresh runs.
fn finalist(
    stack: &str,
    experiment: &Experiment,
    comparison: &Comparison,
    preference: Preference,
) -> Finalist {
    let served = servers::served(stack, experiment);
    let mut found = Finalist { stack: stack.to_owned(), served, ..Finalist::default() };
    if stack == comparison.baseline {
        found.score = Some(0.0);
        let peaks = comparison.tables.iter().flat_map(|table| &table.rows).filter(|row| row.stack == stack);
        let medians =
            peaks.filter_map(|row| row.figures.get(&Metric::PeakRss)).map(|figure| figure.median * 1024.0);
        found.peak_bytes = medians.reduce(f64::max);
        return found;
    }
    match measured(stack, experiment, comparison) {
        Ok(Measured { cpu, memory, peak_bytes, .. }) => {
            found.score = Some(preference.score(cpu.mean, memory.mean, &found.served))
                .filter(|score| score.is_finite());
            found.peak_bytes = Some(peak_bytes);
        }
        Err(why) => found.trouble = why,
    }
    (found.cpu, found.memory) = match &comparison.tables[..] {
        [only] => {
            let row = only.rows.iter().find(|row| row.stack == stack);
            let ratio = |metric| row.and_then(|row| row.figures.get(&metric)).and_then(|figure| figure.ratio);
            (ratio(Metric::Cpu), ratio(Metric::PeakRss))
        }
        _ => match comparison.overall.iter().find(|row| row.stack == stack) {
            Some(row) => (row.cpu, row.peak_rss),
            None => (None, None),
        },
    };
    found
}

/// The stack to recommend: the best whose score is below the baseline's, and whose difference in the better
/// direction is certain and reaches the floor; otherwise the baseline. First come those whose preferred figure is
/// certainly better, then those whose weighted mean is, and whose preferred figure is not worse by the floor.
pub(super) fn best(
    finalists: &[Finalist],
    baseline: &str,
    preference: Preference,
    limits: Limits,
    floor: f64,
) -> String {
    let over =
        |finalist: &Finalist| limits.broken(finalist.peak_bytes.unwrap_or(0.0), &finalist.served).is_some();
    let baseline_is_over = finalists.iter().any(|finalist| finalist.stack == baseline && over(finalist));
    let is_better = |finalist: &&Finalist| {
        finalist.trouble.is_empty()
            && finalist.stack != baseline
            && !over(finalist)
            && (baseline_is_over
                || finalist.score.is_some_and(|score| score < 0.0)
                    && finalist.gains().any(|(_, gain)| gain.ratio <= 1.0 - floor))
    };
    let rank = |finalist: &Finalist| {
        let Some((_, figure)) = finalist.preferred(preference).filter(|_| !baseline_is_over) else {
            return Some(0);
        };
        let figure = figure.as_ref()?;
        let is_certain = finalist.weighted.is_some_and(|weighted| weighted.state() == State::Less);
        match figure.state() {
            State::Less => Some(0),
            _ => (is_certain && figure.high <= 1.0 + floor).then_some(1),
        }
    };
    let better = finalists.iter().filter(is_better).filter_map(|one| Some((rank(one)?, one)));
    let best = better.min_by(|(a_rank, a), (b_rank, b)| {
        let score = |finalist: &Finalist| finalist.score.unwrap_or(f64::INFINITY);
        a_rank.cmp(b_rank).then_with(|| score(a).total_cmp(&score(b)))
    });
    best.map_or_else(|| baseline.to_owned(), |(_, finalist)| finalist.stack.clone())
}

impl Finalist {
    /// Its figures with their names in sentences.
    pub(super) fn named(&self) -> [(&'static str, &Option<Interval>); 4] {
        [
            ("CPU time", &self.cpu),
            ("memory", &self.memory),
            ("p99 latency", &self.p99),
            ("memory when idle", &self.idle),
        ]
    }

    /// The one that is wanted most; none where two are wanted alike.
    pub(super) fn preferred(&self, preference: Preference) -> Option<(&'static str, &Option<Interval>)> {
        let [cpu, memory, p99, idle] = self.named();
        match preference {
            Preference::Time => Some(cpu),
            Preference::Memory => Some(memory),
            Preference::P99 => Some(p99),
            Preference::Idle => Some(idle),
            Preference::Balance => None,
        }
    }

    /// Those that are better than the baseline's for certain.
    pub(super) fn gains(&self) -> impl Iterator<Item = (&'static str, &Interval)> {
        let figures =
            self.named().into_iter().filter_map(|(noun, interval)| Some((noun, interval.as_ref()?)));
        figures.filter(|(_, interval)| interval.differs && interval.high < 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(low: f64, high: f64) -> Option<Interval> {
        let differs = low > 1.0 || high < 1.0;
        Some(Interval { ratio: (low * high).sqrt(), low, high, differs, pairs: 20 })
    }

    fn one(stack: &str, cpu: (f64, f64), memory: (f64, f64), preference: Preference) -> Finalist {
        let (cpu, memory) = (interval(cpu.0, cpu.1), interval(memory.0, memory.1));
        let ratio = |interval: &Option<Interval>| interval.as_ref().map_or(1.0, |interval| interval.ratio);
        let score = Some(preference.score(ratio(&cpu), ratio(&memory), &Served::default()));
        Finalist { stack: stack.into(), cpu, memory, score, peak_bytes: Some(1000.0), ..Finalist::default() }
    }

    #[test]
    fn only_what_is_better_for_certain_replaces_the_default() {
        let preference = Preference::Memory;
        let default = Finalist { stack: "glibc".into(), peak_bytes: Some(2000.0), ..Finalist::default() };
        let lean = one("lean", (1.02, 1.06), (0.6, 0.7), preference);
        let unsure = one("unsure", (0.9, 1.05), (0.7, 1.1), preference);
        let broken = Finalist {
            trouble: "3x killed by signal 11".into(),
            ..one("broken", (0.1, 0.2), (0.1, 0.2), preference)
        };
        let best = |finalists: &[&Finalist], memory_bytes| {
            let finalists: Vec<Finalist> = finalists.iter().map(|one| (*one).clone()).collect();
            super::best(&finalists, "glibc", preference, Limits { memory_bytes, ..Limits::default() }, 0.02)
        };
        let tiny = one("tiny", (0.99, 1.01), (0.994, 0.999), preference);
        assert_eq!(best(&[&default, &tiny], None), "glibc", "0.3 % are not worth a setting");
        assert_eq!(best(&[&default, &tiny], Some(1500)), "tiny");
        assert_eq!(best(&[&default, &lean, &unsure, &broken], None), "lean");
        assert_eq!(best(&[&default, &unsure, &broken], None), "glibc");
        // The default itself takes too much: then any that fits will do.
        assert_eq!(best(&[&default, &unsure], Some(1500)), "unsure");
        assert_eq!(best(&[&default, &lean], Some(500)), "glibc");
    }

    /// Before, `--prefer memory` chose a stack with less CPU time and undecided memory over one with certainly less memory.
    #[test]
    fn a_preferred_figure_that_is_certainly_better_comes_first() {
        let preferences = [Preference::Memory, Preference::Time, Preference::P99, Preference::Idle];
        for preference in preferences {
            let made = |stack: &str, wanted, other, weighted: (f64, f64), score| {
                let (wanted, other) = (Some(wanted), Some(other));
                let mut made = Finalist { stack: stack.into(), score: Some(score), ..Finalist::default() };
                made.weighted = interval(weighted.0, weighted.1);
                let [cpu, memory] = match preference {
                    Preference::Time => [wanted, other],
                    Preference::Memory => [other, wanted],
                    _ => [other, None],
                };
                let of = |ends: Option<(f64, f64)>| ends.and_then(|(low, high)| interval(low, high));
                (made.cpu, made.memory) = (of(cpu), of(memory));
                match preference {
                    Preference::P99 => made.p99 = of(wanted),
                    Preference::Idle => made.idle = of(wanted),
                    _ => {}
                }
                made
            };
            let default = Finalist { stack: "glibc".into(), ..Finalist::default() };
            let lean = made("lean", (0.96, 0.98), (0.99, 1.01), (0.96, 0.99), -0.02);
            let wide = made("wide", (0.93, 1.10), (0.6, 0.65), (0.88, 1.05), -0.04);
            let equal = made("equal", (0.99, 1.01), (0.6, 0.65), (0.94, 0.97), -0.05);
            let worse = made("worse", (1.03, 1.04), (0.3, 0.31), (0.9, 0.95), -0.08);
            let best = |finalists: &[&Finalist], preference| {
                let finalists: Vec<Finalist> = finalists.iter().map(|one| (*one).clone()).collect();
                super::best(&finalists, "glibc", preference, Limits::default(), 0.02)
            };
            assert_eq!(best(&[&default, &wide, &equal, &worse, &lean], preference), "lean");
            assert_eq!(best(&[&default, &wide, &equal, &worse], preference), "equal");
            assert_eq!(best(&[&default, &wide, &worse], preference), "glibc");
            assert_eq!(best(&[&default, &wide, &worse], Preference::Balance), "worse");
        }
    }
}
