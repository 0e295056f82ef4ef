//! One run of several parts, each of which ran steps of its own (`--only`), at other times or in other places.

use std::collections::BTreeSet;

use thiserror::Error;

use super::bundled::STUDIES;
use super::found::Found;
use super::originals::of_steps;
use super::results::{Ended, Ran, Results};

/// Parts that are not of one run.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "{part} measured step {step}, and so did a part before it: join parts that ran different steps (--only)"
)]
pub struct JoinError {
    /// The later one's name.
    pub part: String,
    /// Which step.
    pub step: String,
}

/// How a warning of other work begins, which each part has with a load of its own.
pub(super) const OTHER_WORK: &str = "The machine had other work when";

impl Results {
    /// One run of these parts, named for errors. Verdicts and exhibits are made of all figures.
    ///
    /// # Errors
    /// Two of them measured the same step.
    pub fn joined(first: Results, others: Vec<(String, Results)>) -> Result<Results, JoinError> {
        let mut all = others.into_iter().try_fold(first, |all, (part, other)| all.with(&part, other))?;
        // Other studies come last.
        let place = |name: &str| STUDIES.iter().position(|(file, _)| *file == format!("studies/{name}.toml"));
        all.papers.sort_by_key(|paper| place(&paper.study.name).unwrap_or(STUDIES.len()));
        let studies: Vec<_> = all.papers.iter().map(|paper| paper.study.clone()).collect();
        all.figures = std::mem::take(&mut all.figures).with_derived(&studies);
        let ran = of_steps(&all.steps);
        let found = Found::of(&studies, &all.steps, &all.figures, &all.absent);
        all.papers = studies.iter().map(|study| found.paper(study, &study.as_run(&ran))).collect();
        all.complete =
            all.steps_run().0 == all.steps_run().1 && all.steps.iter().all(|ran| ran.ending == Ended::Whole);
        all.warnings.extend(all.of_several_commits());
        let before = all.warnings.len();
        all.warnings.retain(|text| !text.starts_with(OTHER_WORK));
        if all.warnings.len() < before {
            let parts =
                "parts of the run began (the facts have the loads): intervals of their times are wider.";
            all.warnings.insert(0, format!("{OTHER_WORK} {parts}"));
        }
        Ok(all)
    }

    /// With the steps of one part more.
    fn with(mut self, part: &str, other: Results) -> Result<Results, JoinError> {
        let (mine, theirs): (BTreeSet<String>, BTreeSet<String>) = (self.measured(), other.measured());
        if let Some(step) = mine.intersection(&theirs).next() {
            return Err(JoinError { part: part.into(), step: step.clone() });
        }
        self.absent.retain_steps(|step| !theirs.contains(step));
        let known = self.absent.steps();
        self.absent.extend(other.absent, |step| !mine.contains(step) && !known.contains(step));
        let listed = |ran: &Ran, of: &[Ran]| of.iter().any(|one| one.planned.step == ran.planned.step);
        self.steps.retain(|ran| ran.has_figures() || !listed(ran, &other.steps));
        let new: Vec<Ran> = other.steps.into_iter().filter(|ran| !listed(ran, &self.steps)).collect();
        self.steps.extend(new);
        self.figures.cells.extend(other.figures.cells);
        for paper in other.papers {
            if self.papers.iter().all(|mine| mine.study.name != paper.study.name) {
                self.papers.push(paper);
            } else if self.papers.iter().all(|mine| mine.study != paper.study) {
                let name = &paper.study.name;
                self.warnings
                    .push(format!("{name} changed between the parts: it is judged as the first part has it"));
            }
        }
        self.begun_unix_s = self.begun_unix_s.min(other.begun_unix_s);
        self.seconds += other.seconds;
        self.budget_s = self.budget_s.or(other.budget_s);
        self.command = format!("{} && {}", self.command, other.command);
        let (facts, warnings) = (other.facts.into_iter(), other.warnings.into_iter());
        let facts: Vec<_> = facts.filter(|fact| !self.facts.contains(fact)).collect();
        let warnings: Vec<_> = warnings.filter(|text| !self.warnings.contains(text)).collect();
        self.facts.extend(facts);
        self.warnings.extend(warnings);
        Ok(self)
    }

    /// Steps that have figures.
    fn measured(&self) -> BTreeSet<String> {
        self.steps.iter().filter(|ran| ran.has_figures()).map(|ran| ran.planned.step.clone()).collect()
    }

