//! Stored figures judged again, by the claims of today: a test that is mended shows what it makes of the figures that the
//! old one judged, and nothing is measured.

use super::definition::Study;
use super::exhibit::kin_note;
use super::figures::{Absent, Figures};
use super::found::Found;
use super::originals::of_steps;
use super::results::{Ended, PaperResult, Results};

impl Results {
    /// The same figures, with these studies' claims and their verdicts in place of the stored ones. Of a study that is
    /// not stored nothing is judged; exhibits stay as they were, but for why their programs are not the paper's.
    pub fn judged_again(mut self, studies: &[Study]) -> Results {
        let stored: Vec<Study> = self.papers.iter().map(|paper| paper.study.clone()).collect();
        self.figures = Figures { cells: std::mem::take(&mut self.figures.cells) }.with_derived(&stored);
        let absent = self.known_absent();
        let ran = of_steps(&self.steps);
        let found = Found::of(studies, &self.steps, &self.figures, &absent);
        for paper in &mut self.papers {
            if let Some(today) = studies.iter().find(|study| study.name == paper.study.name) {
                judged(paper, (today, &today.as_run(&ran)), &found);
            }
        }
        self
    }

    /// Why figures are missing; files of before do not say it, and their steps show a part of it.
    fn known_absent(&self) -> Absent {
        let mut absent = self.absent.clone();
        if !absent.is_empty() {
            return absent;
        }
        for ran in self.steps.iter().filter(|ran| matches!(ran.ending, Ended::LeftOut | Ended::Failed)) {
            let why = ran.warnings.first().map_or("it gave no figures", String::as_str);
            absent.step(&ran.planned.step, why);
        }
        absent
    }
}

/// Judges a paper by the study of today, as it is written and as it was run.
fn judged(paper: &mut PaperResult, (today, run): (&Study, &Study), found: &Found<'_>) {
    paper.verdicts = found.verdicts(run);
    paper.study.claims.clone_from(&today.claims);
    paper.study.summary.clone_from(&today.summary);
    for shown in &mut paper.exhibits {
        let exhibit = run.exhibits.iter().find(|exhibit| exhibit.id == shown.id);
        let note = exhibit.and_then(|exhibit| kin_note(run, exhibit));
        shown.notes.extend(note.filter(|note| !shown.notes.contains(note)));
    }
    // A page links only to what it has.
    let has = |id: &String| paper.exhibits.iter().any(|shown| shown.id == *id);
    paper.verdicts.iter_mut().for_each(|verdict| verdict.exhibits.retain(has));
}

#[cfg(test)]
mod tests {
    use crate::page::testing::results;
    use crate::verdict::Answer;

    #[test]
    fn the_same_figures_are_judged_by_the_claims_of_today() {
        let before = results();
        let mut today = before.papers[0].study.clone();
        let same = before.clone().judged_again(&[today.clone()]);
        let claim =
            today.claims.iter().position(|claim| !claim.tests.is_empty()).expect("a claim with a test");
        let test = &mut today.claims[claim].tests[0];
        (test.above, test.below, test.rule) = (Some(f64::MAX), None, crate::definition::Rule::Some);
        let again = before.clone().judged_again(std::slice::from_ref(&today));
        let answers = |results: &crate::results::Results| results.papers[0].verdicts[claim].answer;
        assert_ne!(answers(&again), Answer::Holds, "nothing is above that");
        assert_eq!(again.papers[0].study.claims, today.claims);
        assert_eq!(again.papers[0].exhibits, before.papers[0].exhibits);
        assert_eq!(same.papers[0].verdicts.len(), before.papers[0].verdicts.len());
        let other = crate::definition::Study { name: "another".into(), ..today };
        assert_eq!(before.clone().judged_again(&[other]).papers[0].verdicts, before.papers[0].verdicts);
    }
}
