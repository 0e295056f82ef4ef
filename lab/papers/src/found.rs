//! What follows from figures, whether they were measured now, joined from parts of a run, or judged again: verdicts and
//! exhibits.

use std::collections::{BTreeMap, BTreeSet};

use super::definition::Study;
use super::exhibit::show;
use super::figures::{Absent, Figures};
use super::results::{Ended, PaperResult, Ran, add_programs};
use super::verdict::{Verdict, judge};

/// Figures, and what is known of those that are missing.
pub(super) struct Found<'a> {
    figures: &'a Figures,
    absent: &'a Absent,
    /// Without those of steps that were cut.
    judged: Figures,
    judged_absent: Absent,
    /// By step.
    commands: BTreeMap<String, String>,
}

impl<'a> Found<'a> {
    /// The figures of these steps of studies, as they are written. One that was cut is shown, and nothing is judged by it: it has what came first, not
    /// what its claims need.
    pub fn of(studies: &[Study], steps: &[Ran], figures: &'a Figures, absent: &'a Absent) -> Found<'a> {
        let ran = steps.iter().filter(|step| step.ending != Ended::LeftOut);
        let commands = ran.map(|step| (step.planned.step.clone(), step.command.clone())).collect();
        let cut: BTreeSet<&String> =
            steps.iter().filter(|step| step.ending == Ended::Cut).map(|step| &step.planned.step).collect();
        let whole = figures.cells.iter().filter(|cell| !cut.contains(&cell.step));
        let judged = Figures { cells: whole.cloned().collect() };
        let mut judged_absent = absent.clone();
        cut.iter().for_each(|step| judged_absent.step(step, "it was cut before its end"));
        add_programs(&mut judged_absent, studies, steps);
        Found { figures, absent, judged, judged_absent, commands }
    }

    /// The verdicts on a study's claims, as it was run.
    pub fn verdicts(&self, run: &Study) -> Vec<Verdict> {
        run.claims.iter().map(|claim| judge(run, claim, &self.judged, &self.judged_absent)).collect()
    }

    /// All of a paper: of the study as it is written, by what was run of it.
    pub fn paper(&self, study: &Study, run: &Study) -> PaperResult {
        let shown = |one| show(run, one, self.figures, &self.commands, self.absent);
        PaperResult {
            verdicts: self.verdicts(run),
            exhibits: run.exhibits.iter().map(shown).collect(),
            study: study.clone(),
        }
    }
}
