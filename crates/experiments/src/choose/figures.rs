//! The figures of a choice.

use heaptoll_experiment::comparison::{Comparison, Metric};
use heaptoll_statistics::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::score::{Measured, Preference, measured};

/// What the JSON holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figures {
    /// The programs.
    pub programs: Vec<String>,
    /// The stack that ratios are to.
    pub baseline: String,
    /// What was wanted.
    pub preference: Preference,
    /// Peak resident memory that a run was to take at most, bytes.
    pub memory_limit_bytes: Option<u64>,
    /// The stack that is recommended: the baseline where no finalist is better for certain.
    pub choice: String,
    /// Fresh runs of the finalists and of the baseline.
    pub finalists: Vec<Finalist>,
    /// The search, the best first. Its figures are of few runs, of which the lucky ones were kept: they are no prices.
    pub candidates: Vec<Candidate>,
    /// Timed runs of the search.
    pub search_runs: u64,
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
    /// CPU time over the baseline's in that round.
    pub cpu_ratio: Option<f64>,
    /// Peak resident memory over the baseline's in that round.
    pub memory_ratio: Option<f64>,
    /// The largest median of a program's peak resident memory, bytes.
    pub peak_bytes: Option<f64>,
    /// The preference's score in that round.
    pub score: Option<f64>,
    /// Why it is no candidate; none where it is one.
    pub why_out: Option<String>,
}

/// A stack's fresh runs.
pub(super) fn finalist(stack: &str, comparison: &Comparison, preference: Preference) -> Finalist {
    let mut found = Finalist { stack: stack.to_owned(), ..Finalist::default() };
    if stack == comparison.baseline {
        found.score = Some(0.0);
        let peaks = comparison.tables.iter().flat_map(|table| &table.rows).filter(|row| row.stack == stack);
        let medians =
            peaks.filter_map(|row| row.figures.get(&Metric::PeakRss)).map(|figure| figure.median * 1024.0);
        found.peak_bytes = medians.reduce(f64::max);
        return found;
    }
    match measured(stack, comparison) {
        Ok(Measured { cpu, memory, peak_bytes }) => {
            (found.score, found.peak_bytes) = (Some(preference.score(cpu, memory)), Some(peak_bytes));
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

/// The stack to recommend: the best whose score is below the baseline's, and of which a difference in the better
/// direction is certain; otherwise the baseline.
pub(super) fn best(finalists: &[Finalist], baseline: &str, limit_bytes: Option<u64>) -> String {
    let over = |finalist: &Finalist| {
        limit_bytes.is_some_and(|limit| finalist.peak_bytes.is_some_and(|peak| peak > limit as f64))
    };
    let baseline_is_over = finalists.iter().any(|finalist| finalist.stack == baseline && over(finalist));
    let better = |interval: &Option<Interval>| {
        interval.as_ref().is_some_and(|interval| interval.differs && interval.high < 1.0)
    };
    let is_better = |finalist: &&Finalist| {
        finalist.trouble.is_empty()
            && finalist.stack != baseline
            && !over(finalist)
            && (baseline_is_over
                || finalist.score.is_some_and(|score| score < 0.0)
                    && (better(&finalist.cpu) || better(&finalist.memory)))
    };
    let best = finalists.iter().filter(is_better).min_by(|a, b| {
        let score = |finalist: &Finalist| finalist.score.unwrap_or(f64::INFINITY);
        score(a).total_cmp(&score(b))
    });
    best.map_or_else(|| baseline.to_owned(), |finalist| finalist.stack.clone())
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
        let score = Some(preference.score(ratio(&cpu), ratio(&memory)));
        Finalist { stack: stack.into(), cpu, memory, score, peak_bytes: Some(1000.0), trouble: String::new() }
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
        let best = |finalists: &[&Finalist], limit| {
            super::best(&finalists.iter().map(|one| (*one).clone()).collect::<Vec<_>>(), "glibc", limit)
        };
        assert_eq!(best(&[&default, &lean, &unsure, &broken], None), "lean");
        assert_eq!(best(&[&default, &unsure, &broken], None), "glibc");
        // The default itself takes too much: then any that fits will do.
        assert_eq!(best(&[&default, &unsure], Some(1500)), "unsure");
        assert_eq!(best(&[&default, &lean], Some(500)), "glibc");
    }
}
