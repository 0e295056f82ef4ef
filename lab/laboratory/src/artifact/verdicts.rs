//! The verdicts of an artifact against those of the experiment measured again. Its figures may be others on another
//! machine; what is compared is what was claimed: which manager takes more, which less.

use std::path::Path;

use heaptoll_experiment::compare::{compare, judge_outputs};
use heaptoll_experiment::comparison::{Comparison, Metric, Row};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::store::Store;
use heaptoll_statistics::Interval;

use super::description::{Description, ROWS};
use super::error::ArtifactError;
use heaptoll_compare::same_work;

/// How a verdict fared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// Both claim the same: less, more.
    Confirmed,
    /// One claims more, the other less.
    Contradicted,
    /// One of the two claims a difference, the other saw none.
    OnlyThen,
    /// As before, with the difference in the new one.
    OnlyNow,
    /// Neither saw a difference.
    NoDifference,
    /// One of them has too few repetitions to claim anything.
    TooFew,
    /// One of them has no ratio.
    Missing,
}

/// A verdict of one manager on one program.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The program.
    pub program: String,
    /// The manager.
    pub stack: String,
    /// CPU or peak memory.
    pub metric: Metric,
    /// The artifact's ratio to its baseline.
    pub then: Option<Interval>,
    /// The new one.
    pub now: Option<Interval>,
    /// How it fared.
    pub agreement: Agreement,
}

/// What is compared.
const METRICS: [Metric; 2] = [Metric::Cpu, Metric::PeakRss];

/// Compares the verdicts of an artifact with those of an experiment; also why programs were left out.
///
/// # Errors
/// The artifact is none or damaged, the experiment's file cannot be read, or the two have nothing in common.
pub fn verdicts(folder: &Path, experiment: &Path) -> Result<(Vec<Verdict>, Vec<String>), ArtifactError> {
    Description::read(folder)?;
    let (then, now) = (read(&folder.join(ROWS))?, read(experiment)?);
    let (found, left_out) = of_experiments(&then, &now);
    let path = experiment.to_path_buf();
    if found.iter().all(|verdict| verdict.now.is_none()) {
        return Err(ArtifactError::NothingInCommon { path });
    }
    Ok((found, left_out))
}

/// An experiment of one class of machines, with its outputs judged.
fn read(path: &Path) -> Result<Experiment, ArtifactError> {
    let mut classes = Store::read(path)?.into_classes();
    if classes.len() > 1 {
        return Err(ArtifactError::SeveralClasses { path: path.into() });
    }
    let (_, mut experiment) = classes.remove(0);
    judge_outputs(&mut experiment);
    Ok(experiment)
}

fn of_experiments(then: &Experiment, now: &Experiment) -> (Vec<Verdict>, Vec<String>) {
    let mut left_out = Vec::new();
    let (before, after) = (compare(then), compare(now));
    let mut found = Vec::new();
    for table in &before.tables {
        let work = same_work::differences(then, now, &table.program).work;
        if !work.is_empty() {
            left_out.push(format!("{}: {}", table.program, work.join("; ")));
            continue;
        }
        for row in table.rows.iter().filter(|row| row.stack != before.baseline) {
            let other = row_of(&after, &table.program, &row.stack);
            found.extend(METRICS.into_iter().filter_map(|metric| {
                let (then, now) = (ratio(row, metric)?, other.and_then(|other| ratio(other, metric)));
                let (program, stack) = (table.program.clone(), row.stack.clone());
                let agreement = agreement(Some(then), now);
                Some(Verdict { program, stack, metric, then: Some(then), now, agreement })
            }));
        }
    }
    (found, left_out)
}

fn row_of<'a>(comparison: &'a Comparison, program: &str, stack: &str) -> Option<&'a Row> {
    let table = comparison.tables.iter().find(|table| table.program == program)?;
    table.rows.iter().find(|row| row.stack == stack)
}

fn ratio(row: &Row, metric: Metric) -> Option<Interval> {
    row.figures.get(&metric)?.ratio
}

fn agreement(then: Option<Interval>, now: Option<Interval>) -> Agreement {
    let (Some(then), Some(now)) = (then, now) else { return Agreement::Missing };
    if !(then.has_enough_pairs() && now.has_enough_pairs()) {
        return Agreement::TooFew;
    }
    match (then.differs, now.differs) {
        (true, true) if (then.ratio < 1.0) == (now.ratio < 1.0) => Agreement::Confirmed,
        (true, true) => Agreement::Contradicted,
        (true, false) => Agreement::OnlyThen,
        (false, true) => Agreement::OnlyNow,
        (false, false) => Agreement::NoDifference,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptoll_experiment::testing::programs::{experiment, row};

    /// Ten repetitions; `other` takes this many times the baseline's CPU.
    fn measured(ratio: f64) -> Experiment {
        let mut made = experiment(&["prog"], &["glibc".into(), "other".into()], 10);
        for repetition in 0..10 {
            let noise = 1.0 + f64::from(repetition % 3) / 100.0;
            made.observations.push(row("prog", "glibc", repetition, 1.0, 1000));
            made.observations.push(row("prog", "other", repetition, ratio * noise, 1000));
        }
        made
    }

    fn cpu(then: f64, now: f64) -> Agreement {
        let (found, left_out) = of_experiments(&measured(then), &measured(now));
        assert!(left_out.is_empty() && found.len() == 2, "{found:?}");
        assert_eq!(found[1].agreement, Agreement::NoDifference, "memory is equal");
        found[0].agreement
    }

    #[test]
    fn verdicts_are_confirmed_contradicted_or_not_seen() {
        assert_eq!(cpu(0.8, 0.9), Agreement::Confirmed);
        assert_eq!(cpu(0.8, 1.2), Agreement::Contradicted);
        assert_eq!(cpu(0.8, 0.99), Agreement::OnlyThen);
        assert_eq!(cpu(0.99, 1.3), Agreement::OnlyNow);
    }

    #[test]
    fn an_experiment_of_too_few_repetitions_neither_has_nor_lacks_a_verdict() {
        let cut = |mut made: Experiment| {
            made.observations.retain(|row| row.repetition < 3);
            made
        };
        for (then, now) in [(cut(measured(0.8)), measured(0.8)), (measured(0.8), cut(measured(0.8)))] {
            let (found, _) = of_experiments(&then, &now);
            assert!(found.iter().all(|one| one.agreement == Agreement::TooFew), "{found:?}");
        }
    }

    #[test]
    fn what_was_not_measured_again_is_missing_and_other_work_is_left_out() {
        let (then, mut now) = (measured(0.8), measured(0.8));
        now.observations.retain(|row| row.stack == "glibc");
        assert!(of_experiments(&then, &now).0.iter().all(|one| one.agreement == Agreement::Missing));
        now.programs[0].command = vec!["another".into()];
        let (found, left_out) = of_experiments(&then, &now);
        assert!(found.is_empty() && left_out.len() == 1, "{left_out:?}");
    }
}