    /// That its steps were not measured by one binary.
    fn of_several_commits(&self) -> Option<String> {
        let of = |ran: &Ran| ran.commit.clone().unwrap_or_else(|| "an unknown commit".into());
        let commits: BTreeSet<String> = self.steps.iter().filter(|ran| ran.has_figures()).map(of).collect();
        (commits.len() > 1).then(|| {
            let commits: Vec<String> = commits.into_iter().collect();
            format!("Binaries of several commits measured the parts: {}", heaptoll_units::and_list(&commits))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Study;
    use crate::figures::Absent;
    use crate::testing::{cells, claiming, samples};
    use crate::verdict::Answer;

    const CLAIM: &str = "rule = \"all\"\nabove = 1.0\nquantity = { step = \"t\", metric = \"cpu_s\", programs = [\"cfrac\"], \
                         of = { managers = [\"a\"] }, over = { managers = [\"b\"] } }";

    /// A part in which these steps of the study ended so.
    fn part(study: &Study, ran: &[(&str, Ended)], commit: &str) -> Results {
        let mut results = crate::page::testing::results();
        let like = results.steps.remove(0);
        let mut absent = Absent::default();
        for step in study.steps.iter().filter(|step| ran.iter().all(|(id, _)| *id != step.id)) {
            absent.step(&step.id, "--only left it out");
        }
        results.absent = absent;
        results.steps = ran
            .iter()
            .map(|(id, ending)| {
                let mut step = like.clone();
                (step.planned.step, step.ending, step.commit) =
                    (id.to_string(), *ending, Some(commit.into()));
                step
            })
            .collect();
        results.papers[0].study = study.clone();
        if ran.iter().any(|(id, _)| *id == "t") {
            let of = |manager, value, seed| ("cfrac", manager, None, samples(value, 10, seed));
            results.figures = cells("t", "cpu_s", &[of("a", 2.0, 1), of("b", 1.0, 2)]);
        }
        results
    }

    fn joined(study: &Study, parts: &[&[(&str, Ended)]]) -> Result<Results, JoinError> {
        let mut parts =
            parts.iter().enumerate().map(|(at, ran)| (format!("part{at}"), part(study, ran, "c0ffee")));
        Results::joined(parts.next().expect("a part").1, parts.collect())
    }

    #[test]
    fn parts_of_a_run_are_judged_as_the_whole() {
        let study = claiming(CLAIM);
        let (whole, other) = ([("t", Ended::Whole)], [("c", Ended::Whole)]);
        for parts in [[&whole[..], &other], [&other, &whole]] {
            let all = joined(&study, &parts).expect("they are of one run");
            assert_eq!(all.papers.len(), 1);
            assert_eq!(all.papers[0].verdicts[0].answer, Answer::Holds, "{:?}", all.papers[0].verdicts[0]);
            assert!(all.complete && all.absent == Absent::default() && all.steps.len() == 2);
            assert!(all.warnings.is_empty(), "{:?}", all.warnings);
        }
        let refused = joined(&study, &[&whole, &whole]).expect_err("twice").to_string();
        assert!(refused.contains("part1 measured step t") && refused.contains("--only"), "{refused}");
    }

    #[test]
    fn a_claim_on_a_step_that_was_cut_or_is_in_no_part_is_not_measured_with_the_reason() {
        let study = claiming(CLAIM);
        let of = |parts: &[&[(&str, Ended)]]| {
            let all = joined(&study, parts).expect("they are of one run");
            assert!(!all.complete);
            let verdict = all.papers[0].verdicts[0].clone();
            assert_eq!(verdict.answer, Answer::NotMeasured);
            verdict.reason
        };
        let cut = of(&[&[("t", Ended::Cut)], &[("c", Ended::Whole)]]);
        assert!(cut.contains("step t: it was cut before its end"), "{cut}");
        let none = of(&[&[("c", Ended::Whole)], &[]]);
        assert!(none.contains("step t: --only left it out"), "{none}");
        // A part that ran it later has it.
        let later =
            joined(&study, &[&[("t", Ended::LeftOut)], &[("t", Ended::Whole)]]).expect("once measured");
        assert_eq!(later.papers[0].verdicts[0].answer, Answer::Holds);
        assert_eq!(later.steps.len(), 1);
    }

    /// Zorn came last, and each part repeated that the machine was busy.
    #[test]
    fn papers_are_in_their_order_and_warnings_of_load_are_one() {
        let loaded = |name: &str, load: &str| {
            let mut part = part(&claiming(CLAIM), &[], "c0ffee");
            part.papers[0].study.name = name.into();
            part.warnings = vec![format!("{OTHER_WORK} it began (load {load} on 2 cores)."), "Slow.".into()];
            part
        };
        let others = ["zorn1992", "detlefs1994"].map(|name| (name.into(), loaded(name, name)));
        let all = Results::joined(loaded("own", "1.9"), others.into()).expect("joined");
        let names: Vec<&str> = all.papers.iter().map(|paper| paper.study.name.as_str()).collect();
        assert_eq!(names, ["zorn1992", "detlefs1994", "own"]);
        assert!(matches!(&all.warnings[..], [load, other] if load.contains("parts") && other == "Slow."));
    }

    #[test]
    fn a_warning_names_the_commits_of_parts() {
        let study = claiming(CLAIM);
        let of = |ran: &str, commit: &str| part(&study, &[(ran, Ended::Whole)], commit);
        let all = Results::joined(of("t", "c0ffee"), vec![("b".into(), of("c", "beef"))]).expect("joined");
        assert_eq!(all.warnings, ["Binaries of several commits measured the parts: beef and c0ffee"]);
    }
}
