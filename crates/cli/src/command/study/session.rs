//! The steps of the studies, one after the other: after each the rest is planned anew with the time that is left and
//! what this machine has taken so far.

use std::collections::BTreeSet;
use std::time::Instant;

use heaptoll_studies::paper::budget::{LeftOut, Length, Plan, Planned, Speed, plan};
use heaptoll_studies::paper::definition::{Step, Study};
use heaptoll_studies::paper::results::Ended as Ending;

use super::keep::{self, Ended, Folder};
use super::measure::Measure;
use super::progress::Progress;
use crate::failure::Failure;
use crate::terminal;

/// What is run, and how.
pub struct Session<'a> {
    /// Keeps everything.
    pub folder: &'a Folder,
    /// The studies, without what cannot be run here.
    pub studies: &'a [Study],
    /// How much of them.
    pub length: Length,
    /// When it began, or was gone on with.
    pub begun: Instant,
    /// Runs a step.
    pub measure: Measure<'a>,
    /// Whether a program has inputs of a size.
    pub has_size: &'a dyn Fn(&str, &str) -> bool,
}

/// What became of the steps.
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
    /// Seconds that it took, those before it was gone on with too.
    pub seconds: f64,
}

impl Ran {
    /// Whether a step failed or was cut.
    pub fn trouble(&self) -> bool {
        self.steps.iter().any(|step| step.ran.ending != Ending::Whole)
    }

    /// Whether all steps were run to their end.
    pub fn complete(&self) -> bool {
        !self.interrupted && !self.trouble() && self.left_out.is_empty()
    }
}

impl Session<'_> {
    /// Runs what is left to run.
    ///
    /// # Errors
    /// heaptoll cannot be started, or files cannot be written.
    pub fn run(&mut self) -> Result<Ran, Failure> {
        let mut ran = Ran::default();
        let mut speed = Speed::default();
        let mut done = BTreeSet::new();
        let steps = || self.studies.iter().flat_map(|study| &study.steps);
        for step in steps() {
            let Some(ended) = self.folder.step(&step.id).ok().and_then(|folder| folder.ended()) else {
                continue;
            };
            if ended.interrupted {
                continue;
            }
            self.learn(&mut speed, step, &ended);
            done.insert(step.id.clone());
            ran.steps.push(ended);
        }
        let before: f64 = ran.steps.iter().map(|step| step.ran.seconds).sum();
        let mut progress = Progress::new();
        let interrupt = self.measure.interrupt;
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
            let folder = self.folder.step(&step.id).map_err(keep::refused)?;
            let ended = self
                .measure
                .step(step, next, &folder, &mut || progress.look())
                .map_err(|error| Failure::Trouble(Box::new(error)));
            let ended = ended.inspect_err(|_| progress.clear())?;
            if ended.ran.ending == Ending::Failed {
                let why = ended.why.as_deref().unwrap_or_default();
                progress.above(|| terminal::warning(&format!("step {} failed: {why}", step.id)));
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
        progress.clear();
        ran.seconds = before + self.begun.elapsed().as_secs_f64();
        Ok(ran)
    }

    /// How much of the rest there is time for.
    fn left(&self, gone: f64) -> Length {
        match self.length {
            Length::Seconds(all) => Length::Seconds((all - gone).max(0.0)),
            other => other,
        }
    }

    /// How long this kind of step takes here. One that failed at once says nothing of it.
    fn learn(&self, speed: &mut Speed, step: &Step, ended: &Ended) {
        if ended.ran.ending != Ending::Failed && !ended.interrupted {
            speed.learn(step, &ended.ran.planned, ended.ran.seconds);
        }
    }
}
