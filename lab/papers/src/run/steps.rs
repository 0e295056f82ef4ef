//! The steps of the studies, one after the other: after each the rest is planned again with the time that is left and
//! the time that this machine has taken so far.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::budget::{LeftOut, Length, Plan, Planned, Speed, plan};
use crate::definition::{Step, Study};
use crate::results::Ended as Ending;

use super::folder::{Ended, Folder};
use super::measure::Measure;
use super::progress::Progress;
use heaptoll_command::context::Messages;
use heaptoll_command::failure::Failure;

/// The steps to run, and their parameters.
pub struct Steps<'a> {
    /// Keeps everything.
    pub folder: &'a Folder,
    /// The studies, without what cannot be run here.
    pub studies: &'a [Study],
    /// How much of them.
    pub length: Length,
    /// When it began, or was resumed.
    pub begun: Instant,
    /// It was resumed with another budget: steps that were cut for lack of time are resumed.
    pub more_time: bool,
    /// Runs a step.
    pub measure: Measure<'a>,
    /// Whether a program has inputs of a size.
    pub has_size: &'a dyn Fn(&str, &str) -> bool,
    /// Where progress and warnings go.
    pub messages: &'a dyn Messages,
}

/// Outcomes of the steps.
#[derive(Debug, Default)]
pub struct Ran {
    /// Those that were run, in their order.
    pub steps: Vec<Ended>,
    /// Those that there was no time for.
    pub left_out: Vec<LeftOut>,
    /// Those that Ctrl-C left.
    pub not_reached: Vec<Planned>,
    /// Ctrl-C.
    pub interrupted: bool,
    /// Why no more steps could be run: what was measured until then is shown.
    pub stopped: Option<Failure>,
    /// Seconds that it took, those before it was resumed included.
    pub seconds: f64,
}

impl Ran {
    /// Whether a step failed or was cut.
    pub fn trouble(&self) -> bool {
        self.steps.iter().any(|step| step.ran.ending != Ending::Whole)
    }

    /// Whether all steps were run to their end.
    pub fn complete(&self) -> bool {
        let ended_early = self.interrupted || self.stopped.is_some();
        !ended_early && !self.trouble() && self.left_out.is_empty()
    }
}

impl Ran {
    /// Keeps the figures of steps that were begun before and not resumed now: nothing that was measured is lost.
    fn keep(&mut self, unfinished: Vec<Ended>) {
        for ended in unfinished {
            let id = &ended.ran.planned.step;
            if self.steps.iter().any(|other| other.ran.planned.step == *id) {
                continue;
            }
            self.left_out.retain(|left| left.step != *id);
            self.not_reached.retain(|planned| planned.step != *id);
            self.steps.push(ended);
        }
    }
}

impl Steps<'_> {
    /// Runs the remaining steps.
    pub fn run(&self) -> Ran {
        let mut ran = Ran::default();
        let mut speed = Speed::default();
        let mut done = BTreeSet::new();
        let mut unfinished = Vec::new();
        let steps = || self.studies.iter().flat_map(|study| &study.steps);
        for step in steps() {
            let Some(ended) = self.folder.step(&step.id).ok().and_then(|folder| folder.ended()) else {
                continue;
            };
            if self.is_done(&ended) {
                self.learn(&mut speed, step, &ended);
                done.insert(step.id.clone());
                ran.steps.push(ended);
            } else {
                unfinished.push(ended);
            }
        }
        let before: f64 = ran.steps.iter().chain(&unfinished).map(|step| step.ran.seconds).sum();
        let mut progress = Progress::new(self.messages);
        let interrupt = self.measure.heaptoll.interrupt;
        loop {
            let gone = before + self.begun.elapsed().as_secs_f64();
            let Plan { planned, left_out } =
                plan(self.studies, self.left(gone), self.has_size, &speed, &done);
            ran.left_out = left_out;
            let Some(next) = planned.first() else { break };
            if interrupt.is_set() {
                ran.interrupted = true;
                ran.not_reached = planned;
                break;
            }
            let Some(step) = steps().find(|step| step.id == next.step) else { break };
            let left_s = planned.iter().map(|planned| planned.seconds).sum();
            progress.begins(ran.steps.len(), ran.steps.len() + planned.len(), next, step, left_s);
            let ended = match self.one(step, next, &progress) {
                Ok(ended) => ended,
                Err(failure) => {
                    ran.stopped = Some(failure);
                    ran.not_reached = planned;
                    break;
                }
            };
            if ended.ran.ending == Ending::Failed {
                let why = ended.why.as_deref().unwrap_or_default();
                self.messages.warning(&format!("step {} failed: {why}", step.id));
            }
            self.learn(&mut speed, step, &ended);
            done.insert(step.id.clone());
            ran.interrupted = ended.interrupted;
            ran.steps.push(ended);
            if ran.interrupted {
                ran.not_reached = planned.get(1..).unwrap_or_default().to_vec();
                break;
            }
        }
        drop(progress);
        ran.keep(unfinished);
        ran.seconds = before + self.begun.elapsed().as_secs_f64();
        ran
    }

    fn one(&self, step: &Step, planned: &Planned, progress: &Progress) -> Result<Ended, Failure> {
        let folder = self.folder.step(&step.id).map_err(|error| Failure::Trouble(Box::new(error)))?;
        let ended = self.measure.step(step, planned, &folder, &mut || progress.refresh());
        ended.map_err(|error| Failure::Trouble(Box::new(error)))
    }

    /// Whether a step that was run before is not run again.
    fn is_done(&self, ended: &Ended) -> bool {
        match ended.ran.ending {
            Ending::Whole | Ending::LeftOut => true,
            Ending::Cut => !ended.interrupted && !self.more_time,
            // What it lacked may be installed now.
            Ending::Failed => false,
        }
    }

    /// How much of the rest there is time for.
    fn left(&self, gone: f64) -> Length {
        match self.length {
            Length::Seconds(all) => Length::Seconds((all - gone).max(0.0)),
            other => other,
        }
    }

    /// How long this kind of step takes here. One that failed at once shows nothing about it.
    fn learn(&self, speed: &mut Speed, step: &Step, ended: &Ended) {
        if ended.ran.ending != Ending::Failed && !ended.interrupted {
            speed.learn(step, &ended.ran.planned, ended.ran.seconds);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptoll_facts::Value;

    fn ended(step: &str, ending: Ending) -> Ended {
        let mut ran = crate::page::testing::results().steps.remove(0);
        (ran.planned.step, ran.ending) = (step.into(), ending);
        let samples = Value::Samples(vec![Some(1.0)]);
        let cells = crate::testing::cells(step, "cpu_s", &[("cfrac", "lea", None, samples)]).cells;
        Ended { ran, interrupted: ending == Ending::Cut, why: None, cells, absent: vec![] }
    }

    /// A step that Ctrl-C had cut lost its figures when the study went on and did not get to it again.
    #[test]
    fn what_an_interrupted_step_had_is_kept_when_it_is_not_reached_again() {
        let not_reached = |id: &str| ended(id, Ending::Cut).ran.planned;
        let mut ran = Ran {
            steps: vec![ended("again", Ending::Whole)],
            left_out: vec![LeftOut { study: "made".into(), step: "cut".into(), why: "no time".into() }],
            not_reached: vec![not_reached("later"), not_reached("other")],
            ..Ran::default()
        };
        ran.keep(vec![ended("again", Ending::Cut), ended("cut", Ending::Cut), ended("later", Ending::Cut)]);
        let ids: Vec<&str> = ran.steps.iter().map(|step| step.ran.planned.step.as_str()).collect();
        assert_eq!(ids, ["again", "cut", "later"]);
        assert!(
            ran.steps[0].ran.ending == Ending::Whole && ran.steps.iter().all(|step| !step.cells.is_empty())
        );
        assert!(ran.left_out.is_empty() && ran.not_reached.len() == 1);
        assert!(ran.trouble() && !ran.complete());
    }
}
